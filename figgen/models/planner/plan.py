"""Every layout of a job, with its memory and time in closed form.

A layout is an entry (a mesh with its microbatches), a ZeRO stage and a way to recompute, in one
schedule with a given number of stages. The models of time (`figgen.models.step.timed_step`) and of
memory (`figgen.models.memory.rank_bytes`) take a single layout, or all layouts of a pipeline at
once (`figgen.equations.columns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from figgen.equations.columns import at, crossed, listed
from figgen.equations.ops import Number, maximum, where
from figgen.errors import InputError
from figgen.models.memory.fit_probability import deviations_below, most_bytes
from figgen.models.memory.held_sizes import JobSizes, LayerSizes, job_sizes
from figgen.models.memory.rank_bytes import HeldSizes, gathered_inputs, rank_bytes
from figgen.models.memory.rank_load import RankLoad
from figgen.models.pipeline.filling import PipelineIdle, alike, idle_for, pipeline_idle
from figgen.models.pipeline.pass_lines import Lines
from figgen.models.pipeline.schedules import MOST_VISITS
from figgen.models.planner.plan_loads import rank_loads
from figgen.models.planner.plan_sizes import StageNumbers, layer_sizes, stage_numbers
from figgen.models.planner.plan_space import batches, meshes, pipelines, schedules, sharding
from figgen.models.setup.training_setup import TrainingSetup, sharding_of
from figgen.models.shape.recomputation import Recomputation, recomputation
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job, setup_numbers
from figgen.models.step.stage_work import repeated
from figgen.models.step.timed_step import timed_step

REASONS = ("state", "activations", "buffers", "allocator")
"""The part with which the memory first overflows, added in this order: state (weights, gradients,
optimizer state and contexts); activations; working memory and communication buffers; what the
allocator holds beyond its tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """What all layouts of a search have in common.

    `setup` is any layout of the job: its shape, sequence, recipe, formats and framework count.
    `fixed` holds the given sizes of axes, chunks, microbatch and ZeRO stage; the others are None or
    absent. A layout counts as fitting if its chance to fit is at least `fit_chance`, above 0 and
    below 1.
    """

    setup: TrainingSetup
    attained: Attained
    global_batch: int
    capacity_bytes: float
    fit_chance: float
    reserve_bytes: float
    schedules: tuple[str, ...]
    recompute: tuple[str, ...]
    fixed: Mapping[str, int | None]
    quantized: float
    per_tensor: float

    @property
    def world_size(self) -> int:
        return self.setup.parallel.world_size

    @property
    def most_bytes(self) -> float:
        """Most bytes that a layout may be predicted to need to fit with the chance `fit_chance`.

        Where tensors wait for collectives, fewer do.
        """
        spread = self.setup.framework_memory.peak_spread
        found: float = most_bytes(self.capacity_bytes, spread, deviations_below(self.fit_chance))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A way to recompute: its index among those of the job, and the index of its loads."""

    place: Number
    loads: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """The shares of a layer's forward and of its attention core that a mode repeats."""

    layer: Number
    core: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Zero:
    """A ZeRO stage and how it communicates, as returned by `sharding_of`."""

    stage: Number
    gathers: Number
    scatters: Number
    overlapped: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshEntry:
    """A mesh with its microbatches.

    `mesh` is the index of the mesh among all with the same number of stages. `widths`, `contexts`
    and `number` are the indices of its TP, ETP and EP, of its CP, and of its number of
    microbatches.
    """

    tp: Number
    cp: Number
    ep: Number
    etp: Number
    dp: Number
    microbatch_size: Number
    microbatches: Number
    mesh: Number
    widths: Number
    contexts: Number
    number: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All entries with the same number of stages, and the tables that their indices point into."""

    entries: tuple[MeshEntry, ...]
    meshes: int
    widths: tuple[tuple[int, int, int], ...]
    contexts: tuple[int, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Layouts of one schedule: every mode with every stage of ZeRO and every entry, in this order.

    `job_time` and `job_memory` are the job's inputs to the models of time and of memory. `sizes`
    and `repeats` have a row for each mode: the sizes of layers by the entries' `widths`, and the
    repeated shares by their `contexts`. `loads` has a row for each way to recompute whole layers,
    with the loads for each of the `numbers` of microbatches. `filling`, `stalling` and `held` are
    the fields of `PipelineIdle` for each of these numbers, the first two in a single row. Meshes
    are numbered from `first_mesh` on. `most_bytes` is the job's and `deviations` belongs to its
    chance to fit; both are computed once for all layouts.
    `left_out` counts, by `REASONS`, layouts that are known to overflow and are not listed.
    """

    job: PlannedJob
    most_bytes: float
    deviations: float
    pp: int
    schedule: str
    chunks: int
    first_mesh: int
    modes: tuple[Mode, ...]
    zeros: tuple[Zero, ...]
    entries: tuple[MeshEntry, ...]
    sizes: tuple[tuple[LayerSizes, ...], ...]
    repeats: tuple[tuple[Repeats, ...], ...]
    loads: tuple[tuple[tuple[RankLoad, ...], ...], ...]
    filling: tuple[tuple[Lines, ...]]
    stalling: tuple[tuple[Lines, ...]]
    held: tuple[Number, ...]
    stages: StageNumbers
    job_time: Job
    job_memory: JobSizes
    left_out: tuple[int, ...] = (0, 0, 0, 0)

    @property
    def count(self) -> int:
        """Number of layouts, with those left out."""
        return sum(self.left_out) + len(self.modes) * len(self.zeros) * len(self.entries)


