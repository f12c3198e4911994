"""The planner's space of layouts, compared with trying everything one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from math import fsum
from typing import Any

import numpy as np
import pytest

from figgen import catalog
from figgen.equations import columns
from figgen.equations.columns import over
from figgen.errors import InputError
from figgen.models.machine.layout import layout
from figgen.models.memory.memory import memory
from figgen.models.pipeline.filling import alike, pipeline_idle
from figgen.models.pipeline.schedules import MOST_VISITS, build
from figgen.models.planner.plan import (
    REASONS,
    Pipeline,
    PlannedJob,
    held_bytes,
    pipelines_of,
    step_s,
)
from figgen.models.planner.plan_loads import rank_loads
from figgen.models.planner.plan_space import (
    CHUNKS,
    batches,
    divisors,
    meshes,
    pipelines,
    schedules,
)
from figgen.models.setup.stage_layers import stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ExpertShape, StateSpace
from figgen.models.shape.recipes import RECIPES
from figgen.models.shape.recomputation import recomputation
from figgen.models.step.timed_step import timed_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.runs.step_as_run import described, job_of

SMALL_DENSE = replace(
    catalog.model("gpt-2-xl").shape,
    layers=5,
    hidden=64,
    heads=4,
    kv_heads=4,
    head_dim=16,
    ffn_hidden=256,
    vocab=1001,
    sequence=64,
)
SMALL_EXPERTS = replace(
    catalog.model("deepseek-v3").shape,
    layers=3,
    hidden=64,
    heads=4,
    kv_heads=4,
    ffn_hidden=96,
    sequence=64,
    vocab=1000,
    head_dim=16,
    latent=None,
    experts=ExpertShape(count=4, top_k=2, ffn_hidden=48, shared=1, dense_layers=1),
)
SMALL_HYBRID = replace(
    SMALL_EXPERTS,
    layers=5,
    state_space=StateSpace(
        mixer_heads=8, mixer_head_dim=16, state=8, groups=2, chunk=16, attention_every=3
    ),
)
NARROW_EXPERTS = replace(
    SMALL_EXPERTS, experts=ExpertShape(count=4, top_k=2, ffn_hidden=16, shared=1, dense_layers=1)
)


def small_job(shape: Any, gpus: int, order: str = "megatron", **options: Any) -> PlannedJob:
    """Return a job with a batch of four;

    `schedules`, `recompute` and `fixed` are search options.

    Layouts fit if they are predicted to: one that needs all of the capacity has a chance of a half.
    """
    question = plan_question(scenario(model="gpt-2-xl", nodes=1, gpus_per_node=gpus))
    search = {"schedules": tuple(CHUNKS), "recompute": ("none", "full")}
    search |= {
        name: options.pop(name) for name in ("schedules", "recompute", "fixed") & options.keys()
    }
    parallel = layout(nodes=1, gpus_per_node=gpus, order=order)
    setup = TrainingSetup(shape=shape, parallel=parallel, microbatches=1, sequence=64, **options)
    per_tensor = float(setup.framework == "nanotron")
    return replace(
        question.job,
        setup=setup,
        global_batch=4,
        reserve_bytes=5e4,
        fit_chance=0.5,  # what is needed may be all there is
        per_tensor=per_tensor,
        **search,
    )


Key = tuple[Any, ...]


def by_hand(job: PlannedJob) -> Iterator[tuple[Key, TrainingSetup]]:
    """Return every layout that `TrainingSetup` accepts, one by one."""
    gpus, shape, sizes = job.world_size, job.setup.shape, range(1, job.world_size + 1)
    framework, order = job.setup.framework, job.setup.parallel.order
    for tp, cp, pp, ep, etp in product(sizes, repeat=5):
        if gpus % (tp * cp * pp) or gpus % (ep * etp * pp) or (not shape.experts and etp != tp):
            continue
        dp = gpus // (tp * cp * pp)
        mesh = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "etp": etp, "dp": dp}
        if any(mesh.get(axis, size) != size for axis, size in job.fixed.items() if size):
            continue
        # nanotron has no further stages, DeepSpeed none in pipelines.
        few = framework == "nanotron" or (framework == "megatron-deepspeed" and pp > 1)
        for size in (1, 2, 3, 4):
            if job.global_batch % (dp * size):
                continue
            number = job.global_batch // (dp * size)
            pairs = [(s, v) for s in job.schedules for v in CHUNKS[s]]
            for schedule, chunks in pairs if pp > 1 else [("1f1b", 1)]:
                try:
                    parallel = layout(
                        nodes=1,
                        gpus_per_node=gpus,
                        tp=tp,
                        cp=cp,
                        pp=pp,
                        ep=ep,
                        etp=etp,
                        order=order,
                    )
                    one = replace(
                        job.setup,
                        parallel=parallel,
                        microbatches=number,
                        microbatch_size=size,
                        schedule=schedule,
                        chunks=chunks,
                    )
                    one.order  # noqa: B018
                except InputError:
                    continue
                for zero, mode in product((0, 1) if few else (0, 1, 2, 3), job.recompute):
                    key = (*mesh.values(), schedule, chunks, size, number, zero, mode)
                    yield key, replace(one, zero_stage=zero, recompute=mode)


def planned(job: PlannedJob, model: Callable[..., Any]) -> dict[Key, float]:
    """Return what the planner's models give for every layout that it lists."""
    found: dict[Key, float] = {}
    for one in pipelines_of(job):
        for place, number in enumerate(columns_of(one, model)):
            rest, entry = divmod(place, len(one.entries))
            mode, zero = divmod(rest, len(one.zeros))
            at = one.entries[entry]
            key = (
                at.tp,
                at.cp,
                one.pp,
                at.ep,
                at.etp,
                at.dp,
                one.schedule,
                one.chunks,
                at.microbatch_size,
                at.microbatches,
                one.zeros[zero].stage,
                job.recompute[one.modes[mode].place],
            )
            assert key not in found
            found[key] = number
    return found


