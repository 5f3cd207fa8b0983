"""Backward in two halves: the gradient of a stage's input now, that of its weights whenever there is time.

Qi et al. 2023, "Zero Bubble Pipeline Parallelism" (arXiv 2401.10241), section 2: only the input's gradient keeps other
stages waiting. For a layer y = W x the two halves are dL/dx = Wᵀ dL/dy and dL/dW = dL/dy xᵀ; they share dL/dy alone.

So the first half walks back through the graph and keeps dL/dy where a weight joins in; the second goes from there to
the weight. A weight that is used several times within the stage gets its gradient in the first half, since the second
would pass from one use through the other.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

Edge = tuple[Any, int]      # a node of the graph, and which of its outputs


class SplitBackward:
    """The backward of one stage for one micro-batch, in two halves that are asked for in this order.

    outputs: what forward gave; those that need no gradient are left out. inputs: what it was given. parameters: of the
    stage.
    """

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], parameters: Sequence[Tensor]):
        self.outputs = [t for t in outputs if t.requires_grad]
        self.inputs = [t for t in inputs if t.requires_grad]
        roots = [(edge.node, edge.output_nr) for edge in map(get_gradient_edge, self.outputs)]
        users, weights = _look_around(roots, {id(p) for p in parameters})
        self.at_once: list[Tensor] = []
        self.joints: dict[Any, list[Tensor]] = defaultdict(list)     # node where weights join in -> those weights
        for node, weight in weights:
            joint = _joint(node, users)
            if joint is None:
                self.at_once.append(weight)
            else:
                self.joints[joint].append(weight)
        self.edges = [GradientEdge(node, slot) for node in self.joints for slot in sorted({s for _, s in users[node]})]
        self.kept: list[Tensor | None] = []

    def input_gradients(self, gradients: Sequence[Tensor] | None) -> list[Tensor | None]:
        """First half: the gradient of each input that needs one, given that of each output that has one (None: the
        output is the loss)."""
        wanted = [*self.inputs, *self.at_once, *self.edges]
        if not wanted or not self.outputs:
            return [None] * len(self.inputs)
        found = torch.autograd.grad(self.outputs, wanted, gradients, retain_graph=True, allow_unused=True)
        n, m = len(self.inputs), len(self.at_once)
        for weight, gradient in zip(self.at_once, found[n:], strict=False):
            _add(weight, gradient)
        self.kept = list(found[n + m:])
        return list(found[:n])

    def weight_gradients(self) -> None:
        """Second half: what is still missing goes into each weight's `.grad`. Lets go of the graph."""
        kept = dict(zip(((edge.node, edge.output_nr) for edge in self.edges), self.kept, strict=True))
        for joint, weights in self.joints.items():
            there = [(GradientEdge(*at), g) for at, g in kept.items() if at[0] is joint and g is not None]
            if there:
                edges, gradients = zip(*there, strict=True)
                torch.autograd.backward(edges, gradients, inputs=weights)
        self.outputs, self.inputs, self.edges, self.kept, self.joints = [], [], [], [], {}


def _look_around(roots: Sequence[Edge], wanted: set[int]) -> tuple[dict[Any, list[tuple[Any, int]]], list]:
    """For each node of the graph who uses which of its outputs (None: nobody, it is a root), and the wanted leaves."""
    users: dict[Any, list[tuple[Any, int]]] = defaultdict(list)
    for node, slot in roots:
        users[node].append((None, slot))
    leaves, stack, seen = [], [node for node, _ in roots], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) in wanted:
            leaves.append((node, leaf))
        for source, slot in node.next_functions:
            if source is not None:
                users[source].append((node, slot))
                stack.append(source)
    return users, leaves


def _joint(node: Any, users: dict[Any, list[tuple[Any, int]]]) -> Any:
    """The first node above a weight where something else joins in; None if there are several ways up to there, or none
    as the weight is an output itself."""
    leaf = node
    while len(users[node]) == 1:
        above, _ = users[node][0]
        if above is None:
            return None if node is leaf else node
        if sum(source is not None for source, _ in above.next_functions) > 1:
            return above
        node = above
    return None


def _add(weight: Tensor, gradient: Tensor | None) -> None:
    if gradient is None:
        return
    if weight.grad is None:
        weight.grad = gradient.clone()          # torch may give one tensor as the gradient of several (y = x + b)
    else:
        weight.grad = weight.grad + gradient if weight.grad.is_sparse else weight.grad.add_(gradient)
