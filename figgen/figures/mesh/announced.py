"""Announced racks next to racks that can be rented: what grows and what does not."""

from __future__ import annotations

from figgen.catalog import accelerator
from figgen.catalog.hardware import Accelerator
from figgen.charts import Axis, Bars, Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.figures.parameters import AcceleratorName
from figgen.formulas.compute_and_roofline import efficiency_without_overlap, ridge_point
from figgen.formulas.tensor_parallel import tensor_parallel_layer_ccr
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.plotting.words import identifier
from figgen.registry import figure

RACKS = ("gb200-nvl72", "gb300-nvl72", "vera-rubin-nvl72", "mi455x")
ANNOUNCED = ("vera-rubin-nvl72", "mi455x")
SHORT = {
    "gb200-nvl72": "GB200",
    "gb300-nvl72": "GB300",
    "vera-rubin-nvl72": "Vera Rubin, announced",
    "mi455x": "MI455X, announced",
}


def _range(chip: Accelerator) -> tuple[float, float]:
    """Return the lowest and the highest printed dense BF16 peak."""
    usual, printed = chip.peak_flops_per_s(), chip.bf16
    if printed is None:
        return usual, usual
    return printed.low or usual, printed.high or usual


@figure("announced-growth", recomputed=True)
def announced_growth(*, base: AcceleratorName = "gb200-nvl72") -> Bars:
    """Announced GPUs relative to one that can be rented: memory, bandwidths and arithmetic.

    If reports differ, the lowest and the highest arithmetic are shown.
    """
    old = accelerator(base)
    names = ("memory", "memory bandwidth", "scale-up link", "BF16, lowest", "BF16, highest")
    grown: dict[str, tuple[float, ...]] = {}
    values: dict[str, Named] = {}
    for name in ANNOUNCED:
        chip = accelerator(name)
        lowest, highest = _range(chip)
        peak = old.peak_flops_per_s()
        factors = (
            chip.capacity_bytes / old.capacity_bytes,
            chip.hbm_bandwidth_bytes_per_s / old.hbm_bandwidth_bytes_per_s,
            chip.scale_up_bandwidth_bytes_per_s / old.scale_up_bandwidth_bytes_per_s,
            lowest / peak,
            highest / peak,
        )
        grown[SHORT[name]] = factors
        keys = ("memory", "bandwidth", "link", "lowest", "highest")
        short = identifier(name).split("_")[0]
        values |= {
            f"{short}_{key}": Named(factor) for key, factor in zip(keys, factors, strict=True)
        }
    return Bars(
        labels=names,
        segments=segments(grown),
        axis=Axis(label=f"times what a {SHORT.get(base, base)} has", low=0.0, spec=".1f"),
        stacked=False,
        values=values,
    )


@figure("announced-racks")
def announced_racks(*, tp: int = 16, hidden: int = 16384, sequence: int = 8192) -> Table:
    """Racks of 72 with their ratios, and the share of the peak that TP reaches inside the rack.

    Nothing is hidden, and latency isn't counted. The last two columns use the highest and the
    lowest printed BF16 peak.
    """
    check_between("tp", tp, 2, 72)
    check_between("hidden", hidden, 64, 10**6)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"tp": Named(tp)}
    ccr = float(tensor_parallel_layer_ccr(hidden, sequence, 2, tp))
    for name in RACKS:
        chip = accelerator(name)
        lowest, highest = _range(chip)
        inside = chip.scale_up_bandwidth_bytes_per_s
        kept = [
            float(efficiency_without_overlap(ccr, ridge_point(peak, inside)))
            for peak in (highest, lowest)
        ]
        rows.append(
            (
                SHORT[name],
                chip.capacity_bytes,
                chip.hbm_bandwidth_bytes_per_s,
                inside,
                f"{lowest / 1e12:,.0f}–{highest / 1e12:,.0f}"
                if lowest < highest
                else f"{highest / 1e12:,.0f}",
                highest / chip.hbm_bandwidth_bytes_per_s,
                highest / inside,
                *kept,
            )
        )
        short = identifier(name).split("_")[0]
        values |= {
            f"{short}_least": Named(kept[0]),
            f"{short}_most": Named(kept[1]),
            f"{short}_ridge": Named(highest / chip.hbm_bandwidth_bytes_per_s),
            f"{short}_lowest": Named(lowest, "FLOP/s"),
            f"{short}_highest": Named(highest, "FLOP/s"),
        }
    columns = (
        Column(label="GPU"),
        Column(label="memory", unit="B", spec="bytes"),
        *headings("its bandwidth", "scale-up link", unit="B/s", spec="si"),
        Column(label="BF16, TFLOP/s"),
        *headings("FLOP per byte of memory", "FLOP per byte of the link", spec=",.0f"),
        *headings(f"TP {tp} keeps, highest peak", "lowest peak", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
