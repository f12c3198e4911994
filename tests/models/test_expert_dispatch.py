"""How tokens reach their experts, against layers and steps that others timed each way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen.errors import InputError
from figgen.models.setup.training_setup import DISPATCHERS
from figgen.models.step.data_traffic import stage_traffic
from figgen.models.step.layer_time import expert_layer
from figgen.models.step.layer_traffic import TOKENS
from figgen.scenarios.options.resolve import TrainingStep, training_step

MEASURED = json.loads(
    (Path(__file__).parents[1] / "oracles" / "expert_dispatch.json").read_text("utf-8")
)
SIZES = {
    "deepseek": {
        "hidden": 7168, "expert_ffn": 2048, "experts": 32, "top_k": 8, "shared": 1,
        "expert_weights": 3 * 7168 * 2048,
    },
    "mixtral": {
        "hidden": 4096, "expert_ffn": 14336, "experts": 8, "top_k": 2, "shared": 0,
        "expert_weights": 3 * 4096 * 14336,
    },
}  # fmt: skip
"""The layers of Megatron-LM's test_cases.py."""
WAYS = ("all-to-all", "deepep", "hybridep")


def layer_ms(name: str) -> dict[str, float]:
    """One layer of experts alone on eight H100, behind which no message hides."""
    found = training_step(
        model="deepseek-v3", nodes=1, gpus_per_node=8, ep=8, sequence=4096, software="megatron-lm"
    ).predicted
    job = replace(found.job, **SIZES[name], microbatch=1, sequence=4096)
    rates = replace(found.attained, exposed_experts=1.0)
    return {
        way: 1e3 * float(expert_layer(replace(job, dispatcher=DISPATCHERS[way]), rates).device_s)
        for way in WAYS
    }


def test_dispatchers_differ_by_what_a_layer_of_deepseek_took_with_each() -> None:
    measured = {way: sum(ms) for way, ms in MEASURED["moe_perf_ms"]["deepseek"].items()}
    found = layer_ms("deepseek")
    assert sorted(found, key=found.__getitem__) == sorted(measured, key=measured.__getitem__)
    for one, other in (("all-to-all", "deepep"), ("deepep", "hybridep")):
        saved = found[one] - found[other]
        assert saved == pytest.approx(measured[one] - measured[other], rel=0.2)


def test_dispatchers_are_alike_where_every_choice_is_another_rank() -> None:
    """Two of eight experts on eight ranks: there is nothing to send once, nothing to sort."""
    measured = {way: sum(ms) for way, ms in MEASURED["moe_perf_ms"]["mixtral"].items()}
    found = layer_ms("mixtral")
    assert max(measured.values()) < 1.05 * min(measured.values())
    assert max(found.values()) < 1.05 * min(found.values())
    assert max(found, key=found.__getitem__) == max(measured, key=measured.__getitem__)


def qwen(dispatcher: str, **options: Any) -> TrainingStep:
    """Qwen3-235B-A22B on 256 H800 as InternLM ran it."""
    return training_step(
        **{
            "model": "qwen-3-235b-a22b",
            "accelerator": "h800-sxm-80gb",
            "nodes": 32,
            "gpus_per_node": 8,
            "tp": 2,
            "ep": 32,
            "etp": 1,
            "pp": 8,
            "schedule": "interleaved-1f1b",
            "chunks": 4,
            "global_batch": 2048,
            "sequence": 4096,
            "recompute": "layernorm,moe_act",
            "software": "megatron-lm 25.06",
            "dispatcher": dispatcher,
            **options,
        }
    )


def test_experts_over_four_nodes_take_what_was_measured_with_each_dispatcher() -> None:
    """The release is that of the runs, whose usual dispatcher is DeepEP."""
    measured = MEASURED["xtuner_ep32_step_s"]
    found = {way: qwen(way).predicted.step_time_s for way in measured}
    for way, seconds in measured.items():
        assert found[way] == pytest.approx(seconds, rel=0.1), way
    slower = measured["all-to-all"] / measured["deepep"]
    assert found["all-to-all"] / found["deepep"] == pytest.approx(slower, rel=0.05)
    assert qwen("usual").predicted.step_time_s == found["deepep"]


@pytest.mark.parametrize("software", ["megatron-lm 25.02", "megatron-lm 25.09", "megatron-lm"])
def test_the_usual_dispatcher_is_one_of_the_others_in_every_release(software: str) -> None:
    usual = qwen("usual", software=software).predicted.step_time_s
    assert usual in [qwen(way, software=software).predicted.step_time_s for way in WAYS]


def test_a_token_is_sent_once_to_each_of_four_nodes_that_has_experts_of_it() -> None:
    """On average to 4 (1 − (3/4)⁸) of four nodes instead of eight times."""
    sent = {
        way: sum(
            entry.calls * entry.sent_bytes
            for entry in stage_traffic(qwen(way).setup, 1)
            if entry.purpose == TOKENS
        )
        for way in WAYS
    }
    assert sent["deepep"] == sent["hybridep"]
    assert sent["deepep"] / sent["all-to-all"] == pytest.approx(4 * (1 - 0.75**8) / 8)
    assert qwen("usual").setup.sends_once is False


def test_dispatchers_change_nothing_where_all_experts_are_on_each_gpu() -> None:
    alone = [qwen(way, ep=1).predicted.step_time_s for way in WAYS]
    assert len(set(alone)) == 1


def test_an_unknown_dispatcher_is_refused() -> None:
    with pytest.raises(InputError, match="dispatcher"):
        qwen("allgather")
