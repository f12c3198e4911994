"""Describes a measured machine: its rates next to the datasheet and to another such machine.

The page about measuring uses this module too, printed as JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.quantity_shown import shown
from figgen.scenarios.runs.measured_rates import Measured

KINDS = (
    ("bf16", "matmuls in BF16", "FLOP/s"),
    ("fp16", "matmuls in FP16", "FLOP/s"),
    ("fp8", "matmuls in FP8", "FLOP/s"),
    ("fp4", "matmuls in FP4", "FLOP/s"),
    ("tf32", "matmuls in TF32", "FLOP/s"),
    ("attention", "attention, causal", "FLOP/s"),
    ("masked", "attention with the mask as a tensor", "FLOP/s"),
    ("memory", "memory-bound kernels", "B/s"),
    ("contiguous", "contiguous passes: copy, add, gate", "B/s"),
    ("broadcast", "broadcast and mixed formats", "B/s"),
    ("strided", "strided passes", "B/s"),
    ("near", "links inside a node", "B/s"),
    ("far", "links between nodes", "B/s"),
    ("loss", "cross-entropy, eager", "logits/s"),
    ("adam32", "Adam and clipping, FP32 state", "parameters/s"),
    ("adam16", "Adam and clipping, BF16 state", "parameters/s"),
)
"""Parts of a measured file, in words, with the units of their rates."""

UNITLESS = ("logits/s", "parameters/s")
"""Rates of things for which the site has no unit."""

SLOW = 0.9
"""Ratio to another such machine below which a rate is worth investigating.

The matmuls of the catalog's H100 and H200, whose processors are alike, differ by 2%.
"""

MAIN = ("bf16", "attention", "contiguous")
"""Parts that the sentence mentions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipSheet:
    """A chip's datasheet: `flops` per second by format, including `attention` and `masked`.

    `other` has the rates of a machine of this kind in the catalog, or nothing.
    """

    title: str
    flops: Mapping[str, float]
    memory_bytes_per_s: float
    near_bytes_per_s: float
    other: Measured


def rate_text(rate: float, unit: str) -> str:
    """Return a rate of `KINDS` with its unit."""
    return f"{rate / 1e9:.3g}·10⁹ {unit}" if unit in UNITLESS else shown(rate, unit)


def _peak(part: str, sheet: ChipSheet | None) -> float:
    """Return the datasheet's rate of a part; 0 if it has none."""
    if sheet is None:
        return 0.0
    if part == "near":
        return sheet.near_bytes_per_s
    if part in ("memory", "contiguous", "broadcast", "strided"):
        return sheet.memory_bytes_per_s
    name = "bf16" if part in ("attention", "masked") else part
    return sheet.flops.get(name, 0.0)


def _other(part: str, sheet: ChipSheet | None) -> float:
    if sheet is None or part not in sheet.other:
        return 0.0
    return sheet.other[part][0]


def machine_rows(known: Measured, sheet: ChipSheet | None) -> list[list[str]]:
    """Return the rates of a machine as rows of text, of which the first is the header."""
    rows = [["", "rate over all sizes", "datasheet", "share", "another of its kind"]]
    for part, name, unit in KINDS:
        if part not in known:
            continue
        rate, peak, other = known[part][0], _peak(part, sheet), _other(part, sheet)
        rows.append(
            [
                name,
                rate_text(rate, unit),
                rate_text(peak, unit) if peak else "–",
                f"{rate / peak:.0%}" if peak else "–",
                f"{rate / other:.2f} ×" if other else "–",
            ]
        )
    return rows


def machine_sentence(device: str, known: Measured, sheet: ChipSheet | None) -> str:
    """Return a sentence on whether a machine is as fast as its datasheet and its like suggest."""
    said: list[str] = []
    ratios: list[float] = []
    slow: list[str] = []
    for part, name, unit in KINDS:
        if part not in known:
            continue
        rate, peak, other = known[part][0], _peak(part, sheet), _other(part, sheet)
        short = name.partition(",")[0].partition(":")[0]
        if part in MAIN:
            of_sheet = "" if said else " of the datasheet"
            of_peak = f" ({rate / peak:.0%}{of_sheet})" if peak else ""
            said.append(f"{short} at {rate_text(rate, unit)}{of_peak}")
        if other:
            ratios.append(rate / other)
            if rate < SLOW * other:
                slow.append(f"{short} ({rate / other:.2f} times)")
    runs = " and ".join([part for part in (", ".join(said[:-1]), *said[-1:]) if part])
    text = f"{device} runs {runs}" if said else f"{device} was measured"
    if slow:
        return f"{text}. It's slower than another of its kind in {', '.join(slow)}."
    if ratios:
        low, high = min(ratios), max(ratios)
        return f"{text}. It's as fast as another of its kind: {low:.2f} to {high:.2f} times."
    return f"{text}. The catalog has no other machine of its kind to compare it with."