def columns_of(found: Pipeline, model: Callable[..., Any]) -> Any:
    """Return a model's results for all layouts of a pipeline, in their order."""
    (column,) = over(found.modes, found.zeros, found.entries, lambda *one: (model(found, *one),))
    return column


def total_of(*one: Any) -> Any:
    """Return the bytes of the fullest rank."""
    return held_bytes(*one)[0]


def reason_of(*one: Any) -> Any:
    """Return what first exceeds the memory."""
    return held_bytes(*one)[1]


def up_to_each_reason(setup: TrainingSetup, job: PlannedJob) -> np.ndarray:
    """Return bytes at the start, then with activations, with all temporaries, and in total."""
    sums = []
    for rank in memory(setup, reserve_bytes=job.reserve_bytes).ranks:
        state = fsum(rank.bytes_of(part) for part in ("weights", "gradients", "optimizer"))
        moving = [rank.bytes_of(part) for part in ("activations", "working", "communication")]
        first = state + job.reserve_bytes
        sums.append([first, first + moving[0], first + fsum(moving), rank.total_bytes])
    return np.array(np.max(sums, axis=0))


UNUSUAL = {
    "flash_attention": False, "dropout": True, "context_exchange": "all-gather",
    "double_buffering": False, "sequence_parallel": False,
}  # fmt: skip
FEW = {"schedules": ("1f1b", "zbv")}
PIPED = {"fixed": {"pp": 2, "tp": 1}, **FEW}
JOBS: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "dense": (SMALL_DENSE, 4, {}),
    "experts": (SMALL_EXPERTS, 4, {"mtp_layers": 1}),
    "experts without sequence parallelism": (SMALL_EXPERTS, 2, {"sequence_parallel": False}),
    "no context parallelism": (SMALL_DENSE, 2, {"order": "tp-dp-pp", "mtp_layers": 2}),
    "hybrid": (SMALL_HYBRID, 4, {"mtp_layers": 1}),
    "narrow experts": (NARROW_EXPERTS, 2, {"order": "tp-ep-dp-pp"}),
    "nanotron": (SMALL_DENSE, 2, {"order": "nanotron", "framework": "nanotron", **FEW}),
    "DeepSpeed": (SMALL_DENSE, 2, {"framework": "megatron-deepspeed", **UNUSUAL, **FEW}),
    "torchtitan": (
        SMALL_HYBRID,
        4,
        {
            "mtp_layers": 1,
            "order": "torchtitan",
            "framework": "torchtitan",
            "activations": "fp8",
            **FEW,
            "fixed": {"tp": 1, "cp": 1},
            "recompute": ("layernorm,moe_act", "full"),
        },
    ),
    "layers larger than tables": (
        replace(SMALL_EXPERTS, layers=2, vocab=16),
        4,
        {"recipe": RECIPES["muon14"], "double_buffering": False, **PIPED},
    ),
    "a wide layer alone, no attention": (
        replace(
            SMALL_EXPERTS,
            layers=2,
            vocab=16,
            ffn_hidden=960,
            state_space=StateSpace(mixer_heads=2, mixer_head_dim=16, state=8, chunk=16),
        ),
        4,
        PIPED,
    ),
    "fullest inside": (
        replace(SMALL_EXPERTS, layers=10, ffn_hidden=300),
        8,
        {"fixed": {"pp": 4, "tp": 1, "cp": 1, "ep": 1}, "schedules": ("1f1b",)},
    ),
    "mixers larger than tables": (replace(SMALL_HYBRID, vocab=16), 2, FEW),
}


