"""The pages' planner: one search that reports its progress, or one search per node count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from figgen.errors import InputError
from figgen.models.memory.fit_probability import SAFE
from figgen.models.planner.fastest import fastest
from figgen.models.planner.may_fit import may_fit
from figgen.models.planner.node_counts import FEWEST, Counted, answer, goal_of
from figgen.models.planner.plan import PlannedJob, pipelines_of, pipelines_tried
from figgen.models.planner.ranking import (
    Ranked,
    TriedPipeline,
    chance_at,
    layout_at,
    no_layout,
    ranked,
    terms_at,
    tried,
)
from figgen.scenarios.planning.plan_question import (
    NOT_PLANNED,
    SEARCHED,
    planned_job,
    undivided,
)
from figgen.scenarios.planning.sizing import (
    Sized,
    counted_of,
    held_batch,
    sized_counts,
    sized_training,
)
from figgen.scenarios.tools.page_job import UntimedJob, untimed_job
from figgen.scenarios.tools.served import ServedCatalog, usual_options


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlan:
    """A search, and `about`: the searched job without any parallelism."""

    job: PlannedJob
    about: UntimedJob
    batch_assumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """How many of all pipelines are done, and the layouts so far; `found` is None until the end."""

    done: int
    of: int
    layouts: int
    fitting: int
    found: Ranked | None


def page_plan(
    catalog: ServedCatalog,
    choices: Mapping[str, Any],
    every_schedule: bool = False,
    fit_chance: float = SAFE,
) -> PagePlan:
    """Return the search for these options; options in `SEARCHED` are fixed for all layouts.

    Raises InputError as `plan_question` does.
    """
    values = {
        name: value
        for name, value in {**usual_options(catalog), **choices}.items()
        if name not in SEARCHED and name not in NOT_PLANNED
    }
    about = untimed_job(catalog, undivided(values))
    capacity = about.capacity_bytes
    job = planned_job(
        about.setup,
        about.attained,
        about.rates,
        {**about.given, "global_batch": values["global_batch"]},
        choices,
        capacity_bytes=inf if capacity is None else capacity,
        every_schedule=every_schedule,
        fit_chance=fit_chance,
    )
    return PagePlan(job=job, about=about, batch_assumed=values["global_batch"] is None)


def planned(job: PlannedJob) -> Iterator[SearchProgress]:
    """Yield the progress of a search after each pipeline, and at the end its result.

    Raises InputError if no layout fits.
    """
    parts: list[TriedPipeline] = []
    counts: list[int] = []
    of, fitting = pipelines_tried(job), 0
    for pipeline in pipelines_of(job):
        found = [tried(one) for one in may_fit(pipeline)]
        parts += found
        counts.append(pipeline.count)
        done, layouts = len(counts), sum(counts)
        fitting += sum(len(one.places) for one in found)
        yield SearchProgress(done=done, of=of, layouts=layouts, fitting=fitting, found=None)
    if not counts:
        raise no_layout(job)
    yield SearchProgress(done=of, of=of, layouts=sum(counts), fitting=fitting, found=ranked(parts))


def layout_data(found: Ranked, place: int) -> dict[str, Any]:
    """Return the layout at a position of the ranking, with time, memory, chance and terms."""
    return {
        **asdict(layout_at(found, place)),
        "step_s": found.step_s[place],
        "memory_bytes": found.memory_bytes[place],
        "chance": chance_at(found, place),
        "terms": terms_at(found, place),
    }


def fastest_data(job: PlannedJob) -> dict[str, Any] | None:
    """Return the fastest layout of a job that fits, or None if none fits or exists."""
    try:
        found = fastest(job)
    except InputError:
        return None
    return layout_data(found, 0) if found.fitting else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesAsked:
    """The goal of a training, with the fields of `goal_of`.

    A layout counts as fitting if it fits with a chance of at least `chance`. `gpu_mtbf_s` is the
    mean time between failures of a GPU, and `power_w` the power limit of accelerators by name.
    """

    kind: str
    days: float | None
    budget: float | None
    tokens: float | None
    price: float | None
    chance: float
    gpu_mtbf_s: float
    power_w: Mapping[str, float]


def sized_nodes(
    catalog: ServedCatalog, choices: Mapping[str, Any], asked: NodesAsked
) -> Iterator[tuple[Sized, int | None]]:
    """Yield each number of nodes that the search tries, with the best number so far.

    Raises InputError as `goal_of` does.
    """
    plan = page_plan(catalog, {**choices, "nodes": 1})
    held = {**choices, "global_batch": held_batch(plan.job, plan.batch_assumed)}
    one_node = page_plan(catalog, {**held, "nodes": 1}, fit_chance=asked.chance).job
    goal = goal_of(
        kind=asked.kind,
        days=asked.days,
        budget=asked.budget,
        tokens=asked.tokens,
        price=asked.price,
    )
    found = list[Counted]()

    def sized(nodes: int) -> Sized:
        plan = page_plan(catalog, {**held, "nodes": nodes}, fit_chance=asked.chance)
        return _sized(plan, nodes, asked)

    for one in sized_counts(goal, one_node, sized):
        found.append(counted_of(one))
        best = answer(goal, found)
        yield one, None if best is None else best.nodes


def _sized(plan: PagePlan, nodes: int, asked: NodesAsked) -> Sized:
    job, about = plan.job, plan.about
    row = fastest_data(job)
    one = Sized(nodes=nodes, gpus=job.world_size, global_batch=job.global_batch, row=row)
    if row is None or asked.tokens is None or asked.kind == FEWEST:
        return one
    step_s: float = row["step_s"]
    low, high = about.interval.residuals
    return sized_training(
        one,
        job,
        (step_s, step_s * low, step_s * high),
        tokens=asked.tokens,
        price=asked.price,
        gpu_mtbf_s=asked.gpu_mtbf_s,
        power_w=asked.power_w.get(about.accelerator),
    )
