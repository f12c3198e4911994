"""Published runs re-derived: what the models compute beside what was printed."""

from __future__ import annotations

import math

from figgen.catalog import accelerator, model
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.figures.training_published import published_step_s
from figgen.figures.training_setups import TrainingStep, training_step
from figgen.formulas.compute_and_roofline import model_flops_utilization, training_time
from figgen.registry import figure
from figgen.units import format_quantity

SECONDS_PER_DAY = 86400
NOTHING = "–"


def _text(value: float | None, unit: str, spec: str) -> str:
    return NOTHING if value is None else format_quantity(value, unit, spec)


def _difference(computed: float, published: float | None) -> str:
    if published is None:
        return NOTHING
    text = f"{computed / published - 1:+.0%}".replace("-", "−")
    return "0%" if text[1:] == "0%" else text


@figure("run-card")
def run_card(*, preset: str) -> Table:
    """One published configuration: sizes, time, use of the peak, memory; computed and printed."""
    found = training_step(preset=preset)
    run, estimate, held = found.run, found.estimate, found.memory
    if run is None:
        raise InputError(f"preset {preset!r}", expected="one with a published run")
    step_s, tokens = published_step_s(run), found.setup.microbatches
    tokens *= found.setup.parallel.dp * found.setup.microbatch_size * found.setup.sequence
    printed = run.model.published_parameters.value
    peak = run.peak_memory.value if run.peak_memory else None
    mfu = run.mfu.value if run.mfu else None
    between = sum(row.sent_bytes for row in estimate.rows if row.level == "network")
    inside = sum(row.sent_bytes for row in estimate.rows if row.level != "network")
    compared: tuple[tuple[str, float, float | None, str, str], ...] = (
        ("parameters", run.model.parameters, printed, "param", "si"),
        ("GPUs", found.setup.parallel.world_size, run.gpus, "1", ","),
        ("tokens per step", tokens, run.tokens_per_step, "token", "si"),
        ("step time", estimate.step_time_s, step_s, "s", "time"),
        ("MFU", estimate.model_flops_utilisation, mfu, "1", ".1%"),
        ("memory of the fullest GPU", held.fullest.total_bytes, peak, "B", "bytes"),
        ("bubble_fraction", estimate.bubble_fraction, None, "1", ".1%"),
        ("exposed communication", estimate.exposed_s / estimate.step_time_s, None, "1", ".1%"),
        ("sent per GPU inside the node", inside, None, "B", "bytes"),
        ("sent per GPU between nodes", between, None, "B", "bytes"),
    )
    rows: list[tuple[Scalar, ...]] = [("layout", _layout(found), NOTHING, NOTHING)]
    rows += [
        (what, _text(computed, unit, spec), _text(said, unit, spec), _difference(computed, said))
        for what, computed, said, unit, spec in compared
    ]
    values = {
        "gpus": Named(found.setup.parallel.world_size, "GPU"),
        "step_time": Named(estimate.step_time_s, "s"),
        "mfu": Named(estimate.model_flops_utilisation),
        "memory": Named(held.fullest.total_bytes, "B"),
        "capacity": Named(held.capacity_bytes or math.nan, "B"),
        "bubble": Named(estimate.bubble_fraction),
        "exposed": Named(estimate.exposed_s / estimate.step_time_s),
        "between": Named(between, "B"),
        "inside": Named(inside, "B"),
        "layout": Named(_layout(found)),
    }
    if step_s is not None:
        values["published_step"] = Named(step_s, "s")
        values["difference"] = Named(estimate.step_time_s / step_s - 1)
    if mfu is not None:
        values["published_mfu"] = Named(mfu)
    return Table(
        columns=(
            Column(label="quantity"),
            Column(label="computed"),
            Column(label="published"),
            Column(label="difference"),
        ),
        rows=tuple(rows),
        values=values,
    )


def _layout(found: TrainingStep) -> str:
    """The axes larger than one, in the order of the mesh: "TP 8 · PP 16 · DP 128"."""
    sizes = found.setup.parallel
    axes = {"TP": sizes.tp, "CP": sizes.cp, "PP": sizes.pp, "DP": sizes.dp, "EP": sizes.ep}
    return " · ".join(f"{axis} {size}" for axis, size in axes.items() if size > 1)


TRAINED = (
    "llama-1-7b", "llama-1-13b", "llama-1-33b", "llama-1-65b", "llama-2-7b", "llama-2-70b",
    "llama-3-8b", "llama-3-70b", "llama-3-405b", "deepseek-v3",
)  # fmt: skip


@figure("training-hours")
def training_hours(*, gpus: int = 2048, models: tuple[str, ...] = TRAINED) -> Table:
    """Published GPU hours of whole trainings: days on some GPUs, and what they say of the peak."""
    check_between("gpus", gpus, 1, 10_000_000)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"gpus": Named(gpus, "GPU"), "count": Named(len(models))}
    for name in models:
        found = model(name)
        if found.gpu_hours is None or found.tokens is None:
            raise InputError(f"model {name!r}", expected="published GPU hours and tokens")
        hours, tokens = found.gpu_hours.value, found.tokens.value
        used = accelerator(found.trained_on)
        rate = tokens / (hours * 3600)
        share = float(
            model_flops_utilization(found.active_parameters, rate, used.peak_flops_per_s("bf16"))
        )
        days = float(training_time(hours, gpus)) / SECONDS_PER_DAY
        chip = found.trained_on.split("-")[0].upper()
        rows.append((found.title, found.active_parameters, tokens, chip, hours, days, rate, share))
        key = name.replace("-", "_")
        values |= {f"{key}_days": Named(days), f"{key}_mfu": Named(share)}
    return Table(
        columns=(
            Column(label="model"),
            Column(label="active parameters", unit="param", spec="si"),
            Column(label="tokens", unit="token", spec="si"),
            Column(label="on"),
            Column(label="GPU hours", spec=","),
            Column(label=f"days on {gpus:,} GPUs", spec=".1f"),
            Column(label="tokens per second and GPU", spec=",.0f"),
            Column(label="MFU by 6 per parameter", spec=".1%"),
        ),
        rows=tuple(rows),
        values=values,
    )
