"""The best layouts of a job: all are tried, and layouts that fit are ranked and explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp
from statistics import NormalDist

import numpy as np

from figgen.errors import InputError
from figgen.models.memory.fit_probability import SAFE, fit_probability
from figgen.models.planner.plan import (
    REASONS,
    SIZES,
    Pipeline,
    PlannedJob,
    held_bytes,
    pipelines_of,
    timed,
)
from figgen.scenarios.planning.plan_question import PlanQuestion

AT_ONCE = 256
"""Meshes that are asked at once whether they fit, where only the fastest layout is wanted."""
AXES = ("tp", "cp", "pp", "ep", "etp")
"""Sizes that make a mesh: what is left of the GPUs is data parallel."""


@dataclass(frozen=True, slots=True)
class PlannedLayouts:
    """Layouts that fit, fastest first: an entry of every array each.

    `columns` hold the whole numbers of `figgen.models.planner.plan.SIZES` and "zero_stage"; the
    schedule and the recomputation by their place among those of the job.
    """

    columns: Mapping[str, np.ndarray]
    step_s: np.ndarray
    memory_bytes: np.ndarray

    def __len__(self) -> int:
        return len(self.step_s)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The result of a search: how many layouts there are, why some do not fit, and the others.

    `refused` counts by `figgen.models.planner.plan.REASONS`; `least_bytes` is what the smallest one
    needs.
    """

    question: PlanQuestion
    layouts: int
    refused: Mapping[str, int]
    least_bytes: float
    found: PlannedLayouts

    @property
    def fitting(self) -> int:
        """How many layouts fit."""
        return len(self.found)

    @cached_property
    def apart(self) -> np.ndarray:
        """Whether the model's error tells a layout from the best: their intervals lie apart."""
        known, times = self.question.residuals, self.found.step_s
        return np.asarray(times * known.low > times[0] * known.high)

    def chance(self, place: int) -> float:
        """How likely the layout at a place fits, by how far the framework's peaks are off."""
        job, needed = self.question.job, float(self.found.memory_bytes[place])
        return fit_probability(needed, job.capacity_bytes, job.setup.framework_memory.peak_spread)

    @property
    def safest(self) -> int | None:
        """The place of the fastest layout that fits with a chance of `SAFE`; None without one."""
        job = self.question.job
        spread = job.setup.framework_memory.peak_spread
        most = job.capacity_bytes * exp(-spread * NormalDist().inv_cdf(SAFE))
        places = np.flatnonzero(self.found.memory_bytes <= most)
        return int(places[0]) if len(places) else None

    @cached_property
    def meshes(self) -> Mapping[int, int]:
        """Places of the fastest layout of every mesh, in order, with how many of that one fit."""
        axes = np.stack([self.found.columns[name] for name in AXES])
        _, places, counts = np.unique(axes, axis=1, return_index=True, return_counts=True)
        return dict(sorted(zip(places.tolist(), counts.tolist(), strict=True)))

    @cached_property
    def front(self) -> np.ndarray:
        """Places of layouts that no other beats in both time and memory, fastest first."""
        order = np.lexsort((self.found.memory_bytes, self.found.step_s))
        held = self.found.memory_bytes[order]
        before = np.concatenate([[np.inf], np.minimum.accumulate(held)[:-1]])
        return order[held < before]


def plan(question: PlanQuestion) -> Plan:
    """Search all layouts. Raises InputError where there is none, with what stands in the way."""
    job, blocks, refused, layouts = question.job, [], dict.fromkeys(REASONS, 0), 0
    least = np.inf
    for found in pipelines_of(job):
        held = held_bytes(found)
        layouts += found.count
        for at, name in enumerate(REASONS):
            refused[name] += int((held.reason == at).sum())
        least = min(least, float(held.total.min()))
        fits = held.reason == len(REASONS)
        entries = np.flatnonzero(fits.any(axis=(1, 2)))
        if len(entries):
            blocks.append(_block(found.some(entries), fits[entries], held.total[entries]))
    if not layouts:
        raise _no_layout(job)
    return Plan(
        question=question,
        layouts=layouts,
        refused=refused,
        least_bytes=least,
        found=_ranked(blocks),
    )


