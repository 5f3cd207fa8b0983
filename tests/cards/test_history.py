"""What follows from events: in whatever order they come, also where some are strange, newer or damaged."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cards.progress import Progress
from disttutor.cards.progress.events import encode, make
from disttutor.cards.progress.history import History
from disttutor.cards.progress.scheduling import Rating
from tests.cards.kernels import card

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY = NOON.date()


@pytest.fixture
def progress(tmp_path):
    return Progress(tmp_path, clock=lambda: NOON)


def test_what_is_unknown_or_newer_is_kept_and_passed_over(progress):
    progress.answer(card("a"), Rating.EASY)
    states = dict(progress.states)
    strange = make("dance", NOON, DAY, NOON, steps=3)
    newer = make("review", NOON, DAY, NOON, card="a", rating=1) | {"schema": 2}
    more = make("review", NOON, DAY, NOON, card="b", rating=4, mood="good")
    unheard = make("setting", NOON, DAY, NOON, name="colours", value="dark")
    (progress.folder / "newer.jsonl").write_bytes(b"".join(map(encode, (strange, newer, more, unheard))))
    progress.refresh()
    assert {name: state for name, state in progress.states.items() if name != "b"} == states
    assert len(progress.warnings) == 1 and "1 events were written by a newer disttutor" in progress.warnings[0]
    assert [event for event in progress.all_events() if event["id"] in (strange["id"], newer["id"], more["id"])]
    assert next(event for event in progress.all_events() if event["id"] == more["id"])["mood"] == "good"


@pytest.mark.parametrize(("kind", "fields"), [
    ("review", {"card": "a", "rating": 7}), ("review", {"rating": 3}), ("review", {"card": "a", "rating": True}),
    ("review", {"card": "a", "rating": 3, "day": "yesterday"}), ("review", {"card": ["a"], "rating": 3}),
    ("undo", {"review": 3}), ("setting", {"name": "buttons", "value": 17}), ("setting", {"name": ["x"], "value": 1}),
    ("puzzle", {"puzzle": None}), ("lesson", {"lesson": "3"}), ("lesson", {"lesson": 3, "day": 5}),
    ("adoption", {"old": "a"}), ("rejection", {}), ("review", {"card": "a", "rating": 3, "front": 3})])
def test_an_event_with_damaged_fields_is_named_and_left_out(progress, kind, fields):
    progress.answer(card("a"), Rating.EASY)
    progress.solved("p")
    event = make(kind, NOON, DAY, NOON) | fields
    (progress.folder / "damaged.jsonl").write_bytes(encode(event))
    again = Progress(progress.home)
    assert len(again.warnings) == 1 and event["id"] in again.warnings[0]
    assert again.puzzles == {"p"} and again.setting("buttons") == 2 and again.reviews[0].rating == Rating.EASY


def test_fields_that_matter_less_are_left_out_alone(progress):
    event = make("review", NOON, DAY, NOON, card="a", rating=3, confidence=60,
                 right="yes", seconds="long", seed=[1], retention=0)
    progress.folder.mkdir()
    (progress.folder / "odd.jsonl").write_bytes(encode(event))
    review, = Progress(progress.home).reviews
    assert (review.confidence, review.right, review.seconds, review.seed, review.retention) == (None,) * 4 + (0.9,)


moments = st.integers(0, 10**5)
happenings = st.lists(st.tuples(st.sampled_from(["review", "undo", "adoption", "rejection", "setting"]), moments,
                                st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from(Rating)), max_size=12)


@given(happenings, st.randoms(use_true_random=False))
def test_the_order_of_taking_events_in_does_not_matter(happened, chance):
    events = []
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for kind, minutes, one, other, rating in happened:
        moment = start + timedelta(minutes=minutes)
        earlier = [event["id"] for event in events] or ["none"]
        fields = {
            "review": {"card": one, "rating": int(rating), "deck": "d", "kind": "basic", "front": f"{one}{minutes}"},
            "undo": {"review": chance.choice(earlier)}, "rejection": {"adoption": chance.choice(earlier)},
            "adoption": {"old": one, "new": other, "before": "x", "front": "y", "deck": "d", "kind": "basic",
                         "ratio": 0.9},
            "setting": {"name": "new_per_day", "value": int(rating)},
        }[kind]
        events.append(make(kind, moment, moment.date(), start - timedelta(1), **fields))
    at_once, piecemeal = History(), History()
    at_once.add(events)
    for event in chance.sample(events, len(events)):
        piecemeal.add([event])
        assert piecemeal.states is not None                  # asked in between
    assert dict(piecemeal.states) == dict(at_once.states) and piecemeal.reviews == at_once.reviews
    assert piecemeal.settings == at_once.settings and piecemeal.adoptions == at_once.adoptions
    assert sorted(map(str, piecemeal.asked)) == sorted(map(str, at_once.asked))


def test_a_number_of_hundreds_of_digits_stops_nothing(progress):
    long = make("review", NOON, DAY, NOON, card="a", rating=3, seconds=10**400)
    taken = make("adoption", NOON, DAY, NOON, old="a", new="b", before="x", front="y", ratio=10**400)
    progress.folder.mkdir(parents=True)
    (progress.folder / "odd.jsonl").write_bytes(encode(long) + encode(taken))
    progress.refresh()
    assert [(review.card, review.seconds) for review in progress.reviews] == [("a", None)]
    assert len(progress.warnings) == 1 and taken["id"] in progress.warnings[0]
