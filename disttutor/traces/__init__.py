"""Traces: what ranks did and when, measured or predicted; metrics, replay, export. No torch needed to read one."""

from disttutor.traces.activations import in_flight, peak_in_flight
from disttutor.traces.arrows import Message, messages, pairs
from disttutor.traces.clocks import Offset, offset_from_pings
from disttutor.traces.layout import lay_out
from disttutor.traces.metrics import (
    BUS_FACTOR,
    Bandwidth,
    bandwidth,
    bubble_ratio,
    bubble_share,
    busy,
    bytes_entered,
    hidden_communication,
    idle,
    operations,
    peak,
    ring_bytes_sent,
)
from disttutor.traces.perfetto import chrome_trace, rows, save
from disttutor.traces.recorder import (
    NullRecorder,
    Recorder,
    merge,
    recorder,
    start_recording,
    stop_recording,
    unrecorded,
)
from disttutor.traces.replay import replay
from disttutor.traces.slow_motion import SlowMotion
from disttutor.traces.trace import Counter, Span, Trace

__all__ = ["BUS_FACTOR", "Bandwidth", "Counter", "Message", "NullRecorder", "Offset", "Recorder", "SlowMotion",
           "Span", "Trace", "bandwidth", "bubble_ratio", "bubble_share", "busy", "bytes_entered",
           "chrome_trace", "hidden_communication", "idle", "in_flight", "lay_out", "merge", "messages",
           "offset_from_pings", "operations", "pairs", "peak", "peak_in_flight", "recorder", "replay",
           "ring_bytes_sent", "rows", "save", "start_recording", "stop_recording", "unrecorded"]
