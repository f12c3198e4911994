"""The layouts of a job that fit, fastest first, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt

from figgen.equations.columns import (
    Column,
    chosen,
    equal_to,
    filled,
    firsts,
    joined,
    least,
    order_of,
    over,
)
from figgen.equations.ops import Number
from figgen.errors import InputError
from figgen.models.memory.fit_probability import fit_probability
from figgen.models.planner.plan import (
    REASONS,
    MeshEntry,
    Mode,
    Pipeline,
    PlannedJob,
    Zero,
    cost,
    held_sizes,
    job_of,
    pipelines_of,
    waiting_bytes,
)
from figgen.models.planner.plan_terms import named_terms
from figgen.models.step.timed_step import timed_step

TIED = 1e-3
"""Share of the fastest step within which layouts are ordered by memory: the error of the model is
far larger, and a layout that needs less memory is more certain to fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedPipeline:
    """The layouts of a pipeline that fit, as columns, and counts of the others.

    `places` are the indices of these layouts in the pipeline; `refused` counts the others by
    `REASONS`.
    """

    pipeline: Pipeline
    refused: tuple[int, ...]
    least_bytes: float
    places: Column
    step_s: Column
    memory_bytes: Column
    ties: Column
    meshes: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The layouts that fit, fastest first, as columns, and the number of all layouts.

    Layouts within `TIED` of the fastest come first, ordered by memory.

    A layout is an index (`places`) into one of the `pipelines`, which is itself given by its index
    (`which`). `refused` counts layouts by `REASONS`, and `least_bytes` is what the smallest layout
    needs. `meshes` has one entry for each mesh, in order: the place of its fastest layout in the
    ranking, and the number of its layouts that fit.
    """

    pipelines: tuple[Pipeline, ...]
    layouts: int
    refused: Mapping[str, int]
    least_bytes: float
    which: Column
    places: Column
    step_s: Column
    memory_bytes: Column
    meshes: Mapping[int, int]

    @property
    def fitting(self) -> int:
        """Number of layouts that fit."""
        return len(self.step_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A layout in full."""

    tp: int
    cp: int
    pp: int
    ep: int
    etp: int
    dp: int
    schedule: str
    chunks: int
    microbatch_size: int
    microbatches: int
    zero_stage: int
    recompute: str


def tried(found: Pipeline) -> TriedPipeline:
    """Compute all layouts of a pipeline, return the ones that fit, and count the rest by reason."""
    held, reason, seconds, ties, meshes = over(
        found.modes,
        found.zeros,
        found.entries,
        lambda mode, zero, entry: cost(found, mode, zero, entry),
    )
    places = equal_to(reason, len(REASONS))
    return TriedPipeline(
        pipeline=found,
        refused=tuple(
            left_out + len(equal_to(reason, at)) for at, left_out in enumerate(found.left_out)
        ),
        least_bytes=least(held),
        places=places,
        step_s=chosen(seconds, places),
        memory_bytes=chosen(held, places),
        ties=chosen(ties, places),
        meshes=chosen(meshes, places),
    )


def ranked(found: Iterable[TriedPipeline]) -> Ranked:
    """Return all layouts ordered by time, and by memory where they tie with the fastest."""
    parts = list(found)
    step_s = joined([one.step_s for one in parts])
    memory_bytes = joined([one.memory_bytes for one in parts])
    order = _order(step_s, memory_bytes, joined([one.ties for one in parts]))
    which = joined([filled(len(one.places), at) for at, one in enumerate(parts)])
    places, counts = firsts(chosen(joined([one.meshes for one in parts]), order))
    return Ranked(
        pipelines=tuple(one.pipeline for one in parts),
        layouts=sum(one.pipeline.count for one in parts),
        refused={name: sum(one.refused[at] for one in parts) for at, name in enumerate(REASONS)},
        least_bytes=min([one.least_bytes for one in parts], default=inf),
        which=chosen(which, order),
        places=chosen(joined([one.places for one in parts]), order),
        step_s=chosen(step_s, order),
        memory_bytes=chosen(memory_bytes, order),
        meshes=dict(zip(places, counts, strict=True)),
    )


