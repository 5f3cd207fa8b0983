"""The message stepper: what is drawn of partial sums and messages, counted by hand."""

from dataclasses import replace

import pytest
from drawn import SVG, outside, root, texts

from disttutor.figures import Moment, message_grid, message_step, moments_of
from disttutor.figures.messages import RANKS
from disttutor.figures.moments import Story, numbers
from disttutor.plans import Mesh, Plan
from disttutor.plans.collectives import collective


def exchange() -> list[Moment]:
    """All-reduce of two ranks and two chunks: each sends the other's half, then the finished half."""
    return [Moment("", [[(0,), (0,)], [(1,), (1,)]]),
            Moment("reduce-scatter", [[(0,), (0, 1)], [(0, 1), (1,)]], [(0, 1, (0,)), (1, 0, (1,))]),
            Moment("all-gather", [[(0, 1), (0, 1)], [(0, 1), (0, 1)]], [(0, 1, (1,)), (1, 0, (0,))])]


def ring(n: int) -> list[Moment]:
    """Ring all-reduce: in round k rank r sends chunk r - k, first added and then copied (Patarasuk and Yuan 2009)."""
    holds = [[(r,)] * n for r in range(n)]
    moments = [Moment("", holds)]
    for k in range(2 * (n - 1)):
        after = [list(row) for row in holds]
        sends = [(r, (r + 1) % n, (r - k) % n if k < n - 1 else (r + 1 - (k - n + 1)) % n) for r in range(n)]
        for src, dst, chunk in sends:
            got = holds[src][chunk]
            after[dst][chunk] = tuple(sorted(got + holds[dst][chunk])) if k < n - 1 else got
        holds = after
        moments.append(Moment("reduce-scatter" if k < n - 1 else "all-gather", holds,
                              [(src, dst, (chunk,)) for src, dst, chunk in sends]))
    return moments


def stripes(figure):
    """(colour, x) of every contribution that is drawn in a cell."""
    return sorted((RANKS.index(n.get("fill")), float(n.get("x"))) for n in root(figure).iter(f"{SVG}rect")
                  if n.get("fill") in RANKS and n.get("height") == "22")


def tooltips(figure):
    return [n.text for n in root(figure).iter(f"{SVG}title")]


def test_each_contribution_is_a_stripe_at_the_place_and_in_the_colour_of_its_rank():
    figure = message_step(exchange(), 1)
    assert [rank for rank, _ in stripes(figure)] == [0, 0, 0, 1, 1, 1]          # 2 + 1 on one rank, 1 + 2 on the other
    assert tooltips(figure) == [
        "rank 0, chunk 0: contributions of 0", "rank 0, chunk 1: contributions of 0, 1",
        "rank 1, chunk 0: contributions of 0, 1", "rank 1, chunk 1: contributions of 1"]
    places = {}
    for rank, x in stripes(message_step(ring(4), 0)):
        places.setdefault(rank, []).append(x)
    assert [len(places[rank]) for rank in range(4)] == [4] * 4                  # its own contribution to every chunk


def test_what_is_empty_has_no_stripe():
    nothing = [Moment("", [[(0,)], [()]]), Moment("", [[(0,)], [(0,)]], [(0, 1, (0,))])]
    assert [rank for rank, _ in stripes(message_step(nothing, 0, complete_with=[(0,)]))] == [0]
    assert "rank 1, chunk 0: contributions of nothing" in tooltips(message_step(nothing, 0))


def frames(figure):
    return [n.get("stroke") for n in root(figure).iter(f"{SVG}rect") if n.get("stroke-width") == "2"]


def test_complete_chunks_are_framed_and_counted():
    said = [f"Complete: {done} of 4 cells." for done in (0, 2, 4)]
    for at, words in enumerate(said):
        figure = message_step(exchange(), at)
        assert any(words in w for w in texts(figure)) and words in figure.alt
        assert len(frames(figure)) == (0, 2, 4)[at]
    broadcast = [Moment("", [[(0,)], [()]])]
    assert len(frames(message_step(broadcast, 0, complete_with=[(0,)]))) == 1
    assert frames(message_step(broadcast, 0)) == []


def test_what_was_added_twice_is_not_complete_and_is_marked():
    wrong = [Moment("", [[(0,)], [(1,)]]), Moment("", [[(0, 1, 1)], [(1,)]], [(1, 0, (0,))])]
    figure = message_step(wrong, 1)
    assert frames(figure) == ["#d55e00"]
    assert any("a contribution was added twice" in w for w in texts(figure))
    assert any("Complete: 0 of 2" in w for w in texts(figure))
    assert any("added twice" in w for w in texts(message_grid(wrong)))


