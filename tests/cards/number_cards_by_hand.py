"""The answer of every number card, worked out here again from the numbers that it draws, by counting where one can.

Nothing of the library is used. Small machines are played through: a pipeline turn by turn, a mesh rank by rank.
"""

from math import ceil, log2, sqrt


def play(order, ranks):
    """A pipeline played through: `order(stage)` lists (kind, micro-batch), a forward and a backward take one turn each.

    Returns how many turns it takes, and the most micro-batches that each stage has in flight.
    """
    lists, ends, clock = [list(order(s)) for s in range(ranks)], {}, [0] * ranks
    places, held, peak = [0] * ranks, [0] * ranks, [0] * ranks
    while any(places[s] < len(lists[s]) for s in range(ranks)):
        for s in range(ranks):
            while places[s] < len(lists[s]):
                kind, m = lists[s][places[s]]
                before = s - 1 if kind == "F" else s + 1
                if 0 <= before < ranks and (kind, before, m) not in ends:
                    break
                start = max(clock[s], ends.get((kind, before, m), 0))
                clock[s] = ends[kind, s, m] = start + 1
                held[s] += 1 if kind == "F" else -1
                peak[s] = max(peak[s], held[s])
                places[s] += 1
    return max(clock), peak


def gpipe(ranks, microbatches):
    return play(lambda s: [(k, m) for k in "FB" for m in range(microbatches)], ranks)


def one_f_one_b(ranks, microbatches):
    def order(s):
        ahead = min(microbatches, ranks - 1 - s)
        steady = [turn for i in range(microbatches - ahead) for turn in (("F", ahead + i), ("B", i))]
        return ([("F", m) for m in range(ahead)] + steady
                + [("B", m) for m in range(microbatches - ahead, microbatches)])

    return play(order, ranks)


def played(schedule, ranks, microbatches):
    return {"GPipe": gpipe, "1F1B": one_f_one_b}[schedule](ranks, microbatches)


def bubble_turns(schedule, ranks, microbatches):
    """(idle turns, all turns) of a rank."""
    turns, _ = played(schedule, ranks, microbatches)
    return turns - 2 * microbatches, turns


def stale(ranks, stage, microbatches=30):
    """Backwards of a stage between a late mini-batch's forward and its own backward."""
    ahead = ranks - 1 - stage
    order = [("F", m) for m in range(ahead)]
    order += [turn for i in range(microbatches - ahead) for turn in (("F", ahead + i), ("B", i))]
    first, last = order.index(("F", 15)), order.index(("B", 15))
    return sum(kind == "B" for kind, _ in order[first:last])


def dealt(things, hands):
    """How many each hand gets when they are dealt out one by one."""
    got = [0] * hands
    for i in range(things):
        got[i % hands] += 1
    return got


def halvings(ranks):
    rounds = 0
    while ranks > 1:
        ranks, rounds = (ranks + 1) // 2, rounds + 1
    return rounds


def numbered(data, pipeline, tensor):
    """Coordinates, in the order in which ranks are numbered."""
    return [(d, p, t) for d in range(data) for p in range(pipeline) for t in range(tensor)]


def groups(data, pipeline, tensor, axis):
    drop = ("data", "pipeline", "tensor").index(axis)
    return len({c[:drop] + c[drop + 1:] for c in numbered(data, pipeline, tensor)})


def fit(layers, size, limit):
    buckets, inside = 1, 0
    for _ in range(layers):
        if inside + size > limit:
            buckets, inside = buckets + 1, 0
        inside += size
    return buckets


def buckets_over(backward, buckets, each):
    """When the last bucket's exchange is over, after the end of backward."""
    free = 0.0
    for i in range(1, buckets + 1):
        free = max(free, backward * i / buckets) + each
    return free - backward


def sent_in_ring(ranks, size):
    """A rank sends one chunk in each of 2(n-1) rounds."""
    return sum(size / ranks for _ in range(2 * (ranks - 1)))


