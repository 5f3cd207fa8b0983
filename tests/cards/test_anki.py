"""Anki's own engine opens what is exported: every card, both its faces, nothing lost."""

import random
import re
import warnings
from dataclasses import replace

from anki.collection import (
    Collection,
    ImportAnkiPackageOptions,
    ImportAnkiPackageRequest,
)
from anki_cards import ALL, CHOICE, CLOZE, MONDAY, NOTE, NUMBER, ORDER, shown, words
from hypothesis import given, settings
from hypothesis import strategies as st

from disttutor.cards import Card, Drawn, Face
from disttutor.cards.anki import package as anki


def test_every_card_comes_with_both_faces(collection, bring):
    assert bring(ALL) == (9, 0, 0)                                      # four of them examples of the number card
    ((question, answer),) = shown(collection, "dp-copied")
    assert words(question) == "What is copied? Hinglish: What is copied?"
    assert words(answer) == (words(question) + " The model. Hinglish: The model. Lesson 03, Why Li 2020, section 3")
    assert '<div class="face" lang="en"><p>What is copied?' in question
    assert '<div class="face second" lang="hi-Latn"><p>Hinglish: What' in question


def test_decks_are_a_tree_and_the_rest_is_tags(collection, bring):
    bring(ALL)
    assert {deck.name for deck in collection.decks.all_names_and_ids()} == {
        "Default", "disttutor", "disttutor::02 How ranks talk", "disttutor::03 Data parallelism", "disttutor::ai-ml"}
    note = collection.get_note(collection.find_notes("Id:dp-copied")[0])
    assert sorted(note.tags) == ["disttutor::concept::all-reduce", "disttutor::concept::data-parallelism",
                                 "disttutor::family::sync-async", "disttutor::kind::basic", "disttutor::lesson::03"]
    note = collection.get_note(collection.find_notes("Id:0f3a9c")[0])
    assert sorted(note.tags) == ["disttutor::deck::more-decks", "disttutor::kind::basic"]


def test_a_choice_shows_options_and_then_reasons(collection, bring):
    bring([CHOICE])
    ((question, answer),) = shown(collection, "dp-choice")
    options = re.findall(r"<li>(.*?)</li>", question)
    assert sorted(options[:3]) == ["all-reduce", "broadcast", "gather"]
    assert options[:3] == options[3:]                                   # Hinglish in the same order
    back = answer.split('<hr id="answer">')[1]
    assert back.count('<span class="right">✓ all-reduce</span>') == 2
    assert back.count('✗ broadcast<br><span class="remark">It only copies.</span>') == 2
    assert "It adds up." in back


def test_the_right_option_does_not_stand_where_the_deck_has_it(collection, bring):
    """Decks tend to name the right option first; drawn from 40 ids, it stands everywhere."""
    bring([replace(CHOICE, id=f"choice-{n}") for n in range(40)])
    fronts = [shown(collection, f"choice-{n}")[0][0] for n in range(40)]
    places = [re.findall(r"<li>(.*?)</li>", front).index("all-reduce") for front in fronts]
    assert min(places.count(place) for place in (0, 1, 2)) >= 5


def test_steps_are_shuffled_and_then_in_order(collection, bring):
    bring([replace(ORDER, id=f"order-{n}") for n in range(12)])
    for n in range(12):
        ((question, answer),) = shown(collection, f"order-{n}")
        steps = re.findall(r"<li>(.*?)</li>", question)[:3]
        assert sorted(steps) == ["backward", "forward", "update"] and steps != ["forward", "backward", "update"]
        assert "<ol><li>forward</li><li>backward</li><li>update</li></ol>" in answer.split("<hr")[1]


def test_a_cloze_has_a_gap_and_braces_stay(collection, bring):
    bring([CLOZE])
    ((question, answer),) = shown(collection, "dp-cloze")
    assert re.search(r'<span class="gap"[^>]*>\[...]</span> <code>}}</code> leaves the sum.', question)
    assert "All-reduce" not in question
    assert '<span class="gap">All-reduce</span>' in answer
    assert "All-reduce <code>}}</code> leaves the sum." in answer


def test_a_number_card_is_worked_examples_that_stay_the_same(collection, bring):
    assert bring([NUMBER]) == (4, 0, 0)
    examples = shown(collection, "ring-steps")
    drawn = [int(re.search(r"ring of (\d+)", question)[1]) for question, _ in examples]
    assert len(set(drawn)) == 4
    for number, (ranks, (question, answer)) in enumerate(zip(drawn, examples, strict=True), 1):
        assert f"Worked example {number} of 4" in question and f"Example {number} / 4" in question
        assert rf"\(2({ranks}-1) = {2 * ranks - 2}\)" in answer
    assert bring([NUMBER], MONDAY + 60) == (0, 4, 0)
    assert shown(collection, "ring-steps") == examples


def test_of_few_possible_numbers_no_example_comes_twice(bring):
    def coin(drawn: random.Random) -> Drawn:
        return Drawn({"en": Face(f"{drawn.randint(1, 2)}?", "so")}, 1)

    assert bring([replace(NUMBER, draw=coin)]) == (2, 0, 0)


def test_a_learners_note_keeps_its_letters_and_its_language(collection, bring):
    bring([NOTE])
    ((question, answer),) = shown(collection, "0f3a9c")
    assert question.strip() == '<div class="face" lang="hi"><p>नमस्ते <code>{{Front}}</code> &lt;rank&gt;?</p></div>'
    assert "दुनिया 🎉" in answer


LETTERS = st.one_of(st.characters(codec="utf-8"), st.sampled_from("<>&{}[]$`*_#|\\\n\x1f\x00:;\"'!-"))
NASTY = st.text(LETTERS, max_size=40)


@settings(max_examples=12)
@given(texts=st.lists(st.tuples(NASTY, NASTY, NASTY), min_size=1, max_size=40))
def test_whatever_is_written_arrives_as_one_note_a_card(texts, tmp_path_factory):
    """A letter must not end a field, a tag of HTML not swallow the rest, a mark not run as an order."""
    cards = [Card(id=f"c{n}", deck=f"flashcards/{deck}", also=(deck,), faces={"en": Face(f"Q {front}", f"A {back} Z")})
             for n, (deck, front, back) in enumerate(texts)]
    folder = tmp_path_factory.mktemp("any")
    with warnings.catch_warnings():
        warnings.simplefilter("error")                  # genanki warns of what is no HTML
        anki.export(cards, folder / "x.apkg", timestamp=MONDAY)
    opened = Collection(str(folder / "collection.anki2"))
    request = ImportAnkiPackageRequest(package_path=str(folder / "x.apkg"), options=ImportAnkiPackageOptions())
    assert len(opened.import_anki_package(request).log.new) == opened.card_count() == len(cards)
    for card in cards:
        ((question, answer),) = shown(opened, card.id)
        assert words(question).startswith("Q")
        assert words(answer.split('<hr id="answer">')[1]).startswith("A")
    assert opened.fix_integrity()[1]
    opened.close()
