"""What else a training step could be: the choices of every setting, and steps with one changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from figgen import catalog
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError
from figgen.figures.training.step import LEVELS
from figgen.figures.training.summary import settings
from figgen.models.activation_formats import FORMATS
from figgen.models.frameworks import CONVENTIONS
from figgen.models.level_loads import level_loads
from figgen.models.recipes import RECIPES
from figgen.models.recomputation import MODULES, NAMED
from figgen.models.schedules import SCHEDULES
from figgen.registry import figure
from figgen.scenarios.training import OPTIONS, TrainingStep, training_step


def _titles(entries: Mapping[str, object]) -> str:
    return _listed(str(getattr(entry, "title")) for entry in entries.values())  # noqa: B009


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


CHOICES: dict[str, Callable[[], str]] = {
    "model": lambda: _titles(catalog.MODELS),
    "accelerator": lambda: _titles(catalog.ACCELERATORS),
    "nic": lambda: _titles({k: v for k, v in catalog.LINKS.items() if v.kind == "scale-out"}),
    "layout": lambda: "any TP, CP, PP, EP and ETP that divide the GPUs; DP is what they leave over",
    "order": lambda: _listed(one.label for one in CONVENTIONS.values()),
    "schedule": lambda: _listed(SCHEDULES),
    "zero_stage": lambda: "0, 1, 2, 3",
    "recipe": lambda: _listed(one.label for one in RECIPES.values()),
    "recompute": lambda: _listed((*NAMED, *MODULES)),
    "activations": lambda: _listed(one.label for one in FORMATS.values()),
    "flash_attention": lambda: "on, off",
    "sequence_parallel": lambda: "on, off",
}
"""By setting, what it can be where that is not simply a number."""


@figure("setup-choices", about=training_step)
def setup_choices(found: TrainingStep) -> Table:
    """Every setting of a step, with what else it could be."""
    rows = tuple(
        (label, value, CHOICES[key]() if key in CHOICES else "")
        for key, label, value in settings(found)
    )
    columns = (Column(label="setting"), Column(label="value"), Column(label="can be"))
    return Table(
        columns=columns,
        rows=rows,
        values={"settings": Named(len(rows)), "models": Named(len(catalog.MODELS))},
    )


@figure("setup-changes")
def setup_changes(*, model: str, sizes: str, options: str = "", changes: tuple[str, ...]) -> Table:
    """One step, and the same with each of `changes`, such as "microbatches=16" or "pp=3".

    What is gained is measured in tokens per second and GPU, so that a change of the batch or of
    the number of GPUs compares. Raises InputError for a change that does not fit.
    """
    if not changes:
        raise InputError("changes", expected="at least one change", got=())
    base = training_step(model=model, sizes=sizes, options=options)
    rows, gains = [_row("as it is", base, base)], []
    for change in changes:
        words = change.split()
        own = [word for word in words if word.partition("=")[0] in OPTIONS]
        other = training_step(
            model=model,
            sizes=_over(sizes, [word for word in words if word not in own]),
            options=_over(options, own),
        )
        rows.append(_row(change, base, other))
        gains.append(float(rows[-1][2]))
    columns = (
        Column(label="changed"),
        Column(label="tokens/s per GPU", spec=",.0f"),
        Column(label="gained", spec="+.1%"),
        Column(label="step", unit="s", spec="time"),
        Column(label="idle", spec=".1%"),
        Column(label="MFU", spec=".1%"),
        Column(label="fullest GPU", unit="B", spec="bytes"),
        Column(label="global batch", spec=","),
    )
    values = {"changes": Named(len(changes)), "best": Named(max(gains))}
    values["best_change"] = Named(changes[gains.index(max(gains))])
    return Table(columns=columns, rows=tuple(rows), values=values)


def _over(words: str, changed: list[str]) -> str:
    """`words` with what `changed` says anew."""
    found = dict(word.partition("=")[::2] for word in [*words.split(), *changed])
    return " ".join(f"{name}={value}" for name, value in found.items())


def _row(label: str, base: TrainingStep, found: TrainingStep) -> tuple[Scalar, ...]:
    estimate = found.estimate
    rate = estimate.tokens_per_s_per_gpu
    return (
        label, rate, rate / base.estimate.tokens_per_s_per_gpu - 1, estimate.step_time_s,
        estimate.bubble_s / estimate.step_time_s, estimate.model_flops_utilisation,
        found.memory.fullest.total_bytes, found.setup.global_batch,
    )  # fmt: skip


@figure("link-loads", about=training_step)
def link_loads(found: TrainingStep) -> Table:
    """Per level of links: what a GPU sends in a step, and the bandwidth it needs at least."""
    loads = level_loads(found.estimate, found.cluster, found.compute_efficiency)
    if not loads:
        raise InputError("loads of links", expected="a setup that sends something", got="one GPU")
    rows = tuple(
        (
            LEVELS[load.level], load.port_bytes, load.bandwidth_bytes_per_s,
            load.needed_bandwidth_bytes_per_s, load.ccr, load.ridge,
            load.efficiency_with_overlap, load.efficiency_without_overlap,
        )
        for load in loads
    )  # fmt: skip
    columns = (
        Column(label="link of a GPU"),
        Column(label="sent per step", unit="B", spec="si"),
        Column(label="bandwidth", unit="B/s", spec="si"),
        Column(label="needed at least", unit="B/s", spec="si"),
        Column(label="work per byte", unit="FLOP/B", spec=",.0f"),
        Column(label="ridge point", unit="FLOP/B", spec=",.0f"),
        Column(label="attainable", spec=".1%"),
        Column(label="without overlap", spec=".1%"),
    )
    values = {
        f"{load.level.replace('-', '_')}_needed": Named(load.needed_bandwidth_bytes_per_s, "B/s")
        for load in loads
    }
    return Table(columns=columns, rows=rows, values=values)
