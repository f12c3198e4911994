"""Figures about experts compared with counts by hand, frozen points and published numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from figgen import catalog
from figgen.charts import Curves
from figgen.errors import InputError
from figgen.figures.experts.layer import LOGITS
from figgen.models.machine.layout import layout
from figgen.models.machine.mesh import coordinates_of
from figgen.registry import build
from tests.figures.reading import bars, frozen, table, value

ROOT = Path(__file__).parents[2]
EXPERT_DISPATCH = ROOT / "tests/oracles/expert_dispatch.json"


def test_worked_table_is_softmax_and_top_2_by_hand() -> None:
    chart = table("moe-routing")
    loads = [0] * 4
    share = [0.0] * 4
    for row, logits in zip(chart.rows[:-1], LOGITS, strict=True):
        powers = [math.exp(x) for x in logits]
        total = sum(powers)
        assert [float(p) for p in row[2:6]] == pytest.approx([p / total for p in powers])
        best = sorted(range(4), key=lambda e: -powers[e])[:2]
        gates = [powers[e] / sum(powers[b] for b in best) for e in best]
        assert row[6] == " + ".join(f"{g:.2f}·E{e}" for g, e in zip(gates, best, strict=True))
        for expert in best:
            loads[expert] += 1
        share = [s + p / total / 8 for s, p in zip(share, powers, strict=True)]
    assert chart.rows[-1][2:6] == tuple(f"{load} copies" for load in loads)
    loss = 4 * sum(load / 16 * p for load, p in zip(loads, share, strict=True))
    assert value(chart, "loss") == pytest.approx(loss)


def test_send_matrix_keeps_every_copy() -> None:
    chart = table("moe-send-matrix")
    body = [[int(n) for n in row[1:5]] for row in chart.rows[:-1]]
    assert [sum(row) for row in body] == [4, 4, 4, 4]
    assert [int(n) for n in chart.rows[-1][1:5]] == [
        sum(column) for column in zip(*body, strict=True)
    ]
    off = sum(sum(row) for row in body) - sum(body[r][r] for r in range(4))
    assert value(chart, "sent") == off == int(chart.rows[-1][5])


def test_balance_starts_at_1_and_ends_with_one_expert_in_every_choice() -> None:
    chart = build("moe-balance", {})
    assert isinstance(chart, Curves)
    assert value(chart, "even") == pytest.approx(1)
    assert value(chart, "even_wrong") == pytest.approx(2)
    # One expert in every pair: half of all copies; seven share the other half.
    assert value(chart, "worst") == pytest.approx(8 * (1 / 4 + 7 * (1 / 14) ** 2))


def test_capacity_drops_what_half_of_a_binomial_is_beyond_its_mean() -> None:
    chart = build("moe-capacity", {})
    # For many tokens the mean excess over the mean is σ/√(2π).
    for mean in (64, 512):
        sigma = math.sqrt(mean * (1 - 8 / 64))
        want = sigma / math.sqrt(2 * math.pi) / mean
        assert value(chart, f"fair_{mean}_100") == pytest.approx(want, rel=0.02)
    assert value(chart, "skewed_100") == pytest.approx(0.25, rel=1e-3)


def test_bias_balances_and_no_bias_does_not() -> None:
    chart = build("moe-bias", {})
    assert value(chart, "first_1") == value(chart, "first_2") == value(chart, "first_3")
    assert value(chart, "last_1") > 3 > 1.5 > value(chart, "last_2")


def test_parameters_are_the_published_ones() -> None:
    chart = table("moe-models")
    published = {
        "mixtral_8x7b": (46.7e9, 12.9e9), "deepseek_v3": (671e9, 37e9),
        "deepseek_v2": (236e9, 21e9), "qwen_3_235b_a22b": (235e9, 22e9),
        "qwen_3_30b_a3b": (30.5e9, 3.3e9),
    }  # fmt: skip
    for name, (total, active) in published.items():
        assert value(chart, f"{name}_total") == pytest.approx(total, rel=0.005)
        assert value(chart, f"{name}_active") == pytest.approx(active, rel=0.025)


def test_all_to_all_of_mixtral_is_the_frozen_one() -> None:
    chart = bars("experts-tp-or-ep")
    assert value(chart, "mixtral_8x7b_ep") == frozen("moe_a2a_bytes")
    spread, cut = (segment.lengths for segment in chart.segments)
    of_eight = [each.rpartition(", ")[2].partition(" of ")[0] for each in chart.labels]
    for top_k, sent, more in zip(of_eight, spread, cut, strict=True):
        assert more / sent == pytest.approx(8 / int(top_k))
    assert sorted(of_eight) == ["2", "4", "8", "8"]
    with pytest.raises(InputError, match="mixture of experts"):
        build("experts-tp-or-ep", {"models": ["llama-3-8b"]})
    with pytest.raises(InputError, match="divisor"):
        build("experts-tp-or-ep", {"models": ["mixtral-8x7b"], "ranks": 16})


def test_work_per_byte_is_six_flop_per_weight_over_eight_copies() -> None:
    chart = bars("moe-ccr")
    for name, hidden, width, k in (
        ("mixtral_8x7b", 4096, 14336, 2),
        ("deepseek_v3", 7168, 2048, 8),
    ):
        work, sent = 6 * 3 * hidden * width * k, 4 * k * hidden * 2 * 7 / 8
        assert value(chart, f"{name}_ccr") == pytest.approx(work / sent)
        for where, bandwidth in (("inside", 450e9), ("outside", 50e9)):
            computing, sending = work / 989.4e12, sent / bandwidth
            share = computing / (computing + sending)
            assert value(chart, f"{name}_{where}") == pytest.approx(share, rel=1e-3)


def test_llama_reduces_its_gradient_once_a_step() -> None:
    """A rank sends four bytes per gradient and gets back two per weight."""
    run = catalog.run("llama-3-405b-8k-16384")
    held = run.model.parameters / (8 * 16)
    values = build("moe-step", {}).values
    sent = values["llama_3_405b_8k_16384_dp_bytes"].value
    assert sent == pytest.approx((4 + 2) * held * 127 / 128, rel=0.02)
    page = (ROOT / "docs/guide/experts.md").read_text("utf-8")
    assert "Llama reduces its gradient once a step" in page


def test_step_has_no_experts_where_there_are_none() -> None:
    chart = table("moe-step")
    assert value(chart, "llama_3_405b_8k_16384_ep_bytes") == 0
    # Of 58 layers of experts over 16 stages the fullest has 4; 15,360 sequences over 128 replicas,
    # each copy twice dispatched in FP8 with a scale per 128 and twice combined in BF16.
    copies = 4 * 15360 / 128 * 8 * 4096 * 7168 * 63 / 64
    want = copies * (2 * (1 + 4 / 128) + 2 * 2)
    assert value(chart, "deepseek_v3_ep_bytes") == pytest.approx(want)


def test_both_readings_of_the_world_multiply_out() -> None:
    chart = build("parallel-stack", {})
    assert value(chart, "world_size") == 8 * 16 * 2 == 1 * 8 * value(chart, "edp") * 2
    assert value(chart, "product") == 8 * value(chart, "world_size")


@pytest.mark.parametrize("ep", [8, 16])
def test_the_grids_of_a_stage_are_remainders_and_quotients_as_the_page_says(ep: int) -> None:
    parallel = layout(nodes=32, gpus_per_node=8, tp=8, pp=2, ep=ep, etp=1)
    assert parallel.world_size // parallel.pp == 128
    for gpu in range(128):
        dense = coordinates_of(parallel.dense, gpu)
        expert = coordinates_of(parallel.expert, gpu)
        assert (dense["tp"], dense["dp"]) == (gpu % 8, gpu // 8)
        assert (expert["ep"], expert["edp"]) == (gpu % ep, gpu // ep)


def test_more_nodes_send_more_over_the_network() -> None:
    chart = table("moe-placement")
    assert [float(row[4]) for row in chart.rows] == pytest.approx([0, 8 / 15, 24 / 31, 56 / 63])
    for row in chart.rows:
        sent = 4 * 8 * 4096 * 7168 * 2 * (1 - 1 / int(row[0]))
        assert float(row[3]) == pytest.approx(sent)
        assert float(row[5]) * 450e6 + float(row[6]) * 50e6 == pytest.approx(sent)  # in ms
    work = 6 * 3 * 7168 * 2048 * 9 * 4096 / 989.4e12
    assert value(chart, "work_s") == pytest.approx(work)
    sending = float(chart.rows[-1][6]) / 1e3
    assert value(chart, "ep64_working") == pytest.approx(work / (work + sending))


def test_node_limit_never_sends_more() -> None:
    chart = table("moe-node-limit")
    copies = [float(row[3]) for row in chart.rows]
    assert copies == sorted(copies, reverse=True)
    assert copies[0] == 7
    assert copies[2] <= 4 * 7 / 8
    assert value(chart, "every_expert_bytes") == 7 * 7168 * 2
    with pytest.raises(InputError, match="divisor of 256"):
        build("moe-node-limit", {"nodes": 3})


def test_published_ways_to_experts_are_predicted_in_their_order() -> None:
    rows = table("experts-published").rows
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        assert one[0] == other[0]
        assert one[1:4] != other[1:4]
        assert other[4] < one[4]
        assert other[5] < one[5]
    measured = {row[1]: row[4] for row in rows[:2]}
    assert measured == json.loads(EXPERT_DISPATCH.read_text("utf-8"))["xtuner_ep32_step_s"]


def test_mfu_of_published_runs_is_that_of_their_tokens_and_active_parameters() -> None:
    chart = build("experts-mfu", {})
    # Parameters of matmuls, layers, hidden size, sequence, tokens a step, GPUs, printed seconds.
    by_hand = {
        "dense_measured": (69.5e9, 80, 8192, 8192, 128 * 8192, 64, 14.66),
        "qwen3_235b_measured": (21.6e9, 94, 8192, 4096, 2048 * 4096, 256, 25.53),
    }
    for name, (weights, layers, width, sequence, tokens, gpus, step_s) in by_hand.items():
        flops = (6 * weights + 12 * layers * width * sequence) * tokens
        mfu = flops / (step_s * gpus * 989.4e12)
        assert chart.values[name].value == pytest.approx(mfu, rel=0.02), name
    # The page says: wide experts lose little, narrow ones half, and predictions are close.
    share = {name: one.value for name, one in chart.values.items()}
    assert share["dense_measured"] > share["grok_measured"] > 0.4
    assert share["dense_tokens"] == pytest.approx(128 * 8192 / 14.66 / 64, rel=1e-3)
    assert 0.75 < share["deepseek_v3_tokens"] / share["dense_tokens"] < 0.9
    assert all(share[f"{name}_measured"] < 0.3 for name in ("deepseek_v3", "gpt_oss_120b"))
    for name in ("dense", "grok", "deepseek_v3", "qwen3_235b", "gpt_oss_120b"):
        assert share[f"{name}_predicted"] == pytest.approx(share[f"{name}_measured"], rel=0.05)
