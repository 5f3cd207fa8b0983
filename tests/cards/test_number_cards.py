"""Number cards: every question that can be drawn is fair, shows what it needs, and has the right answer."""

import re
from math import ceil, floor, isclose, log2, sqrt
from random import Random

import pytest
from number_cards_by_hand import BY_HAND

from disttutor.cards.card import ENGLISH, HINGLISH
from disttutor.cards.mathematics import mathml
from disttutor.cards.numbers import NUMBER_CARDS
from disttutor.cards.numbers.number_card import DECKS, rounded, written
from disttutor.cards.sitting.answers import check
from disttutor.lessons import shipped

CARDS = pytest.mark.parametrize("card", NUMBER_CARDS, ids=lambda card: card.id)
BY_ID = {card.id: card for card in NUMBER_CARDS}

# Worked out by hand, with where the numbers come from.
EXAMPLES = [
    ("number-hybrid-zero-1", {"billions": 100, "model": 8, "data": 8}, 68.75),      # 50 + 18.75
    ("number-stage-memory", {"billions": 175, "ranks": 8}, 350),
    ("number-training-memory", {"billions": 10}, 160),
    ("number-zero-1", {"billions": 7.5, "ranks": 64}, 31.40625),                    # ZeRO, figure 1: 31.4
    ("number-zero-2", {"billions": 7.5, "ranks": 64}, 16.640625),                   # 16.6
    ("number-zero-3", {"billions": 7.5, "ranks": 64}, 1.875),                       # 1.9
    ("number-communication-from-speedup", {"compute": 280, "ranks": 4, "reached": 3.5}, 10),    # a 28th
    ("number-uneven-share", {"samples": 10, "ranks": 4}, 3),                        # 3, 3, 2, 2
    ("number-share-weight", {"samples": 10, "ranks": 4}, 0.3),
    ("number-mean-of-means-error", {"one": 900, "other": 100, "first": 2, "second": 4}, 0.8),   # 3 for 2.2
    ("number-pipeline-transfers", {"ranks": 8, "microbatches": 1}, 14),             # 7 forward, 7 backward
    ("number-bubble-share", {"schedule": "GPipe", "ranks": 4, "microbatches": 8}, 100 * 3 / 11),
    ("number-bubble-ratio", {"schedule": "1F1B", "ranks": 4, "microbatches": 8}, 37.5),
    ("number-bubble-interleaved", {"ranks": 4, "stages": 2, "rounds": 2}, 18.75),
    ("number-in-flight-interleaved", {"ranks": 4, "stages": 2, "rounds": 2}, 11),   # lesson 08: 5.5 shares of 2 stages
    ("number-staleness", {"ranks": 4, "stage": 0}, 3),
    ("number-learning-rate", {"rate": 0.1, "batch": 256, "times": 32}, 3.2),        # Goyal et al.: 8192 samples, 3.2
    ("number-layer-activations", {"width": 12288, "tokens": 2048, "samples": 1}, 114 * 2048 * 12288 / 1e9),
    ("number-fewest-gpus", {"billions": 70, "capacity": 80}, 14),
    ("number-ring-time", {"ranks": 5, "size": 1000, "latency": 50, "bandwidth": 10}, 160.4),    # 8 (0.05 + 20)
    ("number-training-days", {"billions": 70, "tokens": 2, "gpus": 1024, "percent": 40}, 23.74),
]


def test_there_are_number_cards_all_over_the_course():
    assert len(NUMBER_CARDS) >= 44
    assert {card.lesson for card in NUMBER_CARDS} == set(range(17))


def test_every_card_is_worked_out_here_again():
    assert set(BY_HAND) == {card.id for card in NUMBER_CARDS}


@CARDS
def test_every_answer_that_can_be_drawn_is_right(card):
    for numbers in card.draw.draws():
        drawn = card.draw.pose(**numbers)
        assert drawn.value == pytest.approx(BY_HAND[card.id](**numbers), rel=1e-6), numbers


@pytest.mark.parametrize("id, numbers, answer", EXAMPLES)
def test_known_answers(id, numbers, answer):
    assert BY_ID[id].draw.pose(**numbers).value == pytest.approx(answer, rel=1e-3)


@CARDS
def test_a_drawn_question_is_complete_in_both_languages(card):
    for seed in range(200):
        drawn = card.draw(Random(seed))
        assert list(drawn.faces) == [ENGLISH, HINGLISH]
        for face in drawn.faces.values():
            assert "?" in face.question and not face.options
            assert not re.search(r"<\w+>", face.question + face.answer)
            assert _end(face.answer, drawn.unit) == pytest.approx(drawn.value, rel=drawn.tolerance, abs=1e-12)
            assert face.question.count("$") % 2 == face.answer.count("$") % 2 == 0
        english, hinglish = (sorted(re.findall(r"\d+(?:[.,]\d+)*", face.question)) for face in drawn.faces.values())
        assert english == hinglish
        assert drawn.tolerance == 0.01 or drawn.tolerance == 0 and drawn.value.is_integer() and not drawn.unit


@CARDS
def test_the_same_seed_asks_the_same(card):
    asked = [[card.draw(Random(seed)) for seed in range(12)] for _ in range(2)]
    assert asked[0] == asked[1]
    assert len({drawn.faces[ENGLISH].question for drawn in asked[0]}) > 2