@pytest.mark.parametrize("name", JOBS)
def test_every_layout_is_tried_and_no_other(name: str) -> None:
    shape, gpus, options = JOBS[name]
    job = small_job(shape, gpus, **options)
    expected = {key: up_to_each_reason(setup, job) for key, setup in by_hand(job)}
    many = gpus == 4 and "fixed" not in options
    assert len(expected) > (400 if many else 10)
    capacity = 1.001 * float(np.median([sums[-1] for sums in expected.values()]))
    job = replace(job, capacity_bytes=capacity)
    found = planned(job, total_of)
    assert found == pytest.approx({key: sums[-1] for key, sums in expected.items()}, rel=1e-12)
    reasons = planned(job, reason_of)
    assert reasons == {key: sum(sums <= capacity) for key, sums in expected.items()}
    assert not many or set(reasons.values()) == {*range(len(REASONS) + 1)}


@pytest.mark.parametrize(
    "name", [name for name in JOBS if JOBS[name][1] == 2 or "fixed" in JOBS[name][2]]
)
def test_every_layout_takes_as_long_as_it_does_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "BLOCK", 50)  # several blocks, the last of them not full
    shape, gpus, options = JOBS[name]
    job, chip = small_job(shape, gpus, **options), catalog.accelerator("h100-sxm-80gb")
    software = {"megatron": "megatron-lm"}.get(job.setup.framework, job.setup.framework)
    alone = {
        key: timed_step(
            job_of(setup, described(setup, chip, catalog.link("ib-ndr"), "bf16", software)),
            job.attained,
        ).total_s
        for key, setup in by_hand(job)
    }
    assert planned(job, step_s) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("batch", [1, 7, 12])
def test_batches_are_all_products_of_replicas_microbatches_and_their_size(batch: int) -> None:
    for dp, wanted in product((1, 2, 4, 8, 12), (None, 1, 3, 5)):
        expected = {
            (each, many)
            for each, many in product(range(1, 13), repeat=2)
            if dp * each * many == batch and wanted in (None, each)
        }
        found = batches(dp, batch, wanted)
        assert len(found) == len(expected)
        assert set(found) == expected


def test_divisors_are_those_that_divide() -> None:
    for number in range(1, 200):
        assert divisors(number) == tuple(d for d in range(1, number + 1) if number % d == 0)


def test_no_more_microbatches_are_tried_than_a_schedule_can_have() -> None:
    job = replace(
        small_job(SMALL_DENSE, gpus=4), global_batch=2**16, schedules=("1f1b",), fixed={"pp": 4}
    )
    [found] = pipelines_of(job)
    assert max(entry.microbatches for entry in found.entries) == MOST_VISITS // 4 == 2**15


@pytest.mark.parametrize("schedule", CHUNKS)
def test_a_full_pipeline_repeats_itself(schedule: str) -> None:
    """Results from fewer microbatches equal those of simulating all of them."""
    shape, again = catalog.model("deepseek-v3").shape, recomputation("none")
    compared = 0
    for stages, chunks in product((2, 3, 4), CHUNKS[schedule][:2]):
        pipes = 2 if schedule == "dualpipe" else 1
        shares = stage_shares(shape, stages * chunks) * pipes
        for number in range(1, 5 * stages + 3):
            like = alike(schedule, stages, number, chunks)
            try:
                held = rank_loads(schedule, stages, number, chunks, shares, shape, again)
            except InputError:
                with pytest.raises(InputError):
                    rank_loads(schedule, stages, like, chunks, shares, shape, again)
                continue
            assert held == rank_loads(schedule, stages, like, chunks, shares, shape, again)
            if schedule != "naive":
                found = pipeline_idle(schedule, stages, number, chunks)
                assert found == pipeline_idle(schedule, stages, like, chunks)
            compared += number != like
    assert compared or schedule in ("gpipe", "looped-bfs", "naive")


