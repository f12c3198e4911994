"""The communication roofline: link levels, ridge points, and attainable rates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from figgen.catalog import HardwarePreset, accelerator, hardware_preset, link
from figgen.charts import Axis, Column, Curves, Mark, Named, Rule, Scalar, Series, Table
from figgen.errors import InputError, check_between
from figgen.figures.parameters import Dtype, HardwareName
from figgen.formulas.compute_and_roofline import (
    attainable_flops_over_network,
    ridge_point,
)
from figgen.formulas.modern_layers import product_intensity
from figgen.plotting.placed import headings
from figgen.plotting.series import line, series_role
from figgen.plotting.words import identifier
from figgen.registry import figure

PRESETS = ("a100-hdr", "h100-ndr", "h200-ndr", "b200-ndr")
BYTES = 2  # BF16 weights, gradients and activations
LOWEST_CCR, HIGHEST_CCR = 8.0, 2e5
LEVELS = ("hbm", "scale_up", "nic", "oversubscribed")


@dataclass(frozen=True, slots=True)
class MemoryLevel:
    """One kind of link that a GPU sends or loads over: `key` of LEVELS, B/s per direction."""

    key: str
    name: str
    bandwidth_bytes_per_s: float


def levels(node: HardwarePreset, oversubscription: float) -> tuple[MemoryLevel, ...]:
    """Return the four levels of one GPU, fastest first, with its share of NICs if not paired."""
    if oversubscription < 1:
        raise InputError("oversubscription", expected="at least 1", got=oversubscription)
    nic = node.nic.short_title
    network = node.network_bandwidth_bytes_per_s
    return (
        MemoryLevel("hbm", "HBM", node.accelerator.hbm_bandwidth_bytes_per_s),
        MemoryLevel("scale_up", node.scale_up.short_title, node.scale_up_bandwidth_bytes_per_s),
        MemoryLevel("nic", f"{nic} NIC", network),
        MemoryLevel(
            "oversubscribed", f"{nic} at {oversubscription:g}:1", network / oversubscription
        ),
    )


@figure("link-levels")
def link_levels(*, oversubscription: float = 7.0) -> Table:
    """Bandwidth of each level per GPU in one direction, for four kinds of node."""
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
            if dtype not in node.accelerator.peaks:
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


_CCR_AXIS = Axis(
    label="FLOP per byte over the link",
    unit="FLOP/B",
    scale="log10",
    low=LOWEST_CCR,
    high=HIGHEST_CCR,
    spec="unit",
)


@figure("memory-roofline", recomputed=True)
def memory_roofline(
    *,
    preset: HardwareName,
    dtype: Dtype = "bf16",
    inputs: int = 14_336,
    outputs: int = 4096,
    few: int = 16,
    tokens: int = 8192,
) -> Curves:
    """Attainable FLOP/s of one GPU over FLOPs per byte of its memory: one slope and the roof.

    Marks are a matmul of inputs × outputs 16-bit weights with `few` tokens and with `tokens`.
    """
    for name, size in (("inputs", inputs), ("outputs", outputs), ("few", few), ("tokens", tokens)):
        check_between(name, size, 1, 2**24)
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s(dtype)
    wires = levels(node, 1)[:1]
    bandwidth = wires[0].bandwidth_bytes_per_s
    ridge = ridge_point(peak, bandwidth)
    values = {"peak": Named(peak, "FLOP/s"), "ridge": Named(ridge, "FLOP/B")}
    marks = []
    for key, count in (("few", few), ("many", tokens)):
        ccr = product_intensity(count, inputs, outputs, BYTES)
        rate = float(attainable_flops_over_network(peak, bandwidth, ccr))
        marks.append(Mark(x=ccr, y=rate, label=f"{count:,} tokens", role="dp"))
        values |= {f"{key}_ccr": Named(ccr, "FLOP/B"), f"{key}_share": Named(rate / peak)}
    return Curves(
        x=replace(_CCR_AXIS, label="FLOP per byte of memory"),
        y=_rate_axis(peak, bandwidth),
        series=(*_slopes(wires, peak), line("peak", (ridge, HIGHEST_CCR), (peak, peak), 3)),
        rules=_rules(wires, {"hbm": ridge}),
        marks=tuple(marks),
        values=values,
    )


def _rate_axis(peak: float, slowest_bytes_per_s: float) -> Axis:
    """Return the axis of rates, from just below the lowest slope to above the roof."""
    return Axis(
        label="attainable FLOP/s per GPU",
        unit="FLOP/s",
        scale="log10",
        low=0.9 * LOWEST_CCR * slowest_bytes_per_s,
        high=3 * peak,
        spec="flops",
    )


def _rules(wires: Sequence[MemoryLevel], ridges: Mapping[str, float]) -> tuple[Rule, ...]:
    """Return a line at the ridge point of each link."""
    return tuple(
        Rule(axis="x", at=ridges[wire.key], label=f"{ridges[wire.key]:,.0f}", role=series_role(at))
        for at, wire in enumerate(wires)
    )


@figure("communication-roofline", explorable=True, recomputed=True)
def communication_roofline(
    *,
    preset: HardwareName,
    dtype: Dtype = "bf16",
    few: int = 16,
    tokens: int = 8192,
) -> Curves:
    """Attainable FLOP/s of one GPU over its FLOPs per byte: a slope for each link, one roof.

    Marks, with 16-bit numbers: a matmul whose weights are loaded for `few` tokens, and full
    sharding in large groups with `tokens` per GPU per microbatch, with one GPU or all GPUs of a
    node sharing its ports.
    """
    for name, size in (("few", few), ("tokens", tokens)):
        check_between(name, size, 1, 2**24)
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s(dtype)
    wires = levels(node, 1)[:3]
    ridges = {wire.key: ridge_point(peak, wire.bandwidth_bytes_per_s) for wire in wires}
    hbm, _, port = (wire.bandwidth_bytes_per_s for wire in wires)
    per_node = node.gpus_per_node
    # 2Nt operations beside 2N bytes loaded, 6Nt beside 6N bytes sent: the tokens, either way.
    jobs = {
        "few": (f"{few:,} tokens", float(few), hbm),
        "alone": ("own port", float(tokens), port),
        "together": (f"{per_node} ports", float(per_node * tokens), port),
    }
    marks = {
        key: Mark(
            x=ccr,
            y=float(attainable_flops_over_network(peak, bandwidth, ccr)),
            label=label,
            role="dp",
        )
        for key, (label, ccr, bandwidth) in jobs.items()
    }
    values = {
        "peak": Named(peak, "FLOP/s"),
        "few": Named(few, "token"),
        "tokens": Named(tokens, "token"),
        **{f"{key}_ccr": Named(mark.x, "FLOP/B") for key, mark in marks.items()},
        **{f"{key}_share": Named(mark.y / peak) for key, mark in marks.items()},
        **{f"ridge_{key}": Named(ridge, "FLOP/B") for key, ridge in ridges.items()},
    }
    return Curves(
        x=_CCR_AXIS,
        y=_rate_axis(peak, port),
        series=(*_slopes(wires, peak), line("peak", (ridges["hbm"], HIGHEST_CCR), (peak, peak), 3)),
        rules=_rules(wires, ridges),
        marks=tuple(marks.values()),
        values=values,
    )


def _slopes(wires: tuple[MemoryLevel, ...], peak: float) -> tuple[Series, ...]:
    """Return the attainable rate over each link, from the edge of the plot up to its ridge."""
    series = []
    for index, wire in enumerate(wires):
        x = (LOWEST_CCR, ridge_point(peak, wire.bandwidth_bytes_per_s))
        y = tuple(attainable_flops_over_network(peak, wire.bandwidth_bytes_per_s, ccr) for ccr in x)
        series.append(line(wire.name, x, y, index))
    return tuple(series)


CLOUDS = (
    ("h100-sxm-80gb", "efa-v2-p5", 8), ("h200-sxm-141gb", "efa-v3", 8),
    ("b200-sxm-hgx", "efa-v4-p6-b200", 8), ("b300-sxm-hgx", "efa-v4-p6-b300", 8),
    ("gb200-nvl72", "efa-v3-p6e-gb200", 4), ("h100-sxm-80gb", "gcp-a3-mega", 8),
    ("h200-sxm-141gb", "gcp-a3-ultra", 8), ("b200-sxm-hgx", "gcp-a3-ultra", 8),
    ("gb200-nvl72", "gcp-a4x", 4), ("h100-sxm-80gb", "azure-nd-v5", 8),
    ("h200-sxm-141gb", "azure-nd-v5", 8), ("gb200-nvl72", "azure-nd-gb200-v6", 4),
    ("gb300-nvl72", "azure-nd-gb300-v6", 4),
)  # fmt: skip
"""Accelerators with the network that a cloud gives them, and how many share a machine."""


@figure("cloud-networks")
def cloud_networks() -> Table:
    """Network bandwidth per GPU in clouds, and its ridge point in BF16."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for chip_name, link_name, gpus in CLOUDS:
        chip, network = accelerator(chip_name), link(link_name)
        bandwidth = network.bandwidth_bytes_per_s / (gpus if network.per == "node" else 1)
        peak, seen = chip.peak_flops_per_s(), network.bandwidth.seen
        ridge = float(ridge_point(peak, bandwidth))
        rows.append((network.title, chip.short_title, gpus, peak, bandwidth, ridge, seen))
        key = identifier(f"{chip_name}_{link_name}")
        values |= {key: Named(bandwidth, "B/s"), f"{key}_ridge": Named(ridge, "FLOP/B")}
    columns = (
        *headings("network", "GPU", "GPUs in a machine"),
        Column(label="peak in BF16", unit="FLOP/s", spec="flops"),
        Column(label="per GPU per direction", unit="B/s", spec="si"),
        Column(label="ridge in BF16", unit="FLOP/B", spec=",.0f"),
        Column(label="source read"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