def _order(step_s: Column, memory_bytes: Column, ties: Column) -> Column:
    """Return the indices of layouts in the order of the ranking."""
    order = order_of(step_s, ties)
    count = 0
    while count < len(order) and step_s[order[count]] <= step_s[order[0]] * (1 + TIED):
        count += 1
    first = order[:count]
    smallest = order_of(chosen(memory_bytes, first), chosen(ties, first))
    return joined([chosen(first, smallest), order[count:]])


def parts_of(found: Ranked, place: int) -> tuple[Pipeline, Mode, Zero, MeshEntry]:
    """Return the pipeline, mode, ZeRO stage and entry of the layout at a place of the ranking."""
    pipeline = found.pipelines[int(found.which[place])]
    rest, entry = divmod(int(found.places[place]), len(pipeline.entries))
    mode, zero = divmod(rest, len(pipeline.zeros))
    return pipeline, pipeline.modes[mode], pipeline.zeros[zero], pipeline.entries[entry]


def layout_at(found: Ranked, place: int) -> Layout:
    """Return the layout at a place of the ranking."""
    pipeline, mode, zero, entry = parts_of(found, place)
    return Layout(
        tp=entry.tp,
        cp=entry.cp,
        pp=pipeline.pp,
        ep=entry.ep,
        etp=entry.etp,
        dp=entry.dp,
        schedule=pipeline.schedule,
        chunks=pipeline.chunks,
        microbatch_size=entry.microbatch_size,
        microbatches=entry.microbatches,
        zero_stage=zero.stage,
        recompute=pipeline.job.recompute[mode.place],
    )


def terms_at(found: Ranked, place: int) -> dict[str, Number]:
    """Return the seconds of the layout at a place of the ranking, by term."""
    pipeline, mode, zero, entry = parts_of(found, place)
    job = job_of(pipeline, mode, zero, entry)
    return named_terms(job, timed_step(job, pipeline.job.attained))


def chance_at(found: Ranked, place: int) -> float:
    """Return the chance that the layout at a place of the ranking fits."""
    pipeline, mode, zero, entry = parts_of(found, place)
    job = pipeline.job
    return fit_probability(
        float(found.memory_bytes[place]),
        job.capacity_bytes,
        job.setup.framework_memory.peak_spread,
        waiting_bytes(pipeline, held_sizes(pipeline, mode, zero, entry)),
    )


def front(found: Ranked) -> tuple[int, ...]:
    """Return the places of layouts that no other beats in time and memory, fastest first."""
    places: list[int] = []
    held = inf
    for place in range(found.fitting):
        if found.memory_bytes[place] < held:
            held = found.memory_bytes[place]
            if places and found.step_s[places[-1]] == found.step_s[place]:
                places.pop()
            places.append(place)
    return tuple(places)


def same_as_best(found: Ranked, low: float, high: float) -> int:
    """Return how many layouts the model's error cannot distinguish from the fastest.

    Steps take `low` to `high` times as long as predicted.
    """
    count = 0
    while count < found.fitting and found.step_s[count] * low <= found.step_s[0] * high:
        count += 1
    return count


def other_layout_interval(low: float, high: float) -> tuple[float, float]:
    """Return the interval of a layout whose predicted time was scaled to one measured step.

    Both the measured layout and the predicted one take `low` to `high` times as long as predicted.
    Their ratio spreads like two independent errors, which is the widest case.
    """
    spread = sqrt(log(low) ** 2 + log(high) ** 2)
    return exp(-spread), exp(spread)


def no_layout(job: PlannedJob) -> InputError:
    """Return the error for a job that no layout fits, with the given size that rules them out."""
    given = [(name, value) for name, value in job.fixed.items() if value is not None]
    for name, value in given:
        if _any_layout(replace(job, fixed={**job.fixed, name: None})):
            expected = f"another size: no layout of {job.world_size:,} GPUs has this one"
            return InputError(name, expected=expected, got=value)
    sizes = [f"{name}={value}" for name, value in given]
    expected = "a batch that data parallelism divides, and sizes that divide model and cluster"
    return InputError(
        f"layouts of {job.world_size:,} GPUs with {job.global_batch:,} sequences",
        expected="; ".join([expected, ", ".join(sizes)] if sizes else [expected]),
        got="none",
    )


def _any_layout(job: PlannedJob) -> bool:
    for _ in pipelines_of(job):
        return True
    return False
