"""The communication roofline: link levels, ridge points, and where strategies lie under them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Column, Curves, Mark, Named, Rule, Scalar, Series, Table
from figgen.errors import InputError
from figgen.formulas.compute_and_roofline import (
    attainable_flops_over_network,
    data_parallel_ccr,
    efficiency_with_partial_overlap,
    efficiency_without_overlap,
    fsdp_ccr,
    ridge_point,
)
from figgen.models.communication_ratio import BACKWARD_SHARE, tensor_parallel_ccr
from figgen.plotting.series import line, series_role
from figgen.registry import figure

PRESETS = ("a100-hdr", "h100-ndr", "h200-ndr", "b200-ndr")
BYTES = 2  # BF16 weights, gradients and activations
LOWEST_CCR, HIGHEST_CCR = 100.0, 5e5
LEVELS = ("hbm", "scale_up", "nic", "oversubscribed")


@dataclass(frozen=True, slots=True)
class Level:
    """One kind of wire that a GPU sends or loads over: `key` of LEVELS, B/s in one direction."""

    key: str
    name: str
    bandwidth_bytes_per_s: float


def levels(node: HardwarePreset, oversubscription: float) -> tuple[Level, ...]:
    """The four levels of one GPU, fastest first; a NIC's share if GPUs and NICs are not paired."""
    if oversubscription < 1:
        raise InputError("oversubscription", expected="at least 1", got=oversubscription)
    nic = node.nic.short_title
    network = node.network_bandwidth_bytes_per_s
    return (
        Level("hbm", "HBM", node.accelerator.hbm_bandwidth_bytes_per_s),
        Level("scale_up", node.scale_up.short_title, node.scale_up_bandwidth_bytes_per_s),
        Level("nic", f"{nic} NIC", network),
        Level("oversubscribed", f"{nic} at {oversubscription:g}:1", network / oversubscription),
    )


@figure("link-levels")
def link_levels(*, oversubscription: float = 7.0) -> Table:
    """What each level carries per GPU in one direction, for four kinds of node."""
    nodes = [hardware_preset(name) for name in PRESETS]
    rows: tuple[tuple[Scalar, ...], ...] = tuple(
        (node.gpu, *(level.bandwidth_bytes_per_s for level in levels(node, oversubscription)))
        for node in nodes
    )
    steps = [
        outer.bandwidth_bytes_per_s / inner.bandwidth_bytes_per_s
        for node in nodes
        for outer, inner in itertools.pairwise(levels(node, oversubscription))
    ]
    values = {"smallest_step": Named(min(steps)), "largest_step": Named(max(steps))}
    return Table(columns=_columns("B/s", "si", oversubscription), rows=rows, values=values)


def _columns(unit: str, spec: str, oversubscription: float) -> tuple[Column, ...]:
    names = ("HBM", "scale-up link", "NIC", f"NIC, {oversubscription:g}:1 oversubscribed")
    return (Column(label="GPU"), *(Column(label=name, unit=unit, spec=spec) for name in names))


