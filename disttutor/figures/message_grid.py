"""All rounds of a collective in one picture: ranks are lines from left to right, rounds columns, messages arrows."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from disttutor.figures.message_lines import drawn
from disttutor.figures.moments import Moment, Story, numbers
from disttutor.figures.style import BORDER, COOL, GRID, INK, MUTED, PANEL, WARM, mix, quantity
from disttutor.figures.svg import Svg, drawing, line, rect, text, text_width, wrap
from disttutor.plans import Plan

EDGE, SIZE, SMALL, TINY = 14, 11, 9.5, 8.5
LEFT, RIGHT = 70, 78                        # room for the ranks' names; for what each has sent
ROW, BAR = 46, 26                           # from rank to rank; height of the bars that show what a rank holds
PARTIAL = mix(COOL, "#ffffff", 0.55)


def message_grid(moments: Sequence[Moment] | Plan, *, title: str = "All rounds of messages",
                 chunk_nbytes: int | Sequence[int] | None = None,
                 complete_with: Sequence[Sequence[int]] | None = None, width: int = 1000) -> Svg:
    """Every round of `moments` side by side, with what each rank holds before, between and after them.

    A rank's chunks are bars, as high as the share of the contributions that are in them. moments, chunk_nbytes and
    complete_with as for `message_step`.

    Raises ValueError as `moments.Story` does, and for more rounds than the width has room for.
    """
    story = Story.of(moments, chunk_nbytes, complete_with)
    grid = _Grid(story, width)
    parts, y = [], float(EDGE)
    for words in wrap(title, width - 2 * EDGE, 14, bold=True):
        y += 18
        parts.append(text(EDGE, y - 4, words, size=14, bold=True))
    sums = _sums(story)
    for words in wrap(sums, width - 2 * EDGE, SIZE):
        y += 14
        parts.append(text(EDGE, y, words, size=SIZE, fill=MUTED))
    heads, y = grid.heads(y + 10)
    parts += heads
    parts += grid.body(y)
    y += story.ranks * ROW
    for words in wrap(_caption(story, grid.labelled), width - 2 * EDGE, SMALL):
        y += 14
        parts.append(text(EDGE, y, words, size=SMALL, fill=MUTED))
    about = f"{title}: {story.ranks} ranks, {story.chunks} chunk{'s' * (story.chunks != 1)}, {story.rounds} rounds"
    said = [f"Round {at}: " + "; ".join(f"rank {src} to rank {dst}, {numbers(chunks)}" for src, dst, chunks in
                                        moment.messages) for at, moment in enumerate(story.moments) if moment.messages]
    return drawing(parts, width, y + EDGE, alt=f"{about}. {sums} {'. '.join(said)}.", plain=f"{about}.")


class _Grid:
    """Where rounds and ranks lie."""

    def __init__(self, story: Story, width: int):
        self.story, self.right = story, width - RIGHT
        rounds = max(1, story.rounds)
        room = width - LEFT - RIGHT
        self.bars = max(8.0, min(56.0, 0.34 * room / (rounds + 0.34), 12.0 * story.chunks))
        self.pitch = (room - self.bars) / rounds
        if self.pitch - self.bars < 12:
            raise ValueError(f"{rounds} rounds have no room side by side in {width} pixels; a picture of "
                             f"{LEFT + RIGHT + rounds * 24} pixels has (width=), or message_step draws one round")
        gap = self.pitch - self.bars
        longest = max((text_width(numbers(m[2]), TINY) for moment in story.moments for m in moment.messages),
                      default=0.0)
        # A label takes at most half of its arrow, so that lines which cross can still be followed.
        self.labelled = story.chunks > 1 and longest + 4 <= gap / 2

    def x(self, at: int) -> float:
        """Left edge of the bars of a moment."""
        return LEFT + at * self.pitch

    def heads(self, y: float) -> tuple[list[str], float]:
        """The number of each round above its arrows, and below it the titles, if all of them fit; rounds in a row that
        have one title share it."""
        gap = self.pitch - self.bars
        parts = [text(self.right + RIGHT - EDGE, y + 10, "sent", size=SMALL, fill=MUTED, anchor="end"),
                 text(EDGE, y + 10, "round", size=SMALL, fill=MUTED)]
        roomy = text_width(f"round {self.story.rounds}", SIZE, bold=True) + 14 <= gap
        for at in range(1, self.story.rounds + 1):
            parts.append(text(self.x(at) - gap / 2, y + 10, f"round {at}" if roomy else str(at), size=SIZE,
                              anchor="middle", bold=True))
        runs = [(title, [at for at, _ in some]) for title, some in
                groupby(enumerate((m.title for m in self.story.moments[1:]), start=1), key=lambda pair: pair[1])]
        titles = [wrap(title, len(run) * self.pitch - 8, TINY) for title, run in runs]
        if any(len(t) > 3 or " ".join(t) != " ".join(title.split())
               for t, (title, _) in zip(titles, runs, strict=True)):
            return parts, y + 18
        for words, (_, run) in zip(titles, runs, strict=True):
            begin, end = self.x(run[0] - 1) + self.bars, self.x(run[-1])
            if words and len(run) > 1:
                parts.append(line(begin, y + 15, end, y + 15, stroke=MUTED))
            parts += [text((begin + end) / 2, y + 25 + 11 * n, word, size=TINY, fill=MUTED, anchor="middle")
                      for n, word in enumerate(words)]
        return parts, y + 21 + 11 * max(map(len, titles), default=0)

    def body(self, top: float) -> Iterable[str]:
        story = self.story
        middles = [top + (rank + 0.5) * ROW for rank in range(story.ranks)]
        for rank, y in enumerate(middles):
            yield text(EDGE, y + 4, f"rank {rank}", size=SIZE, bold=True)
            yield line(LEFT, y, self.x(story.rounds) + self.bars, y, stroke=GRID)
            sent = story.sent(story.rounds, rank)
            words = quantity(sent, "B") if story.nbytes is not None else f"{sent} chunk{'s' * (sent != 1)}"
            yield text(self.right + RIGHT - EDGE, y + 4, words, size=SIZE, anchor="end")
        yield from drawn([(*start, *end) for start, end, _ in self._arrows(middles)])
        if self.labelled:
            for (x1, y1), (x2, y2), words in self._arrows(middles):
                yield from _label(x1 + 0.3 * (x2 - x1), y1 + 0.3 * (y2 - y1), words)
        for at in range(story.rounds + 1):
            for rank, y in enumerate(middles):
                yield from self._bars(at, rank, y)

    def _arrows(self, middles: list[float]) -> list[tuple[tuple[float, float], tuple[float, float], str]]:
        return [((self.x(at - 1) + self.bars + 2, middles[src]), (self.x(at) - 2, middles[dst]), numbers(chunks))
                for at, moment in enumerate(self.story.moments) for src, dst, chunks in moment.messages]

    def _bars(self, at: int, rank: int, y: float) -> Iterable[str]:
        story, x, top = self.story, self.x(at), y - BAR / 2
        wide = self.bars / story.chunks
        yield rect(x, top, self.bars, BAR, fill="#ffffff", stroke=BORDER)
        for chunk in range(story.chunks):
            held = set(story.moments[at].holds[rank][chunk])
            if not held:
                continue
            done, twice = story.finished(at, rank, chunk), story.twice(at, rank, chunk)
            high = BAR * min(1.0, len(held) / len(story.complete[chunk])) if story.complete[chunk] else BAR
            yield rect(x + chunk * wide, top + BAR - high, wide * (0.86 if wide >= 3 else 1), high,
                       fill=WARM if twice else INK if done else PARTIAL,
                       title=f"rank {rank}, chunk {chunk}: contributions of {', '.join(map(str, sorted(held)))}")


def _label(x: float, y: float, words: str) -> list[str]:
    wide = text_width(words, TINY) + 4
    return [rect(x - wide / 2, y - 6, wide, 11, fill=PANEL, rx=3),
            text(x, y + 3, words, size=TINY, anchor="middle")]


def _sums(story: Story) -> str:
    messages = sum(len(moment.messages) for moment in story.moments)
    sent = [story.sent(story.rounds, rank) for rank in range(story.ranks)]
    most = quantity(max(sent), "B") if story.nbytes is not None else f"{max(sent)} chunk{'s' * (max(sent) != 1)}"
    return f"{story.rounds} rounds, {messages} messages; the most that a rank sends is {most}."


def _caption(story: Story, labelled: bool) -> str:
    words = ["A bar is a chunk, as high as the share of contributions in it; dark: complete."]
    if labelled:
        words.append("Number on an arrow: the chunks it carries.")
    elif story.chunks > 1 and story.rounds:
        words.append("What an arrow carries has no room here; message_step says it.")
    if any(story.twice(at, r, c) for at in range(len(story.moments)) for r in range(story.ranks)
           for c in range(story.chunks)):
        words.append("Orange: a contribution was added twice.")
    return " ".join(words)
