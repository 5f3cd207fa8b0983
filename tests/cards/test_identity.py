"""Ids stay what they are, and a card whose question was edited is found again where there is no doubt (case A-38)."""

import time

import pytest

from disttutor.cards.card import Card, Face
from disttutor.cards.notes import parsing as notes
from disttutor.cards.notes.identity import Known, hashed_id, known, near_matches


def card(id, front, *, deck="d", kind="basic", sibling=1):
    return Known(id, deck, kind, sibling, front)


def pairs(old, new):
    return [(one, other) for one, other, _ in near_matches(old, new)]


def test_the_hash_never_changes():
    # Worked out once by `printf 'What is a rank?\0flashcards/a\0basic' | sha256sum`.
    assert hashed_id("What is a rank?", "flashcards/a", "basic") == "note-f83ec6a32e2459aeedbe"
    assert hashed_id(" What  is\na rank? ", "flashcards/a", "basic") == "note-f83ec6a32e2459aeedbe"
    assert hashed_id("caf\u00e9", "d", "basic") == hashed_id("cafe\u0301", "d", "basic")
    assert hashed_id("Rank", "d", "basic") != hashed_id("rank", "d", "basic")
    assert hashed_id("\ud800", "d", "basic").startswith("note-")


def test_the_answer_is_no_part_of_the_id_but_question_deck_and_kind_are():
    def id_of(text):
        return notes.parse(text).cards[0].id

    first = id_of("#flashcards/a\nQ :: A")
    assert first == id_of("#flashcards/a\n\nprose\n\n- Q  ::  another answer")
    assert first != id_of("#flashcards/a\nR :: A")
    assert first != id_of("#flashcards/b\nQ :: A")
    assert first != id_of("#flashcards/a\nQ ::: A")
    assert id_of("#flashcards/a\nQ :: A ^sr-id-7") == id_of("#flashcards/b\nR ::: B ^sr-id-7") == "^sr-id-7"


def test_siblings_share_the_place_and_differ_in_the_number():
    ids = [card.id for card in notes.parse("#flashcards/a\n==x== and ==y== ^p\n\nQ ::: A\n").cards]
    assert ids[:2] == ["^p", "^p.2"] and ids[3] == f"{ids[2]}.2"


def test_one_changed_letter_keeps_the_history_and_nothing_else_is_touched():
    before = "#flashcards/a\nWhat does DDP copi? :: Models\nWhat is a rank? :: A process\nWhat is FSDP? :: Sharding\n"
    after = before.replace("copi", "copy")
    old, new = ({one.id: known(one) for one in notes.as_cards(notes.parse(text))} for text in (before, after))
    orphans = [one for id, one in old.items() if id not in new]
    newcomers = [one for id, one in new.items() if id not in old]
    assert len(orphans) == len(newcomers) == 1
    assert pairs(orphans, newcomers) == [(orphans[0].id, newcomers[0].id)]


@pytest.mark.parametrize(("old", "new"), [
    ("rank", "ranks"), ("abc", "abd"), ("all-reduce", "allreduce"), ("सिंक का मतलब?", "सिंक का मतलब"),
    ("What does a straggler do to the others?", "What does a straggler do to all the others?"),
])
def test_near(old, new):
    assert pairs([card("o", old)], [card("n", new)]) == [("o", "n")]


@pytest.mark.parametrize(("old", "new"), [
    ("a", "b"), ("ab", "ac"), ("FSDP", "FSPD?"), ("What is ZeRO stage 1?", "What is ZeRO stage 2?"),
    ("What is a rank?", "Who waits for whom?"),
    ("", "x"), ("x" * 50, "y" * 50),
])
def test_another_question(old, new):
    assert pairs([card("o", old)], [card("n", new)]) == []


@pytest.mark.parametrize("changed", [{"deck": "e"}, {"kind": "cloze"}, {"sibling": 2}])
def test_only_within_deck_kind_and_sibling(changed):
    assert pairs([card("o", "What is a rank?")], [card("n", "What is a rank", **changed)]) == []


def test_a_deck_that_was_renamed_keeps_what_asks_quite_the_same():
    old = [card("o1", "What is a rank?"), card("o2", "What is a mesh?"), card("o3", "What is a ring?", deck="third")]
    new = [card("n1", "What is a rank?", deck="e"), card("n2", "What is  a mesh?", deck="e"),
           card("n3", "What is a ring", deck="e")]
    assert sorted(pairs(old, new)) == [("o1", "n1"), ("o2", "n2")]
    twice = [*old, card("o4", "What is a rank?", deck="third")]
    assert pairs(twice, new) == [("o2", "n2")]


def test_in_doubt_there_is_no_match():
    old = [card("o1", "What does DDP copy?"), card("o2", "What does DDP copx?")]
    assert pairs(old, [card("n", "What does DDP copz?")]) == []
    assert pairs(old[:1], [card("n1", "What does DDP copz?"), card("n2", "What does DDP copx?")]) == []
    sure = [*old, card("o3", "Which rank waits?")]
    assert pairs(sure, [card("n", "What does DDP copz?"), card("n3", "Which rank wait?")]) == [("o3", "n3")]


def test_the_surest_comes_first_and_ratios_are_those_of_difflib():
    old = [card("o1", "What is a straggler in a step?"), card("o2", "abcdefghij")]
    new = [card("n1", "What is the straggler in a step?"), card("n2", "abcdefghix")]
    found = near_matches(old, new)
    assert [pair[:2] for pair in found] == [("o1", "n1"), ("o2", "n2")]
    assert found[1][2] == pytest.approx(0.9)        # 9 of 10 letters are the same


@pytest.mark.parametrize(("old", "new", "same"), [
    ("A ring all-reduce of k ranks moves [...] the data that a scatter moves.",
     "A ring all-reduce of k ranks moves twice the data that a [...] moves.", False),
    ("A ring all-reduce of k ranks moves [...] the data that a scatter moves.",
     "A [...] all-reduce of k ranks moves twice the data that a scatter moves.", False),
    ("A ring all-reduce of k ranks moves [...] the data that a scatter moves.",
     "The ring all-reduce of k ranks movs [...] the data that a scatter does move.", True),
    ("A ring all-reduce of k ranks moves [...] the data that a scatter moves.",
     "A ring all-reduce of k ranks moves [how often?] the data that a scatter moves.", True)])
def test_a_gap_elsewhere_in_a_sentence_asks_something_else(old, new, same):
    found = near_matches([Known("a", "d", "cloze", 1, old)], [Known("b", "d", "cloze", 1, new)])
    assert [(before, after) for before, after, _ in found] == [("a", "b")] * same


def test_sibling_numbers_of_cards_from_any_deck():
    face = {"en": Face("Q", "A")}
    assert known(Card(id="^p.2", deck="d", faces=face)) == Known("^p.2", "d", "basic", 2, "Q")
    assert known(Card(id="ring-bytes", deck="d", faces=face)).sibling == 1
    assert known(Card(id="drawn", deck="d", kind="number")).front == ""


def test_thousands_of_cards_are_compared_with_few():
    def seconds(count):
        old = [card(f"o{n}", f"What does operation {n * 7919 % 10007} do with chunk {n} of its buffer?")
               for n in range(count)]
        new = [card(f"n{n}", one.front.replace("buffer", "bufer")) for n, one in enumerate(old)]
        started = time.process_time()
        assert len(near_matches(old, new)) == count
        return time.process_time() - started

    # Comparing each with each would take 64 times as long for 8 times as many.
    assert seconds(800) < 30 * seconds(100) + 0.1
