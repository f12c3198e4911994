"""Data parallelism: the mean gradient, the step of a rank, the cost of the all-reduce."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Box, Column, Diagram, DiagramLink, Named, Scalar, Slot, Table, Timeline
from figgen.errors import InputError, check_between, check_share
from figgen.figures.parameters import HardwareName, ModelName
from figgen.formulas.compute_and_roofline import training_flops
from figgen.formulas.data_parallel import data_parallel_bytes
from figgen.formulas.hierarchical_collectives import nccl_ring_latency
from figgen.models.algorithms.communication_ratio import group_bandwidth_bytes_per_s
from figgen.plotting.placed import box_at, headings
from figgen.registry import figure

WEIGHT, RATE = Fraction(1), Fraction(1, 100)
"""The toy's weight before the step and its learning rate."""

ADAM_BYTES = 28
"""HBM traffic of an Adam step per parameter: reads a 2-byte gradient and three fp32 values,
writes those three and a 2-byte weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedJob:
    """One data-parallel group: times of a step on one rank, and of an all-reduce."""

    parameters: int
    forward_s: float
    backward_s: float
    update_s: float
    seconds_per_byte: float
    bucket_overhead_s: float


def job(
    *,
    model: str,
    node: HardwarePreset,
    ranks: int,
    ranks_per_node: int,
    tokens: int,
    utilization: float,
) -> ReplicatedJob:
    """Return a rank that computes `tokens` at `utilization` of the BF16 peak, and its ring.

    `ranks_per_node` members of the group share the node's ports; each costs one hop.
    """
    check_between("ranks", ranks, 1, 2**20)
    check_between("tokens", tokens, 1, 10**9)
    if ranks > ranks_per_node and ranks % ranks_per_node:
        raise InputError("ranks", expected=f"a multiple of {ranks_per_node}", got=ranks)
    check_share("utilization", utilization)
    parameters = catalog_model(model).parameters
    forward = training_flops(parameters, tokens) / 3
    forward_s = forward / (node.accelerator.peak_flops_per_s("bf16") * utilization)
    bandwidth, nodes = node.scale_up_bandwidth_bytes_per_s, 1
    if ranks > ranks_per_node:
        nodes = ranks // ranks_per_node
        bandwidth = group_bandwidth_bytes_per_s(
            bandwidth, node.network_bandwidth_bytes_per_s, ranks_per_node
        )
    overhead = nccl_ring_latency(ranks, nodes, 0.0, node.scale_up_latency_s, node.network_latency_s)
    return ReplicatedJob(
        parameters=parameters,
        forward_s=forward_s,
        backward_s=2 * forward_s,
        update_s=ADAM_BYTES * parameters / node.accelerator.hbm_bandwidth_bytes_per_s,
        seconds_per_byte=data_parallel_bytes(1, 1, ranks) / bandwidth,
        bucket_overhead_s=float(overhead),
    )


def _samples(ranks: int, each: int) -> list[list[tuple[int, int]]]:
    """Return pairs (x, y) near y = 3x, `each` of them for every rank, with fixed errors."""
    points = [(i % 7 + 1, 3 * (i % 7 + 1) + (i * 5) % 4 - 2) for i in range(ranks * each)]
    return [points[rank * each : (rank + 1) * each] for rank in range(ranks)]


def mean_gradient(samples: list[tuple[int, int]]) -> Fraction:
    """Return d/dw of the mean of (w·x − y)² over `samples`, exactly."""
    return sum((2 * x * (WEIGHT * x - y) for x, y in samples), Fraction(0)) / len(samples)


def _signed(gradient: Fraction) -> str:
    return f"{float(gradient):.3f}".replace("-", "−")


@figure("data-parallel-mean")
def data_parallel_mean(*, ranks: int = 8, samples_per_rank: int = 2) -> Table:
    """Each rank's gradient of a one-weight model, their mean, and that over all samples.

    The loss is the mean of (w·x − y)² at w = 1, with exact fractions.
    """
    check_between("ranks", ranks, 2, 64)
    check_between("samples_per_rank", samples_per_rank, 2, 64)
    shards = _samples(ranks, samples_per_rank)
    local = [mean_gradient(shard) for shard in shards]
    mean = sum(local, Fraction(0)) / ranks
    whole = mean_gradient([sample for shard in shards for sample in shard])
    after = float(WEIGHT - RATE * mean)
    rows: list[tuple[Scalar, ...]] = [
        (f"rank {rank}", _written(shard), len(shard), float(g), float(mean), after)
        for rank, (shard, g) in enumerate(zip(shards, local, strict=True))
    ]
    count = ranks * samples_per_rank
    single = float(WEIGHT - RATE * whole)
    rows.append(("one GPU alone", "all of them", count, float(whole), float(whole), single))
    # The last rank runs out of data: its one sample now weighs as much as another rank's all.
    short = [*shards[:-1], shards[-1][:1]]
    unweighted = sum(map(mean_gradient, short), Fraction(0)) / ranks
    weighted = mean_gradient([sample for shard in short for sample in shard])
    columns = (
        *headings("rank", "its samples (x, y)"),
        Column(label="samples", spec="d"),
        *headings("own gradient", "after the all-reduce", spec=".3f"),
        Column(label="weight after the step", spec=".5f"),
    )
    values = {
        "ranks": Named(ranks),
        "samples": Named(count),
        "least": Named(float(min(local))),
        "most": Named(float(max(local))),
        "mean": Named(float(mean)),
        "whole": Named(float(whole)),
        "weight": Named(after),
        "short_mean": Named(float(unweighted)),
        "short_whole": Named(float(weighted)),
        "short_error": Named(float(unweighted / weighted - 1)),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)


def _written(shard: list[tuple[int, int]]) -> str:
    return " ".join(f"({x}, {y})" for x, y in shard)


@figure("data-parallel-replicas")
def data_parallel_replicas(*, ranks: int = 3, samples_per_rank: int = 2) -> Diagram:
    """A batch is split over replicas; they average gradients and take the same step."""
    check_between("ranks", ranks, 2, 4)
    check_between("samples_per_rank", samples_per_rank, 2, 4)
    shards = _samples(ranks, samples_per_rank)
    local = [mean_gradient(shard) for shard in shards]
    mean = sum(local, Fraction(0)) / ranks
    after = WEIGHT - RATE * mean
    width = 0.8 * samples_per_rank
    pitch = width + 0.14
    full = ranks * pitch - 0.14
    boxes = [
        box_at("batch", (f"global batch: {ranks * samples_per_rank} samples",), (0, 0), (full, 0.6))
    ]
    links = []
    for rank, shard in enumerate(shards):
        name = f"rank {rank}"
        boxes += _replica(name, rank * pitch, width, shard, after)
        links += [
            DiagramLink(source="batch", target=name, label=f"1/{ranks} of the data"),
            DiagramLink(source=name, target="mean", label="its own gradient"),
            DiagramLink(source="mean", target=f"{name} after", label="the same mean"),
        ]
    said = f"all-reduce: mean of {ranks} gradients = {_signed(mean)}"
    boxes.append(box_at("mean", (said,), (0, 3.5), (full, 0.6), "dp"))
    values = {
        "ranks": Named(ranks),
        "mean": Named(float(mean)),
        "weight": Named(float(after)),
        "samples": Named(ranks * samples_per_rank),
    }
    return Diagram(boxes=tuple(boxes), links=tuple(links), width=full, height=5.8, values=values)


def _replica(
    name: str, x: float, width: float, shard: list[tuple[int, int]], after: Fraction
) -> tuple[Box, Box]:
    """Return a replica before and after its step."""
    lines = (
        name,
        _written(shard),
        f"w = {float(WEIGHT):.5f}",
        f"gradient {_signed(mean_gradient(shard))}",
    )
    stepped = (f"{name} steps", f"w = {float(after):.5f}")
    return (
        box_at(name, lines, (x, 1.3), (width, 1.4), "forward"),
        box_at(f"{name} after", stepped, (x, 4.8), (width, 1.0)),
    )


def _step_of(
    rank: int, turn: float, ready: float, meet: float, reduced: float, end: float
) -> list[Slot]:
    """Return a rank's step: forward until `turn`, backward until `ready`, then all from `meet` on.

    Times are in seconds from the start of the step.
    """
    return [
        Slot(lane=rank, start=0.0, end=turn, role="forward", label="F"),
        Slot(lane=rank, start=turn, end=ready, role="backward", label="B"),
        Slot(lane=rank, start=meet, end=reduced, role="exposed", label="all-reduce"),
        Slot(lane=rank, start=reduced, end=end, role="neutral", label="U"),
    ]


@figure("data-parallel-step", of_reference=True, recomputed=True)
def data_parallel_step(
    *,
    model: ModelName = "gpt-2-xl",
    preset: HardwareName = "h100-ndr",
    ranks: int = 4,
    tokens: int = 8192,
    slow_rank: int = 2,
    slowdown: float = 1.15,
    utilization: float = 0.4,
) -> Timeline:
    """Forward, backward, all-reduce and update of every rank, one of which is slower.

    There is one rank per node and no overlap. The all-reduce starts when the last rank is ready.
    """
    check_between("ranks", ranks, 1, 64)  # lanes of one picture
    check_between("slow_rank", slow_rank, 0, ranks - 1)
    node = hardware_preset(preset)
    found = job(
        model=model,
        node=node,
        ranks=ranks,
        ranks_per_node=1,
        tokens=tokens,
        utilization=utilization,
    )
    pace = [slowdown if rank == slow_rank else 1.0 for rank in range(ranks)]
    meet = max(pace) * (found.forward_s + found.backward_s)
    size = 2 * found.parameters
    reduced = meet + found.bucket_overhead_s + size * found.seconds_per_byte
    end = reduced + found.update_s
    slots: list[Slot] = []
    for rank in range(ranks):
        turn = pace[rank] * found.forward_s
        ready = pace[rank] * (found.forward_s + found.backward_s)
        slots += _step_of(rank, turn, ready, meet, reduced, end)
    values = {
        "forward_s": Named(found.forward_s, "s"),
        "backward_s": Named(found.backward_s, "s"),
        "all_reduce_s": Named(reduced - meet, "s"),
        "update_s": Named(found.update_s, "s"),
        "wait_s": Named(meet - found.forward_s - found.backward_s, "s"),
        "step_s": Named(end, "s"),
        "compute_share": Named((found.forward_s + found.backward_s) / end),
        "ranks": Named(ranks),
        "tokens": Named(tokens, "token"),
        "slow_rank": Named(slow_rank),
        "slower": Named(slowdown - 1),
    }
    lanes = tuple(f"rank {rank}" for rank in range(ranks))
    return Timeline(
        lanes=lanes,
        slots=tuple(slots),
        end=end,
        time_label="time in the step",
        time_unit="s",
        values=values,
    )
