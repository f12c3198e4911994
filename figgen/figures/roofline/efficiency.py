"""Share of the peak as a fixed batch is divided further, computed and measured."""

from __future__ import annotations

import math

from figgen.catalog import hardware_preset
from figgen.charts import Axis, Curves, Mark, Named, Rule, Style
from figgen.errors import InputError, check_equal_lengths
from figgen.figures.parameters import Dtype, HardwareName
from figgen.figures.roofline.levels import BYTES
from figgen.formulas.compute_and_roofline import (
    data_parallel_ccr,
    efficiency_with_partial_overlap,
    efficiency_without_overlap,
    fsdp_ccr,
    ridge_point,
)
from figgen.models.algorithms.communication_ratio import BACKWARD_SHARE, group_bandwidth_bytes_per_s
from figgen.plotting.series import line
from figgen.registry import figure

# Every forward computed twice: 8 FLOP per parameter per token instead of 6.
RECOMPUTE = 8 / 6
STYLES: dict[str, tuple[str, Style]] = {
    "overlapped": ("with overlap", "line"),
    "blocking": ("no overlap", "dashed"),
}


def _whole_nodes(gpus_per_node: int, most_gpus: int) -> tuple[int, ...]:
    """Return numbers of GPUs from two nodes to `most_gpus`, up to four per octave."""
    if most_gpus < 2 * gpus_per_node or most_gpus % gpus_per_node:
        expected = f"whole nodes of {gpus_per_node}, at least two"
        raise InputError("most_gpus", expected=expected, got=most_gpus)
    most = most_gpus // gpus_per_node
    steps = math.ceil(4 * math.log2(most))
    counts = {min(most, max(2, round(2 ** (k / 4)))) for k in range(steps + 1)}
    return tuple(gpus_per_node * count for count in sorted(counts))


@figure("strong-scaling", explorable=True, recomputed=True)
def strong_scaling(
    *,
    preset: HardwareName = "h100-ndr",
    dtype: Dtype = "bf16",
    global_batch_tokens: int = 4_194_304,
    sequence_length: int = 2048,
    most_gpus: int = 4096,
) -> Curves:
    """Share of the peak over the number of GPUs at a fixed global batch, all in one DP group.

    The group fills whole nodes, so a rank sends at the rate of all its node's NICs or of its
    scale-up link, whichever is lower. A rank's work is one microbatch.
    """
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s(dtype)
    bandwidth = group_bandwidth_bytes_per_s(
        node.scale_up_bandwidth_bytes_per_s, node.network_bandwidth_bytes_per_s, node.gpus_per_node
    )
    ridge = ridge_point(peak, bandwidth)
    gpus = _whole_nodes(node.gpus_per_node, most_gpus)
    kinds = {"DDP": (data_parallel_ccr, BACKWARD_SHARE), "FSDP": (fsdp_ccr, 1)}
    series = []
    values = {"ridge": Named(ridge, "FLOP/B"), "bandwidth": Named(bandwidth, "B/s")}
    for index, (kind, (ratio, most)) in enumerate(kinds.items()):
        ccr = tuple(ratio(global_batch_tokens / n, BYTES, n) for n in gpus)
        for how, (words, style) in STYLES.items():
            overlap = most if how == "overlapped" else 0
            y = tuple(efficiency_with_partial_overlap(c, ridge, overlap) for c in ccr)
            series.append(line(f"{kind}, {words}", map(float, gpus), y, index, style))
            values[f"{kind.lower()}_{how}_last"] = Named(y[-1])
    # τ = G/D is CCR*·b/2 · (D − 1)/D, for both, at D = 1 + 2·G/(b·CCR*).
    values["limit"] = Named(math.floor(1 + 2 * global_batch_tokens / (BYTES * ridge)), "GPU")
    one_each = global_batch_tokens / sequence_length
    values |= {
        "one_each": Named(one_each, "GPU"),
        "batch": Named(global_batch_tokens, "token"),
        "sequence_length": Named(sequence_length, "token"),
        "last_gpus": Named(gpus[-1], "GPU"),
        "fsdp_blocking_one_each": Named(
            efficiency_without_overlap(fsdp_ccr(sequence_length, BYTES, one_each), ridge)
        ),
    }
    return Curves(
        x=Axis(label="GPUs", scale="log2", spec=","),
        y=Axis(label="share of the peak", low=0.0, high=1.05, spec=".0%"),
        series=tuple(series),
        rules=(Rule(axis="x", at=one_each, label="one sequence per GPU"),),
        values=values,
    )


@figure("measured-strong-scaling", explorable=True)
def measured_strong_scaling(
    *,
    gpus: tuple[int, ...],
    measured_flops_per_s: tuple[float, ...],
    global_batch: int,
    sequence_length: int,
    preset: HardwareName = "a100-hdr",
) -> Curves:
    """Published FLOP/s per GPU of fully sharded training over FLOPs per byte.

    `measured_flops_per_s` counts recomputation, so the ratio is (8/6)·CCR_FSDP. On the slanted roof
    FLOP/s is bandwidth times ratio, so the quotient is the bandwidth. The lower slope is that of
    the last run, the upper one that of one NIC.
    """
    check_equal_lengths(gpus=gpus, measured_flops_per_s=measured_flops_per_s)
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s()
    ratios = [
        RECOMPUTE * float(fsdp_ccr(global_batch * sequence_length / count, BYTES, count))
        for count in gpus
    ]
    implied = [rate / ccr for rate, ccr in zip(measured_flops_per_s, ratios, strict=True)]
    first, last = min(ratios) / 2, max(ratios) * 4
    slopes = (
        (f"one {node.nic.short_title} port", node.network_bandwidth_bytes_per_s),
        (f"slope of {gpus[-1]:,} GPUs", implied[-1]),
    )
    ratios_shown = {"low": first, "high": last}
    rates_shown = {"low": 0.9 * implied[-1] * first, "high": 1.5 * peak}
    return Curves(
        x=Axis(
            label="FLOP per byte sent", unit="FLOP/B", scale="log10", **ratios_shown, spec="unit"
        ),
        y=Axis(label="FLOP/s per GPU", unit="FLOP/s", scale="log10", **rates_shown, spec="flops"),
        series=(
            *(
                line(name, (first, peak / bandwidth), (bandwidth * first, peak), at)
                for at, (name, bandwidth) in enumerate(slopes)
            ),
            line("peak", (peak / slopes[0][1], last), (peak, peak), 2),
        ),
        marks=tuple(
            Mark(x=ccr, y=rate, label=f"{count:,} GPUs", role="dp")
            for count, ccr, rate in zip(gpus, ratios, measured_flops_per_s, strict=True)
        ),
        values={
            "first_rate": Named(measured_flops_per_s[0], "FLOP/s"),
            "last_rate": Named(measured_flops_per_s[-1], "FLOP/s"),
            "before_last_bandwidth": Named(implied[-2], "B/s"),
            "last_bandwidth": Named(implied[-1], "B/s"),
            "first_share": Named(measured_flops_per_s[0] / peak),
            "last_share": Named(measured_flops_per_s[-1] / peak),
        },
    )
