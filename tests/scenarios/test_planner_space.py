"""The planner's space of layouts against trying everything, one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import fsum
from typing import Any

import numpy as np
import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.models.layout import layout
from figgen.models.memory import RankMemory, memory
from figgen.models.model_shape import ExpertShape, StateSpace
from figgen.models.pipeline_filling import filling
from figgen.models.plan import REASONS, PlannedJob, held_bytes, pipelines_of
from figgen.models.plan_loads import alike, rank_loads
from figgen.models.plan_space import CHUNKS
from figgen.models.recomputation import recomputation
from figgen.models.schedules import MOST_VISITS, build
from figgen.models.stage_layers import stage_shares
from figgen.models.training_setup import TrainingSetup
from figgen.scenarios.plan_question import plan_question
from figgen.scenarios.scenario import scenario

SMALL_DENSE = replace(
    catalog.model("gpt-2-xl").shape, layers=5, hidden=64, heads=4, kv_heads=4, head_dim=16,
    ffn_hidden=256, vocab=1001, sequence=64,
)  # fmt: skip
SMALL_EXPERTS = replace(
    catalog.model("deepseek-v3").shape, layers=3, hidden=64, heads=4, kv_heads=4,
    ffn_hidden=96, sequence=64, vocab=1000, head_dim=16, latent=None,
    experts=ExpertShape(count=4, top_k=2, ffn_hidden=48, shared=1, dense_layers=1),
)  # fmt: skip
SMALL_HYBRID = replace(
    SMALL_EXPERTS, layers=5, state_space=StateSpace(8, 16, 8, groups=2, chunk=16, attention_every=3)
)
NARROW_EXPERTS = replace(SMALL_EXPERTS, experts=ExpertShape(4, 2, 16, shared=1, dense_layers=1))


def small_job(
    shape: Any,
    gpus: int,
    sequence_parallel: bool = True,
    order: str = "megatron",
    mtp_layers: int = 0,
) -> PlannedJob:
    question = plan_question(scenario(model="gpt-2-xl", nodes=1, gpus_per_node=gpus))
    parallel = layout(nodes=1, gpus_per_node=gpus, order=order)
    setup = TrainingSetup(
        shape=shape, parallel=parallel, microbatches=1, sequence=64,
        sequence_parallel=sequence_parallel, mtp_layers=mtp_layers,
    )  # fmt: skip
    return replace(
        question.job, setup=setup, global_batch=4, reserve_bytes=5e4,
        schedules=tuple(CHUNKS), recompute=("none", "full"),
    )  # fmt: skip


def by_hand(job: PlannedJob) -> Iterator[tuple[Any, ...]]:
    """Every layout that `TrainingSetup` accepts, one by one, with its bytes up to each reason."""
    gpus, shape, sizes = job.world_size, job.setup.shape, range(1, job.world_size + 1)
    for tp, cp, pp, ep, etp in product(sizes, repeat=5):
        if gpus % (tp * cp * pp) or gpus % (ep * etp * pp) or (not shape.experts and etp != tp):
            continue
        dp = gpus // (tp * cp * pp)
        for size in (1, 2, 3, 4):
            if job.global_batch % (dp * size):
                continue
            number = job.global_batch // (dp * size)
            pairs = [(s, v) for s, all_ in CHUNKS.items() for v in all_]
            for schedule, chunks in pairs if pp > 1 else [("1f1b", 1)]:
                try:
                    parallel = layout(
                        nodes=1, gpus_per_node=gpus, tp=tp, cp=cp, pp=pp, ep=ep, etp=etp,
                        order=job.setup.parallel.order,
                    )  # fmt: skip
                    one = TrainingSetup(
                        shape=shape, parallel=parallel, microbatches=number, sequence=64,
                        microbatch_size=size, schedule=schedule, chunks=chunks,
                        sequence_parallel=job.setup.sequence_parallel,
                        mtp_layers=job.setup.mtp_layers,
                    )  # fmt: skip
                    one.order  # noqa: B018
                except InputError:
                    continue
                for zero, mode in product((0, 1, 2, 3), job.recompute):
                    held = memory(
                        replace(one, zero_stage=zero, recompute=mode),
                        reserve_bytes=job.reserve_bytes,
                    )
                    mesh = (tp, cp, pp, ep, etp, dp)
                    yield (
                        (*mesh, schedule, chunks, size, number, zero, mode),
                        np.max([up_to_each_reason(rank, job) for rank in held.ranks], axis=0),
                    )


def up_to_each_reason(rank: RankMemory, job: PlannedJob) -> list[float]:
    """What is there to begin with; then with activations; with all that works; with all."""
    state = fsum(rank.bytes_of(part) for part in ("weights", "gradients", "optimizer"))
    moving = [rank.bytes_of(part) for part in ("activations", "working", "communication")]
    first = state + job.reserve_bytes
    return [first, first + moving[0], first + fsum(moving), rank.total_bytes]


@pytest.mark.parametrize(
    ("shape", "gpus", "sequence_parallel", "order", "mtp_layers"),
    [
        (SMALL_DENSE, 4, True, "megatron", 0), (SMALL_EXPERTS, 4, True, "megatron", 1),
        (SMALL_EXPERTS, 2, False, "megatron", 0), (SMALL_DENSE, 2, True, "tp-dp-pp", 2),
        (SMALL_HYBRID, 4, True, "megatron", 1),
        (NARROW_EXPERTS, 2, True, "tp-ep-dp-pp", 0),
    ],
)  # fmt: skip
def test_every_layout_is_tried_and_no_other(
    shape: Any, gpus: int, sequence_parallel: bool, order: str, mtp_layers: int
) -> None:
    job = small_job(shape, gpus, sequence_parallel, order, mtp_layers)
    expected = dict(by_hand(job))
    assert len(expected) > (400 if gpus == 4 else 10)
    capacity = 1.001 * float(np.median([sums[-1] for sums in expected.values()]))
    job = replace(job, capacity_bytes=capacity)
    reasons = {}
    found = {}
    for one in pipelines_of(job):
        held = held_bytes(one)
        total = held.total
        for entry, zero, mode in np.ndindex(total.shape):
            mesh = (one.meshes.tp[entry], one.meshes.cp[entry], one.pp, one.meshes.ep[entry],
                    one.meshes.etp[entry], one.meshes.dp[entry])  # fmt: skip
            size, number = int(one.microbatch_size[entry]), int(one.microbatches[entry])
            key = (*map(int, mesh), one.schedule, one.chunks, size, number, one.zero[zero],
                   job.recompute[mode])  # fmt: skip
            assert key not in found
            found[key] = total[entry, zero, mode]
            reasons[key] = held.reason[entry, zero, mode]
    assert found == pytest.approx({key: sums[-1] for key, sums in expected.items()}, rel=1e-12)
    assert reasons == {key: sum(sums <= capacity) for key, sums in expected.items()}
    assert gpus < 4 or set(reasons.values()) == {*range(len(REASONS) + 1)}


def test_no_more_microbatches_are_tried_than_a_schedule_can_have() -> None:
    job = replace(
        small_job(SMALL_DENSE, gpus=4), global_batch=2**16, schedules=("1f1b",), fixed={"pp": 4}
    )
    [found] = pipelines_of(job)
    assert max(found.microbatches) == MOST_VISITS // 4 == 2**15


@pytest.mark.parametrize("schedule", CHUNKS)
def test_a_full_pipeline_repeats_itself(schedule: str) -> None:
    """What is taken for fewer microbatches is what the simulator finds for all of them."""
    shape = catalog.model("deepseek-v3").shape
    again, compared = recomputation("none"), 0
    for stages, chunks in product((2, 3, 4), CHUNKS[schedule][:2]):
        pipes = 2 if schedule == "dualpipe" else 1
        shares = stage_shares(shape, stages * chunks) * pipes
        for number in range(1, 5 * stages + 3):
            like = int(alike(schedule, stages, np.array([number]), chunks)[0])
            try:
                held = rank_loads(schedule, stages, number, chunks, shares, again, False)
            except InputError:
                continue
            np.testing.assert_array_equal(
                held, rank_loads(schedule, stages, like, chunks, shares, again, False)
            )
            if schedule != "naive":
                assert filling(schedule, stages, number, chunks) == pytest.approx(
                    filling(schedule, stages, like, chunks), abs=1e-9
                )
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