def test_messages_are_arrows_that_name_their_chunks():
    figure = message_step(ring(4), 1)
    assert len([n for n in root(figure).iter(f"{SVG}path") if n.get("class") == "message"]) == 4
    assert "Rank 3 sends chunk 3 to rank 0." in figure.alt
    bars = [n for n in root(figure).iter(f"{SVG}rect") if n.get("height") == "3"]
    assert len(bars) == 4                                                       # one chunk has arrived on each rank
    assert not [n for n in root(message_step(ring(4), 0)).iter(f"{SVG}path") if n.get("class") == "message"]


def test_rounds_and_bytes_are_counted():
    words = texts(message_step(ring(4), 5, chunk_nbytes=250_000))
    assert any(w.startswith("After round 5 of 6: all-gather.") for w in words)
    assert words.count("sent 1.25 MB") == 4                                     # 5 rounds of 250 kB
    assert texts(message_step(ring(4), 0, chunk_nbytes=250_000)).count("sent 0 B") == 4
    assert any(w.startswith("Before anything is sent.") for w in texts(message_step(ring(4), 0)))
    assert texts(message_step(ring(4), 1)).count("sent 1 chunk") == 4
    uneven = texts(message_step(exchange(), 2, chunk_nbytes=[3, 1]))
    assert uneven.count("sent 4 B") == 2


def test_values_stand_below_their_cells():
    moments = [replace(m, values=[[0.5, -2.0], [3.25, 1000.0]]) for m in exchange()]
    assert {"0.5", "-2", "3.25", "1000"} <= set(texts(message_step(moments, 0)))
    assert "Number below a cell: its value." in " ".join(texts(message_step(moments, 0)))


def test_all_moments_make_pictures_of_one_size():
    moments = ring(8)
    heights = {root(message_step(moments, at)).get("height") for at in range(len(moments))}
    assert len(heights) == 1


def test_the_same_moments_make_the_same_bytes_and_a_text_without_sizes():
    assert message_step(ring(4), 2).svg == message_step(ring(4), 2).svg
    assert repr(message_step(ring(4), 2, title="Ring")) == "Ring: 4 ranks, 4 chunks, moment 2 of 6."
    assert repr(message_grid(ring(4), title="Ring")) == "Ring: 4 ranks, 4 chunks, 6 rounds."


def overlapping(figure):
    """Pairs of rank boxes or labels that lie on one another."""
    shapes = [tuple(float(n.get(k)) for k in ("x", "y", "width", "height")) for n in root(figure).iter(f"{SVG}rect")
              if n.get("rx") in ("5", "4")]
    return [(a, b) for i, a in enumerate(shapes) for b in shapes[i + 1:]
            if a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]]


@pytest.mark.parametrize("n", range(2, 11))
def test_boxes_and_labels_of_a_ring_never_overlap_and_nothing_is_cut(n):
    moments = [replace(m, values=[[-0.123] * n] * n) for m in ring(n)]
    for at in (0, 1, 2 * n - 2):
        figure = message_step(moments, at, title="A long title " * 12)
        assert overlapping(figure) == [] and outside(figure) == []


def test_boxes_and_labels_of_far_partners_never_overlap():
    halves = {r: (4, 5, 6, 7) if r < 4 else (0, 1, 2, 3) for r in range(8)}
    moments = [Moment("", [[(r,)] * 8 for r in range(8)]),
               Moment("halving", [[(r,)] * 8 for r in range(8)], [(r, r ^ 4, halves[r]) for r in range(8)])]
    figure = message_step(moments, 1)
    assert texts(figure).count("4–7") == 4 and texts(figure).count("0–3") == 4
    assert overlapping(figure) == []


# ----------------------------------------------------------------------------------------------------------- all rounds


def test_the_grid_has_a_column_for_each_round_and_an_arrow_for_each_message():
    figure = message_grid(ring(8), chunk_nbytes=125_000)
    (path,) = (n.get("d") for n in root(figure).iter(f"{SVG}path") if n.get("class") == "messages")
    assert path.count("M") == 8 * 14
    words = texts(figure)
    assert {str(k) for k in range(1, 15)} <= set(words)
    assert words.count("1.75 MB") == 8                                          # 14 rounds of 125 kB
    assert "14 rounds, 112 messages; the most that a rank sends is 1.75 MB." in words
    assert words.count("reduce-scatter") == words.count("all-gather") == 1      # rounds in a row share their title
    assert outside(figure) == []
    assert "Round 1: rank 0 to rank 1, 0;" in figure.alt


def test_bars_are_as_high_as_the_share_of_contributions():
    bars = [n for n in root(message_grid(exchange())).iter(f"{SVG}rect") if n.find(f"{SVG}title") is not None]
    assert [float(n.get("height")) for n in bars] == [13] * 4 + [13, 26, 26, 13] + [26] * 4
    assert [n.get("fill") == "#1b1f24" for n in bars] == [False] * 4 + [False, True, True, False] + [True] * 4


