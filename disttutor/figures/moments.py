"""What the ranks of a collective hold, moment by moment: the data behind the message stepper. Plain data, checked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from disttutor.plans import Plan
from disttutor.plans.partial_sums import partial_sums

Message = tuple[int, int, tuple[int, ...]]                  # from rank, to rank, which chunks


@dataclass(frozen=True, slots=True)
class Moment:
    """What every rank holds after a round of messages; the first moment of a list is before anything is sent.

    holds[rank][chunk]: the ranks whose contributions are in the partial sum that the rank has of this chunk; () is
    nothing, or what no longer counts. A rank that stands there twice was added twice. messages: those of the round that
    led here, as (from rank, to rank, chunks). values[rank][chunk]: one number to be shown in the cell, such as the
    chunk's first element.
    """

    title: str
    holds: Sequence[Sequence[Sequence[int]]]
    messages: Sequence[Message] = ()
    values: Sequence[Sequence[float]] | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """The moments of one collective, checked; moments[0] is before anything is sent.

    nbytes: size of each chunk. complete[chunk]: the contributions that a finished chunk has, as a sorted tuple.
    Raises ValueError for no moments, for moments of different ranks or chunks, for ranks and chunks that are not there,
    for messages before anything is sent, and for sizes that are not one for each chunk.
    """

    moments: Sequence[Moment]
    chunk_nbytes: int | Sequence[int] | None = None
    complete_with: Sequence[Sequence[int]] | None = None
    nbytes: tuple[int, ...] | None = field(init=False)
    complete: tuple[tuple[int, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        if not self.moments or not self.moments[0].holds or not self.moments[0].holds[0]:
            raise ValueError("there is no moment to draw; give at least one, with one rank and one chunk")
        for number, moment in enumerate(self.moments):
            self._check(number, moment)
        sizes = self.chunk_nbytes
        if isinstance(sizes, int):
            sizes = [sizes] * self.chunks
        if sizes is not None and (len(sizes) != self.chunks or min(sizes) < 0):
            raise ValueError(f"chunk_nbytes is {list(sizes)}; it takes one size from 0 up for each of the "
                             f"{self.chunks} chunks")
        wanted = [range(self.ranks)] * self.chunks if self.complete_with is None else self.complete_with
        if len(wanted) != self.chunks:
            raise ValueError(f"complete_with names the contributions of {len(wanted)} chunks; there are {self.chunks}")
        object.__setattr__(self, "nbytes", None if sizes is None else tuple(sizes))
        object.__setattr__(self, "complete", tuple(tuple(sorted(some)) for some in wanted))

    @classmethod
    def of(cls, given: Sequence[Moment] | Plan, chunk_nbytes: int | Sequence[int] | None = None,
           complete_with: Sequence[Sequence[int]] | None = None) -> "Story":
        """The story of moments, or of a collective's plan, which knows its chunks' sizes and contributions itself."""
        if not isinstance(given, Plan):
            return cls(given, chunk_nbytes, complete_with)
        moments = moments_of(given)
        goal = given.goal
        wanted: dict[int, int] = {}
        for rank in range(goal.world):
            wanted |= goal.in_the_end(rank)
        chunks = range(len(goal.sizes))
        sizes = [goal.nbytes((c,)) for c in chunks]
        contributions = [[r for r in range(goal.world) if wanted.get(c, 0) >> r & 1] for c in chunks]
        return cls(moments, sizes if chunk_nbytes is None else chunk_nbytes,
                   contributions if complete_with is None else complete_with)

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.moments[0].holds)

    @property
    def chunks(self) -> int:
        """Into how many chunks the array is cut."""
        return len(self.moments[0].holds[0])

    @property
    def rounds(self) -> int:
        """How many rounds of messages there are."""
        return len(self.moments) - 1

    def empty(self, chunk: int) -> bool:
        """Whether the chunk has no elements, so that there is nothing to send of it."""
        return self.nbytes is not None and self.nbytes[chunk] == 0

    def finished(self, at: int, rank: int, chunk: int) -> bool:
        """Whether the rank has exactly what a complete chunk is made of, each contribution once."""
        return tuple(sorted(self.moments[at].holds[rank][chunk])) == self.complete[chunk]

    def twice(self, at: int, rank: int, chunk: int) -> bool:
        """Whether a contribution was added more than once."""
        return max(Counter(self.moments[at].holds[rank][chunk]).values(), default=0) > 1

    def arrived(self, at: int, rank: int) -> set[int]:
        """The chunks that the rank received in the round that led to the moment."""
        return {chunk for _, dst, chunks in self.moments[at].messages if dst == rank for chunk in chunks}

    def sent(self, at: int, rank: int) -> int:
        """What the rank has sent up to the moment: bytes, or chunks where their size is not known."""
        return sum(1 if self.nbytes is None else self.nbytes[chunk] for moment in self.moments[:at + 1]
                   for src, _, chunks in moment.messages if src == rank for chunk in chunks)

    def _check(self, number: int, moment: Moment) -> None:
        where = f"moment {number} ({moment.title!r})"
        shape = [len(row) for row in moment.holds]
        if shape != [self.chunks] * self.ranks:
            raise ValueError(f"{where} has ranks with {shape} chunks; moment 0 has {self.ranks} ranks with "
                             f"{self.chunks} chunks each")
        if moment.values is not None and [len(row) for row in moment.values] != shape:
            raise ValueError(f"{where} has values of {[len(row) for row in moment.values]} chunks for ranks that hold "
                             f"{shape}; it takes one value for each chunk of each rank")
        if number == 0 and moment.messages:
            raise ValueError("moment 0 is before anything is sent and has messages; put them into moment 1, which they "
                             "lead to")
        contributions = {rank for row in moment.holds for cell in row for rank in cell}
        ends = {rank for src, dst, _ in moment.messages for rank in (src, dst)}
        if wrong := (contributions | ends) - set(range(self.ranks)):
            raise ValueError(f"{where} names rank {min(wrong)}; the ranks are 0 to {self.ranks - 1}")
        if wrong := {c for *_, chunks in moment.messages for c in chunks} - set(range(self.chunks)):
            raise ValueError(f"{where} sends chunk {min(wrong)}; the chunks are 0 to {self.chunks - 1}")
        for src, dst, _ in moment.messages:
            if src == dst:
                raise ValueError(f"{where} has rank {src} send to itself; a message goes to another rank")


def moments_of(plan: Plan) -> list[Moment]:
    """What every rank holds before `plan`, a collective's, and after each of its rounds; with the name of each round's
    phase as title. Raises ValueError for another plan, and what `partial_sums` raises for one that cannot run."""
    steps = partial_sums(plan)
    phases = [name for name, rounds in plan.goal.phases for _ in range(rounds)]
    return [Moment(phases[k - 1] if 0 < k <= len(phases) else "", step.holds, step.messages)
            for k, step in enumerate(steps)]


def numbers(chunks: Sequence[int]) -> str:
    """Numbers in few letters: `0, 2, 4–7`."""
    runs: list[list[int]] = []
    for chunk in sorted(set(chunks)):
        if runs and chunk == runs[-1][-1] + 1:
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
