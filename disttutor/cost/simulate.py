"""A plan on a machine that is not here: the same operations in the same order, each as long as the model says."""

import gc
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from disttutor.plans import Machine, Op, Plan
from disttutor.plans.check import prove
from disttutor.traces import Span, Trace, lay_out


def simulate(plan: Plan, machine: Machine) -> Trace:
    """Predict what running `plan` on `machine` would record: a trace whose source is "predicted".

    Compute lasts its flops over the device's rate. A message takes α + bytes/β (Hockney 1994), and occupies so long the
    sender's outgoing port and the receiver's incoming one, each of which carries one message at a time, both at once
    (the model of Thakur, Rabenseifner and Gropp 2005, section 3). Between nodes those are the ports of the nodes, in
    which their ranks take turns. A collective that is one operation lasts what its ring takes
    (`Machine.collective_seconds`). Raises PlanError if the plan cannot run.
    """
    flops, link, several = machine.device.flops, machine.link, machine.node is not None

    def transfer(op: Op) -> float:
        return (machine.path(op.rank, op.peer) if several else link).seconds(op.nbytes)

    def seconds(ops: Sequence[Op]) -> float:
        op = ops[0]
        if op.group:
            return machine.collective_seconds(op.kind, op.nbytes, op.group)
        if op.peer is None:
            return op.flops / flops
        return transfer(op) if op.kind == "send" else 0.0

    def shared_port(op: Op) -> Hashable:
        return machine.port(op.rank, op.peer)

    ports = {"port": shared_port} if several else {}
    note = f"{machine.device.name} and {machine.link.name}"
    note += f", nodes of {machine.node} joined by {machine.between.name}" if several else ""
    with _nothing_collected():
        times = prove(plan, lambda: lay_out(plan, seconds, transit=transfer, **ports))
        spans = tuple(Span(op, start, end, 0.0, 0, place) for ops, when in zip(plan.ops, times, strict=True)
                      for place, (op, (start, end)) in enumerate(zip(ops, when, strict=True)))
        return Trace(spans, plan.world_size, "predicted", note=note)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Hundreds of thousands of objects are made here, and all of them stay: a collector that searched them again and
    again would take a third of the time, and more than in proportion to their number."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