def test_a_grid_without_room_for_what_arrows_carry_says_so():
    assert any("has no room here" in w for w in texts(message_grid(ring(14))))
    assert any("Number on an arrow" in w for w in texts(message_grid(ring(4))))
    with pytest.raises(ValueError, match="126 rounds have no room side by side in 1000 pixels; a picture of 3172"):
        message_grid(ring(64))
    assert outside(message_grid(ring(20), width=148 + 38 * 24)) == []


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(("moments", "keywords", "message"), [
    ([], {}, "no moment to draw"),
    ([Moment("a", [[(0,)], [(1,), (1,)]])], {}, r"moment 0 \('a'\) has ranks with \[1, 2\] chunks"),
    ([Moment("a", [[(0,)], [(2,)]])], {}, "names rank 2; the ranks are 0 to 1"),
    ([Moment("a", [[(0,)], [(1,)]], [(0, 1, (0,))])], {}, "moment 0 is before anything is sent and has messages"),
    ([Moment("", [[(0,)], [(1,)]]), Moment("b", [[(0,)], [(1,)]], [(0, 0, (0,))])], {}, "send to itself"),
    ([Moment("", [[(0,)], [(1,)]]), Moment("b", [[(0,)], [(1,)]], [(0, 1, (1,))])], {}, "sends chunk 1; the chunks"),
    ([Moment("", [[(0,)], [(1,)]], values=[[1.0]])], {}, "one value for each chunk of each rank"),
    (exchange(), {"chunk_nbytes": [1]}, "one size from 0 up for each of the 2 chunks"),
    (exchange(), {"complete_with": [(0,)]}, "contributions of 1 chunks; there are 2"),
])
def test_wrong_moments_are_refused(moments, keywords, message):
    for draw in (lambda: message_step(moments, 0, **keywords), lambda: message_grid(moments, **keywords)):
        with pytest.raises(ValueError, match=message):
            draw()


def test_what_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match=r"no moment 7; the moments are 0 \(before anything is sent\) to 6"):
        message_step(ring(4), 7)
    with pytest.raises(ValueError, match="13 ranks with 13 chunks .* message_grid draws more"):
        message_step(ring(13), 0)
    with pytest.raises(ValueError, match="500 pixels wide"):
        message_step(ring(4), 0, width=500)


def test_numbers_in_few_letters():
    assert numbers([3]) == "3" and numbers([0, 1]) == "0, 1" and numbers([5, 4, 0, 6, 7]) == "0, 4–7"
    assert numbers([]) == ""


def test_a_story_counts():
    story = Story(ring(4), 10)
    assert (story.ranks, story.chunks, story.rounds) == (4, 4, 6)
    assert [sum(story.finished(at, r, c) for r in range(4) for c in range(4)) for at in range(7)] == [
        0, 0, 0, 4, 8, 12, 16]
    assert [story.sent(at, 2) for at in range(7)] == [0, 10, 20, 30, 40, 50, 60]


# ---------------------------------------------------------------------------------------------------------- from a plan


def test_a_plan_is_drawn_as_its_moments():
    plan = collective("all_reduce", "ring", 4, 1000, itemsize=8)
    figure = message_step(plan, 4, title="Ring")
    by_hand = message_step(ring(4), 4, title="Ring", chunk_nbytes=2000)
    assert figure.svg == by_hand.svg
    assert [m.title for m in moments_of(plan)] == ["", *["reduce-scatter"] * 3, *["all-gather"] * 3]


@pytest.mark.parametrize(("kind", "algorithm", "first", "last"), [
    ("broadcast", "tree", 1, 4), ("all_gather", "ring", 4, 16), ("reduce", "tree", 0, 1),
    ("reduce_scatter", "ring", 0, 4), ("all_reduce", "tree", 0, 4), ("all_to_all", "pairwise", 16, 16),
])
def test_what_is_complete_is_what_the_collective_wants(kind, algorithm, first, last):
    plan = collective(kind, algorithm, 4, 8)
    rounds = len(moments_of(plan)) - 1
    assert len(frames(message_step(plan, 0))) == first
    assert len(frames(message_step(plan, rounds))) >= last
    assert outside(message_grid(plan)) == []


def test_a_plan_that_is_no_collective_is_refused():
    with pytest.raises(ValueError, match="is no collective's"):
        message_step(Plan("nothing", ((),), Mesh()), 0)


def test_a_chunk_without_elements_is_grey_and_does_not_count():
    """Three elements in four chunks: the last is empty, so a ring of four ranks has 12 chunks to complete, not 16."""
    plan = collective("all_reduce", "ring", 4, 3)
    figure = message_step(plan, 6)
    assert "Complete: 12 of 12 cells." in " ".join(texts(figure))
    assert "Grey: a chunk without elements." in " ".join(texts(figure))
    assert figure.svg.count("chunk 3 has no elements") == 4
    assert "No chunk has any elements." in " ".join(texts(message_step(collective("all_reduce", "ring", 2, 0), 0)))