@pytest.mark.parametrize("name", CHUNKS)
def test_the_chunks_that_are_tried_are_those_that_the_schedule_accepts(name: str) -> None:
    accepted = set()
    for chunks in range(1, 5):
        with contextlib.suppress(InputError):
            build(name, stages=4, microbatches=8, chunks=chunks)
            accepted.add(chunks)
    # With one chunk they are GPipe and 1F1B, which are tried themselves.
    accepted -= {1} if name in ("looped-bfs", "interleaved-1f1b") else set()
    assert {chunks for chunks in CHUNKS[name] if chunks < 5} == accepted


TWELVE = replace(SMALL_DENSE, heads=12, kv_heads=6, ffn_hidden=96)
SHAPES = (
    TWELVE,
    # Four ranks divide no heads, three no dense block, twelve no experts, six not the shared one.
    replace(
        TWELVE,
        heads=6,
        kv_heads=2,
        ffn_hidden=50,
        experts=ExpertShape(count=6, top_k=2, ffn_hidden=20, shared=1, dense_layers=1),
    ),
    replace(TWELVE, ffn_hidden=7, experts=ExpertShape(count=4, top_k=2, ffn_hidden=18)),
    # On two ranks three groups, of which two ranks of context have none whole.
    replace(
        TWELVE,
        state_space=StateSpace(
            mixer_heads=36, mixer_head_dim=16, state=8, groups=6, chunk=16, attention_every=3
        ),
    ),
    # On six ranks three heads, which two ranks of context do not divide.
    replace(
        TWELVE,
        state_space=StateSpace(
            mixer_heads=18, mixer_head_dim=16, state=8, groups=6, chunk=16, attention_every=3
        ),
    ),
)
WORLD = 12
AXES = ("tp", "cp", "pp", "ep", "etp", "dp")


def accepted(setup: TrainingSetup) -> set[tuple[int, ...]]:
    """Return meshes that a setup accepts, one by one; the dense TP size is also ETP."""
    found, shape, sizes = set(), setup.shape, range(1, WORLD + 1)
    own = setup.parallel.convention.etp
    for tp, cp, pp, ep, etp in product(sizes, repeat=5):
        if WORLD % (tp * cp * pp) or WORLD % (ep * etp * pp):
            continue
        if shape.experts is None and etp != (tp if own == "tp" else 1):
            continue
        with contextlib.suppress(InputError):
            parallel = layout(
                nodes=2,
                gpus_per_node=6,
                tp=tp,
                cp=cp,
                pp=pp,
                ep=ep,
                etp=etp,
                order=setup.parallel.order,
            )
            replace(setup, parallel=parallel)
            found.add((tp, cp, pp, ep, etp, parallel.dp))
    return found


@pytest.mark.parametrize("order", ["megatron", "megatron-tp-pp-dp", "tp-ep-dp-pp"])
def test_meshes_are_those_that_a_setup_accepts_whatever_is_said(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes of six: tensor parallelism stays within a node unless its size is given."""
    # What is near to what is refused takes most of the time, and nobody reads it here.
    monkeypatch.setattr("figgen.models.machine.layout.nearest_valid", lambda *sizes: ())
    for shape, (split, exchange) in product(SHAPES, ((True, "all-to-all"), (False, "p2p"))):
        setup = TrainingSetup(
            shape=shape,
            parallel=layout(nodes=2, gpus_per_node=6, order=order),
            microbatches=1,
            sequence=30,
            sequence_parallel=split,
            context_exchange=exchange,
        )
        every = accepted(setup)
        # What is said of experts' tensor parallelism means nothing where there are none.
        axes = AXES if shape.experts else tuple(axis for axis in AXES if axis != "etp")
        said = [
            {},
            *({axis: size} for axis in axes for size in (1, 2, 4, 5, 12)),
            {"tp": 2, "ep": 2},
        ]
        for wanted in said:
            expected = {
                mesh
                for mesh in every
                if all(mesh[AXES.index(axis)] == size for axis, size in wanted.items())
                and (6 % mesh[0] == 0 or "tp" in wanted)
                and (6 % mesh[4] == 0 or "etp" in wanted or shape.experts is None)
            }
            assert listed(setup, wanted) == sorted(expected), (shape, split, wanted)


def listed(setup: TrainingSetup, wanted: dict[str, int]) -> list[tuple[int, ...]]:
    """Return what the planner lists, with repetitions."""
    found = []
    for pp in pipelines(WORLD, wanted):
        if not list(schedules(setup.shape.layers, pp, ["1f1b"], None)):
            continue
        for mesh in meshes(setup, pp, wanted):
            found.append(tuple(pp if axis == "pp" else getattr(mesh, axis) for axis in AXES))
    return sorted(found)
