"""Settings of a training step, which of them are published, and the load of its links."""

from __future__ import annotations

from figgen.charts import Axis, Column, Curves, Mark, Named, Rule, Scalar, Table
from figgen.errors import InputError
from figgen.figures.training.step import LEVELS, step_interval
from figgen.formulas.compute_and_roofline import ridge_point
from figgen.models.step.level_loads import axis_level_bytes
from figgen.plotting.placed import headings
from figgen.plotting.series import line
from figgen.plotting.words import identifier, label_of
from figgen.registry import figure
from figgen.scenarios.evidence.published import computed_mfu, how_published, published_step_s
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.options.written import written_options, written_step
from figgen.scenarios.runs.residual_classes import generation_of
from figgen.units import format_quantity

PUBLISHED, ASSUMED, GIVEN, PREDICTED = "published", "assumed", "given", "predicted"


@figure("setup-summary", about=written_step)
def setup_summary(found: TrainingStep) -> Table:
    """Every setting of a step, and whether it is published, assumed, or given by the page."""
    given = found.run is None
    columns = headings("setting", "value", "known")
    rows = tuple((label, value, _known(found, key)) for key, label, value in settings(found))
    setup, parallel = found.setup, found.setup.parallel
    return Table(
        columns=columns[:2] if given else columns,
        rows=tuple(row[:2] for row in rows) if given else rows,
        values={
            "gpus": Named(parallel.world_size),
            "nodes": Named(parallel.nodes),
            "parameters": Named(found.model.parameters, "param"),
            "microbatches": Named(setup.microbatches),
            "global_batch": Named(setup.global_batch, "sequence"),
            "tokens_per_step": Named(setup.tokens_per_step, "token"),
            "assumed": Named(sum(row[2] == ASSUMED for row in rows)),
            "schedule": Named(setup.schedule if parallel.pp > 1 else "none"),
        },
    )


def _known(found: TrainingStep, key: str) -> str:
    if key in found.given:
        return GIVEN
    if key in found.assumed:
        return ASSUMED
    if key == "compute_efficiency":
        return PREDICTED
    return PUBLISHED


def settings(found: TrainingStep) -> list[tuple[str, str, str]]:
    """Return settings as (name that marks assumptions, label, value)."""
    setup, parallel = found.setup, found.setup.parallel
    axes = ["tp", "cp", "dp", "pp"] + (["ep", "etp", "edp"] if parallel.ep > 1 else [])
    placement = setup.placement
    schedule = setup.schedule
    if placement.chunks > 1:
        schedule += f", {placement.chunks} chunks"
    if placement.pipes > 1:
        schedule += f", {placement.pipes} copies of the model"
    layout_words = " · ".join(f"{axis.upper()} {getattr(parallel, axis)}" for axis in axes)
    batch = f"{setup.global_batch:,} sequences of {setup.sequence:,} tokens"
    passing = f"{setup.microbatches:,} of {setup.microbatch_size} sequences per replica"
    recipe = setup.recipe
    settings = [
        ("model", "model", f"{found.model.title}, {_si(found.model.parameters)} parameters"),
        ("accelerator", "accelerator", f"{parallel.world_size:,} × {found.accelerator.title}"),
        ("nic", "network per GPU", found.nic.title),
        ("dtype", "multiplied in", _peak(found.dtype, found.cluster.peak_flops_per_s)),
        ("layout", "layout", layout_words),
        ("order", "rank order", f"{parallel.order}: {' '.join(parallel.convention.order)}"),
        ("sequence", "batch", batch),
        ("microbatch_size", "microbatches", passing),
        ("schedule", "schedule", schedule),
        ("zero_stage", "ZeRO stage", str(setup.zero_stage)),
        ("recipe", "bytes per parameter", f"{recipe.total_bytes:g} ({recipe.label})"),
        ("recompute", "recomputation", setup.recompute.replace(",", ", ")),
        ("activations", "kept activations", setup.activation_format.label),
        ("flash_attention", "flash attention", _on(setup.flash_attention)),
        ("sequence_parallel", "sequence parallelism", _on(setup.sequence_parallel)),
        ("software", "software", found.software),
        ("compute_efficiency", "computing reaches", f"{found.compute_efficiency:.0%} of the peak"),
    ]
    if found.run is not None and found.run.mfu is not None:
        against = _peak(found.run.mfu_dtype, found.run.mfu_peak_flops_per_s)
        settings.append(("mfu_dtype", "its printed MFU is of", against))
    # What a layout does not have is no setting of it.
    without = {"tp": "sequence_parallel", "pp": "schedule"}
    absent = {key for axis, key in without.items() if getattr(parallel, axis) == 1}
    return [entry for entry in settings if entry[0] not in absent]


def _on(setting: bool) -> str:
    return "on" if setting else "off"


def _si(value: float) -> str:
    return format_quantity(value, "1", "si")


def _peak(dtype: str, flops_per_s: float) -> str:
    return f"{dtype.upper()}, {format_quantity(flops_per_s, 'FLOP/s', 'flops.4')} dense peak"