@figure("ridge-table")
def ridge_table(*, oversubscription: float = 7.0) -> Table:
    """Ridge points F/B of one GPU at every level, with the dense peak of each data type."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in PRESETS:
        node = hardware_preset(name)
        for dtype in ("bf16", "fp8"):
            if getattr(node.accelerator, dtype) is None:
                continue
            peak = node.accelerator.peak_flops_per_s(dtype)
            ridges = {
                level.key: ridge_point(peak, level.bandwidth_bytes_per_s)
                for level in levels(node, oversubscription)
            }
            rows.append((node.gpu, dtype.upper(), peak, *ridges.values()))
            for key, ridge in ridges.items():
                values[f"{name.partition('-')[0]}_{dtype}_{key}"] = Named(ridge, "FLOP/B")
    gpu, *ridge_columns = _columns("FLOP/B", ",.0f", oversubscription)
    columns = (gpu, Column(label="type"), Column(label="dense peak", unit="FLOP/s", spec="flops.4"))
    return Table(columns=(*columns, *ridge_columns), rows=tuple(rows), values=values)


@dataclass(frozen=True, slots=True)
class Placed:
    """A strategy under the roofs: its ratio at `level`, and the share of work that hides it."""

    key: str
    label: str
    role: str
    level: str
    ccr: float
    overlap: float

    def share(self, ridge: float) -> float:
        """The share of the peak that the model allows."""
        return float(efficiency_with_partial_overlap(self.ccr, ridge, self.overlap))


def placed_strategies(
    node: HardwarePreset, tokens: int, nodes: int, model: str, tensor_parallel: tuple[int, ...]
) -> tuple[Placed, ...]:
    """Data parallelism on the network, seen from one NIC, and TP inside the node.

    Where all GPUs of a node are in one data-parallel group, they share one copy of the traffic:
    each NIC carries 1/g of it, so that its ratio is g times as high.
    """
    per_node = node.gpus_per_node
    together = per_node * fsdp_ccr(tokens, BYTES, nodes * per_node)
    shape = catalog_model(model).shape
    return (
        Placed("ddp", "DDP", "dp", "nic",
               data_parallel_ccr(tokens, BYTES, nodes), BACKWARD_SHARE),
        Placed("fsdp", "FSDP", "dp", "nic", fsdp_ccr(tokens, BYTES, nodes), 1),
        Placed("fsdp_nodes", "FSDP, whole nodes", "dp", "nic", together, 1),
        *(
            Placed(f"tp{tp}", f"TP {tp}", "tp", "scale_up",
                   tensor_parallel_ccr(shape, tp=tp, bytes_per_element=BYTES), 0)
            for tp in tensor_parallel
        ),
    )  # fmt: skip


@figure("communication-roofline", explorable=True)
def communication_roofline(
    *,
    preset: str,
    dtype: str = "bf16",
    tokens: int = 4096,
    nodes: int = 16,
    model: str = "llama-3-70b",
    tensor_parallel: tuple[int, ...] = (2, 4, 8),
    oversubscription: float = 7.0,
) -> Curves:
    """Attainable FLOP/s of one GPU over its CCR: a roof per level, and strategies on theirs.

    FSDP is placed on the roof, as if it overlapped perfectly, DDP below it, because gradients hide
    behind the backward pass only; tensor parallelism on the dashed line of the same link without
    overlap, since its all-reduces block the layer.
    """
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s(dtype)
    wires = levels(node, oversubscription)
    ridges = {wire.key: ridge_point(peak, wire.bandwidth_bytes_per_s) for wire in wires}
    placed = placed_strategies(node, tokens, nodes, model, tensor_parallel)
    values = {
        "peak": Named(peak, "FLOP/s"),
        "tokens": Named(tokens, "token"),
        "nodes": Named(nodes, "node"),
        **{f"ridge_{key}": Named(ridge, "FLOP/B") for key, ridge in ridges.items()},
        **{f"{p.key}_share": Named(p.share(ridges[p.level])) for p in placed},
        **{f"{p.key}_ccr": Named(p.ccr, "FLOP/B") for p in placed},
    }
    return Curves(
        x=Axis(label="FLOP per byte over the link", unit="FLOP/B", scale="log10",
               low=LOWEST_CCR, high=HIGHEST_CCR, spec="unit"),
        y=Axis(label="attainable FLOP/s per GPU", unit="FLOP/s", scale="log10",
               low=0.9 * LOWEST_CCR * wires[-1].bandwidth_bytes_per_s, high=6 * peak,
               spec="flops"),
        series=(*_roofs(wires, peak), _blocking(wires[1], peak)),
        rules=tuple(
            Rule(axis="x", at=ridges[wire.key], label=f"{wire.name} {ridges[wire.key]:,.0f}",
                 role=series_role(index))
            for index, wire in enumerate(wires)
        ),
        marks=tuple(
            Mark(x=p.ccr, y=peak * p.share(ridges[p.level]), label=p.label, role=p.role)
            for p in placed
        ),
        values=values,
    )  # fmt: skip


def _roofs(wires: tuple[Level, ...], peak: float) -> tuple[Series, ...]:
    """One roof per level: straight in these axes, so that its corner and two ends are enough."""
    series = []
    for index, wire in enumerate(wires):
        ridge = ridge_point(peak, wire.bandwidth_bytes_per_s)
        x = (LOWEST_CCR, ridge, HIGHEST_CCR)
        y = tuple(attainable_flops_over_network(peak, wire.bandwidth_bytes_per_s, ccr) for ccr in x)
        series.append(line(wire.name, x, y, index))
    return tuple(series)


def _blocking(wire: Level, peak: float, points: int = 40) -> Series:
    """The same link when computing waits for every message."""
    ridge = ridge_point(peak, wire.bandwidth_bytes_per_s)
    step = (HIGHEST_CCR / LOWEST_CCR) ** (1 / (points - 1))
    x = tuple(LOWEST_CCR * step**k for k in range(points))
    y = tuple(peak * efficiency_without_overlap(ccr, ridge) for ccr in x)
    return Series(name=f"{wire.name}, no overlap", x=x, y=y, role="tp", style="dashed")
