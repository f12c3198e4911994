"""How tokens reach their experts, compared with layers and steps timed in each way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen.catalog import load, model
from figgen.catalog.options_timed import timed_options
from figgen.errors import InputError
from figgen.models.memory.held_sizes import layer_sizes
from figgen.models.memory.layer_tensors import layer_tensors
from figgen.models.operations.layer_work import layer_work
from figgen.models.operations.tuned_layer import expert_operations, routed_operations
from figgen.models.setup.training_setup import DISPATCHERS
from figgen.models.shape.model_shape import ExpertShape
from figgen.models.step.data_traffic import stage_traffic
from figgen.models.step.layer_time import expert_layer
from figgen.models.step.layer_traffic import TOKENS
from figgen.scenarios.options.resolve import TrainingStep, training_step

MEASURED = json.loads(
    (Path(__file__).parents[1] / "oracles" / "expert_dispatch.json").read_text("utf-8")
)
[ROUTED] = timed_options("routing")
SIZES = {
    "deepseek": {
        "hidden": 7168, "experts": 32, "top_k": 8, "shared": 1,
        "expert_weights": 3 * 7168 * 2048, "expert_groups": 8, "reached_groups": 4,
    },
    "mixtral": {
        "hidden": 4096, "experts": 8, "top_k": 2, "shared": 0,
        "expert_weights": 3 * 4096 * 14336, "expert_groups": 1, "reached_groups": 1,
    },
}  # fmt: skip
"""The layers of Megatron-LM's test_cases.py."""
WIDTHS = {"deepseek": 2048, "mixtral": 14336}
SHAPE_EXPERTS = ExpertShape(count=32, top_k=8, ffn_hidden=2048, shared=1, dense_layers=3)
WAYS = ("all-to-all", "deepep", "hybridep")


def layer_ms(name: str) -> dict[str, float]:
    """Return the time of one layer of experts alone on eight H100, where nothing hides messages."""
    found = training_step(
        model="deepseek-v3", nodes=1, gpus_per_node=8, ep=8, sequence=4096, software="megatron-lm"
    ).predicted
    sizes, width = SIZES[name], WIDTHS[name]
    experts = ExpertShape(
        count=sizes["experts"], top_k=sizes["top_k"], ffn_hidden=width, shared=sizes["shared"]
    )
    shape = replace(model("deepseek-v3").shape, hidden=sizes["hidden"], experts=experts)
    beside = expert_operations(shape, 1, 1)
    beside = tuple(one for one in beside if one.name.startswith(("norm", "residual", "shared")))
    job = replace(
        found.job,
        **sizes,
        microbatch=1,
        sequence=4096,
        expert_work=layer_work(beside),
        routed_work=layer_work(routed_operations(shape, 1)),
    )
    alone = load.accelerators()["h100-sxm-80gb"].measured_bf16
    assert alone is not None
    lone = {"matmul_flops_per_s": alone.value, "expert_flops_per_s": alone.value}
    rates = replace(found.attained, expert_overlap=1.0, **lone)
    job = replace(job, attention_weights=0, attention_width=0)
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
        assert saved == pytest.approx(measured[one] - measured[other], rel=0.45)


@pytest.mark.parametrize("name", SIZES)
def test_a_layer_of_experts_takes_as_long_as_megatrons_own_tests_of_it(name: str) -> None:
    """Its matmuls run at the rate of isolated ones; ours also has norms and sums of gradients."""
    found = layer_ms(name)
    for way, passes in MEASURED["moe_perf_ms"][name].items():
        assert found[way] == pytest.approx(sum(passes), rel=0.25), way
        assert found[way] > sum(passes), way


def test_dispatchers_are_alike_where_every_choice_is_another_rank() -> None:
    """With two of eight experts on eight ranks, there are no duplicates to save and nothing to
    sort."""
    measured = {way: sum(ms) for way, ms in MEASURED["moe_perf_ms"]["mixtral"].items()}
    found = layer_ms("mixtral")
    assert max(measured.values()) < 1.05 * min(measured.values())
    assert max(found.values()) < 1.05 * min(found.values())
    assert max(found, key=found.__getitem__) == max(measured, key=measured.__getitem__)


def qwen_30b(**options: Any) -> float:
    """Return seconds of a step of Qwen3-30B-A3B on 16 H100, on which NVIDIA compared overlap."""
    size: dict[str, Any] = {"nodes": 2, "gpus_per_node": 8, "ep": 16, "microbatches": 64}
    job = size | {"model": "qwen-3-30b-a3b", "sequence": 4096, "software": "megatron-bridge"}
    return training_step(**job, accelerator="h100-sxm-80gb", **options).predicted.step_time_s


@pytest.mark.parametrize(("at", "within"), [(0, 0.1), (1, 0.4)])
def test_overlap_of_messages_saves_as_nvidia_measured(at: int, within: float) -> None:
    """HybridEP is with graphs, the plain all-to-all without, where the host is predicted to be
    slower."""
    case = MEASURED["nvidia_overlap_step_s"][at]
    chosen = {"dispatcher": case["dispatcher"], "cuda_graphs": case["cuda_graphs"]}
    found = {way: qwen_30b(expert_overlap=way, **chosen) for way in ("off", "on")}
    assert found["on"] < found["off"]
    for way, seconds in found.items():
        assert seconds == pytest.approx(case[way], rel=within), way


