"""The planner's arrays against the models of one layout, its space against trying everything."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import fsum
from typing import Any

import numpy as np
import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.layout import layout
from figgen.models.memory import RankMemory, memory
from figgen.models.model_shape import ExpertShape
from figgen.models.pipeline_filling import filling
from figgen.models.plan import REASONS, PlannedJob, held_bytes, pipelines_of
from figgen.models.plan_loads import alike, rank_loads
from figgen.models.plan_space import CHUNKS
from figgen.models.recomputation import recomputation
from figgen.models.schedules import MOST_VISITS, build
from figgen.models.stage_layers import stage_shares
from figgen.models.training_setup import TrainingSetup
from figgen.models.transformer import flops_per_token
from figgen.scenarios.plan_question import SMALL, _global_batch, plan_question
from figgen.scenarios.plan_rows import TERMS, choices_of, label, plan_rows, terms_of
from figgen.scenarios.planner import Plan, plan
from figgen.scenarios.resolve import resolve
from figgen.scenarios.scenario import scenario

EIGHT_BITS = {"dtype": "fp8", "activations": "fp8"}
TITAN = {"software": "torchtitan", "order": "torchtitan"}
NANOTRON = {"software": "nanotron", "order": "nanotron"}
UNUSUAL = {
    "flash_attention": False, "dropout": True, "sequence_parallel": False,
    "context_exchange": "all-gather", "double_buffering": False,
}  # fmt: skip
JOBS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3-70b", "nodes": 8, "global_batch": 48},
    {"model": "gpt-2-xl", "nodes": 2, "global_batch": 48},
    {"model": "mixtral-8x7b", "nodes": 4, "sequence": 4096, "tp": 2, "global_batch": 64},
    {"model": "deepseek-v3", "nodes": 16, "global_batch": 64, "pp": 8, "cp": 1,
     "accelerator": "h200-sxm-141gb", **EIGHT_BITS},
    {"model": "llama-3-8b", "nodes": 1, "global_batch": 8, "recipe": "fsdp16", **TITAN},
    {"model": "llama-3-8b", "nodes": 2, "global_batch": 32, **NANOTRON},
    {"model": "llama-2-7b", "nodes": 1, "global_batch": 24, **UNUSUAL},
    {"model": "bloom-176b", "nodes": 12, "global_batch": 96, "accelerator": "a100-sxm-80gb",
     "software": "megatron-deepspeed", "cp": 1},
)  # fmt: skip
EVERY_SCHEDULE = (
    {"model": "llama-3-8b", "nodes": 1, "pp": 4, "tp": 1, "global_batch": 32},
    {"model": "qwen-3-30b-a3b", "nodes": 1, "pp": 4, "tp": 1, "cp": 1, "global_batch": 32},
)


def planned(every_schedule: bool = False, **chosen: Any) -> Plan:
    return plan(plan_question(scenario(**{"gpus_per_node": 8, **chosen}), every_schedule))


@pytest.mark.parametrize(
    ("job", "every"), [*((job, False) for job in JOBS), *((job, True) for job in EVERY_SCHEDULE)]
)
def test_arrays_are_the_models_of_one_layout(job: dict[str, Any], every: bool) -> None:
    found = planned(every, **job)
    places = random.Random(7).sample(range(found.fitting), 16)
    for place in places:
        alone = resolve(
            found.question.asked.but(
                **choices_of(found, place), global_batch=found.question.job.global_batch
            )
        )
        assert found.found.step_s[place] == pytest.approx(alone.predicted.step_time_s, rel=1e-12)
        held = alone.memory
        assert held.fits
        assert found.found.memory_bytes[place] == pytest.approx(held.fullest.total_bytes, rel=1e-12)


SMALL_DENSE = replace(
    catalog.model("gpt-2-xl").shape, layers=5, hidden=64, heads=4, kv_heads=4, head_dim=16,
    ffn_hidden=256, vocab=1001, sequence=64,
)  # fmt: skip
SMALL_EXPERTS = replace(
    catalog.model("deepseek-v3").shape, layers=3, hidden=64, heads=4, kv_heads=4,
    ffn_hidden=96, sequence=64, vocab=1000, head_dim=16, latent=None,
    experts=ExpertShape(count=4, top_k=2, ffn_hidden=48, shared=1, dense_layers=1),
)  # fmt: skip
NARROW_EXPERTS = replace(SMALL_EXPERTS, experts=ExpertShape(4, 2, 16, shared=1, dense_layers=1))


def small_job(
    shape: Any, gpus: int, sequence_parallel: bool = True, order: str = "megatron"
) -> PlannedJob:
    question = plan_question(scenario(model="gpt-2-xl", nodes=1, gpus_per_node=gpus))
    parallel = layout(nodes=1, gpus_per_node=gpus, order=order)
    setup = TrainingSetup(
        shape=shape, parallel=parallel, microbatches=1, sequence=64,
        sequence_parallel=sequence_parallel,
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
    ("shape", "gpus", "sequence_parallel", "order"),
    [
        (SMALL_DENSE, 4, True, "megatron"), (SMALL_EXPERTS, 4, True, "megatron"),
        (SMALL_EXPERTS, 2, False, "megatron"), (SMALL_DENSE, 2, True, "tp-dp-pp"),
        (NARROW_EXPERTS, 2, True, "tp-ep-dp-pp"),
    ],
)  # fmt: skip
def test_every_layout_is_tried_and_no_other(
    shape: Any, gpus: int, sequence_parallel: bool, order: str
) -> None:
    job = small_job(shape, gpus, sequence_parallel, order)
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


@pytest.mark.parametrize(
    ("chosen", "modes"),
    [
        ({"model": "llama-3-8b"}, "none layernorm mlp full"),
        ({"model": "llama-3-8b", "flash_attention": False}, "none selective layernorm mlp full"),
        ({"model": "llama-3-8b", **TITAN}, "none every_second_product layernorm mlp full"),
        ({"model": "llama-3-8b", "recompute": "mlp"}, "mlp"),
        ({"model": "llama-3-8b", "recompute": "block:2"}, "block:2"),
        ({"model": "mixtral-8x7b"}, f"none {SMALL} mlp,moe full"),
        ({"model": "deepseek-v3"}, f"none {SMALL} {SMALL},mla_up_proj mlp,moe full"),
    ],
)
def test_what_may_be_recomputed_is_what_the_model_has(chosen: dict[str, Any], modes: str) -> None:
    job = plan_question(scenario(nodes=1, gpus_per_node=8, **chosen)).job
    assert job.recompute == tuple(modes.split())


def test_every_schedule_is_tried_only_where_one_asks() -> None:
    asked = scenario(model="llama-3-8b", nodes=1)
    assert plan_question(asked).job.schedules == ("1f1b", "interleaved-1f1b")
    assert plan_question(asked, every_schedule=True).job.schedules == tuple(CHUNKS)


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


@pytest.mark.parametrize("job", [*EVERY_SCHEDULE, {**JOBS[4], "pp": 1}, {**JOBS[5], "pp": 1}])
def test_terms_of_every_schedule_add_up_and_products_are_among_them(job: dict[str, Any]) -> None:
    found = planned(every_schedule=True, **job)
    places = random.Random(3).sample(range(found.fitting), 40)
    for terms, place in zip(terms_of(found, places), places, strict=True):
        assert sum(terms.values()) == pytest.approx(found.found.step_s[place], rel=1e-12)
        assert terms["products"] > 0
        assert min(terms.values()) > -1e-9


def test_terms_add_up_and_say_what_a_layout_loses_by() -> None:
    found = planned(model="llama-3-70b", nodes=8)
    places = [0, 5, 50, 500, found.fitting - 1]
    for terms, place in zip(terms_of(found, places), places, strict=True):
        assert set(terms) == set(TERMS)
        assert sum(terms.values()) == pytest.approx(found.found.step_s[place], rel=1e-12)
    best, *_, worst = plan_rows(found, places)
    assert (best.loses_by, best.loses_s, best.apart, worst.apart) == ("", 0, False, True)
    assert worst.loses_s == pytest.approx(worst.step_s - best.step_s)
    for row in (best, worst):
        tokens = row.dp * row.microbatches * int(row.choices["microbatch_size"]) * 8192
        assert row.tokens_per_s_per_gpu * row.step_s * 64 == pytest.approx(tokens)
        work = tokens * flops_per_token(catalog.model("llama-3-70b").shape, sequence=8192)
        assert row.model_flops_utilisation == pytest.approx(work / 64 / row.step_s / 989.4e12)
        assert row.low_s < row.step_s < row.high_s
        known = found.question.residuals
        assert (row.low_s, row.high_s) == (row.step_s * known.low, row.step_s * known.high)
        assert row.apart == (row.low_s > best.high_s)
    behind = {name: worst.terms[name] - best.terms[name] for name in TERMS}
    assert worst.loses_by == max(behind, key=lambda name: behind[name])


def test_a_layout_is_told_by_what_is_divided() -> None:
    found = planned(every_schedule=True, model="mixtral-8x7b", nodes=4, global_batch=64)
    [row] = plan_rows(found, [0])
    plain = {"tp": 1, "cp": 1, "pp": 1, "ep": 1, "etp": 1, "schedule": "1f1b", "chunks": None,
             "microbatch_size": 2, "zero_stage": 1, "recompute": "none"}  # fmt: skip
    for change, dp, words in (
        ({}, 32, "DP 32 · 3 × 2 · ZeRO-1"),
        ({"recompute": "full"}, 32, "DP 32 · 3 × 2 · ZeRO-1 · full"),
        ({"recompute": "selective"}, 32, "DP 32 · 3 × 2 · ZeRO-1 · selective"),
        ({"tp": 2, "ep": 4, "etp": 1}, 16, "TP 2 · EP 4 · DP 16 · 3 × 2 · ZeRO-1"),
        ({"tp": 2, "ep": 4, "etp": 2}, 16, "TP 2 · EP 4 · DP 16 · ETP 2 · 3 × 2 · ZeRO-1"),
        ({"pp": 4, "chunks": 1}, 8, "PP 4 · DP 8 · 1f1b · 3 × 2 · ZeRO-1"),
        ({"pp": 32, "chunks": 2, "cp": 1}, 1, "PP 32 · 1f1b × 2 · 3 × 2 · ZeRO-1"),
    ):
        one = replace(row, choices=plain | change, dp=dp, microbatches=3)
        assert label(one) == words


def test_the_front_is_what_nothing_beats_in_both() -> None:
    found = planned(model="llama-3-8b", nodes=1)
    pairs = list(zip(found.found.step_s, found.found.memory_bytes, strict=True))
    front = [pairs[place] for place in found.front]
    for one in front:
        assert not any(o[0] <= one[0] and o[1] <= one[1] and o != one for o in pairs)
    for one in pairs:
        assert any(o[0] <= one[0] and o[1] <= one[1] for o in front)
    assert sum(found.refused.values()) + found.fitting == found.layouts


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"tp": 3}, "tp: expected another size: no layout of 64 GPUs has this one, got 3"),
        ({"microbatches": 7}, "microbatches: expected no value"),
        ({"recompute": "uniform:2"}, "recompute: expected none, full"),
        ({"global_batch": 7, "dp": 2}, "dp: expected another size"),
    ],
)
def test_what_cannot_be_asked_is_said(chosen: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        planned(model="llama-3-70b", nodes=8, **chosen)


def test_the_command_prints_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", "--model", "llama-3-8b", "--nodes", "1", "--global-batch", "8", "--top", "3"]
    assert main([*asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = planned(model="llama-3-8b", nodes=1, global_batch=8)
    assert [row["step_time_s"] for row in said["best"]] == found.found.step_s[:3].tolist()
    assert said["fitting"] + sum(said["refused"].values()) == said["layouts"] == found.layouts
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line[:1].isdigit() and "ZeRO-" in line]) == 3
    assert main([*asked, "--model", "llama-3-70b"]) == 0
    assert "none fits; the smallest needs" in capsys.readouterr().out


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


@pytest.mark.parametrize("sequence", [1, 2048, 5000, 8192, 2**22, 2**23])
def test_a_batch_that_nobody_says_is_the_power_of_two_below_four_million_tokens(
    sequence: int,
) -> None:
    values = {"global_batch": None, "sequence": sequence, "nodes": 1, "gpus_per_node": 1}
    batch, usual = _global_batch(values, catalog.model("llama-3-8b").shape)
    powers = [1 << bits for bits in range(23) if sequence << bits <= 2**22]
    assert (batch, usual) == (max(powers, default=1), True)
