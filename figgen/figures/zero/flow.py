"""Fully sharded layers in time and space: one layer's flow, prefetching, hybrid groups."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Diagram, DiagramLink, Named, Slot, Timeline
from figgen.errors import InputError, check_between
from figgen.formulas.data_parallel import prefetched_gather_time, serial_gather_time
from figgen.models.algorithms.communication_ratio import group_bandwidth_bytes_per_s
from figgen.models.algorithms.sharded_step import (
    COMPUTE,
    GATHER,
    ShardedAction,
    makespan_s,
    peak_gathered,
    sharded_step,
)
from figgen.models.shape.transformer import dense_layer_weights
from figgen.plotting.placed import box_at
from figgen.registry import figure

BYTES = 2
LANES = {"forward": 0, "backward": 0, GATHER: 1, "reduce-scatter": 2}


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """One layer of a model on one rank of a sharded group: bytes and times."""

    parameters: int
    gather_s: float
    forward_s: float


def layer_times(
    model: str, preset: str, ranks: int, ranks_per_node: int, tokens: int, utilization: float
) -> LayerTimes:
    """Return the times of a layer's all-gather and forward, for a ring over whole nodes.

    Latency is not counted.
    """
    if ranks % ranks_per_node:
        raise InputError("ranks", expected=f"a multiple of {ranks_per_node}", got=ranks)
    shape, node = catalog_model(model).shape, hardware_preset(preset)
    size = dense_layer_weights(shape)
    bandwidth = node.scale_up_bandwidth_bytes_per_s
    if ranks > ranks_per_node:
        bandwidth = group_bandwidth_bytes_per_s(
            bandwidth, node.network_bandwidth_bytes_per_s, ranks_per_node
        )
    gather = (ranks - 1) / ranks * size * BYTES / bandwidth
    rate = node.accelerator.peak_flops_per_s("bf16") * utilization
    return LayerTimes(size, gather, 2 * size * tokens / rate)


@figure("fsdp-timeline", explorable=True, recomputed=True)
def fsdp_timeline(
    *,
    layers: int = 3,
    prefetch: int = 1,
    gather: float = 1.0,
    forward: float = 2.0,
    reshard: bool = True,
) -> Timeline:
    """A sharded step: computing, and the gathers and reduce-scatters on its network.

    Numbers are layers. Times are in any unit; a backward takes twice as long as a forward, a
    reduce-scatter as long as a gather.
    """
    check_between("layers", layers, 1, 64)
    check_between("gather", gather, 0.01, 100)
    actions = _step(layers, gather, forward, prefetch, reshard)
    end = makespan_s(actions)
    slots = [
        Slot(
            lane=LANES[a.kind],
            start=start,
            end=stop,
            role=role,
            label=str(a.layer) if labelled else "",
            detail=f"{a.kind} of layer {a.layer}",
        )
        for a in actions
        for start, stop, role, labelled in _pieces(a, actions)
    ]
    work = 3 * layers * forward
    serial = makespan_s(_step(layers, gather, forward, 0))
    values = {
        "makespan": Named(end),
        "work": Named(work),
        "busy": Named(work / end),
        "serial": Named(serial),
        "saved": Named(1 - end / serial),
        "peak": Named(peak_gathered(actions)),
        "layers": Named(layers),
        "forward_serial": Named(serial_gather_time(layers, gather, forward)),
        "forward_ahead": Named(prefetched_gather_time(layers, gather, forward)),
    }
    return Timeline(
        lanes=("compute", "gather", "reduce"),
        slots=tuple(slots),
        end=end,
        time_label=_time_label(gather, forward),
        values=values,
    )


def _time_label(gather: float, forward: float) -> str:
    """Return the unit of the axis if it is one of the two durations."""
    units = {gather: "a gather", forward: "a forward"}
    return f"time, in units of {units[1]}" if 1 in units else "time"


def _step(
    layers: int, gather: float, forward: float, prefetch: int, reshard: bool = True
) -> tuple[ShardedAction, ...]:
    return sharded_step(
        layers,
        gather_s=gather,
        forward_s=forward,
        backward_s=2 * forward,
        scatter_s=gather,
        prefetch=prefetch,
        reshard=reshard,
    )


def _pieces(
    action: ShardedAction, actions: tuple[ShardedAction, ...]
) -> list[tuple[float, float, str, bool]]:
    """Return a collective cut where computing starts and stops; the longest piece has the label."""
    if action.stream == COMPUTE:
        return [(action.start_s, action.end_s, action.kind, True)]
    works = [(a.start_s, a.end_s) for a in actions if a.stream == COMPUTE]
    inner = (t for span in works for t in span if action.start_s < t < action.end_s)
    cuts = sorted({action.start_s, *inner, action.end_s})
    pieces: list[tuple[float, float, str]] = []
    for start, end in itertools.pairwise(cuts):
        hidden = any(a <= start and end <= b for a, b in works)
        role = "hidden" if hidden else "exposed"
        if pieces and pieces[-1][2] == role:
            start = pieces.pop()[0]
        pieces.append((start, end, role))
    longest = max(pieces, key=lambda piece: piece[1] - piece[0])
    return [(*piece, piece is longest) for piece in pieces]


@figure("fsdp-layer-flow")
def fsdp_layer_flow(
    *,
    model: str = "llama-3-8b",
    preset: str = "h100-ndr",
    ranks: int = 64,
    tokens: int = 8192,
    utilization: float = 1.0,
) -> Diagram:
    """One layer through one step on one rank: gathered, used and freed, twice, and its gradient."""
    each = hardware_preset(preset).gpus_per_node
    found = layer_times(model, preset, ranks, each, tokens, utilization)
    whole, shard = found.parameters * BYTES, found.parameters * BYTES / ranks
    mib = f"{whole / 1e6:.0f} MB"
    part = f"{shard / 1e6:.2g} MB"
    width, pitch, height = 2.25, 2.85, 0.85
    texts = (
        ("shard", (f"weights, 1/{ranks}", part), "dp"),
        ("gather", ("all-gather", f"{found.gather_s * 1e3:.2g} ms"), "hidden"),
        ("forward", ("whole layer", mib, f"forward {found.forward_s * 1e3:.2g} ms"), "forward"),
        ("free", ("freed", "inputs are kept"), "neutral"),
        ("again", ("all-gather again", f"{found.gather_s * 1e3:.2g} ms"), "hidden"),
        (
            "backward",
            ("whole layer", mib, f"backward {2 * found.forward_s * 1e3:.2g} ms"),
            "backward",
        ),
        ("scatter", ("reduce-scatter", f"{found.gather_s * 1e3:.2g} ms"), "hidden"),
        ("update", ("gradient, weights", f"and Adam of 1/{ranks}", "update"), "dp"),
    )
    boxes = tuple(
        box_at(
            name,
            lines,
            (0.0 if at < 4 else pitch, 1.25 * (at if at < 4 else 7 - at)),
            (width, height),
            role,
        )
        for at, (name, lines, role) in enumerate(texts)
    )
    names = [name for name, *_ in texts]
    links = [DiagramLink(source=a, target=b) for a, b in itertools.pairwise(names)]
    links.append(DiagramLink(source="update", target="shard"))
    values = {
        "layer_bytes": Named(whole, "B"),
        "shard_bytes": Named(shard, "B"),
        "gather_s": Named(found.gather_s, "s"),
        "forward_s": Named(found.forward_s, "s"),
        "backward_s": Named(2 * found.forward_s, "s"),
        "ranks": Named(ranks),
        "tokens": Named(tokens, "token"),
        "even_tokens": Named(tokens * found.gather_s / found.forward_s, "token"),
    }
    return Diagram(
        boxes=boxes, links=tuple(links), width=pitch + width, height=3.75 + height, values=values
    )


@figure("hybrid-sharding")
def hybrid_sharding(*, nodes: int = 2, gpus_per_node: int = 4, parameters: float = 7e9) -> Diagram:
    """Shards within each node, replicas of each shard across nodes: two kinds of groups."""
    check_between("nodes", nodes, 2, 4)
    check_between("gpus_per_node", gpus_per_node, 2, 8)
    pitch, width, top = 1.24, 0.92, 2.4
    full = gpus_per_node * pitch - (pitch - width) + 0.4
    boxes, links = [], []
    for node in range(nodes):
        y = node * top
        boxes.append(box_at(f"node {node}", (f"node {node}",), (0, y), (full, 1.6), frame=True))
        for gpu in range(gpus_per_node):
            rank = node * gpus_per_node + gpu
            name, x = f"GPU {rank}", 0.2 + gpu * pitch
            boxes.append(
                box_at(
                    name,
                    (name, f"shard {gpu}"),
                    (x, y + 0.5),
                    (width, 0.8),
                    f"series-{gpu % 6 + 1}",
                )
            )
            if gpu:
                links.append(
                    DiagramLink(source=f"GPU {rank - 1}", target=name, both_ways=True, role="tp")
                )
            if node:
                above = f"GPU {rank - gpus_per_node}"
                links.append(DiagramLink(source=above, target=name, both_ways=True, role="dp"))
    values = {
        "nodes": Named(nodes),
        "per_node": Named(gpus_per_node),
        "shard_groups": Named(nodes),
        "replica_groups": Named(gpus_per_node),
        "state": Named(16 * parameters / gpus_per_node, "B"),
    }
    return Diagram(
        boxes=tuple(boxes),
        links=tuple(links),
        width=full,
        height=(nodes - 1) * top + 1.6,
        values=values,
    )