def fastest(question: PlanQuestion) -> Plan:
    """The plan whose first layout is that of `plan`, with no other that is slower.

    Only what is faster than the best so far is asked whether it fits, so that what does not fit is
    not counted. Raises InputError as `plan` does.
    """
    job, layouts, best_s = question.job, 0, np.inf
    blocks: list[dict[str, np.ndarray]] = []
    for found in pipelines_of(job):
        layouts += found.count
        shape = (len(found.meshes), len(found.zero), len(job.recompute))
        seconds = np.broadcast_to(timed(found).total_s, shape)
        least = seconds.min(axis=(1, 2))
        order = np.argsort(least, kind="stable")
        for at in range(0, len(order), AT_ONCE):
            entries = order[at : at + AT_ONCE]
            entries = entries[least[entries] <= best_s]
            if not len(entries):
                break
            some = found.some(entries)
            held = held_bytes(some)
            fits = (held.reason == len(REASONS)) & (seconds[entries] <= best_s)
            if fits.any():
                least_s = float(seconds[entries][fits].min())
                blocks = blocks if least_s == best_s else []
                best_s = least_s
                blocks.append(_block(some, fits & (seconds[entries] == best_s), held.total))
    if not layouts:
        raise _no_layout(job)
    return Plan(
        question=question, layouts=layouts, refused={}, least_bytes=np.inf, found=_ranked(blocks)
    )


def _no_layout(job: PlannedJob) -> InputError:
    """Which of the sizes that were said leaves no layout, or that the cluster itself does."""
    said = {name: value for name, value in job.fixed.items() if value is not None}
    blamed = [
        name
        for name in said
        if next(pipelines_of(replace(job, fixed={**job.fixed, name: None})), None) is not None
    ]
    if blamed:
        name = blamed[0]
        expected = f"another size: no layout of {job.world_size:,} GPUs has this one"
        return InputError(name, expected=expected, got=said[name])
    expected = (
        "a batch that data parallelism divides, and sizes that divide model and cluster; "
        + ", ".join(f"{name}={value}" for name, value in said.items())
    ).removesuffix("; ")
    return InputError(
        f"layouts of {job.world_size:,} GPUs with {job.global_batch:,} sequences",
        expected=expected,
        got="none",
    )


def _block(found: Pipeline, fits: np.ndarray, held: np.ndarray) -> dict[str, np.ndarray]:
    """The layouts of a pipeline that fit, as columns."""
    seconds = np.broadcast_to(timed(found).total_s, fits.shape)
    entry, zero, mode = np.nonzero(fits)
    mesh, job = found.meshes, found.job
    ones = np.ones(len(entry), dtype=np.int32)
    return {
        "step_s": seconds[fits],
        "memory_bytes": held[fits],
        "pp": ones * found.pp,
        "chunks": ones * found.chunks,
        "schedule": ones * _schedule_place(job, found.schedule),
        **{n: getattr(mesh, n)[entry].astype(np.int32) for n in ("tp", "cp", "ep", "etp", "dp")},
        "microbatch_size": found.microbatch_size[entry].astype(np.int32),
        "microbatches": found.microbatches[entry].astype(np.int32),
        "zero_stage": np.array(found.zero, dtype=np.int32)[zero],
        "recompute": mode.astype(np.int32),
    }


def _schedule_place(job: PlannedJob, schedule: str) -> int:
    """The place of a schedule among all that are tried; without a pipeline there is none."""
    return job.schedules.index(schedule) if schedule in job.schedules else -1


KEYS = (*SIZES, "zero_stage", "schedule", "recompute")


def _ranked(blocks: list[dict[str, np.ndarray]]) -> PlannedLayouts:
    """All blocks as one, fastest first; of equals the one with less repeated and divided."""
    if not blocks:
        nothing = np.zeros(0)
        return PlannedLayouts({key: nothing.astype(int) for key in KEYS}, nothing, nothing)
    columns = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
    order = np.lexsort(
        (
            columns["chunks"],
            columns["cp"],
            columns["tp"],
            columns["zero_stage"],
            columns["recompute"],
            columns["step_s"],
        )
    )
    columns = {key: values[order] for key, values in columns.items()}
    step_s, memory_bytes = columns.pop("step_s"), columns.pop("memory_bytes")
    return PlannedLayouts(columns, step_s, memory_bytes)
