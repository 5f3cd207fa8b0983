"""A trace as Chrome trace JSON, to be opened in Perfetto: a process for each rank, threads for its lanes, arrows from
each send to its receive, counters. Format: Google's "Trace Event Format"; times in microseconds."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from disttutor.traces.activations import in_flight
from disttutor.traces.arrows import TRACKS, pairs, track
from disttutor.traces.trace import Counter, Span, Trace

ACTIVATIONS = "activations in flight"

# An arrow must land inside its slice; a nanosecond before the end is inside.
_INSIDE = 1e-3


def chrome_trace(trace: Trace) -> dict[str, Any]:
    """The trace as a JSON-ready dictionary.

    Collectives, sends and receives of a rank have threads of their own. Slices of one Chrome thread must nest, so what
    overlaps without nesting (several buckets in flight) is put on further threads of the rank. The counter "activations
    in flight" (`in_flight`) is there if the trace holds forwards and backwards of micro-batches.
    """
    events: list[dict[str, Any]] = []
    place: dict[int, tuple[int, int]] = {}                      # id of a span -> its process and thread
    spans: dict[tuple[int, str], list[Span]] = defaultdict(list)
    for span in trace.spans:
        spans[span.rank, track(span.op)].append(span)
    for rank in range(trace.world_size):
        threads = [(name if n == 0 else f"{name} ({n + 1})", row)
                   for name in TRACKS for n, row in enumerate(rows(spans[rank, name]))]
        events += _names(rank, [name for name, _ in threads])
        for tid, (_, row) in enumerate(threads):
            for span in row:
                place[id(span)] = (rank, tid)
                events.append(_slice(span, rank, tid, trace.start))
    events += _arrows(trace, place)
    events += _counters(trace)
    about = {"source": trace.source, "note": trace.note, "made by": "disttutor"}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


def save(trace: Trace, path: str | Path) -> Path:
    """Write the trace for Perfetto and return the file's path."""
    path = Path(path)
    path.write_text(json.dumps(chrome_trace(trace)))
    return path


def rows(spans: Any) -> list[list[Span]]:
    """The spans in as few rows as it takes for those of one row to follow or nest, never to cross. The outer of two
    that start together comes first."""
    out: list[list[Span]] = []
    open_ends: list[list[float]] = []                           # a row's open slices, innermost last
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        for row, ends in zip(out, open_ends, strict=True):
            while ends and ends[-1] <= span.start:
                ends.pop()
            if not ends or span.end <= ends[-1]:
                row.append(span)
                ends.append(span.end)
                break
        else:
            out.append([span])
            open_ends.append([span.end])
    return out


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 4)


def _names(rank: int, threads: list[str]) -> list[dict[str, Any]]:
    def meta(what: str, tid: int, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": rank, "tid": tid, "args": args}

    out = [meta("process_name", 0, name=f"rank {rank}"), meta("process_sort_index", 0, sort_index=rank)]
    for tid, name in enumerate(threads):
        out += [meta("thread_name", tid, name=name), meta("thread_sort_index", tid, sort_index=tid)]
    return out


def _slice(span: Span, pid: int, tid: int, zero: float) -> dict[str, Any]:
    args = {"step": span.step, "cpu_ms": round(span.cpu * 1e3, 6), **dict(span.op.subject)}
    if span.nbytes:
        args["bytes"] = span.nbytes
    if span.group:
        args["group"] = list(span.group)
    return {"ph": "X", "name": span.label, "cat": span.kind, "pid": pid, "tid": tid, "ts": _micro(span.start - zero),
            "dur": _micro(span.duration), "args": args}


def _arrows(trace: Trace, place: dict[int, tuple[int, int]]) -> list[dict[str, Any]]:
    """From each send's slice to its receive's; ids unique in the file."""
    out = []
    for number, (send, receive) in enumerate(pairs(trace), start=1):
        pair = {"cat": "message", "name": "message", "id": number}
        begin = _micro(send.start - trace.start)
        # Inside the receive's slice, and never back in time, however short it is and however far clocks are apart.
        land = max(begin, _micro(receive.start - trace.start), _micro(receive.end - trace.start) - _INSIDE)
        for ph, end, moment in (("s", send, begin), ("f", receive, land)):
            pid, tid = place[id(end)]
            out.append({"ph": ph, "bp": "e", "pid": pid, "tid": tid, "ts": moment, **pair})
    return out


def _counters(trace: Trace) -> list[dict[str, Any]]:
    """The trace's own counters, and where it holds micro-batches the activations in flight."""
    counters = list(trace.counters)
    if any(s.op.microbatch is not None and s.kind == "backward" for s in trace.spans):
        counters += [Counter(rank, ACTIVATIONS, time, count) for rank in range(trace.world_size)
                     for time, count in in_flight(trace, rank)]
    return [{"ph": "C", "name": c.name, "pid": c.rank, "tid": 0, "ts": _micro(c.time - trace.start),
             "args": {c.name: c.value}} for c in counters]
