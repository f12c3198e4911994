"""Several jobs, planned: the fastest layout of each next to the simplest ones that would do."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog import model as catalog_model
from figgen.charts import Named, Scalar, Table, interval_values
from figgen.figures.training.choosing import TOKENS_PER_STEP
from figgen.lookups import remembered
from figgen.plotting.placed import headings
from figgen.quantity_shown import NBSP
from figgen.registry import figure
from figgen.scenarios.options.option import Choices
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import PlanRow, plan_rows
from figgen.scenarios.planning.planner import Plan, fastest

LONGEST = 8192
"""Tokens of a sequence, unless the model was trained with shorter ones."""

JOBS = (
    ("llama-3-8b", 8),
    ("llama-3-8b", 64),
    ("qwen-3-32b", 64),
    ("llama-3-70b", 64),
    ("llama-3-70b", 256),
    ("llama-3-70b", 512),
    ("gpt-3-175b", 512),
    ("llama-3-405b", 512),
    ("mixtral-8x7b", 64),
    ("deepseek-v3", 512),
)
"""Models with the number of H100 to train them on, eight in a node."""

NO_STAGES: Choices = {"pp": 1, "cp": 1, "zero_stage": 3}
SIMPLEST: Choices = {**NO_STAGES, "tp": 1, "ep": 1, "recompute": "full"}
"""Only the microbatch remains to be chosen, and without stages also TP, EP and recomputation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """The fastest layouts of a job: of all, with ZeRO-3 and no stages, and with ZeRO-3 alone.

    A layout is None if none of its kind fits.
    """

    model: str
    gpus: int
    plan: Plan
    best: PlanRow
    no_stages: PlanRow | None
    simplest: PlanRow | None


def _planned(model: str, gpus: int, fixed: Choices) -> tuple[Plan, PlanRow | None]:
    sequence = min(catalog_model(model).shape.sequence, LONGEST)
    job = scenario(
        model=model,
        nodes=gpus // 8,
        gpus_per_node=8,
        sequence=sequence,
        global_batch=TOKENS_PER_STEP // sequence,
        **fixed,
    )
    found = fastest(plan_question(job))
    return found, plan_rows(found, [0])[0] if found.fitting else None


@remembered(1)
def planned_jobs() -> tuple[PlannedCase, ...]:
    """Return every job of `JOBS`, planned."""
    jobs = []
    for model, gpus in JOBS:
        found, best = _planned(model, gpus, {})
        assert best is not None, f"{model} does not fit {gpus} GPUs"
        others = [_planned(model, gpus, fixed)[1] for fixed in (NO_STAGES, SIMPLEST)]
        jobs.append(
            PlannedCase(
                model=model,
                gpus=gpus,
                plan=found,
                best=best,
                no_stages=others[0],
                simplest=others[1],
            )
        )
    return tuple(jobs)


def _axes(row: PlanRow) -> str:
    """Return the axes of a layout and its other choices, as short as is readable."""
    given = row.choices
    axes = [*((name, int(str(given[name]))) for name in ("tp", "pp", "cp", "ep")), ("dp", row.dp)]
    said = [f"{name.upper()}{size}" for name, size in axes if size != 1]
    recomputing = ", recomputing" if given["recompute"] == "full" else ""
    return "·".join(said) + f", ZeRO\u2011{given['zero_stage']}{recomputing}"


def _beside(row: PlanRow | None, best: PlanRow, words: str) -> str:
    if row is None:
        return "doesn't fit"
    if row.step_s <= best.step_s:
        return "the fastest"
    return f"{words}{row.step_s:#.3g}{NBSP}s (+{row.step_s / best.step_s - 1:.0%})"


@figure("planned-jobs", of_reference=True)
def planned_jobs_table() -> Table:
    """For several jobs the fastest layout, ZeRO-3 without stages, and ZeRO-3 alone.

    ZeRO-3 alone recomputes layers.
    """
    jobs = planned_jobs()
    rows: list[tuple[Scalar, ...]] = [
        (
            f"{catalog_model(job.model).title} on {job.gpus}",
            _axes(job.best),
            f"{job.best.step_s:#.3g}{NBSP}s",
            _beside(job.no_stages, job.best, f"TP{(job.no_stages or job.best).choices['tp']}: "),
            _beside(job.simplest, job.best, ""),
        )
        for job in jobs
    ]
    longer = [job.simplest.step_s / job.best.step_s - 1 for job in jobs if job.simplest]
    staged = [job for job in jobs if job.best.choices["pp"] != 1]
    behind = [job.no_stages.step_s / job.best.step_s - 1 for job in staged if job.no_stages]
    return Table(
        columns=headings(
            "job",
            "fastest layout that fits",
            "step",
            "ZeRO-3, no stages",
            "ZeRO-3 alone, recomputing",
        ),
        rows=tuple(rows),
        values={
            "jobs": Named(len(jobs)),
            "staged": Named(len(staged)),
            "simple": Named(len(longer)),
            "least_longer": Named(min(longer)),
            "most_longer": Named(max(longer)),
            "least_behind": Named(min(behind)),
            "most_behind": Named(max(behind)),
            **interval_values(*(job.plan.question.residuals for job in jobs)),
        },
    )