def pipelines_of(job: PlannedJob) -> Iterator[Pipeline]:
    """Yield all layouts of a job, one pipeline for each schedule and number of stages."""
    first_mesh = 0
    for pp in pipelines(job.world_size, job.fixed):
        stages = sharding(job.setup.framework, pp, job.fixed.get("zero_stage"))
        if not stages:
            continue
        found = _entries(job, pp)
        zeros = tuple(_zero(job.setup, stage, pp) for stage in stages)
        chosen = schedules(job.setup.shape.layers, pp, job.schedules, job.fixed.get("chunks"))
        for schedule, chunks in chosen:
            one = _pipeline(job, pp, schedule, chunks, found, first_mesh, zeros)
            if one.entries:
                yield one
        first_mesh += found.meshes


def pipelines_tried(job: PlannedJob) -> int:
    """Return the number of pipelines that a search tries, including those without layouts."""
    layers, chunks = job.setup.shape.layers, job.fixed.get("chunks")
    sizes = pipelines(job.world_size, job.fixed)
    return sum(len(tuple(schedules(layers, pp, job.schedules, chunks))) for pp in sizes)


def _entries(job: PlannedJob, pp: int) -> Entries:
    """Return every mesh with every microbatch size that divides its batch."""
    entries: list[MeshEntry] = []
    widths: dict[tuple[int, int, int], int] = {}
    contexts: dict[int, int] = {}
    numbers: dict[int, int] = {}
    # Otherwise EP only divides experts, and no size per token depends on it.
    uneven = job.setup.expert_skew > 1 or job.setup.sends_once
    found = meshes(job.setup, pp, job.fixed)
    for place, mesh in enumerate(found):
        width = (mesh.tp, mesh.etp, mesh.ep if uneven else 1)
        if width not in widths:
            widths[width] = len(widths)
        if mesh.cp not in contexts:
            contexts[mesh.cp] = len(contexts)
        for size, number in batches(mesh.dp, job.global_batch, job.fixed.get("microbatch_size")):
            if number not in numbers:
                numbers[number] = len(numbers)
            entries.append(
                MeshEntry(
                    tp=mesh.tp,
                    cp=mesh.cp,
                    ep=mesh.ep,
                    etp=mesh.etp,
                    dp=mesh.dp,
                    microbatch_size=size,
                    microbatches=number,
                    mesh=place,
                    widths=widths[width],
                    contexts=contexts[mesh.cp],
                    number=numbers[number],
                )
            )
    return Entries(
        entries=tuple(entries),
        meshes=len(found),
        widths=tuple(widths),
        contexts=tuple(contexts),
        numbers=tuple(numbers),
    )


def _zero(setup: TrainingSetup, stage: int, pp: int) -> Zero:
    gathers, scatters, overlapped = sharding_of(setup, stage, pp)
    return Zero(stage=stage, gathers=gathers, scatters=scatters, overlapped=int(overlapped))


