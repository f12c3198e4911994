"""The section that compares a run's published values with the models'."""

from __future__ import annotations

from html import escape

from figgen.catalog import TrainingPreset, Value
from figgen.scenarios.evidence.published import computed_mfu, how_published, published_step_s
from figgen.scenarios.evidence.published_plans import published_plan
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.planning.plan_rows import TERMS, layout_words
from figgen.scenarios.runs.class_ends import UNKNOWN
from figgen.units import format_quantity

PRINTED = {
    "step_time": ("time of a step", "time"),
    "tokens_per_s": ("tokens per second and accelerator", ""),
    "flops_rate": ("FLOP rate per accelerator", "flops"),
    "mfu": ("model FLOP utilisation", ".1%"),
    "hfu": ("hardware FLOP utilisation", ".1%"),
    "peak_memory": ("peak memory", "bytes"),
    "time_to_train": ("time to train", "time"),
}
"""Fields of a run that a source may print: label and format."""

LITTLE = 0.01
"""A relative difference of two predicted times that needs no explanation."""


def published_section(preset: TrainingPreset, step: TrainingStep, tools: frozenset[str]) -> str:
    """Return published values as inline numbers with sources, and their difference from models."""
    run = preset.run
    found = {name: getattr(run, name) for name in PRINTED}
    computed = {
        "step_time": _seconds(step.estimate.step_time_s),
        "tokens_per_s": f"{step.estimate.tokens_per_s_per_gpu:,.0f} tokens/s",
        "mfu": f"{computed_mfu(step):.1%}",
        "peak_memory": format_quantity(step.memory.printed_bytes, "B", "bytes")
        + ("" if step.memory.framework.prints == "device" else " held by the allocator"),
    }
    rows = [
        f'| {label} | {{{{ run("{run.name}").{name}:{spec} }}}} | {computed.get(name, "–")} |'
        for name, (label, spec) in PRINTED.items()
        if isinstance(found[name], Value)
    ]
    said = (
        "\n| What | Published | Computed here |\n|---|--:|--:|\n" + "\n".join(rows) + "\n"
        if rows
        else "\nNo rate of this run was published.\n"
    )
    lines = [
        "## Published and computed { data-search-exclude }\n",
        f"The sources: {escape(run.source)}.",
        "The [table of runs](../runs.md#"
        + run.name.replace(".", "-")
        + ") has every published setting.",
        said,
    ]
    lines += [_difference(preset, step)] if published_step_s(run) else []
    lines += [_planned(preset, tools)]
    lines += [f"Note in the catalog: {escape(run.note)}"] if run.note else []
    return "\n".join(lines) + "\n"


def _difference(preset: TrainingPreset, step: TrainingStep) -> str:
    published = published_step_s(preset.run)
    assert published is not None
    share = step.estimate.step_time_s / published - 1
    words = "longer" if share > 0 else "shorter"
    low, high = (_seconds(seconds) for seconds in step.interval_s)
    return (
        f"\nThe published step takes {_seconds(published)} ({how_published(preset.run)}); the "
        f"computed one is {abs(share):.0%} {words}.\n"
        f"{_interval_of(step.predicted.residuals.name)} {low} to {high}; "
        "[Validation](../../validation/index.md) explains these intervals.\n"
    )


def _interval_of(name: str) -> str:
    if name == UNKNOWN:
        return "Few or no published runs are like it, so the interval is wide:"
    return f"From the errors of its class ({name}), eight such runs in ten take"


def _planned(preset: TrainingPreset, tools: frozenset[str]) -> str:
    found = published_plan(preset.name)
    best = found.best.predicted
    term, share = found.loses_by
    by = f", most by {TERMS[term]} ({share:.0%})" if found.behind > LITTLE else ""
    told = "" if found.apart else ", which is too close to call"
    why = (
        "[The planner](../../tools/planner.md#how-far-published-layouts-are-from-it) explains why "
    )
    why = why + "that doesn't judge the run.\n" if "tools/planner.md" in tools else ""
    return (
        f"\nOf {found.layouts:,} layouts for this job, the fastest that fits ("
        f"{layout_words(found.best.setup)}) is predicted to take {_seconds(best.step_time_s)} "
        f"({_seconds(best.low_s)} to {_seconds(best.high_s)}); the published one "
        f"takes {found.behind:.1%} longer{by}{told}.\n{why}"
    )


def _seconds(value: float) -> str:
    return format_quantity(value, "s", "time")