@figure("setup-roofline", about=written_step)
def setup_roofline(found: TrainingStep) -> Table:
    """Per axis and link: the step's FLOPs per byte over it, next to its ridge point.

    Below 1 the link takes longer than computing, so that not even perfect overlap would hide it;
    far above 1 it hardly matters.
    """
    cluster, estimate = found.cluster, found.estimate
    rate = cluster.peak_flops_per_s * found.compute_efficiency
    work = (estimate.compute_s + estimate.recompute_s) * rate
    bandwidths = {
        "scale-up": cluster.scale_up_bandwidth_bytes_per_s,
        "network": cluster.network_bandwidth_bytes_per_s,
    }
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for (axis, level), size in axis_level_bytes(estimate).items():
        ratio, ridge = work / size, ridge_point(rate, bandwidths[level])
        rows.append((label_of(axis), LEVELS[level], size, ratio, ridge, ratio / ridge))
    rows.sort(key=lambda entry: float(entry[-1]))
    if not rows:
        raise InputError("a roofline", expected="a setup that sends something", got="one GPU")
    values["nearest"] = Named(str(rows[0][0]))
    values["nearest_over_ridge"] = Named(float(rows[0][-1]))
    columns = (
        *headings("groups of", "link"),
        Column(label="sent over it per GPU", unit="B", spec="si"),
        *headings("work per byte", "ridge of the link", unit="FLOP/B", spec=",.0f"),
        Column(label="over the ridge", spec=",.2f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


HOW = {
    "as printed": "printed",
    "from the printed tokens per second": "from tokens/s",
    "from the printed FLOP rate": "from FLOP/s",
    "from the printed MFU": "from MFU",
    "not published": "–",
}
"""How a published step time is known, in the words of a narrow column."""


OVERFULL = " †"


def overfull_mark(found: TrainingStep) -> str:
    """Return the mark of a setup that does not fit its GPUs by the models, or ""."""
    return OVERFULL if found.memory.fits is False else ""


@figure("computed-over-published")
def computed_over_published(*, runs: tuple[str, ...], named: tuple[str, ...] = ()) -> Curves:
    """Computed over published step time of training presets, by GPUs of the job.

    Runs in `named` have titles. Raises InputError for a preset whose run has no published time,
    printed or derived from a rate.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    marks, shown = [], []
    ratios: dict[str, float] = {}
    for name in runs:
        found = training_step(preset=name)
        published = None if found.run is None else published_step_s(found.run)
        if published is None:
            raise InputError(f"preset {name!r}", expected="a run with a step time", key="runs")
        shown.append(found)
        gpus, off = found.setup.parallel.world_size, found.estimate.step_time_s / published - 1
        ratios[f"{identifier(name)}_difference"] = off
        points.setdefault(generation_of(found.accelerator).title(), []).append((float(gpus), off))
        if name in named:
            marks.append(Mark(x=float(gpus), y=off, label=found.model.title, role="ink"))
    return Curves(
        x=Axis(label="GPUs of the job", scale="log10", spec=",.0f"),
        y=Axis(label="step, computed over published, less one", spec="+.0%"),
        series=tuple(
            line(name, [x for x, _ in each], [y for _, y in each], index, "points")
            for index, (name, each) in enumerate(points.items())
        ),
        marks=tuple(marks),
        rules=(Rule(axis="y", at=0.0, label="as published"),),
        values={
            "compared": Named(len(ratios)),
            "within": Named(sum(abs(each) <= 0.1 for each in ratios.values())),
            "least": Named(min(ratios.values())),
            "most": Named(max(ratios.values())),
            **{key: Named(each) for key, each in ratios.items()},
            **step_interval(*shown),
        },
    )


COMPARED = (
    Column(label="run"),
    Column(label="GPUs", spec=","),
    *headings("step, computed", "step, published", unit="s", spec="time"),
    Column(label="known"),
    Column(label="difference", spec="+.0%"),
    *headings("MFU, computed", "MFU, published", spec=".1%"),
    Column(label="of peak"),
)


@figure("published-and-computed")
def published_and_computed(*, runs: tuple[str, ...]) -> Table:
    """Step time and utilization of training presets, computed and published.

    A preset may be followed by options, as in "llama-3-405b-8k-16384 zero_stage=1", for another
    reading of what its source leaves open. Utilizations are relative to the peak that the run uses.
    A run that needs more memory than its GPUs have, by the models, has the mark `OVERFULL`.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    shown: list[TrainingStep] = []
    for entry in runs:
        name, _, options = entry.partition(" ")
        found = training_step(preset=name, **written_options(options))
        shown.append(found)
        if found.run is None:
            raise InputError(f"preset {name!r}", expected="a published run")
        computed, published = found.estimate.step_time_s, published_step_s(found.run)
        blank = float("nan")
        rows.append(
            (
                found.title + _reading(found) + overfull_mark(found),
                found.setup.parallel.world_size,
                computed,
                blank if published is None else published,
                HOW[how_published(found.run)],
                blank if published is None else computed / published - 1,
                computed_mfu(found),
                blank if found.run.mfu is None else found.run.mfu.value,
                found.run.mfu_dtype.upper(),
            )
        )
        key = identifier(entry.replace("=", "-").replace(" ", "-"))
        values[f"{key}_mfu"] = Named(computed_mfu(found))
        if published is not None:
            values[f"{key}_difference"] = Named(computed / published - 1)
    differences = [float(row[5]) for row in rows if row[5] == row[5]]
    if differences:
        values["least_difference"] = Named(min(differences))
        values["most_difference"] = Named(max(differences))
    values |= {
        "runs": Named(len({entry.split()[0] for entry in runs})),
        "compared": Named(len(differences)),
        "shorter": Named(sum(each < 0 for each in differences)),
        "derived": Named(sum(str(row[4]).startswith("from") for row in rows)),
        "overfull": Named(sum(each.memory.fits is False for each in shown)),
        "halved": Named(
            " and ".join(
                each.run.model.title
                for each in shown
                if each.run and each.run.attention == "causal"
            )
        ),
        **step_interval(*shown),
    }
    return Table(columns=COMPARED, rows=tuple(rows), values=values)


def _reading(found: TrainingStep) -> str:
    """Return the changes of a run, for its title."""
    changed = [f"{label} {value}" for key, label, value in settings(found) if key in found.given]
    return ", " + ", ".join(changed) if changed else ""
