"""`disttutor cards`: what is said, what is written, and with which exit status."""

import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from disttutor import cli
from disttutor.cards import Card, our_cards
from disttutor.cards.progress import here
from disttutor.cards.progress.scheduling import Rating
from disttutor.cards.shelf import every_card

NOTE = """\
#flashcards/cooking
What makes a soup better? :: Salt
Nothing ::

A ==spoon== stirs it.
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DISTTUTOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def vault(tmp_path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "soup.md").write_text(NOTE)
    return folder


def call(*arguments: object, lines: str = ""):
    result = CliRunner().invoke(cli.app, ["cards", *map(str, arguments)], env={"COLUMNS": "80"}, input=lines)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def said(*arguments: object, status: int = 0, lines: str = "") -> str:
    result = call(*arguments, lines=lines)
    assert result.exit_code == status, result.output
    return result.output


# The review

def test_what_is_due_is_reviewed_and_kept():
    output = said("--deck", "01", "--new", "1", lines="3\n2\nq\n")
    assert "1 of 1 · 01 Why distribute" in output and "How sure are you?" in output
    assert "They come back:" in output
    (review,) = here().reviews
    assert our_cards()[[card.id for card in our_cards()].index(review.card)].lesson == 1


def test_when_nothing_is_due_it_says_how_to_practise_all_the_same():
    output = said("--new", "0")
    assert "Nothing is due now. To go through cards all the same: disttutor cards --all" in output
    count = sum(card.deck == "disttutor/01-why-distribute" for card in our_cards())
    assert f"1 of {count} · 01" in said("--deck", "disttutor/01", "--all")


def test_a_deck_that_is_not_there_is_said_with_those_that_are():
    for command in ([], ["export"], ["stats"]):
        output = said(*command, "--deck", "99-nothing", status=2)
        assert "There is no deck '99-nothing'." in output and "disttutor/03-data-parallelism" in output


def test_progress_that_cannot_be_kept_is_said(home):
    home.write_text("a file where the folder should be")
    (answer,) = said("--deck", "01", "--new", "1", lines="3\n2\nq\n").splitlines()[-1:]
    assert "memory" in answer
    assert "memory" in said("settings", "buttons", "4")


def test_an_edited_card_goes_on_with_its_history_unless_the_learner_says_no(vault):
    said("notes", vault)
    here().answer(_soup(), Rating.REMEMBERED)
    for now, line, seen in (("better!?", "n", 0), ("better?", "", 1)):
        (vault / "soup.md").write_text(NOTE.replace("better?", now))
        output = said("--deck", "cooking", "--new", "0", lines=f"{line}\nq\n")
        assert ("Are they one card?" in output) == (now == "better!?")
        assert (_soup().id in here().states) == bool(seen)


def _soup() -> Card:
    (soup,) = [card for card in every_card(here())[0] if card.deck == "flashcards/cooking" and card.kind == "basic"]
    return soup


# What is known, and settings

def test_many_edited_cards_are_asked_about_together(vault):
    said("notes", vault)
    note, questions = vault / "soup.md", [f"Which spice number {n} goes into the soup?" for n in range(40)]
    note.write_text("#flashcards/cooking\n" + "\n".join(f"{question} :: X" for question in questions))
    before = [card for card in every_card(here())[0] if card.deck == "flashcards/cooking"]
    for card in before:
        here().answer(card, Rating.EASY)
    note.write_text(note.read_text().replace("cooking", "kitchen"))
    output = said("-d", "kitchen", lines="\n" * 5 + "n\n")
    assert output.count("one card?") == 6 and "So do 34 more cards with theirs." in output
    assert sum(card.id in here().states for card in before) == 35


def test_stats_count_cards_by_what_is_known_of_them():
    lesson = [card for card in our_cards() if card.deck == "disttutor/01-why-distribute"]
    for card in lesson[:2]:
        here().answer(card, Rating.FORGOT)
    output = said("stats", "-d", "disttutor/01-why-distribute")
    (row,) = [line for line in output.splitlines() if "01 Why distribute" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "01 Why distribute", str(len(lesson)), "0", "2", str(len(lesson) - 2), "0"]
    assert "2 reviews on 1 day until now." in output
    assert "all of them" not in output and "all of them" in said("stats")


@pytest.mark.parametrize(("name", "typed", "value"), [
    ("buttons", "4", 4), ("confidence", "no", False), ("confidence", "ON", True), ("rollover_hour", "010", 10),
    ("retention", "0.85", 0.85), ("zone", "", ""),
    ("zone", "Asia/Kolkata", "Asia/Kolkata"), ("language", "hi-Latn", "hi-Latn")])
def test_settings_are_set(name, typed, value):
    assert f"{name}: {value}" in said("settings", name, typed)
    assert here().setting(name) == value
    assert f"{name}: {value}" in said("settings")


@pytest.mark.parametrize(("arguments", "words"), [
    (["buttons", "3"], "buttons cannot be 3; it can be 2 or 4."), (["button", "4"], "there is no setting 'button'"),
    (["new_per_day", "1:30"], "new_per_day cannot be '1:30'"), (["new_per_day", "0x10"], "cannot be '0x10'"),
    (["button"], "there is no setting 'button'"), (["retention", "[x"], "retention cannot be '[x'")])
def test_settings_that_cannot_be_are_refused(arguments, words):
    assert words in said("settings", *arguments, status=2)


# Notes of the learner

def test_notes_are_named_read_and_forgotten(vault):
    assert "No notes of yours are read." in said("notes")
    output = said("notes", vault)
    assert f"{vault}: 2 cards" in output and "soup.md:3: no card: there is no text after the separator" in output
    assert said("notes", vault) == output == said("notes")
    assert here().setting("notes_folders") == [str(vault)]
    assert "What makes a soup better?" in said("--deck", "cooking", "--all")
    assert "kept" in said("notes", vault, "--forget")
    assert here().setting("notes_folders") == []
    assert "There is no deck 'cooking'" in said("--deck", "cooking", status=2)
    assert (vault / "soup.md").read_text() == NOTE


def test_notes_that_are_not_there_are_refused(tmp_path):
    assert "is not there" in said("notes", tmp_path / "nowhere", status=2)
    assert "what is read: nothing" in said("notes", tmp_path, "--forget", status=2)
    assert "Name the folder" in said("notes", "--forget", status=2)
    assert here().setting("notes_folders") == []


# Lint

def test_lint_names_file_line_and_level_and_ends_with_1(vault):
    output = said("lint", vault / "soup.md", status=1)
    assert f"{vault / 'soup.md'}:3: error: there is no text after the separator" in output


def test_lint_ends_with_0_where_nothing_is_wrong(tmp_path):
    (tmp_path / "fine.md").write_text("#flashcards/x\nWhat is one? :: One\n")
    assert said("lint", tmp_path / "fine.md") == ""
    (tmp_path / "advice.md").write_text("#flashcards/x\nWhat is one? :: One :: or 1\n")
    assert ": note: " in said("lint", tmp_path / "advice.md")


def test_lint_reads_folders_and_decks(vault):
    (vault / "deep").mkdir()
    (vault / "deep" / "deck.toml").write_text("[[card]]\nid = 'X'\n")
    (vault / ".trash").mkdir()
    (vault / ".trash" / "old.md").write_text(NOTE)
    lines = said("lint", vault, status=1).splitlines()
    assert [line.split(":")[0] for line in lines] == [str(vault / "deep" / "deck.toml"), str(vault / "soup.md")]


def test_lint_of_nothing_is_a_clear_message(tmp_path, vault):
    output = said("lint", vault / "soup.md", tmp_path / "missing.md", status=2)
    assert output.startswith(f"{tmp_path / 'missing.md'} is not there.") and "soup.md:" not in output
    (tmp_path / "empty").mkdir()
    assert "holds no note (.md) and no deck (.toml)" in said("lint", tmp_path / "empty", status=2)


# Export and import

@pytest.fixture
def here_it_is(tmp_path, monkeypatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_export_makes_a_package_of_all_cards(here_it_is, vault):
    said("notes", vault)
    output = said("export")
    plain = [card for card in our_cards() if card.kind != "number"]
    numbers = len(our_cards()) - len(plain)
    count = int(output.splitlines()[1].split()[0])
    assert len(plain) + 2 + 3 * numbers <= count <= len(plain) + 2 + 4 * numbers
    assert "notes are in disttutor.apkg. In Anki: File, then Import." in output
    assert zipfile.is_zipfile(here_it_is / "disttutor.apkg")
    assert [path.name for path in here_it_is.iterdir()] == ["disttutor.apkg"]
    said("export", "-d", "00")                                          # over the older one


def test_names_that_no_file_can_have_are_told_so(here_it_is):
    long = "a" * 300
    assert "is not there. Name a note or a deck" in said("lint", long, status=2)
    assert "is not there. Name the folder" in said("notes", long, status=2)
    assert "is not there. Name the folder" in said("notes", "~nosuchuser/vault", status=2)
    for name in (f"{long}.md", f"{long}.apkg", "~nosuchuser/x.apkg", "~nosuchuser/x.md"):
        assert "cannot be written: " in said("export", name, "-d", "01", status=2)
    assert "cannot be read or written" in said("import", "~nosuchuser/x.json", status=2)
    assert list(here_it_is.iterdir()) == []


def test_a_folder_has_one_name_however_it_is_given(here_it_is, vault):
    for name in ("../vault", vault, f"{vault}/", f"{here_it_is}/../vault"):
        said("notes", name)
    assert here().setting("notes_folders") == [str(vault)]


def test_export_writes_what_the_name_ends_in(here_it_is):
    said("export", "one.tsv", "-d", "01")
    said("export", "two.txt", "-d", "01", "--format", "tsv")
    text = (here_it_is / "one.tsv").read_text()
    assert text.startswith("#separator:tab\n#html:true\n") and "disttutor::01 Why distribute" in text
    assert text == (here_it_is / "two.txt").read_text()
    output = said("export", "three.md", "-d", "disttutor/01")
    assert "#flashcards/disttutor/01-why-distribute" in (here_it_is / "three.md").read_text()
    drawn = sum(card.kind == "number" for card in our_cards() if card.deck == "disttutor/01-why-distribute")
    assert (f"Without {drawn} number cards" in output) == bool(drawn)
    said("export", "four.md", "-d", "disttutor/01", "--hinglish")
    card = next(card for card in our_cards() if card.deck == "disttutor/01-why-distribute")
    assert card.faces["hi-Latn"].question.split("\n")[0] in (here_it_is / "four.md").read_text()


def test_export_to_standard_output_is_the_text_alone(vault):
    said("notes", vault)
    result = call("export", "-", "--format", "markdown", "-d", "cooking")
    assert result.exit_code == 0 and result.stdout.startswith("#flashcards/cooking\n")
    assert "soup.md, line 3" in result.stderr


def test_a_note_is_not_written_over_by_mistake(here_it_is):
    (here_it_is / "mine.md").write_text("mine")
    assert "To write over it: --replace" in said("export", "mine.md", status=2)
    assert (here_it_is / "mine.md").read_text() == "mine"
    said("export", "mine.md", "--replace", "-d", "01")
    assert "#flashcards" in (here_it_is / "mine.md").read_text()


@pytest.mark.parametrize("arguments", [["mine.md", "--format", "tsv"], ["mine.txt"], ["mine.md", "--progress"]])
def test_a_file_that_no_export_has_made_is_not_written_over(here_it_is, arguments):
    file = here_it_is / arguments[0]
    file.write_text("mine")
    assert "To write over it: --replace" in said("export", *arguments, status=2)
    assert file.read_text() == "mine"
    said("export", *arguments, "--replace")
    said("export", *arguments)                                          # over an export it needs no word
    assert file.read_text() != "mine"


def test_standard_output_gets_what_a_file_would(here_it_is, monkeypatch):
    said("export", "cards.tsv")
    result = CliRunner(charset="ascii").invoke(cli.app, ["cards", "export", "-", "--format", "tsv"])
    assert result.stdout_bytes == (here_it_is / "cards.tsv").read_bytes() and not result.stdout_bytes.isascii()


def test_progress_goes_to_standard_output_too(here_it_is):
    here().answer(our_cards()[0], Rating.REMEMBERED)
    (event,) = json.loads(call("export", "--progress", "-").stdout)["events"]
    assert event["card"] == our_cards()[0].id and list(here_it_is.iterdir()) == []


def test_a_package_is_no_text(here_it_is):
    assert "name a file, such as disttutor.apkg" in said("export", "--format", "apkg", "-", status=2)


@pytest.mark.parametrize(("arguments", "words"), [
    (["cards.zip"], "it can end in .apkg, .tsv, .txt, .md, .markdown."), (["cards"], "Or name the format"),
    (["cards.zip", "--format", "apkg"], "does not end in .apkg, by which Anki knows its packages"),
    (["cards.apkg", "--format", "anki"], "There is no format 'anki'. There are: apkg, tsv, markdown."),
    (["nowhere/cards.apkg"], "for example: ~/disttutor.apkg"), (["nowhere/cards.tsv"], "for example: ~/disttutor.tsv"),
    (["nowhere/progress.json", "--progress"], "for example: ~/disttutor-progress.json")])
def test_export_that_cannot_be_says_what_would_work(here_it_is, arguments, words):
    assert words in said("export", *arguments, "-d", "01", status=2)
    assert list(here_it_is.iterdir()) == []


def test_progress_moves_to_another_computer(here_it_is, tmp_path, monkeypatch):
    here().answer(our_cards()[0], Rating.REMEMBERED)
    assert "1 entries are in" not in (output := said("export", "--progress", "mine.json"))
    assert output == "1 entry is in mine.json. On another computer: disttutor cards import mine.json\n"
    monkeypatch.setenv("DISTTUTOR_HOME", str(tmp_path / "other"))
    assert said("import", "mine.json") == "1 entry is new here.\n"
    assert [review.card for review in here().reviews] == [our_cards()[0].id]
    assert said("import", "mine.json") == "All of it was here already.\n"


@pytest.mark.parametrize(("content", "words"), [
    (None, "cannot be read"), ("", "damaged"), (json.dumps({"cards": []}), "is no progress")])
def test_import_of_something_else_changes_nothing(here_it_is, content, words):
    if content is not None:
        (here_it_is / "x.json").write_text(content)
    assert words in said("import", "x.json", status=2)
    assert here().reviews == []


def test_help_names_what_there_is():
    output = said("--help")
    assert all(command in output for command in ("lint", "export", "import", "stats", "notes", "settings", "--deck"))
    assert "cards" in CliRunner().invoke(cli.app, ["--help"]).output
