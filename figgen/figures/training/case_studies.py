"""Published runs recomputed: the models' values next to the printed ones."""

from __future__ import annotations

from figgen.catalog import accelerator, model
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.figures.training.step import in_words, step_interval
from figgen.figures.training.summary import overfull_mark
from figgen.formulas.compute_and_roofline import model_flops_utilization, training_time
from figgen.models.step.compute import training_flops_per_token
from figgen.models.step.level_loads import level_bytes
from figgen.models.step.step_links import NETWORK, SCALE_UP
from figgen.plotting.placed import headings
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.options.resolve import TrainingStep, training_step

SECONDS_PER_DAY = 86400


@figure("runs-held-and-sent")
def runs_held_and_sent(*, runs: tuple[str, ...]) -> Table:
    """Layouts of published runs: idle and exposed time, memory and bytes sent, as computed."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"count": Named(len(runs))}
    for name in runs:
        found = training_step(preset=name)
        estimate, held = found.estimate, found.memory.fullest.total_bytes
        exposed = estimate.exposed_s / estimate.step_time_s
        sent = level_bytes(estimate)
        inside, between = sent[SCALE_UP], sent[NETWORK]
        rows.append((
            found.title + overfull_mark(found), _layout(found), estimate.bubble_fraction, exposed,
            held, inside, between,
        ))  # fmt: skip
        key = identifier(name)
        values |= {
            f"{key}_idle": Named(estimate.bubble_fraction),
            f"{key}_exposed": Named(exposed),
            f"{key}_memory": Named(held, "B"),
            f"{key}_inside": Named(inside, "B"),
            f"{key}_between": Named(between, "B"),
        }
    columns = (
        *headings("run", "layout"),
        *headings("idle", "exposed", spec=".1%"),
        *headings("fullest GPU", "sent in the node", "sent between nodes", unit="B", spec="bytes"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


ATTENTION = {"6nd+attention": "the whole square", "causal": "its causal half"}
"""Ways in which a printed rate may count attention: convention and label."""


@figure("published-readings")
def published_readings(*, runs: tuple[str, ...]) -> Table:
    """Step times that a printed FLOP rate implies, by how attention is counted.

    Beside them are the errors of the models if gradients are reduced every microbatch or once a
    step.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    shown: list[TrainingStep] = []
    for name in runs:
        once = training_step(preset=name, zero_stage=1)
        shown.append(once)
        found = training_step(preset=name, zero_stage=2)
        run = found.run
        if run is None or run.flops_rate is None or not run.tokens_per_step or not run.gpus:
            raise InputError(
                f"preset {name!r}", expected="a run with a printed FLOP rate", key="runs"
            )
        for convention, words in ATTENTION.items():
            per_token = training_flops_per_token(run.model.shape, convention, sequence=run.sequence)
            said = run.tokens_per_step * per_token / run.flops_rate.value / run.gpus
            off = [each.estimate.step_time_s / said - 1 for each in (found, once)]
            rows.append((f"{run.sequence:,} tokens", words, said, *off))
            key = f"s{run.sequence}_{convention.partition('+')[0]}"
            values |= {
                f"{key}_step": Named(said, "s"),
                f"{key}_each": Named(in_words(off[0])),
                f"{key}_once": Named(in_words(off[1])),
            }
    columns = (
        *headings("sequence", "the rate counts"),
        Column(label="step that it means", unit="s", spec="time"),
        *headings("computed, a reduction per microbatch", "computed, one reduction", spec="+.0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values | step_interval(*shown))


def _layout(found: TrainingStep) -> str:
    """Return the axes larger than one, in the order of the mesh: "TP 8 · PP 16 · DP 128"."""
    sizes = found.setup.parallel
    axes = {"TP": sizes.tp, "CP": sizes.cp, "PP": sizes.pp, "DP": sizes.dp, "EP": sizes.ep}
    return " · ".join(f"{axis} {size}" for axis, size in axes.items() if size > 1)


TRAINED = (
    "llama-1-7b", "llama-1-13b", "llama-1-33b", "llama-1-65b", "llama-2-7b", "llama-2-70b",
    "llama-3-8b", "llama-3-70b", "llama-3-405b", "deepseek-v3",
)  # fmt: skip


@figure("training-hours")
def training_hours(*, gpus: int = 2048, models: tuple[str, ...] = TRAINED) -> Table:
    """Published GPU hours of whole trainings: days on some GPUs, and the share of the peak."""
    check_between("gpus", gpus, 1, 10_000_000)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"gpus": Named(gpus, "GPU"), "count": Named(len(models))}
    for name in models:
        found = model(name)
        if found.gpu_hours is None or found.tokens is None:
            raise InputError(
                f"model {name!r}", expected="published GPU hours and tokens", key="models"
            )
        hours, tokens = found.gpu_hours.value, found.tokens.value
        used = accelerator(found.trained_on)
        rate = tokens / (hours * 3600)
        share = float(
            model_flops_utilization(found.active_parameters, rate, used.peak_flops_per_s("bf16"))
        )
        days = float(training_time(hours, gpus)) / SECONDS_PER_DAY
        chip = found.trained_on.split("-")[0].upper()
        rows.append((found.title, found.active_parameters, tokens, chip, hours, days, rate, share))
        key = identifier(name)
        values |= {f"{key}_days": Named(days), f"{key}_mfu": Named(share)}
    return Table(
        columns=(
            Column(label="model"),
            Column(label="active parameters", unit="param", spec="si"),
            Column(label="tokens", unit="token", spec="si"),
            Column(label="on"),
            Column(label="GPU hours", spec=","),
            Column(label=f"days on {gpus:,} GPUs", spec=".1f"),
            Column(label="tokens per second per GPU", spec=",.0f"),
            Column(label="MFU by 6 per parameter, of the BF16 peak", spec=".1%"),
        ),
        rows=tuple(rows),
        values=values,
    )