def _pipeline(
    job: PlannedJob,
    pp: int,
    schedule: str,
    chunks: int,
    found: Entries,
    first_mesh: int,
    zeros: tuple[Zero, ...],
) -> Pipeline:
    """Return the layouts of a schedule, except for numbers of microbatches that it cannot run."""
    setup = job.setup
    stages = stage_numbers(setup, pp, chunks, 2 if schedule == "dualpipe" else 1)
    ways = _ways(job.recompute)
    loads = [
        _loads(job, stages, schedule, pp, number, chunks, tuple(ways)) for number in found.numbers
    ]
    possible = [number if each else 0 for number, each in zip(found.numbers, loads, strict=True)]
    idle = [
        pipeline_idle(schedule, pp, number, chunks) if number else idle_for(0.0)
        for number in possible
    ]
    return Pipeline(
        job=job,
        most_bytes=job.most_bytes,
        deviations=deviations_below(job.fit_chance),
        pp=pp,
        schedule=schedule,
        chunks=chunks,
        first_mesh=first_mesh,
        modes=tuple(
            Mode(place=place, loads=ways[_whole_layers(text)])
            for place, text in enumerate(job.recompute)
        ),
        zeros=zeros,
        entries=tuple(one for one in found.entries if possible[int(one.number)]),
        sizes=tuple(
            tuple(layer_sizes(setup, tp, etp, ep, text) for tp, etp, ep in found.widths)
            for text in job.recompute
        ),
        repeats=tuple(
            tuple(_repeats(setup, stages, text, cp) for cp in found.contexts)
            for text in job.recompute
        ),
        loads=tuple(tuple(each[way] if each else () for each in loads) for way in range(len(ways))),
        filling=(tuple(one.filling for one in idle),),
        stalling=(tuple(one.stalling for one in idle),),
        held=tuple(one.held for one in idle),
        stages=stages,
        job_time=_job_time(job, pp, chunks, stages),
        job_memory=job_sizes(setup, setup.framework_memory.allocator_share, job.reserve_bytes),
    )


def _ways(recompute: tuple[str, ...]) -> dict[Recomputation, int]:
    """Number the ways in which whole layers are recomputed, in the order of their first use."""
    ways: dict[Recomputation, int] = {}
    for text in recompute:
        if _whole_layers(text) not in ways:
            ways[_whole_layers(text)] = len(ways)
    return ways


def _repeats(setup: TrainingSetup, stages: StageNumbers, recompute: str, cp: int) -> Repeats:
    layer, core = repeated(setup, stages.shares, recompute, cp)
    return Repeats(layer=layer, core=core)


def _whole_layers(recompute: str) -> Recomputation:
    """Return which layers are recomputed whole.

    Recomputed modules change the bytes of a layer, not the number of layers, so that all choices of
    modules share one set of loads.
    """
    return replace(recomputation(recompute), modules=frozenset())


def _loads(
    job: PlannedJob,
    stages: StageNumbers,
    schedule: str,
    pp: int,
    microbatches: int,
    chunks: int,
    ways: tuple[Recomputation, ...],
) -> tuple[tuple[RankLoad, ...], ...]:
    """Return the loads of each way to recompute; none where the schedule lacks these sizes."""
    if microbatches * pp * chunks > MOST_VISITS:
        return ()
    shape, like = job.setup.shape, alike(schedule, pp, microbatches, chunks)
    try:
        return tuple(
            rank_loads(schedule, pp, like, chunks, stages.shares, shape, again) for again in ways
        )
    except InputError:
        return ()


def _job_time(job: PlannedJob, pp: int, chunks: int, stages: StageNumbers) -> Job:
    """Return the inputs to the model of time, with placeholders for the rest of a layout."""
    return Job(
        **setup_numbers(job.setup),
        tp=1,
        cp=1,
        pp=pp,
        ep=1,
        etp=1,
        gpus=job.world_size,
        gpus_per_node=job.setup.parallel.gpus_per_node,
        chunks=chunks,
        idle=idle_for(0.0),
        fullest_layers=stages.fullest_layers,
        head_layers=stages.head_layers,
        microbatch=1,
        microbatches=1,
        zero_stage=0,
        repeats_layer=0.0,
        repeats_core=0.0,
        quantized=job.quantized,
        gathers=0,
        scatters=0,
        overlapped=0,
        per_tensor=job.per_tensor,
    )


