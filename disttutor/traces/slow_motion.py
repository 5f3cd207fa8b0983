"""Slow motion: real ranks, real messages, real numbers, but at the pace of a stated machine.

Two cores cannot show how eight busy devices interleave: their timeline shows the operating system's scheduler. So in
slow motion each operation is stretched to the time that a device model gives it (the rank sleeps out the rest), and a
message arrives no earlier than a link model allows. What cannot be kept up with is not hidden: an operation that
really took longer than its model ends late.
"""

import time
from dataclasses import dataclass, field
from typing import Any

from disttutor.plans import Machine

CATCH_UP = 0.5          # share of an operation's time by which it may begin late without ending late


@dataclass(frozen=True, slots=True)
class SlowMotion:
    """The machine whose pace the ranks keep. Choose its rates so that operations last some tens of milliseconds.

    Raises TypeError for anything but a Machine.
    """

    machine: Machine = field(default_factory=Machine)

    def __post_init__(self) -> None:
        if not isinstance(self.machine, Machine):
            raise TypeError(f"slow motion keeps the pace of a machine, not of {self.machine!r} "
                            f"({type(self.machine).__name__}): give Machine(Device(...), Link(...))")

    def describe(self) -> str:
        """The model in one line, for the picture's corner."""
        device, link = self.machine.device, self.machine.link
        return (f"device {_si(device.flops)}flop/s, link {link.latency * 1e3:g} ms + bytes / "
                f"{_si(link.bandwidth)}B/s")


class Pacer:
    """Keeps one rank at the pace of a machine. Times are of `time.perf_counter_ns`, one clock for all its processes.

    A rank that wakes up a little late has not lost the time: its operation counts from when the model's would have
    begun, and ends when the model's ends. Otherwise a millisecond at each of a hundred operations would add up to a
    tenth of a second that no device has lost. At most `CATCH_UP` of an operation is made up for; a rank that is later
    than that is shown as late.
    """

    def __init__(self, slow: SlowMotion):
        self.machine = slow.machine
        self._ready = 0                                        # when the model's rank is done with all before
        self._pace = 0                                         # how long its last computation took
        self._link_free: dict[tuple, int] = {}                 # group, or port -> when it has carried all before

    def compute(self, start: int, flops: float) -> tuple[int, int]:
        """Sleep until the operation that began at `start` has lasted as long as the model says; from when until when
        that was."""
        self._pace = round(1e9 * self.machine.device.seconds(flops))
        begin = self._begin(start)
        self._ready = max(begin + self._pace, time.perf_counter_ns())
        _sleep_until(self._ready)
        return begin, self._ready

    def depart(self, rank: int, peer: int, nbytes: int) -> tuple[int, int]:
        """When the model's port carries the message that leaves now, from and until; the rank itself goes on."""
        now = time.perf_counter_ns()
        takes = self._transit(rank, peer, nbytes)
        port = ("send", *self.machine.port(rank, peer))
        begin = max(self._begin(now), self._link_free.get(port, 0))
        self._link_free[port] = begin + takes
        return begin, begin + takes

    def arrive(self, rank: int, peer: int, nbytes: int, start: int, sent: int) -> tuple[int, int]:
        """Wait until the message that had crossed the link at `sent` is in; from when the rank was waiting, until when.
        """
        port = ("recv", *self.machine.port(rank, peer))
        there = max(sent, self._link_free.get(port, 0) + self._transit(rank, peer, nbytes))
        self._link_free[port] = there
        begin = self._begin(start)
        _sleep_until(there)
        self._ready = max(begin, there)
        return begin, self._ready

    def collective(self, kind: str, start: int, nbytes: int, group: tuple[int, ...],
                   process_group: Any) -> tuple[int, int]:
        """Wait until the model's collective is over; from when this rank was at it, and until when.

        It starts when the last rank of the group has entered it and the link has carried what came before (that one
        which was launched while another was under way was not at it yet). Every rank of the group must call this, in
        the same order.
        """
        free = self._link_free.get(group, 0)
        begin = max(_latest(start, process_group), free)
        end = begin + round(1e9 * self.machine.collective_seconds(kind, nbytes, group))
        self._link_free[group] = end
        _sleep_until(end)
        self._ready = max(self._ready, end)
        return max(start, free), end

    def _transit(self, rank: int, peer: int, nbytes: int) -> int:
        return round(1e9 * self.machine.path(rank, peer).seconds(nbytes))

    def _begin(self, start: int) -> int:
        """When the model's rank begins what really began at `start`."""
        return self._ready if start - self._ready <= CATCH_UP * self._pace else start


def _latest(start: int, process_group: Any) -> int:
    """The latest `start` among the ranks of the group, by a collective of its own (torch is there: a rank trains)."""
    import torch
    import torch.distributed as dist

    moment = torch.tensor(start, dtype=torch.int64)
    dist.all_reduce(moment, op=dist.ReduceOp.MAX, group=process_group)
    return int(moment)


def _sleep_until(moment: int) -> None:
    while (left := moment - time.perf_counter_ns()) > 0:
        time.sleep(left / 1e9)


def _si(value: float) -> str:
    for unit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {prefix}"
    return f"{value:.3g} "