@CARDS
def test_the_question_says_all_that_its_answer_depends_on(card):
    answers: dict[str, set[float]] = {}
    for numbers in card.draw.draws():
        drawn = card.draw.pose(**numbers)
        for face in drawn.faces.values():
            answers.setdefault(face.question, set()).add(round(drawn.value, 9))
    assert all(len(values) == 1 for values in answers.values())
    assert len(set().union(*answers.values())) >= 3             # nobody learns the answer by heart


# Workings that are no formula but a word.
WORDS = {"number-in-flight-gpipe", "number-row-parallel-shape", "number-heads-that-divide"}


@CARDS
def test_the_working_gives_the_answer(card):
    if card.id in WORDS:
        return
    for seed in range(30):
        drawn = card.draw(Random(seed))
        working = drawn.faces[ENGLISH].answer.rpartition("\n\n")[2].strip("$")
        formula = re.split(r" (?:=|\\approx) [\d.]+\$?", working)[0]
        assert _worked_out(formula) == pytest.approx(drawn.value, rel=drawn.tolerance or 1e-9, abs=1e-9), formula


@CARDS
def test_the_quiz_takes_what_the_solution_ends_with(card):
    for seed in range(10):
        drawn = card.draw(Random(seed))
        face, value = drawn.faces[ENGLISH], _end(drawn.faces[ENGLISH].answer, drawn.unit)
        assert check("number", face, f"{value} {drawn.unit}", drawn=drawn).right
        assert check("number", face, f"{value}", drawn=drawn).right
        assert not check("number", face, f"{1.03 * value + 1e-6} {drawn.unit}", drawn=drawn).right


@CARDS
def test_formulas_can_be_shown(card):
    for face in card.draw(Random(1)).faces.values():
        for tex in re.findall(r"\$([^$]+)\$", face.question + face.answer):
            assert mathml(tex).startswith("<math"), tex


@CARDS
def test_a_card_says_where_it_belongs(card):
    assert card.id.startswith("number-") and card.kind == "number" and not card.faces
    assert card.deck == f"disttutor/{DECKS[card.lesson]}" and card.deck.split("/")[1].startswith(f"{card.lesson:02d}-")
    assert card.source and card.section in ("Why", "Break it", "Scale it", "What this machine has")
    assert card.concepts and set(card.concepts) <= CONCEPTS
    assert card.family in FAMILIES


def test_decks_are_those_of_the_written_cards():
    files = {path.stem for path in (shipped("disttutor") / "cards" / "decks").glob("*.toml")}
    assert files <= set(DECKS)


def test_ids_are_unique():
    assert len(BY_ID) == len(NUMBER_CARDS)


@CARDS
def test_hinglish_is_written_as_in_the_rest_of_the_course(card):
    wrong = re.compile(r"\b(nahi|nai|hei|mai|kyu|kyonki|jyada|pahle|woh|yeh|toh|sath|zyaada|pur[aie]|jat[aie])\b")
    for seed in range(5):
        face = card.draw(Random(seed)).faces[HINGLISH]
        assert (face.question + face.answer).isascii()
        assert not wrong.search(face.question + face.answer)


@pytest.mark.parametrize("number, words", [
    (150.0, "150"), (31.40625, "31.4"), (43.75, "43.75"), (68.75, "68.75"), (1 / 3, "0.333"), (0.0071234567, "0.00712"),
    (4187.5, "4187.5"), (12345.678, "12346"), (7.999999999999999, "8"), (0.0, "0"), (1e6, "1000000"), (12, "12"),
    ((3, 3, 2), "3, 3, 2"), ("1F1B", "1F1B"),
])
def test_numbers_as_they_are_shown(number, words):
    assert written(rounded(number)) == words


CONCEPTS = set("""
    distributed-training computation memory data data-parallelism model-parallelism tensor-parallelism
    pipeline-parallelism micro-batches bubble hybrid-parallelism mesh zero activation-checkpointing
    long-sequences experts collectives all-reduce ring-all-reduce interconnect overlap communication-overhead
    speedup efficiency scaling-wall gradient-accumulation batch-size synchronous asynchronous choosing
    fault-tolerance frameworks reproducibility neural-network-basics batch-normalization optimizers transformers
    gpu-acceleration training-at-scale
""".split())
FAMILIES = {"", "collectives", "all-reduce-algorithms", "zero-stages", "parallelism-kinds", "schedules", "tensor-cuts",
            "batch-words", "speedup-words", "sync-async", "memory-parts", "frameworks"}


def _end(answer, unit):
    """The value with which a solution ends."""
    found = re.search(rf"(?:=|\\approx) ([\d.]+)\$( {re.escape(unit)})?$", answer)
    assert found and bool(found[2]) == bool(unit), answer
    return float(found[1])


def _worked_out(tex):
    """The value of a formula of TeX as the workings use it."""
    steps = [(r"\\(?:left|right)", ""), (r"\^\{(-?\d+)\}", r"**(\1)"), (r"\\log_2 (\d+)", r"log2(\1)"),
             (r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)"), (r"\\lceil", "ceil("), (r"\\lfloor", "floor("),
             (r"\\r(?:ceil|floor)", ")"), (r"\\cdot", "*"), (r"\\bmod", "%"), (r"\\(min|max)", r"\1"), (r"\^", "**")]
    for pattern, replacement in steps:
        tex = re.sub(pattern, replacement, tex)
    while "\\frac" in tex:
        tex = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", tex)
    tex = re.sub(r"(?<=[\d)])\s+(?=[(a-z])", " * ", tex)
    return eval(tex, {"ceil": lambda x: round(x) if isclose(x, round(x)) else ceil(x), "floor": floor, "log2": log2,
                      "sqrt": sqrt, "min": min, "max": max})
