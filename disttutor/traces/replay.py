"""A core for each rank: the same operations in the same order, each as long as its processor time.

With more ranks than cores the wall clock shows who got the processor. The replay gives every rank a core of its own: a
compute operation lasts its processor time; a receive ends when its send has; a collective lasts as long as it really
took once its last rank had entered it and the group's collective before it was over (the shortest such time among its
ranks), since the bytes are moved by threads whose time a rank does not see.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from disttutor.plans import Key, Op, partners
from disttutor.traces.layout import Lane, lay_out
from disttutor.traces.trace import Span, Trace


def replay(trace: Trace) -> Trace:
    """The measured `trace` as if each rank had a core of its own. Raises ValueError for a trace of another source."""
    if trace.source != "measured":
        raise ValueError(f"only a measured trace can be replayed; this one is {trace.source}")
    free: dict[Lane, float] = {}
    spans: list[Span] = []
    for step in trace.steps:
        done = {s.op.key: s for s in trace.spans if s.step == step}
        plan = trace.plan(step)
        for ops, times in zip(plan.ops, lay_out(plan, _Durations(done), free=free), strict=True):
            spans += [replace(done[op.key], start=start, end=end) for op, (start, end) in zip(ops, times, strict=True)]
    return replace(trace, spans=tuple(spans), counters=(), source="replayed",
                   note="a core for each rank")


class _Durations:
    """Seconds of an operation with a core of its own."""

    def __init__(self, done: dict[Key, Span]):
        self.done = done
        self.collective: dict[tuple, float] = {}
        members: dict[tuple, list[Span]] = defaultdict(list)
        for span in done.values():
            if span.group:
                members[partners(span.op)].append(span)
        over: dict[tuple[int, ...], float] = {}                # group -> when its last collective was over
        entered = {what: (max(s.start for s in spans), min(s.end for s in spans)) for what, spans in members.items()}
        for what, (start, end) in sorted(entered.items(), key=lambda item: item[1]):
            group = members[what][0].group
            begin = max(start, over.get(group, start))
            self.collective[what] = max(0.0, end - begin)
            over[group] = max(end, over.get(group, end))

    def __call__(self, ops: Sequence[Op]) -> float:
        if not ops[0].group:
            return self.done[ops[0].key].cpu
        return self.collective[partners(ops[0])]
