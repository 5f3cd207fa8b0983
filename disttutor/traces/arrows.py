"""Which receive belongs to which send, and through which port of its rank an operation goes."""

from collections import defaultdict, deque
from dataclasses import dataclass

from disttutor.plans import COMPUTE, RECEIVES, Op
from disttutor.traces.trace import Span, Trace

# What a rank can do at one time, each independent of the others: compute, take part in collectives, send, receive.
TRACKS = ("compute", "communication", "sends", "receives")


@dataclass(frozen=True, slots=True)
class Message:
    """One message between two ranks: `nbytes` handed over at `sent`, taken in by `received` (seconds)."""

    src: int
    dst: int
    nbytes: int
    sent: float
    received: float


def track(op: Op) -> str:
    """The track of `TRACKS` on which the operation is drawn; "communication" is that of collectives."""
    if op.lane == COMPUTE:
        return "compute"
    return "sends" if op.kind == "send" else "receives" if op.kind in RECEIVES else "communication"


def pairs(trace: Trace) -> list[tuple[Span, Span]]:
    """Each send with its receive, in the order in which the receives began.

    A send of rank a to peer b belongs to the receive on b from a with the same subject (stage, micro-batch, round, …)
    in the same step; of several alike, the first sent to the first received. What has no partner in the trace is left
    out.
    """
    waiting: dict[tuple, deque[Span]] = defaultdict(deque)
    for span in trace.spans:
        if span.kind == "send":
            waiting[span.rank, span.op.peer, span.op.subject, span.step].append(span)
    out = []
    for span in trace.spans:
        if span.kind in RECEIVES:
            sends = waiting.get((span.op.peer, span.rank, span.op.subject, span.step))
            if sends:
                out.append((sends.popleft(), span))
    return out


def messages(trace: Trace) -> list[Message]:
    """Every send with its receive as one message, in the order of `pairs`."""
    return [Message(s.rank, r.rank, s.nbytes, s.start, r.end) for s, r in pairs(trace)]
