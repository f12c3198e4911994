"""Every layout of a job at once: time and memory in closed form, over arrays.

The model of time is `figgen.models.step.timed_step` itself, the model of memory
`figgen.models.memory.rank_bytes`. Both take arrays: one axis for meshes with their microbatches,
one for stages of ZeRO, one for what is recomputed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from figgen.errors import InputError
from figgen.models.memory.held_sizes import LayerSizes, job_sizes
from figgen.models.memory.rank_bytes import HeldSizes, RankBytes, rank_bytes
from figgen.models.memory.rank_load import RankLoad
from figgen.models.pipeline.filling import filling
from figgen.models.pipeline.schedules import MOST_VISITS
from figgen.models.planner.plan_loads import LOADED, alike, rank_loads
from figgen.models.planner.plan_sizes import StageNumbers, layer_sizes, stage_numbers
from figgen.models.planner.plan_space import Meshes, batches, meshes, pipelines, schedules, sharding
from figgen.models.setup.training_setup import TrainingSetup, sharding_of
from figgen.models.shape.recomputation import recomputation
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job, setup_numbers
from figgen.models.step.stage_work import repeated
from figgen.models.step.timed_step import StepSeconds, timed_step

REASONS = ("state", "activations", "buffers", "allocator")
"""What is first too much, in this order: weights, gradients, optimizer state and contexts; with
activations; with what works and communicates; with what the allocator holds beyond."""

SIZES = ("tp", "cp", "pp", "ep", "etp", "dp", "chunks", "microbatch_size", "microbatches")
"""Whole numbers of a layout; the names of its schedule, ZeRO and recomputation are the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """What all layouts of a search have in common.

    `setup` is any layout of the job: its shape, sequence, recipe, formats and framework count.
    `fixed` are sizes of axes, chunks, microbatch or ZeRO that were said, None or absent if not.
    """

    setup: TrainingSetup
    attained: Attained
    global_batch: int
    capacity_bytes: float
    reserve_bytes: float
    schedules: tuple[str, ...]
    recompute: tuple[str, ...]
    fixed: Mapping[str, int | None]
    quantized: float
    per_tensor: float

    @property
    def world_size(self) -> int:
        return self.setup.parallel.world_size

    def sharded(
        self, zero: Sequence[int] | np.ndarray, pp: np.ndarray | int
    ) -> dict[str, np.ndarray]:
        """What of a `Job` says how stages of ZeRO send, in pipelines of `pp` stages."""
        rows = [sharding_of(self.setup, stage, p) for stage, p in np.broadcast(zero, pp)]
        names = ("gathers", "scatters", "overlapped")
        return dict(zip(names, np.array(rows, dtype=float).reshape(-1, 3).T, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Layouts of one schedule: meshes with their microbatches, one entry each.

    Stages of ZeRO and `recompute` are the other two axes.
    """

    job: PlannedJob
    pp: int
    schedule: str
    chunks: int
    meshes: Meshes
    microbatch_size: np.ndarray
    microbatches: np.ndarray
    zero: tuple[int, ...]
    stages: StageNumbers

    @property
    def count(self) -> int:
        """Number of layouts."""
        return len(self.meshes) * len(self.zero) * len(self.job.recompute)

    def some(self, chosen: np.ndarray) -> Pipeline:
        """The same with these entries only."""
        return replace(
            self,
            meshes=self.meshes.some(chosen),
            microbatch_size=self.microbatch_size[chosen],
            microbatches=self.microbatches[chosen],
        )


def pipelines_of(job: PlannedJob) -> Iterator[Pipeline]:
    """All layouts of a job, one schedule and number of stages after the other."""
    setup, fixed = job.setup, job.fixed
    shape, parallel = setup.shape, setup.parallel
    for pp in pipelines(job.world_size, fixed):
        if not (zero := sharding(setup.framework, pp, fixed.get("zero_stage"))):
            continue
        found = meshes(
            shape, parallel.convention, pp, world=job.world_size,
            gpus_per_node=parallel.gpus_per_node, sequence=setup.sequence,
            sequence_parallel=setup.sequence_parallel, trades_heads=setup.trades_heads,
            wanted=fixed,
        )  # fmt: skip
        index, size, number = batches(found.dp, job.global_batch, fixed.get("microbatch_size"))
        for schedule, chunks in schedules(shape.layers, pp, job.schedules, fixed.get("chunks")):
            every = Pipeline(
                job=job,
                pp=pp,
                schedule=schedule,
                chunks=chunks,
                meshes=found.some(index),
                microbatch_size=size,
                microbatches=number,
                zero=zero,
                stages=stage_numbers(setup, pp, chunks, 2 if schedule == "dualpipe" else 1),
            )
            kept = _runnable(every)
            if kept.any():
                yield every.some(kept)


def _runnable(found: Pipeline) -> np.ndarray:
    """Which entries have numbers of microbatches that the schedule can have."""
    within = found.microbatches * found.pp * found.chunks <= MOST_VISITS
    numbers = _alike(found)
    for number in np.unique(numbers[within]):
        try:
            _loads(found, int(number), found.job.recompute[0])
        except InputError:
            within &= numbers != number
    return within


def _loads(found: Pipeline, microbatches: int, recompute: str) -> np.ndarray:
    # Modules drop parts of every layer and leave its count alone: one set of loads for all.
    again = replace(recomputation(recompute), modules=frozenset())
    return rank_loads(
        found.schedule, found.pp, microbatches, found.chunks, found.stages.shares,
        found.job.setup.shape, again,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class HeldBytes:
    """Bytes of the fullest rank, and which of `REASONS` is first too much (len(REASONS): none)."""

    total: np.ndarray
    reason: np.ndarray


def held_bytes(found: Pipeline) -> HeldBytes:
    """Memory of all layouts of a pipeline: entries × stages of ZeRO × recomputations."""
    job = found.job
    shape = (len(found.meshes), len(found.zero), len(job.recompute))
    total, reason = np.zeros(shape), np.zeros(shape, dtype=np.int8)
    by_method: dict[str, list[int]] = {}
    for at, text in enumerate(job.recompute):
        by_method.setdefault(recomputation(text).method, []).append(at)
    for modes in by_method.values():
        texts = tuple(job.recompute[at] for at in modes)
        total[:, :, modes], reason[:, :, modes] = _fullest(found, texts)
    return HeldBytes(total, reason)


def _alike(found: Pipeline) -> np.ndarray:
    return alike(found.schedule, found.pp, found.microbatches, found.chunks)


def _fullest(found: Pipeline, recompute: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Most bytes of any rank and moment, and what is first too much."""
    held, capacity = sizes_of(found, recompute), found.job.capacity_bytes
    numbers, row = np.unique(_alike(found), return_inverse=True)
    tables = [_loads(found, int(number), recompute[0]) for number in numbers]
    shape = (len(found.meshes), len(found.zero), len(recompute))
    most = [np.zeros(shape) for _ in REASONS]
    for at in range(max(map(len, tables))):
        # A pipeline with fewer loads has its last one again.
        each = np.array([table[min(at, len(table) - 1)] for table in tables])[row]
        load = RankLoad(**{name: each[:, i, None, None] for i, name in enumerate(LOADED)})
        for most_yet, size in zip(most, _sums(rank_bytes(load, held)), strict=True):
            np.maximum(most_yet, size, out=most_yet)
    first = np.full(shape, len(REASONS), dtype=np.int8)
    for at in reversed(range(len(REASONS))):
        first[most[at] > capacity] = at
    return most[-1], first


def _sums(parts: RankBytes) -> Iterator[np.ndarray]:
    state, contexts = parts.state, parts.contexts
    active = state + parts.activations
    allocated = active + parts.working
    yield state + contexts
    yield active + contexts
    yield allocated + contexts
    yield allocated + parts.allocator + contexts


def sizes_of(found: Pipeline, recompute: tuple[str, ...]) -> HeldSizes:
    """What things take in every layout of a pipeline."""
    job, mesh = found.job, found.meshes
    setup = job.setup
    pairs, row = np.unique(np.stack([mesh.tp, mesh.etp]), axis=1, return_inverse=True)
    tables = [
        [layer_sizes(setup, int(tp), int(etp), text) for text in recompute] for tp, etp in pairs.T
    ]
    by_layer = {
        field.name: np.array(
            [[getattr(one, field.name) for one in line] for line in tables], dtype=float
        )[row][:, None]
        for field in fields(LayerSizes)
    }
    tokens = _column(found.microbatch_size * setup.sequence / mesh.cp)
    experts = setup.shape.experts is not None
    return HeldSizes(
        layer=LayerSizes(**by_layer),
        job=job_sizes(setup, setup.framework_memory.allocator_share, job.reserve_bytes),
        tokens=tokens,
        split_tokens=tokens / _column(mesh.tp) if setup.sequence_parallel else tokens,
        tp=_column(mesh.tp), cp=_column(mesh.cp), pp=found.pp, ep=_column(mesh.ep),
        expert_ways=_column(mesh.ep * mesh.etp) if experts else 1,
        shards=_column(mesh.dp * mesh.cp),
        expert_shards=_column(job.world_size // (mesh.etp * mesh.ep * found.pp)),
        zero_stage=np.array(found.zero)[None, :, None],
        microbatches=_column(found.microbatches),
    )  # fmt: skip


def _column(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=float)[:, None, None]


def timed(found: Pipeline) -> StepSeconds:
    """Time of all layouts of a pipeline: entries × stages of ZeRO × recomputations."""
    job, mesh, stages = found.job, found.meshes, found.stages
    setup = job.setup
    zero = np.array(found.zero)[None, :, None]
    sharded = job.sharded(found.zero, found.pp)
    ranks, row = np.unique(mesh.cp, return_inverse=True)
    again = np.array([
        [repeated(setup, stages.shares, text, int(cp)) for text in job.recompute] for cp in ranks
    ])[row]  # fmt: skip
    return timed_step(
        Job(
            **setup_numbers(setup),
            tp=_column(mesh.tp), cp=_column(mesh.cp), pp=found.pp, ep=_column(mesh.ep),
            etp=_column(mesh.etp), gpus=job.world_size,
            gpus_per_node=setup.parallel.gpus_per_node, chunks=found.chunks,
            filling=_filling(found), fullest_layers=stages.fullest_layers,
            head_layers=stages.head_layers, microbatch=_column(found.microbatch_size),
            microbatches=_column(found.microbatches), zero_stage=zero,
            repeats_layer=again[:, None, :, 0], repeats_core=again[:, None, :, 1],
            quantized=job.quantized,
            **{name: values[None, :, None] for name, values in sharded.items()},
            per_tensor=job.per_tensor,
        ),
        job.attained,
    )  # fmt: skip


def _filling(found: Pipeline) -> np.ndarray:
    known, row = np.unique(_alike(found), return_inverse=True)
    each = [filling(found.schedule, found.pp, int(m), found.chunks) for m in known]
    return np.array(each)[row][:, None, None]
