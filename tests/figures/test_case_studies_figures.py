"""Case studies: printed values come from the catalog, computed ones from the models."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from figgen.catalog import model, run
from figgen.charts import Curves
from figgen.errors import InputError
from figgen.figures.training.case_studies import (
    published_readings,
    runs_held_and_sent,
    training_hours,
)
from figgen.registry import build
from figgen.scenarios.options.resolve import training_step

CASES = (
    "gpt-3-175b",
    "gpt-1t",
    "gpt-175b-selective",
    "mt-nlg-530b",
    "bloom-176b",
    "opt-175b",
    "nemotron-4-340b",
    "megascale-175b",
    "llama-3-405b-8k-16384",
    "llama-3-405b-131k",
    "deepseek-v3",
)


@pytest.mark.parametrize("preset", CASES)
def test_configuration_of_a_run_is_the_published_one(preset: str) -> None:
    """Sizes that are sums or multiples must agree with printed ones, if there are any."""
    found = training_step(preset=preset)
    assert found.run
    printed = found.run.model.published_parameters.value
    assert found.run.model.parameters == pytest.approx(printed, rel=0.005)
    assert found.run.gpus in (None, found.setup.parallel.world_size)
    assert found.run.tokens_per_step in (None, found.setup.tokens_per_step)


PAGE = (Path(__file__).parents[2] / "docs/guide/case-studies.md").read_text("utf-8")
LLAMA = ("llama-3-405b-8k-16384", "llama-3-405b-131k")


def test_the_opening_compares_runs_with_what_was_printed() -> None:
    names = ("gpt-3-175b", "llama-3-405b-mlperf-512")
    chart = build("computed-over-published", {"runs": names, "named": names[:1]})
    assert isinstance(chart, Curves)
    assert {each.name: each.x for each in chart.series} == {"Ampere": (384.0,), "Hopper": (512.0,)}
    # Narayanan et al. 2021: table 2 has 1,536 sequences at 153 TFLOP/s on each of 384 GPUs, and
    # appendix A the work of a step, every layer computed twice.
    b, s, layers, h, v = 1536, 2048, 96, 12288, 51200
    work = 96 * b * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))
    step_s = training_step(preset="gpt-3-175b").estimate.step_time_s
    printed = step_s / (work / 384 / 153e12) - 1
    assert chart.values["gpt_3_175b_difference"].value == pytest.approx(printed, abs=1e-3)
    assert [mark.y for mark in chart.marks] == [pytest.approx(printed, abs=1e-3)]
    with pytest.raises(InputError, match="a run with a step time"):
        build("computed-over-published", {"runs": ("opt-175b",)})


def test_what_a_run_sends_is_the_sum_of_its_calls() -> None:
    sent = build("step-communication", {"preset": "mt-nlg-530b"}).values
    row = runs_held_and_sent(runs=("mt-nlg-530b",)).values
    inside, between = (float(row[f"mt_nlg_530b_{where}"].value) for where in ("inside", "between"))
    assert between == pytest.approx(float(sent["between_nodes"].value))
    assert inside + between == pytest.approx(float(sent["sent"].value))


def test_seven_of_63_peers_of_an_expert_group_are_on_its_own_node() -> None:
    row = runs_held_and_sent(runs=("deepseek-v3",)).values
    inside, between = (float(row[f"deepseek_v3_{where}"].value) for where in ("inside", "between"))
    # Four layers with experts, 120 microbatches, to the experts in 8 bits with a scale for each
    # 128 and back in 16. Dense gradients run in eight rings of eight members a node.
    per_peer = 4 * 120 * 2 * 4096 * 8 * 7168 * (1 + 4 / 128 + 2) / 64
    sent = build("step-communication", {"preset": "deepseek-v3"}).values
    dp, others = (
        sum(float(sent[f"{axis}_sent"].value) for axis in axes) for axes in (("dp",), ("edp", "pp"))
    )
    assert inside == pytest.approx(7 * per_peer + 7 / 8 * dp)
    assert between == pytest.approx(56 * per_peer + dp / 8 + others)


# 6N + 12·L·h·s FLOPs per token (Chowdhery et al. 2022, appendix B) over the printed 380 TFLOP/s.
def test_the_printed_rate_at_131k_means_15_or_11_seconds() -> None:
    weights, whole = 6 * 405.85e9, 12 * 126 * 16384 * 131072
    tokens_per_gpu = 128 * 131072 / 16384
    found = published_readings(runs=LLAMA).values
    for words, attention in (("6nd", whole), ("causal", whole / 2)):
        step_s = tokens_per_gpu * (weights + attention) / 380e12
        assert found[f"s131072_{words}_step"].value == pytest.approx(step_s, rel=0.01)


def test_the_page_calls_the_reading_nearest_whose_worst_miss_is_least() -> None:
    worst: dict[tuple[str, str], float] = {}
    for _, counted, _said, *computed in published_readings(runs=LLAMA).rows:
        for when, off in zip(("each", "once"), computed, strict=True):
            key = str(counted), when
            worst[key] = max(worst.get(key, 0.0), abs(float(off)))
    assert min(worst, key=lambda key: worst[key]) == ("the whole square", "once")


def test_a_step_comes_out_within_a_quarter_as_the_page_says() -> None:
    (runs,) = re.findall(r"figure: published-and-computed\n.*?runs: \[(.*?)\]", PAGE, re.S)
    values = build("published-and-computed", {"runs": runs.split(", ")}).values
    off = [values["least_difference"].value, values["most_difference"].value]
    assert "a step time within a quarter of the published one" in PAGE
    assert values["compared"].value > 15
    assert values["halved"].value == "DeepSeek-V3 / R1 and Qwen3-235B-A22B"
    assert "except for DeepSeek-V3 and Qwen3, whose sources leave out the masked half" in PAGE
    assert -0.2 < off[0] < 0 < off[1] < 0.25


def test_rows_that_need_more_than_the_gpu_has_are_marked() -> None:
    names = ("llama-3-405b-8k-16384", "opt-175b")
    held = runs_held_and_sent(runs=names)
    timed = build("published-and-computed", {"runs": names})
    for table in (held, timed):
        assert [str(row[0]).endswith(" †") for row in table.rows] == [True, False]
    assert [float(row[4]) > 85.52e9 for row in held.rows] == [True, False], "an H100's 79.65 GiB"
    assert timed.values["overfull"].value == 1


def test_megascale_is_computed_between_its_baseline_and_itself() -> None:
    """MegaScale, abstract: 55.2%, 1.34 times Megatron-LM on the same number of GPUs."""
    mfu = build("step-breakdown", {"preset": "megascale-175b"}).values["mfu"].value
    assert run("megascale-175b-12288").mfu.value == 0.552
    assert run("megascale-175b-megatron-12288").mfu.value == pytest.approx(0.552 / 1.34, abs=5e-4)
    assert 0.412 < mfu < 0.552
    assert "so its prediction lies between the two" in PAGE


def test_readings_need_a_printed_rate() -> None:
    with pytest.raises(InputError, match="printed FLOP rate"):
        published_readings(runs=("opt-175b",))


# Touvron et al. 2023 say "about 21 days" of LLaMA 65B on 2,048 GPUs at "around 380" tokens/s/GPU.
def test_llama_65b_took_21_days_at_380_tokens_per_second_and_gpu() -> None:
    rows = {row[0]: row for row in training_hours().rows}
    assert float(rows["LLaMA 65B"][5]) == pytest.approx(21, abs=0.5)
    assert float(rows["LLaMA 65B"][6]) == pytest.approx(380, abs=1)


def test_deepseek_v3_took_54_days_on_its_2048_gpus() -> None:
    """DeepSeek-V3 report, section 1: pre-training took two months, 2.664M GPU hours."""
    assert training_hours().values["deepseek_v3_days"].value == pytest.approx(54.2, abs=0.05)


def test_model_without_published_hours_is_refused() -> None:
    assert model("mixtral-8x7b").gpu_hours is None
    with pytest.raises(InputError, match="GPU hours"):
        training_hours(models=("mixtral-8x7b",))


def test_the_405b_run_is_overfull_by_gradients_that_its_report_divides() -> None:
    """The count also frees the ends of stages; the excess is an eighth of eight layers' FP32
    gradients."""
    whole = training_step(preset="llama-3-405b-8k-16384")
    assert not whole.setup.framework_memory.keeps_outputs
    divided = training_step(preset="llama-3-405b-8k-16384", zero_stage=2)
    kept, left = (
        {part.name: part.bytes for part in found.memory.fullest.parts}["gradients"]
        for found in (whole, divided)
    )
    assert kept - left == pytest.approx(405e9 / 126 * 4 * 127 / 128, rel=0.02)
    assert whole.memory.fits is divided.memory.fits is False
    assert divided.memory.fullest.total_bytes < 1.06 * 85.5e9
