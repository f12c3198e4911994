"""The choices of every setting of a training step, and steps with one setting changed."""

from __future__ import annotations

from figgen import catalog
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError
from figgen.figures.training.step import LEVELS, step_interval
from figgen.figures.training.summary import settings
from figgen.models.step.compute import MFU_LABEL
from figgen.models.step.level_loads import level_loads
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.options.option import SWITCH
from figgen.scenarios.options.resolve import TrainingStep, resolve
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.options.written import written_scenario, written_step, written_words

LAYOUT = "any TP, CP, PP, EP and ETP that divide the GPUs; DP is what they leave over"
BY_NAME = ("schedule", "zero_stage")
"""Settings whose choices a table shows by name."""


def _can_be(key: str) -> str:
    """Return the choices of settings that are not plain numbers."""
    option = OPTIONS.get(key)
    if option is None:
        return LAYOUT if key == "layout" else ""
    if option.kind == "switch":
        return ", ".join(SWITCH)
    if key == "recompute":
        return option.hint
    known = option.choices() if option.choices else {}
    return ", ".join(known if key in BY_NAME else known.values())


@figure("setup-choices", about=written_step)
def setup_choices(found: TrainingStep) -> Table:
    """Every setting of a step, with its choices."""
    rows = tuple((label, value, _can_be(key)) for key, label, value in settings(found))
    columns = headings("setting", "value", "can be")
    return Table(
        columns=columns,
        rows=rows,
        values={"settings": Named(len(rows)), "models": Named(len(catalog.MODELS))},
    )


@figure("setup-changes")
def setup_changes(*, model: str, sizes: str, options: str = "", changes: tuple[str, ...]) -> Table:
    """One step, and the same with each of `changes`, such as "microbatches=16" or "pp=3".

    The gain is in tokens per second per GPU, so that changes of the batch or the number of GPUs are
    comparable. Raises InputError for a change that does not fit.
    """
    if not changes:
        raise InputError("changes", expected="at least one change", got=())
    asked = written_scenario(model=model, sizes=sizes, options=options)
    base = resolve(asked)
    rows, gains, shown = [_row("as it is", base, base)], [], [base]
    for change in changes:
        other = resolve(asked.but(**written_words(change, "changes", OPTIONS)))
        rows.append(_row(change, base, other))
        shown.append(other)
        gains.append(float(rows[-1][2]))
    columns = (
        Column(label="changed"),
        Column(label="tokens/s per GPU", spec=",.0f"),
        Column(label="gained", spec="+.1%"),
        Column(label="step", unit="s", spec="time"),
        *headings("idle", MFU_LABEL, spec=".1%"),
        Column(label="fullest GPU", unit="B", spec="bytes"),
        Column(label="global batch", spec=","),
    )
    values = {"changes": Named(len(changes)), "best": Named(max(gains))}
    values["best_change"] = Named(changes[gains.index(max(gains))])
    return Table(columns=columns, rows=tuple(rows), values=values | step_interval(*shown))


def _row(label: str, base: TrainingStep, found: TrainingStep) -> tuple[Scalar, ...]:
    estimate = found.estimate
    rate = estimate.tokens_per_s_per_gpu
    return (
        label, rate, rate / base.estimate.tokens_per_s_per_gpu - 1, estimate.step_time_s,
        estimate.bubble_s / estimate.step_time_s, estimate.model_flops_utilisation,
        found.memory.fullest.total_bytes, found.setup.global_batch,
    )  # fmt: skip


@figure("link-loads", about=written_step)
def link_loads(found: TrainingStep) -> Table:
    """Per level of links: bytes of a GPU per step, and the least bandwidth that it needs."""
    loads = level_loads(found.estimate, found.cluster, found.compute_efficiency)
    if not loads:
        raise InputError("loads of links", expected="a setup that sends something", got="one GPU")
    rows = tuple(
        (
            LEVELS[load.level],
            load.port_bytes,
            load.bandwidth_bytes_per_s,
            load.needed_bandwidth_bytes_per_s,
            load.ccr,
            load.ridge,
            load.efficiency_with_overlap,
            load.efficiency_without_overlap,
        )
        for load in loads
    )
    columns = (
        Column(label="link per GPU"),
        Column(label="sent per step", unit="B", spec="si"),
        *headings("bandwidth", "needed at least", unit="B/s", spec="si"),
        *headings("work per byte", "ridge point", unit="FLOP/B", spec=",.0f"),
        *headings("attainable", "without overlap", spec=".1%"),
    )
    values = {
        f"{load.level.replace('-', '_')}_needed": Named(load.needed_bandwidth_bytes_per_s, "B/s")
        for load in loads
    }
    return Table(columns=columns, rows=rows, values=values)
