"""Scaling on paper: one model on 512 to 131,072 accelerators, and what breaks first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

from figgen.catalog import Run, accelerator, model
from figgen.catalog.load import runs
from figgen.charts import Axis, Column, Curves, Named, Scalar, Table
from figgen.errors import InputError
from figgen.figures.training.failures import best_goodput
from figgen.models.step.compute import MFU_LABEL
from figgen.plotting.placed import headings
from figgen.plotting.series import line
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.stories.scaling import FAILURES, PARTS, SIZES, Scaled, lost, scaled

SCALINGS = ("strong", "weak")
JOBS = (
    ("llama-3-405b", "h100-sxm-80gb", "bf16"),
    ("llama-3-70b", "h100-sxm-80gb", "bf16"),
    ("llama-3-405b", "gb200-nvl72", "mxfp8"),
    ("llama-3-405b", "a100-sxm-80gb", "bf16"),
)
"""Models on chips with their usual fabrics, and the number format of matmuls."""


@figure("scaling", explorable=True)
def scaling(*, kind: str = "strong", batch: int = 2048) -> Curves:
    """Tokens per second and accelerator by size, relative to the fewest accelerators that fit."""
    lines = []
    values: dict[str, Named] = {}
    for index, (name, chip, precision) in enumerate(JOBS):
        found = _scaled(name, chip, precision, batch, kind)
        kept = [found[0].gpu_s_per_token / each.gpu_s_per_token for each in found]
        label = f"{_short(name)}, {_short_chip(chip)}"
        lines.append(line(label, (float(each.run.gpus) for each in found), kept, index))
        key = f"{identifier(name)}_{identifier(chip).split('_')[0]}"
        values |= {f"{key}_last": Named(kept[-1])}
        values |= {f"{key}_16384": Named(kept[_place(found, batch)])}
    tokens = found[-1].run.global_batch * found[-1].run.sequence
    largest = _largest_published()
    return Curves(
        x=Axis(label="accelerators", scale="log2", spec=",.0f"),
        y=Axis(label="speed of each, of that on the fewest", low=0.0, high=1.0, spec=".0%"),
        series=tuple(lines),
        values=values
        | {
            "batch": Named(batch),
            "most": Named(SIZES[-1]),
            "jobs": Named(len(JOBS)),
            "tokens": Named(tokens),
            "of_published": Named(tokens / (largest.tokens_per_step or 0)),
            "largest": Named(largest.model.title),
        },
    )


def _largest_published() -> Run:
    """Return the published run with the most tokens per step."""
    return max(runs().values(), key=lambda run: run.tokens_per_step or 0)


def _place(found: Sequence[Scaled], batch: int) -> int:
    """Return the index of the size that captions quote."""
    sizes = [each.run.gpus for each in found]
    if 16384 not in sizes:
        raise InputError("batch", expected="one that 16,384 accelerators can share", got=batch)
    return sizes.index(16384)


@figure("scaling-breaks")
def scaling_breaks(
    *,
    kind: str = "strong",
    model_name: str = "llama-3-405b",
    chip: str = "h100-sxm-80gb",
    precision: str = "bf16",
    batch: int = 2048,
    way: str = "behind",
) -> Table:
    """Layout and step at every size, the loss against the fewest accelerators, and its cause."""
    found = _scaled(model_name, chip, precision, batch, kind)
    goodputs = [best_goodput(model_name, "llama-3-405b", each.run.gpus, way) for each in found]
    losses = lost(found, goodputs)
    rows: list[tuple[Scalar, ...]] = []
    for each, reasons in zip(found, losses, strict=True):
        most = max(reasons, key=reasons.__getitem__)
        rows.append(
            (
                each.run.gpus,
                each.layout,
                each.step.step_time_s,
                each.step.low_s,
                each.step.high_s,
                each.step.model_flops_utilisation,
                *(reasons[words] for words in REASONS),
                most,
            )
        )
    return Table(
        columns=(
            Column(label="GPUs", spec=",d"),
            Column(label="TP·CP·PP·DP"),
            *headings("step", "from", "to", unit="s", spec="time"),
            Column(label=MFU_LABEL, spec=".1%"),
            *(Column(label=words, spec=".1%") for words in REASONS),
            Column(label="largest loss"),
        ),
        rows=tuple(rows),
        values=_loss_values(found, losses, losses[_place(found, batch)]),
    )


def _loss_values(
    found: Sequence[Scaled], losses: Sequence[Mapping[str, float]], middle: Mapping[str, float]
) -> dict[str, Named]:
    """Return the ends of the table, and the reasons of most losses at the end and at `middle`."""
    ends = {words: losses[-1][words] for words in REASONS}
    stepping = fsum(share for words, share in ends.items() if words != FAILURES)
    order = sorted(ends, key=lambda words: -ends[words])
    return {
        "first_mfu": Named(found[0].step.model_flops_utilisation),
        "last_mfu": Named(found[-1].step.model_flops_utilisation),
        "first_gpus": Named(found[0].run.gpus),
        "last_gpus": Named(found[-1].run.gpus),
        "first_step": Named(found[0].step.step_time_s, "s"),
        "last_step": Named(found[-1].step.step_time_s, "s"),
        "worst": Named(order[0]),
        "worst_share": Named(ends[order[0]]),
        "second": Named(order[1]),
        "second_share": Named(ends[order[1]]),
        "stepping_share": Named(stepping),
        "trained_share": Named(stepping / (1 - ends[FAILURES])),
        "middle": Named(max(middle, key=middle.__getitem__)),
        "middle_share": Named(max(middle.values())),
    }


REASONS = (*dict.fromkeys(PARTS.values()), FAILURES)


def _scaled(name: str, chip: str, precision: str, batch: int, kind: str) -> tuple[Scaled, ...]:
    if kind not in SCALINGS:
        raise InputError("kind", expected=" or ".join(SCALINGS), got=kind)
    found = scaled(model(name).name, accelerator(chip).name, precision, batch, kind == "weak")
    if not found:
        raise InputError(f"{name} on {chip}", expected="a layout that fits", got="none")
    return found


def _short(name: str) -> str:
    return {"llama-3-405b": "405B", "llama-3-70b": "70B"}.get(name, name)


def _short_chip(chip: str) -> str:
    return chip.split("-")[0].upper()