def sent_to_others(ranks, size):
    """A rank sends one chunk in each of n-1 rounds."""
    return sum(size / ranks for _ in range(ranks - 1))


def first(numbers, condition):
    return next(n for n in numbers if condition(n))


BY_HAND = {
    # numbers_collectives
    "number-ring-bytes": sent_in_ring,
    "number-ring-steps": lambda ranks: (ranks - 1) + (ranks - 1),
    "number-naive-root-bytes": lambda ranks, size: sum(2 * size for _ in range(1, ranks)),
    "number-tree-steps": lambda ranks: 2 * halvings(ranks),
    "number-doubling-steps": halvings,
    "number-doubling-bytes": lambda ranks, size: size * log2(ranks),
    "number-halving-doubling-steps": lambda ranks: 2 * halvings(ranks),
    "number-all-gather-bytes": sent_to_others,
    "number-reduce-scatter-result": lambda ranks, size: size / ranks,
    "number-hierarchical-bytes": lambda nodes, gpus, size: gpus * sent_in_ring(nodes, size / gpus),
    # numbers_links; sizes in MB, latency in µs, bandwidth in GB/s
    "number-message-time": lambda size, latency, bandwidth: latency / 1000 + size / bandwidth,
    "number-ring-time": lambda ranks, size, latency, bandwidth: (
        2 * (ranks - 1) * latency / 1000 + sent_in_ring(ranks, size) / bandwidth),
    "number-latency-bandwidth-even": lambda ranks, latency, bandwidth: ranks * latency * bandwidth / 1000,
    "number-ring-or-tree": lambda ranks, latency, bandwidth: even_size(ranks, latency, bandwidth),
    "number-bus-bandwidth": lambda ranks, size, time: size * 1000 / time * 2 * (ranks - 1) / ranks,
    # numbers_pipelines
    "number-bubble-share": lambda schedule, ranks, microbatches: (
        100 * (turns := bubble_turns(schedule, ranks, microbatches))[0] / turns[1]),
    "number-bubble-ratio": lambda schedule, ranks, microbatches: (
        100 * bubble_turns(schedule, ranks, microbatches)[0] / (2 * microbatches)),
    "number-bubble-interleaved": lambda ranks, stages, rounds: 100 * (ranks - 1) / (stages * ranks * rounds),
    "number-pipeline-makespan": lambda ranks, microbatches, forward, backward: (
        gpipe(ranks, microbatches)[0] / 2 * (forward + backward)),
    "number-naive-makespan": lambda ranks, microbatches, forward, backward: (
        sum(forward + backward for _ in range(microbatches) for _ in range(ranks))),
    "number-zero-bubble-idle": lambda ranks, microbatches, forward, backward, weight: (
        (ranks - 1) * (forward + backward - weight)),
    "number-micro-batches-for-bubble": lambda ranks, percent: first(
        range(1, 999), lambda m: 100 * (ranks - 1) <= percent * (m + ranks - 1)),
    "number-bubble-speedup": lambda ranks, microbatches: (
        2 * microbatches * ranks / one_f_one_b(ranks, microbatches)[0]),
    # numbers_stages
    "number-in-flight-1f1b": lambda ranks, stage, microbatches: one_f_one_b(ranks, microbatches)[1][stage],
    "number-in-flight-gpipe": lambda ranks, stage, microbatches: gpipe(ranks, microbatches)[1][stage],
    "number-in-flight-interleaved": lambda ranks, stages, rounds: (stages - 1) * ranks + 2 * (ranks - 1) + 1,
    "number-1f1b-saves": lambda ranks, microbatches, size: (
        size * (gpipe(ranks, microbatches)[1][0] - one_f_one_b(ranks, microbatches)[1][0])),
    "number-pipeline-transfers": lambda ranks, microbatches: sum(
        2 for _ in range(microbatches) for _ in range(1, ranks)),
    "number-stage-layers": lambda layers, ranks: dealt(layers, ranks)[0],
    "number-stage-memory": lambda billions, ranks: 16 * billions / ranks,
    "number-staleness": stale,
    "number-weight-versions": lambda ranks, stage: stale(ranks, stage) + 1,
    # numbers_batches
    "number-uneven-share": lambda samples, ranks: dealt(samples, ranks)[0],
    "number-share-weight": lambda samples, ranks: dealt(samples, ranks)[0] / samples,
    "number-mean-of-shares": lambda one, other, first, second: mean([first] * one + [second] * other),
    "number-mean-of-means-error": lambda one, other, first, second: (
        mean([first, second]) - mean([first] * one + [second] * other)),
    "number-global-batch": lambda own, ranks, accumulate: own * ranks * accumulate,
    "number-accumulation-steps": lambda own, ranks, steps: steps,
    "number-accumulation-divisor": lambda own, ranks, accumulate: ranks * accumulate,
    "number-accumulation-traffic": lambda ranks, accumulate, size: (
        accumulate * sent_in_ring(ranks, size) - sent_in_ring(ranks, size)),
    "number-learning-rate": lambda rate, batch, times: rate * times,
    "number-updates-per-epoch": lambda updates, own, ranks: updates,
    # numbers_data_parallel
    "number-data-parallel-bytes": lambda millions, width, ranks: sent_in_ring(ranks, millions * width),
    "number-buckets": fit,
    "number-hidden-by-backward": buckets_over,
    "number-step-with-overlap": lambda forward, backward, exchange, share: max(
        forward + backward, forward + backward * (1 - share) + exchange),
    "number-straggler": lambda ranks, normal, times: 100 * (1 - (ranks - 1 + times) / (ranks * times)),
    "number-parameter-server-staleness": lambda ranks: ranks - 1,
    "number-local-sgd-traffic": lambda ranks, size, steps, every: steps / every * sent_in_ring(ranks, size),
    # numbers_memory
    "number-training-memory": lambda billions: billions * 16,
    "number-optimizer-memory": lambda billions: billions * 12,
    "number-plain-memory": lambda optimizer, billions: (
        billions * 4 * {"SGD": 2, "SGD with momentum": 3, "Adam": 4}[optimizer]),
    "number-checkpointing-cannot-help": lambda billions, capacity: 16 * billions - capacity,
    "number-fsdp-memory": lambda billions, ranks: 16 * billions / ranks,
    "number-layer-activations": lambda width, tokens, samples: samples * (
        34 * tokens * width + 5 * {6144: 64, 12288: 96, 20480: 128}[width] * tokens**2) / 1e9,
    "number-full-recompute": lambda width, tokens, samples, layers: layers * 2 * samples * tokens * width / 1e9,
    "number-checkpoint-segments": lambda layers: 2 * sqrt(layers),
    "number-recompute-time": lambda time: 4 * time / 3,
    # numbers_zero
    "number-zero-1": lambda billions, ranks: billions * (4 + 12 / ranks),
    "number-zero-2": lambda billions, ranks: billions * (2 + 14 / ranks),
    "number-zero-3": lambda billions, ranks: billions * 16 / ranks,
    "number-zero-traffic": lambda stage, billions, ranks: (
        {1: 2, 2: 2, 3: 3}[stage] * sent_to_others(ranks, 2 * billions)),
    "number-fewest-gpus": lambda billions, capacity: first(range(1, 999), lambda n: n * capacity >= 16 * billions),
    "number-hybrid-zero-1": lambda billions, model, data: billions / model * 4 + billions / model * 12 / data,
    # numbers_tensor
    "number-column-parallel-shape": lambda width, ranks: dealt(4 * width, ranks)[0],
    "number-row-parallel-shape": lambda width, ranks: width,
    "number-heads-that-divide": lambda heads, gpus: first(range(gpus, 0, -1), lambda t: heads % t == 0),
    "number-tensor-all-reduces": lambda layers: sum(4 for _ in range(layers)),
    "number-tensor-bytes": lambda tokens, samples, width, ranks: (
        4 * sent_in_ring(ranks, 2 * tokens * samples * width) / 1e6),
    "number-ring-attention-steps": lambda thousands, ranks: ranks - 1,
    "number-ring-attention-bytes": lambda thousands, width, ranks: (
        sent_to_others(ranks, thousands * 1000 * 2 * width * 2) / 1e6),
    "number-expert-all-to-all": lambda tokens, width, best, ranks: (
        sent_to_others(ranks, tokens * best * width * 2) / 1e6),
    "number-expert-capacity": lambda tokens, experts, factor: first(
        range(9999), lambda n: n * experts >= factor * tokens),
    # numbers_mesh
    "number-mesh-data-ranks": lambda data, pipeline, tensor: data,
    "number-mesh-rank": lambda data, pipeline, tensor, d, p, t: numbered(data, pipeline, tensor).index((d, p, t)),
    "number-mesh-stage": lambda data, pipeline, tensor, rank: numbered(data, pipeline, tensor)[rank][1],
    "number-mesh-groups": groups,
    "number-mesh-next-replica": lambda data, pipeline, tensor, rank: (
        numbered(data, pipeline, tensor).index((1, *numbered(data, pipeline, tensor)[rank][1:]))),
    # numbers_scaling
    "number-training-days": lambda billions, tokens, gpus, percent: (
        6e21 * billions * tokens / (gpus * percent * 1e13) / 3600 / 24),
    "number-gpus-for-a-deadline": lambda billions, tokens, days, percent: ceil(
        6e21 * billions * tokens / (percent * 1e13) / (days * 24 * 3600)),
    "number-mfu": lambda billions, gpus, rate, peak: (
        100 * 6e-3 * billions * round(8000 * rate / billions) / peak),
    "number-speedup": lambda compute, ranks, sent: compute * ranks / (compute + sent * ranks),
    "number-efficiency": lambda compute, ranks, sent: 100 * compute / (compute + sent * ranks),
    "number-speedup-overlap": lambda compute, ranks, sent, hidden: (
        compute * ranks / (compute + max(sent - hidden, 0) * ranks)),
    "number-communication-from-speedup": lambda compute, ranks, reached: (
        compute * (ranks - reached) / (ranks * reached)),
    "number-amdahl": lambda percent, ranks: 100 * ranks / (percent * ranks + 100 - percent),
    "number-gustafson": lambda percent, ranks: ranks - percent / 100 * (ranks - 1),
    "number-weak-scaling": lambda compute, ranks, sent: 100 * compute / (compute + sent),
    # numbers_machines
    "number-threads-per-rank": lambda cores, ranks: max(1, dealt(cores, ranks)[-1]),
    "number-torchrun-world": lambda nodes, each: len([(n, e) for n in range(nodes) for e in range(each)]),
    "number-torchrun-rank": lambda each, node, local: (
        [(n, e) for n in range(node + 1) for e in range(each)].index((node, local))),
    "number-cluster-failures": lambda thousands, gpus: 1000 * thousands / gpus,
    "number-checkpoint-interval": lambda cost, hours: best_interval(cost, 60 * hours),
    "number-lost-time": lambda every, cost, hours: 100 * lost(every, cost, 60 * hours),
}


def mean(numbers):
    return sum(numbers) / len(numbers)


def even_size(ranks, latency, bandwidth):
    """Bisection: MB at which a tree takes as long as a ring, each played round by round."""
    def tree(size):
        return sum(2 * (latency / 1000 + size / bandwidth) for _ in range(halvings(ranks)))

    def ring(size):
        return sum(latency / 1000 + size / ranks / bandwidth for _ in range(2 * (ranks - 1)))

    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if tree(middle) < ring(middle) else (low, middle)
    return low


def lost(every, cost, between):
    return cost / every + every / 2 / between


def best_interval(cost, between):
    """The interval with the least loss, searched for."""
    low, high = 0.01, 1e5
    for _ in range(200):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, other) if lost(one, cost, between) < lost(other, cost, between) else (one, high)
    return low
