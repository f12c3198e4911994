"""A training step predicted by plain code that shares only the shape with the models.

This is a first draft for a dense model: loops over all ranks find who is on which node, loops over
layers what they send, and a simulator scans all ranks until nothing moves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from figgen.catalog import model
from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.step import step
from tests.models.jobs import H100, job

LLAMA = model("llama-3-8b").shape
NODES, WIDTH = 16, 8

Config = tuple[int, int, int, int, float]
"""TP, PP, microbatches, tokens of a sequence, and share of the peak."""


def configs() -> Iterator[Config]:
    """Return 100,000 different steps; neighbors in the list share a layout as in a search."""
    efficiencies = (0.3 + step / 100 for step in range(25))
    return itertools.product(
        (1, 2, 4, 8), (1, 2, 4, 8), range(8, 33), range(1024, 10_241, 1024), tuple(efficiencies)
    )


def predicted(config: Config) -> float:
    tp, pp, microbatches, sequence, efficiency = config
    setup = job(
        LLAMA,
        nodes=NODES,
        gpus_per_node=WIDTH,
        tp=tp,
        pp=pp,
        microbatches=microbatches,
        sequence=sequence,
        zero_stage=0,
        sequence_parallel=False,
        overlap_data_parallel=False,
    )
    return step(setup, H100, compute_efficiency=efficiency).step_time_s


def plain_all_reduce_s(ranks: list[int], size: float) -> float:
    """Return seconds of a ring over `ranks`; ranks of one node share each other's adapters."""
    n, nodes = len(ranks), {rank // WIDTH for rank in ranks}
    if n == 1:
        return 0.0
    latency_s = (len(nodes) - 1) * H100.network_latency_s + (
        n - len(nodes)
    ) * H100.scale_up_latency_s
    bandwidth = H100.scale_up_bandwidth_bytes_per_s
    if len(nodes) > 1:
        adapters = (n // len(nodes)) * H100.network_bandwidth_bytes_per_s
        bandwidth = min(bandwidth, adapters)
    return 2 * latency_s + 2 * (n - 1) / n * size / bandwidth


def plain_layers(shape: ModelShape, pp: int) -> list[int]:
    """Return the layers per stage, dealt out one by one, the ends of the pipeline last."""
    stages = [*range(1, pp - 1), 0, pp - 1] if pp > 1 else [0]
    layers = [shape.layers // pp] * pp
    for stage in stages[: shape.layers % pp]:
        layers[stage] += 1
    return layers


def plain_step(config: Config) -> float:
    tp, pp, microbatches, sequence, efficiency = config
    shape, world = LLAMA, NODES * WIDTH
    dp = world // tp // pp
    place = {r: (r % tp, r // tp % dp, r // tp // dp) for r in range(world)}
    peers = [
        [r for r in range(world) if all(place[r][k] == 0 for k in range(3) if k != axis)]
        for axis in range(3)
    ]
    h, f, vocab, dim = shape.hidden, shape.ffn_hidden, shape.vocab, shape.head_dim
    projections = 2 * h * (shape.heads + shape.kv_heads) * dim + 3 * h * f
    core = 2 * sequence * sequence * shape.heads * dim / tp
    rate = H100.peak_flops_per_s * efficiency
    reduce_s = plain_all_reduce_s(peers[0], 2.0 * sequence * h)
    forward, inputs, weights, gradients = [], [], [], []
    for stage, layers in enumerate(plain_layers(shape, pp)):
        products, sums, held = 0.0, [0, 0], 0
        for _ in range(layers):
            products += 2 * projections * sequence / tp
            sums = [sums[0] + 2, sums[1] + 2]
            held += projections // tp + 2 * h
        if stage == 0:
            sums[0] += 1
            held += vocab // tp * h
        if stage == pp - 1:
            products += 2 * vocab * h * sequence / tp
            sums[1] += 1
            held += vocab // tp * h + h
        forward.append((products + layers * core) / rate + sums[0] * reduce_s)
        inputs.append((products + 2 * layers * core) / rate + sums[1] * reduce_s)
        weights.append(products / rate)
        buckets = layers + (stage == 0) + (stage == pp - 1)
        gradients.append(buckets * plain_all_reduce_s(peers[1], 4.0 * held / buckets))
    across = pp > 1 and peers[2][0] // WIDTH != peers[2][1] // WIDTH
    alpha = H100.network_latency_s if across else H100.scale_up_latency_s
    beta = H100.network_bandwidth_bytes_per_s if across else H100.scale_up_bandwidth_bytes_per_s
    hop_s = alpha + 2.0 * sequence * h / beta if pp > 1 else 0.0
    backward = [i + w for i, w in zip(inputs, weights, strict=True)]
    ends = plain_1f1b_ends(microbatches, forward, backward, hop_s)
    return max(end + after for end, after in zip(ends, gradients, strict=True))


def plain_1f1b_ends(
    microbatches: int, forward: list[float], backward: list[float], hop_s: float
) -> list[float]:
    """Return the end of every stage, scanning all orders repeatedly as inputs arrive."""
    stages = len(forward)
    orders = []
    for stage in range(stages):
        ahead = min(stages - stage - 1, microbatches)
        pairs = [x for m in range(microbatches - ahead) for x in (("F", m + ahead), ("B", m))]
        drain = [("B", m) for m in range(microbatches - ahead, microbatches)]
        orders.append([*(("F", m) for m in range(ahead)), *pairs, *drain])
    ends: dict[tuple[str, int, int], float] = {}
    free, position = [0.0] * stages, [0] * stages
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            if position[stage] == len(order):
                continue
            kind, m = order[position[stage]]
            source = stage - 1 if kind == "F" else stage + 1
            start = free[stage]
            if 0 <= source < stages:
                if (kind, source, m) not in ends:
                    continue
                start = max(start, ends[kind, source, m] + hop_s)
            took = forward[stage] if kind == "F" else backward[stage]
            free[stage] = ends[kind, stage, m] = start + took
            position[stage] += 1
            moved = True
    return free
