"""A pipeline schedule as plain data: what each rank does with which micro-batch, in what order; no messages yet.

As text an action is a letter and a micro-batch: F forward, B backward, W weight gradient, as in the papers. A rank that
holds several stages writes the stage in front, as PyTorch does: 5F0 is the forward of micro-batch 0 on stage 5.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

LETTERS = {"forward": "F", "backward": "B", "backward_weight": "W"}
LONGEST = 20                # letters of a wrong word that a message repeats
KINDS = {letter: kind for kind, letter in LETTERS.items()}


@dataclass(frozen=True, slots=True)
class Action:
    """One micro-batch's forward, backward or backward_weight on one stage; all counted from 0.

    Raises ValueError for another kind, and for a stage or micro-batch that is no whole number from 0.
    """

    kind: str
    stage: int
    microbatch: int

    def __post_init__(self) -> None:
        if self.kind not in LETTERS:
            raise ValueError(f"unknown kind of action {self.kind!r}; kinds that work: {', '.join(LETTERS)}")
        check_count("stage", self.stage, least=0)
        check_count("microbatch", self.microbatch, least=0)

    def __str__(self) -> str:
        return f"{LETTERS[self.kind]}{self.microbatch}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order of every rank's work in one training step.

    orders[rank]: its actions, one after the other. stages_of[rank]: the stages whose layers it holds. microbatches:
    how many there are. split_backward: whether "backward" makes only the gradient of the stage's input, and a
    "backward_weight" sometime later that of its weights; otherwise "backward" makes both.

    An order may be wrong (a learner's may be); whether it can run is for `Plan.check` to prove. Raises ValueError where
    the parts do not fit: another number of orders than ranks, stages that are not 0, 1, 2, ... each held once, a rank
    without a stage, or an action on a stage that its rank does not hold or on a micro-batch that there is not;
    TypeError for what is no tuple of Actions for each rank.
    """

    name: str
    orders: tuple[tuple[Action, ...], ...]
    stages_of: tuple[tuple[int, ...], ...]
    microbatches: int
    split_backward: bool = False

    def __post_init__(self) -> None:
        check_count("microbatches", self.microbatches)
        for what, given in (("orders", self.orders), ("stages_of", self.stages_of)):
            if not isinstance(given, Sequence) or any(not isinstance(part, Sequence) for part in given):
                raise TypeError(f"schedule {self.name!r}: {what} is {given!r}; it takes a tuple for each rank")
        if len(self.orders) != len(self.stages_of) or not self.orders:
            raise ValueError(f"schedule {self.name!r} has {len(self.orders)} orders and stages for "
                             f"{len(self.stages_of)} ranks; it needs one of each for every rank")
        held = sorted(stage for stages in self.stages_of for stage in stages)
        if held != list(range(len(held))):
            raise ValueError(f"schedule {self.name!r} puts stages {held} on its ranks; it needs each of "
                             f"0 to {max(len(held) - 1, 0)} once")
        if () in (bare := [tuple(stages) for stages in self.stages_of]):
            raise ValueError(f"schedule {self.name!r} puts no stage on rank {bare.index(())}; each rank needs one or "
                             "more")
        for rank, order in enumerate(self.orders):
            for action in order:
                if not isinstance(action, Action):
                    raise TypeError(f"schedule {self.name!r}: the order of rank {rank} has {action!r} of type "
                                    f"{type(action).__name__} in it; it takes Actions, such as parse_order makes of "
                                    "text")
                if action.stage not in self.stages_of[rank] or action.microbatch >= self.microbatches:
                    raise ValueError(f"schedule {self.name!r}: rank {rank} has {action} of stage {action.stage}; it "
                                     f"holds {_stages(self.stages_of[rank])}, and micro-batches are "
                                     f"0 to {self.microbatches - 1}")
                if action.kind == "backward_weight" and not self.split_backward:
                    raise ValueError(f"schedule {self.name!r}: rank {rank} has {action}, but B makes the weights' "
                                     "gradient too; leave W out, or set split_backward=True")

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.orders)

    @property
    def stages(self) -> int:
        """Number of stages, over all ranks."""
        return sum(map(len, self.stages_of))

    def rank_of(self, stage: int) -> int:
        """The rank that holds a stage. Raises ValueError for one that there is not."""
        for rank, stages in enumerate(self.stages_of):
            if stage in stages:
                return rank
        raise ValueError(f"schedule {self.name!r} has no stage {stage}; its stages are 0 to {self.stages - 1}")

    def listing(self, rank: int) -> str:
        """One rank's order as text, which `parse_order` reads: "F0 F1 B0", or "0F0 3F0 3B0" with several stages."""
        several = len(self.stages_of[rank]) > 1
        return " ".join(f"{action.stage if several else ''}{action}" for action in self.orders[rank])


def parse_order(text: str, stages: Sequence[int], microbatches: int,
                split_backward: bool = False) -> tuple[Action, ...]:
    """One rank's order from its text, such as "F0 F1 B0 F2 B1"; spaces, commas or new lines between, either case.

    stages: those that the rank holds; if there is one, it need not be written. Whether the order is complete and can
    run is not asked here. Raises ValueError, with the place, for a word that is no action, for a stage or micro-batch
    that there is not, for a W where B makes the weights' gradient too, and for an action that stands there twice.
    """
    letters, named = ("FBW", "F, B or W") if split_backward else ("FB", "F or B")
    if not stages:
        raise ValueError("there is no order without a stage: give those that the rank holds, such as [0]")
    example = f"{stages[0]}F0" if len(stages) > 1 else "F0"
    places: dict[Action, int] = {}
    for place, word in enumerate(re.findall(r"[^\s,;]+", text), 1):
        where = f"word {place}, {word!r}" if len(word) <= LONGEST else f"word {place}, {word[:LONGEST]!r}..."
        match = re.fullmatch(r"(\d{0,9})([A-Z])(\d{1,9})", word.upper(), re.ASCII)
        if not match or match[2] not in letters:
            raise ValueError(f"{where}: an action is {named} and a micro-batch"
                             f"{', with the stage in front' if len(stages) > 1 else ''}, such as {example}")
        if not match[1] and len(stages) > 1:
            raise ValueError(f"{where}: this rank holds {_stages(stages)}; write which in front, such as {example}")
        stage, microbatch = int(match[1] or stages[0]), int(match[3])
        if stage not in stages:
            raise ValueError(f"{where}: there is no stage {stage} on this rank; it holds {_stages(stages)}")
        if microbatch >= microbatches:
            raise ValueError(f"{where}: there is no micro-batch {microbatch}; there are 0 to {microbatches - 1}")
        action = Action(KINDS[match[2]], stage, microbatch)
        if action in places:
            raise ValueError(f"{where}: it stands there already, as word {places[action]}; each action is done once")
        places[action] = place
    return tuple(places)


def check_count(name: str, value: int, least: int = 1) -> None:
    """Raises ValueError unless value is a whole number from `least`; `name` says what it counts."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, {least} or more")


def _stages(stages: Sequence[int]) -> str:
    *others, last = stages
    return f"stages {', '.join(map(str, others))} and {last}" if others else f"stage {last}"