def test_graphs_shorten_a_step_that_waits_for_its_host_and_no_other() -> None:
    each = {"dispatcher": "hybridep", "expert_overlap": "on"}
    none, layers, step = (qwen_30b(cuda_graphs=way, **each) for way in ("none", "layers", "step"))
    assert step < layers < 0.9 * none
    # At 16 times the tokens the GPU is slower than its host.
    long = {**each, "microbatch_size": 16}
    none, step = (qwen_30b(cuda_graphs=way, **long) for way in ("none", "step"))
    assert none == pytest.approx(step, rel=0.01)


def qwen(dispatcher: str, **options: Any) -> TrainingStep:
    """Return Qwen3-235B-A22B on 256 H800 as InternLM ran it."""
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
    """The release is the one of the runs, whose default dispatcher is DeepEP."""
    measured = MEASURED["xtuner_ep32_step_s"]
    found = {way: qwen(way).predicted.step_time_s for way in measured}
    for way, seconds in measured.items():
        assert found[way] == pytest.approx(seconds, rel=0.2), way
    slower = measured["all-to-all"] / measured["deepep"]
    assert found["all-to-all"] / found["deepep"] == pytest.approx(slower, rel=0.05)
    assert qwen("usual").predicted.step_time_s == found["deepep"]


@pytest.mark.parametrize("software", ["megatron-lm 25.02", "megatron-lm 25.09", "megatron-lm"])
def test_the_usual_dispatcher_is_one_of_the_others_in_every_release(software: str) -> None:
    usual = qwen("usual", software=software).predicted.step_time_s
    assert usual in [qwen(way, software=software).predicted.step_time_s for way in WAYS]


def test_a_token_is_sent_once_to_each_of_four_nodes_that_has_experts_of_it() -> None:
    """It goes to 4 (1 − (3/4)⁸) of four nodes on average, instead of being sent eight times."""
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


def test_a_token_that_comes_once_takes_less_memory() -> None:
    """In DeepSeek's layer, only copies on ranks that receive some of the token's experts take
    memory."""
    measured = MEASURED["moe_perf_allocated_bytes"]
    one = training_step(model="deepseek-v3", nodes=1, gpus_per_node=8, ep=8, sequence=4096).setup
    shape = replace(one.shape, experts=SHAPE_EXPERTS)
    held = {
        way: layer_sizes(replace(one, shape=shape, dispatcher=way)).dispatched * 4096 * 7168
        for way in WAYS
    }
    assert held["deepep"] == held["hybridep"] < held["all-to-all"]
    saved = measured["all-to-all"] - measured["deepep"]
    assert saved / 4 < held["all-to-all"] - held["deepep"] < saved


def mixture(**options: Any) -> TrainingStep:
    """Return Qwen3-30B-A3B on eight GB200, as in Megatron-Bridge's cards."""
    return training_step(**{**ROUTED.job, **options})


def test_natural_routing_takes_as_long_as_some_fullest_rank_of_its_size() -> None:
    even, little, much = (
        mixture(expert_skew=skew).predicted.step_time_s for skew in (1.0, 1.5, 3.0)
    )
    assert little / even < ROUTED.seconds["natural"] / ROUTED.seconds["balanced"] < much / even


def test_a_fullest_rank_has_its_tokens_in_messages_memory_and_time() -> None:
    even, twice = mixture(), mixture(expert_skew=2)
    one, two = (found.predicted.parts.expert for found in (even, twice))
    assert two.experts_s == pytest.approx(2 * float(one.experts_s))
    assert two.attention_s == one.attention_s
    sent = [
        sum(e.sent_bytes for e in stage_traffic(found.setup, 0) if e.purpose == TOKENS)
        for found in (even, twice)
    ]
    assert sent[1] == 2 * sent[0]
    routed = {t.name: t.bytes for t in layer_tensors(even.setup, experts=True)}
    for tensor in layer_tensors(twice.setup, experts=True):
        more = 2 if "routed" in tensor.name else 1
        assert tensor.bytes == more * routed[tensor.name], tensor.name
    assert twice.memory.fullest.total_bytes > even.memory.fullest.total_bytes


def test_no_rank_gets_more_than_all_tokens() -> None:
    assert mixture(expert_skew=20).predicted.step_time_s == (
        mixture(expert_skew=8).predicted.step_time_s
    )
    alone = [mixture(ep=1, expert_skew=skew).predicted.step_time_s for skew in (1, 4)]
    assert alone[0] == alone[1]


@pytest.mark.parametrize("skew", [0.9, 2000])
def test_a_fullest_rank_below_the_mean_is_refused(skew: float) -> None:
    with pytest.raises(InputError, match="expert_skew"):
        mixture(expert_skew=skew)