def held_sizes(found: Pipeline, mode: Mode, zero: Zero, entry: MeshEntry) -> HeldSizes:
    """Return the sizes of everything that a GPU holds in a layout."""
    setup = found.job.setup
    tokens = entry.microbatch_size * setup.sequence / entry.cp
    return HeldSizes(
        layer=crossed(found.sizes, mode.place, entry.widths),
        job=found.job_memory,
        tokens=tokens,
        split_tokens=tokens / entry.tp if setup.sequence_parallel else tokens,
        tp=entry.tp,
        cp=entry.cp,
        pp=found.pp,
        ep=entry.ep,
        expert_ways=entry.ep * entry.etp if setup.shape.experts else 1,
        shards=entry.dp * entry.cp,
        expert_shards=found.job.world_size // (entry.etp * entry.ep * found.pp),
        zero_stage=zero.stage,
        microbatches=entry.microbatches,
    )


def held_bytes(found: Pipeline, mode: Mode, zero: Zero, entry: MeshEntry) -> tuple[Number, Number]:
    """Return the bytes of the fullest rank, and the index of the first of `REASONS` that overflows.

    The index is len(REASONS) where the layout fits.
    """
    held = held_sizes(found, mode, zero, entry)
    most = layout_most_bytes(found, held)
    state, active, moving, total = 0.0, 0.0, 0.0, 0.0
    for load in listed(found.loads, mode.loads, entry.number):
        parts = rank_bytes(load, held)
        lasting, contexts, working = parts.state, parts.contexts, parts.working
        kept = lasting + parts.activations
        state, active = maximum(state, lasting + contexts), maximum(active, kept + contexts)
        moving = maximum(moving, kept + working + contexts)
        total = maximum(total, kept + working + parts.allocator + contexts)
    late = where(moving > most, 2, where(total > most, 3, len(REASONS)))
    return total, where(state > most, 0, where(active > most, 1, late))


def waiting_bytes(found: Pipeline, held: HeldSizes) -> Number:
    """Return the standard deviation of the bytes that wait for collectives in a layout."""
    return found.job.setup.framework_memory.waiting_pairs * gathered_inputs(held)


def layout_most_bytes(found: Pipeline, held: HeldSizes) -> Number:
    """Return the most bytes that a layout may be predicted to need to fit."""
    framework, capacity = found.job.setup.framework_memory, found.job.capacity_bytes
    if framework.waiting_pairs == 0:
        return found.most_bytes
    waiting = waiting_bytes(found, held)
    return most_bytes(capacity, framework.peak_spread, found.deviations, waiting)


def job_of(found: Pipeline, mode: Mode, zero: Zero, entry: MeshEntry) -> Job:
    """Return the numbers that the time of a layout depends on."""
    repeats = crossed(found.repeats, mode.place, entry.contexts)
    held = crossed(found.sizes, mode.place, entry.widths)
    tuned = found.job_time.frozen
    return replace(
        found.job_time,
        tp=entry.tp,
        cp=entry.cp,
        ep=entry.ep,
        etp=entry.etp,
        idle=PipelineIdle(
            filling=listed(found.filling, 0, entry.number),
            stalling=listed(found.stalling, 0, entry.number),
            held=at(found.held, entry.number),
        ),
        microbatch=entry.microbatch_size,
        microbatches=entry.microbatches,
        zero_stage=zero.stage,
        repeats_layer=repeats.layer,
        repeats_core=repeats.core,
        gathers=zero.gathers,
        scatters=zero.scatters,
        overlapped=zero.overlapped,
        tuned_dense=tuned * held.dense_layer,
        tuned_experts=tuned * held.expert_layer,
        tuned_routed=tuned * held.routed_layer,
        away_dense=held.away_dense,
        away_experts=held.away_experts,
    )


def step_s(found: Pipeline, mode: Mode, zero: Zero, entry: MeshEntry) -> Number:
    """Return the seconds of a step."""
    return timed_step(job_of(found, mode, zero, entry), found.job.attained).total_s


def cost(found: Pipeline, mode: Mode, zero: Zero, entry: MeshEntry) -> tuple[Number, ...]:
    """Return what a layout costs, as columns of numbers.

    The columns are the bytes and the reason of `held_bytes`, the seconds of a step (inf where the
    layout does not fit), a number that orders layouts of equal time (less recomputed and less
    divided first), and the mesh.
    """
    held, reason = held_bytes(found, mode, zero, entry)
    seconds = where(reason == len(REASONS), step_s(found, mode, zero, entry), inf)
    ties = ((mode.place * 4 + zero.stage) * _MOST + entry.tp) * _MOST + entry.cp
    return held, reason, seconds, ties + found.chunks / 32, found.first_mesh + entry.mesh


_MOST = 2**17
"""A number above the size of any axis."""
