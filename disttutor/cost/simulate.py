"""A plan on a machine that is not here: the same operations in the same order, each as long as the model says."""

from collections.abc import Sequence

from disttutor.plans import Machine, Op, Plan
from disttutor.traces import Span, Trace, lay_out


def simulate(plan: Plan, machine: Machine) -> Trace:
    """Predict what running `plan` on `machine` would record: a trace whose source is "predicted".

    Compute lasts its flops over the device's rate, a message α + bytes/β, a collective what its ring takes
    (`Machine.collective_seconds`). Raises PlanError if the plan cannot run.
    """
    plan.check()

    def seconds(ops: Sequence[Op]) -> float:
        op = ops[0]
        if op.group:
            return machine.collective_seconds(op.kind, op.nbytes, len(op.group))
        return {"send": machine.link.seconds(op.nbytes), "recv": 0.0}.get(op.kind, machine.device.seconds(op.flops))

    times = lay_out(plan, seconds)
    spans = tuple(Span(op, *times[op.key], cpu=times[op.key][1] - times[op.key][0]) for op in plan)
    return Trace(spans, plan.world_size, "predicted", note=f"{machine.device.name} and {machine.link.name}")
