"""The planner's arrays compared with the models of a single layout; its questions and answers."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.memory.fit_probability import SAFE
from figgen.models.planner.plan_space import CHUNKS
from figgen.models.planner.ranking import TIED, layout_at
from figgen.models.shape.transformer import flops_per_token
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import (
    SEARCHED,
    SMALL,
    plan_question,
    usual_batch,
)
from figgen.scenarios.planning.plan_rows import TERMS, choices_of, label, plan_rows, terms_of
from figgen.scenarios.planning.planner import Plan, fastest, plan

TITAN = {"software": "torchtitan", "order": "torchtitan"}
NANOTRON = {"software": "nanotron", "order": "nanotron"}
JOBS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3-8b", "nodes": 1, "pp": 4, "tp": 1, "global_batch": 32},
    {"model": "qwen-3-30b-a3b", "nodes": 1, "pp": 4, "tp": 1, "cp": 1, "global_batch": 32},
    {"model": "llama-3-8b", "nodes": 1, "pp": 1, "global_batch": 8, "recipe": "fsdp16", **TITAN},
    {"model": "llama-3-8b", "nodes": 2, "pp": 1, "global_batch": 32, **NANOTRON},
)


def planned(every_schedule: bool = False, fit_chance: float = SAFE, **chosen: Any) -> Plan:
    asked = scenario(**{"gpus_per_node": 8, **chosen})
    return plan(plan_question(asked, every_schedule, fit_chance))


@pytest.mark.parametrize(
    ("chosen", "modes"),
    [
        ({"model": "llama-3-8b"}, "none layernorm mlp full"),
        ({"model": "llama-3-8b", "flash_attention": False}, "none selective layernorm mlp full"),
        ({"model": "llama-3-8b", **TITAN}, "none every_second_product layernorm mlp full"),
        ({"model": "llama-3-8b", "recompute": "mlp"}, "mlp"),
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


@pytest.mark.parametrize("job", JOBS)
def test_terms_of_every_schedule_add_up_and_products_are_among_them(job: dict[str, Any]) -> None:
    found = planned(every_schedule=True, fit_chance=0.5, **job)
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
    found = planned(model="mixtral-8x7b", nodes=2, global_batch=16)
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
        assert any(o[0] <= one[0] * (1 + TIED) and o[1] <= one[1] for o in front)
    assert sum(found.found.refused.values()) + found.fitting == found.layouts


def test_of_layouts_as_fast_as_the_fastest_the_smallest_is_first() -> None:
    """Among steps within a thousandth, fewer bytes come first; otherwise fewer seconds."""
    tied = 0
    for nodes in (1, 2, 4):
        question = plan_question(scenario(model="llama-3-8b", nodes=nodes, global_batch=64))
        found = plan(question).found
        pairs = list(zip(found.step_s, found.memory_bytes, strict=True))
        fastest_s = min(found.step_s)
        near = [pair for pair in pairs if pair[0] <= fastest_s * (1 + TIED)]
        assert pairs[: len(near)] == sorted(near, key=lambda pair: pair[1])
        assert pairs[len(near) :] == sorted(pairs[len(near) :], key=lambda pair: pair[0])
        first = fastest(question).found
        assert layout_at(first, 0) == layout_at(found, 0)
        assert max(first.step_s) <= fastest_s * (1 + TIED)
        tied += len({pair[1] for pair in near}) > 1
    assert tied


@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b"])
def test_of_every_mesh_the_fastest_layout_is_told_with_how_many_fit(model: str) -> None:
    found = planned(model=model, nodes=1, global_batch=16)
    layouts = [choices_of(found, place) for place in range(found.fitting)]
    meshes = [tuple(one[axis] for axis in ("tp", "cp", "pp", "ep", "etp")) for one in layouts]
    assert [meshes[place] for place in found.meshes] == list(dict.fromkeys(meshes))
    assert [meshes.count(meshes[place]) for place in found.meshes] == list(found.meshes.values())


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"tp": 3}, "tp: expected another size: no layout of 64 GPUs has this one, got 3"),
        ({"microbatches": 7}, "microbatches: expected no value"),
        ({"buckets": 4}, "buckets: expected no value: the planner does not use it"),
        ({"recompute": "uniform:2"}, "recompute: expected none, full or modules"),
        ({"recompute": "block:2"}, "recompute: expected none, full or modules"),
        ({"global_batch": 7, "dp": 2}, "dp: expected another size"),
        ({**NANOTRON, "zero_stage": 2}, "zero_stage: expected another size"),
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
    told = [(row["place"], row["variants"]) for row in said["best"]]
    assert told == list(found.meshes.items())[:3]
    assert said["meshes"] == len(found.meshes)
    assert main([*asked, "--json", "--variants"]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert [row["step_time_s"] for row in best] == list(found.found.step_s[:3])
    assert said["fitting"] + sum(said["refused"].values()) == said["layouts"] == found.layouts
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line[:1].isdigit() and "ZeRO-" in line]) == 3
    larger = ["llama-3-70b" if word == "llama-3-8b" else word for word in asked]
    assert main(larger) == 0
    assert "no layout fits; the smallest needs" in capsys.readouterr().out


def test_a_plan_says_how_likely_its_layouts_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """Llama 70B with the batch of 16 nodes: the fastest layout that may fit only just does."""
    asked = ["plan", "--model", "llama-3-70b", "--nodes", "16", "--global-batch", "512"]
    risky = [*asked, "--fit-chance", "50"]
    safe_row, risky_row = (
        json.loads(capsys.readouterr().out)["best"][0]
        for args in (asked, risky)
        if main([*args, "--json"]) == 0
    )
    for row in (safe_row, risky_row):
        sizes = {name: row[name] for name in SEARCHED if name in row}
        one = training_step(
            model="llama-3-70b", nodes=16, gpus_per_node=8, global_batch=512, **sizes
        )
        assert row["fit_probability"] == pytest.approx(one.memory.fit_probability, rel=1e-6)
    assert risky_row["fit_probability"] < 0.95 <= safe_row["fit_probability"]
    assert risky_row["step_time_s"] < safe_row["step_time_s"]
    # No faster layout of those that may fit is as likely to.
    every = planned(fit_chance=0.5, model="llama-3-70b", nodes=16, global_batch=512)
    first = next(place for place in range(every.fitting) if every.chance(place) >= 0.95)
    fastest_s = every.found.step_s[first]
    assert fastest_s <= safe_row["step_time_s"] <= fastest_s * (1 + TIED)
    assert main(risky) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "with a chance of 50%: predicted to need" in lines[1]
    assert lines[-1].startswith("the fastest ")
    assert lines[-1].endswith(f"(chance {risky_row['fit_probability']:.0%})")


@pytest.mark.parametrize("sequence", [1, 2048, 5000, 8192, 2**22, 2**23])
def test_a_batch_that_nobody_says_is_the_power_of_two_below_four_million_tokens(
    sequence: int,
) -> None:
    powers = [1 << bits for bits in range(23) if sequence << bits <= 2**22]
    assert usual_batch(sequence, 1) == max(powers, default=1)
    assert usual_batch(sequence, 2**23) == 2**23
