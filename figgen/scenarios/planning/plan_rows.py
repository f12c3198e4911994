"""Layouts of a plan in detail: the terms of their time, and why each is slower than the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.models.planner.layout_kind import layout_kind
from figgen.models.planner.ranking import layout_at, terms_at
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.step import needed_utilisation
from figgen.scenarios.options.option import Choices
from figgen.scenarios.planning.planner import Plan
from figgen.scenarios.runs.timed_kinds import timed_kinds

TERMS = {
    "products": "matmuls",
    "attention": "attention core",
    "memory": "memory-bound kernels",
    "messages": "messages within layers",
    "repeated": "recomputation",
    "host": "waiting for the host",
    "ends": "output layer, loss, uneven stages",
    "gathers": "ZeRO messages in every microbatch",
    "idle": "idle pipeline stages",
    "stages": "messages between stages",
    "gradients": "gradient messages",
    "update": "optimizer update",
    "straggling": "stragglers",
    "fixed": "fixed time of a step",
}
"""The terms of a step in the order in which they are computed; they add up to its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A layout of a plan: its options, its time and memory, and the terms of its time.

    `loses_by` is the term that contributes most to its gap to the best layout, "" for the best
    itself. `apart` says whether that gap exceeds the model's error. `timed` says whether a time has
    been published for this kind of layout on this accelerator (`timed_kinds`).
    """

    place: int
    choices: Choices
    dp: int
    microbatches: int
    step_s: float
    low_s: float
    high_s: float
    memory_bytes: float
    tokens_per_s_per_gpu: float
    model_flops_utilisation: float
    apart: bool
    timed: bool
    terms: dict[str, float]
    loses_by: str
    loses_s: float


def plan_rows(plan: Plan, places: Sequence[int]) -> list[PlanRow]:
    """Return the layouts at these positions of the ranking; the best one is at 0."""
    question, job, found = plan.question, plan.question.job, plan.found
    best, *terms = terms_of(plan, [0, *places])
    setup, known, rows = job.setup, question.residuals, []
    low, high = question.interval
    kinds = question.accelerator.name, setup.shape.experts is not None
    timed = timed_kinds().get(kinds, frozenset())
    tokens = job.global_batch * setup.sequence
    peak = question.accelerator.peak_flops_per_s(str(question.values["dtype"]))
    for place, mine in zip(places, terms, strict=True):
        seconds = float(found.step_s[place])
        rate = tokens / seconds / job.world_size
        behind = {name: mine[name] - best[name] for name in TERMS}
        worst = max(behind, key=lambda name: behind[name])
        layout = layout_at(found, place)
        loses = float(found.step_s[place] - found.step_s[0])
        rows.append(
            PlanRow(
                place=place,
                choices=choices_of(plan, place),
                dp=int(layout.dp),
                microbatches=int(layout.microbatches),
                step_s=seconds,
                low_s=seconds * low,
                high_s=seconds * high,
                memory_bytes=float(found.memory_bytes[place]),
                tokens_per_s_per_gpu=rate,
                model_flops_utilisation=needed_utilisation(
                    setup, tokens_per_s_per_gpu=rate, peak_flops_per_s=peak
                ),
                timed=layout_kind(
                    tp=int(layout.tp),
                    cp=int(layout.cp),
                    pp=int(layout.pp),
                    ep=int(layout.ep),
                    zero_stage=int(layout.zero_stage),
                )
                in timed,
                apart=bool(seconds * known.low > found.step_s[0] * known.high),
                terms=mine,
                loses_by=worst if loses > 0 else "",
                loses_s=loses,
            )
        )
    return rows


def label(row: PlanRow) -> str:
    """Return a layout in one line, without axes of one rank."""
    return _words(row.choices, row.dp, row.microbatches)


def layout_words(setup: TrainingSetup) -> str:
    """Return the layout of a step in one line, in the form of `label`."""
    parallel, placement = setup.parallel, setup.placement
    given: Choices = {
        **{name: getattr(parallel, name) for name in ("tp", "cp", "pp", "ep", "etp")},
        "schedule": setup.schedule,
        "chunks": placement.stages // placement.pipes // parallel.pp,
        "microbatch_size": setup.microbatch_size,
        "zero_stage": setup.zero_stage,
        "recompute": setup.recompute,
    }
    return _words(given, parallel.dp, setup.microbatches)


def _words(given: Choices, dp: int, microbatches: int) -> str:
    axes = {**{name: given[name] for name in ("tp", "cp", "pp", "ep")}, "dp": dp}
    words = [f"{name.upper()} {size}" for name, size in axes.items() if size != 1]
    if int(str(given["ep"])) > 1 and given["etp"] != 1:
        words.append(f"ETP {given['etp']}")
    if given["pp"] != 1:
        chunks = f" × {given['chunks']}" if int(str(given["chunks"] or 1)) > 1 else ""
        words.append(f"{given['schedule']}{chunks}")
    words += [f"{microbatches} × {given['microbatch_size']}", f"ZeRO-{given['zero_stage']}"]
    if given["recompute"] != "none":
        words.append(str(given["recompute"]).replace(",", ", "))
    return " · ".join(words)


def choices_of(plan: Plan, place: int) -> Choices:
    """Return a layout as options of the schema."""
    layout = layout_at(plan.found, place)
    piped = layout.pp > 1
    return {
        **{name: int(getattr(layout, name)) for name in ("tp", "cp", "pp", "ep", "etp")},
        "schedule": layout.schedule,
        "chunks": layout.chunks if piped else None,
        "microbatch_size": int(layout.microbatch_size),
        "zero_stage": int(layout.zero_stage),
        "recompute": layout.recompute,
    }


def terms_of(plan: Plan, places: Sequence[int]) -> list[dict[str, float]]:
    """Return the seconds of these layouts by the terms in `TERMS`."""
    found = [terms_at(plan.found, place) for place in places]
    return [{name: float(terms[name]) for name in TERMS} for terms in found]
