"""What a timeline says in words: its headline, its legend, the notes below it, and its text for who cannot see it."""

from collections.abc import Sequence

from disttutor.figures.content import Content
from disttutor.figures.lanes import Box, look_of
from disttutor.figures.message_lines import Chosen, note
from disttutor.figures.style import IDLE, IDLE_LINE, LOOKS, MUTED, listing, mix, outline, quantity, text_on
from disttutor.figures.svg import number, pattern, rect, text, text_width, wrap

EDGE, SIZE, SMALL = 14, 11, 9.5


def headline(content: Content, title: str, width: int, y: float) -> tuple[list[str], float]:
    """The title, what the whole costs, and where the picture comes from; and the height at which they end."""
    trace = content.trace
    source = trace.source + (f": {trace.note}" if trace.note else "")
    sums = f"{quantity(content.makespan, 's')} in all"
    if content.pipeline:
        sums += f"; bubble {content.bubble_share:.1%} of the total, ratio to ideal {content.bubble_ratio:.1%}"
    elif content.computes:
        sums += f"; idle {content.bubble_share:.0%} of the ranks' time"
    room = width - 2 * EDGE
    parts = []
    for words in wrap(title, room, 14, bold=True):
        y += 18
        parts.append(text(EDGE, y - 4, words, size=14, bold=True))
    # The source stands in the corner, beside the title or else beside the sums, if there is room; else on its own.
    corner = text_width(source, SIZE) + 24
    if text_width(title, 14, bold=True) + corner <= room:
        parts.append(text(width - EDGE, y - 4, source, size=SIZE, fill=MUTED, anchor="end"))
    elif text_width(sums, SIZE) + corner <= room:
        parts.append(text(width - EDGE, y + 14, source, size=SIZE, fill=MUTED, anchor="end"))
    else:
        for words in wrap(source, room, SIZE):
            y += 14
            parts.append(text(EDGE, y, words, size=SIZE, fill=MUTED))
    y += 14
    parts.append(text(EDGE, y, sums, size=SIZE, fill=MUTED))
    return parts, y


def legend(contents: Sequence[Content], boxes: list[Box], lines: list[Chosen], stages: int, hidden: bool,
           activations: bool, width: int, y: float) -> tuple[list[str], float]:
    """What colours and numbers mean, in as many lines as it takes; and the height at which it ends."""
    parts, x = [], float(EDGE)
    y += 12
    for fill, stroke, words in _items(contents, boxes, stages):
        needs = 18 + text_width(words, SIZE)
        if x > EDGE and x + needs > width - EDGE:
            x, y = float(EDGE), y + 18
        parts.append(rect(x, y - 10, 13, 12, fill=f"url(#{fill})", stroke=stroke))
        parts.append(text(x + 18, y, words, size=SIZE))
        x += needs + 16
    for words in wrap(" ".join(_notes(contents, boxes, lines, hidden, activations)), width - 2 * EDGE, SMALL):
        y += 14
        parts.append(text(EDGE, y, words, size=SMALL, fill=MUTED))
    return parts, y


def _items(contents: Sequence[Content], boxes: list[Box], stages: int) -> list[tuple[str, str, str]]:
    """Fill, outline and words of each entry of the legend."""
    items, lighter = [], []
    for fill in _fills(boxes):
        look = look_of(fill, stages)
        if "-" in fill:
            lighter.append(fill)
            continue
        words = f"{look.word} ({look.letters})" if look.letters else look.word
        items.append((fill, outline(look.colour), words))
    if lighter:
        words = ("lighter: the second stage of its rank" if stages == 2 else
                 f"the lighter, the later of its rank's {stages} stages")
        items.append((lighter[0], outline(look_of(lighter[0], stages).colour), words))
    if any(c.computes for c in contents):
        items.append(("idle", IDLE_LINE, "computes nothing"))
    return items


def _notes(contents: Sequence[Content], boxes: list[Box], lines: list[Chosen], hidden: bool, activations: bool
           ) -> list[str]:
    ops = [s.op for c in contents for s in c.trace.spans]
    numbered = any(c.many_microbatches for c in contents) and any(box.words for box in boxes)
    notes = ["Number in a box: micro-batch."] if numbered else []
    if any(op.bucket is not None for op in ops):
        notes.append("Number after a dot: bucket.")
    if any(op.chunks for op in ops) and any(box.words for box in boxes):
        notes.append("Numbers in a send or receive: the chunks it carries.")
    if any(chosen.lines for chosen in lines):
        notes.append("Arrow: a message, from the start of its send to the end of its receive.")
    if left_away := note(lines):
        notes.append(left_away)
    if any(c.depth["receives"] for c in contents):
        notes.append("A receive lasts from when its rank is ready for it, waiting included.")
    if activations:
        notes.append("Activations: micro-batches (on each of the rank's stages) whose forward is done and whose "
                     "backward is not.")
    if hidden:
        notes.append("Hidden: share of the communication time in which the rank also computes.")
    joined = sum(box.operations for box in boxes if box.operations > 1)
    if joined:
        some = f"All {joined:,}" if joined == len(ops) else f"{joined:,} of the {len(ops):,}"
        notes.append(f"{some} operations are too narrow to be told apart and are drawn as one with their neighbours.")
    return notes


def definitions(boxes: list[Box], stages: int) -> str:
    """The patterns of all fills that are used."""
    fills = [pattern("idle", IDLE, IDLE_LINE, "rising")]
    for fill in _fills(boxes):
        look = look_of(fill, stages)
        fills.append(pattern(fill, look.colour, mix(look.colour, text_on(look.colour), 0.28), look.pattern))
    return "".join(fills)


def _fills(boxes: list[Box]) -> list[str]:
    """The fills that are used, in the order in which they are explained."""
    used = {box.fill for box in boxes}
    order = list(LOOKS)
    return sorted(used, key=lambda fill: (order.index(kind) if (kind := fill.partition("-")[0]) in LOOKS else 99, fill))


def alt(content: Content, title: str, hidden: bool, activations: bool) -> str:
    """What is to be seen in one trace's part of the picture."""
    trace = content.trace
    source = trace.source + (f" ({trace.note})" if trace.note else "")
    ranks = []
    for rank in content.ranks:
        words = f"rank {rank} computes {quantity(content.busy[rank], 's')} and is idle {content.idle_share(rank):.0%}"
        if hidden and content.hidden[rank] is not None:
            words += f", with {content.hidden[rank]:.0%} of its communication hidden"
        if activations:
            words += f", and holds the activations of up to {_count(content.held[rank].peak, 'micro-batch')}"
        ranks.append(words)
    bubble = (f", bubble {content.bubble_share:.1%} of the total, ratio to ideal {content.bubble_ratio:.1%}"
              if content.pipeline else "")
    about = (f"Timeline, {title}: {_count(trace.world_size, 'rank')}, {_count(len(trace.steps), 'step')}, "
             f"{quantity(content.makespan, 's')} in all{bubble}, {source}")
    return f"{about}; {'; '.join(ranks)}." if content.computes else f"{about}."


def plain(content: Content, title: str) -> str:
    """The same without times: equal in every run."""
    trace = content.trace
    kinds = listing([LOOKS[kind].word for kind in content.kinds])
    return (f"Timeline, {title}: {_count(trace.world_size, 'rank')}, {_count(len(trace.steps), 'step')}, {kinds}, "
            f"{trace.source}")


def _count(n: int, what: str) -> str:
    return f"{number(n)} {what}{'' if n == 1 else 'es' if what.endswith('h') else 's'}"
