"""One measured step of a job scales all of its times by one factor, and nothing else."""

from __future__ import annotations

import random
from dataclasses import fields
from itertools import permutations

import pytest

from figgen.catalog.residuals import residuals
from figgen.errors import InputError
from figgen.models.planner.ranking import other_layout_interval
from figgen.models.step.attained import slowed
from figgen.models.step.timed_step import StepSeconds, timed_step
from figgen.scenarios.evidence.validation import judged_runs
from figgen.scenarios.options.calibrated import calibrated, calibration_data, calibration_lines
from figgen.scenarios.options.resolve import resolve
from figgen.scenarios.options.scenario import Scenario, scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.planner import plan
from figgen.scenarios.runs.classes import run_class
from tests.models.test_timed_step_counted import drawn_constants, drawn_job

JOBS = {
    "pipeline": scenario(preset="llama-3-405b-8k-8192"),
    "experts": scenario(preset="deepseek-v3"),
    "Muon": scenario(model="llama-3-8b", nodes=1, gpus_per_node=8, recipe="muon14", microbatches=4),
    "offloaded": scenario(
        model="llama-3-8b",
        nodes=1,
        gpus_per_node=8,
        zero_stage=1,
        offloaded_optimizer=1,
        microbatches=4,
    ),
    "LoRA": scenario(
        model="llama-3-8b", nodes=1, gpus_per_node=1, zero_stage=0, lora_rank=8, microbatches=4
    ),
}


@pytest.mark.parametrize("asked", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("times", [0.9, 1.37])
def test_a_calibrated_job_takes_what_was_measured_in_the_same_shares(
    asked: Scenario, times: float
) -> None:
    plain = resolve(asked)
    measured_s = times * (plain.estimate.step_time_s + plain.orthogonalising_s)
    found = calibrated(asked, measured_s)
    assert found.time_factor == pytest.approx(times)
    step = found.asked.estimate
    assert step.step_time_s + found.asked.orthogonalising_s == pytest.approx(measured_s)
    for name in ("compute_s", "recompute_s", "bubble_s", "step_time_s"):
        assert getattr(step, name) == pytest.approx(times * getattr(plain.estimate, name))
    for (axis, waited), (_, before) in zip(step.exposed, plain.estimate.exposed, strict=True):
        assert waited == pytest.approx(times * before, abs=1e-12), axis
    for row, before_row in zip(step.rows, plain.estimate.rows, strict=True):
        assert row.time_s == pytest.approx(times * before_row.time_s), row
        assert row.sent_bytes == before_row.sent_bytes
    assert found.asked.memory == plain.memory
    assert not found.asked.has_interval


def test_all_parts_of_all_jobs_grow_by_the_factor() -> None:
    draw = random.Random(7)
    for _ in range(60):
        job, at = drawn_job(draw), drawn_constants(draw)
        plain, scaled = timed_step(job, at), timed_step(job, slowed(at, 1.5))
        assert scaled.total_s == pytest.approx(1.5 * plain.total_s, rel=1e-9)
        for field in fields(StepSeconds):
            before, after = getattr(plain, field.name), getattr(scaled, field.name)
            if isinstance(before, float):
                # What is left of differences of large times is rounding.
                slack = 1e-12 * plain.total_s
                assert after == pytest.approx(1.5 * before, rel=1e-9, abs=slack), field.name


@pytest.mark.parametrize("factor", [0.0, -1.0])
def test_nothing_takes_no_time_or_less(factor: float) -> None:
    rates = drawn_constants(random.Random(7))
    with pytest.raises(InputError, match="time_factor: expected above 0"):
        slowed(rates, factor)


def test_the_planner_scales_every_layout_and_changes_no_order() -> None:
    job = {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8, "global_batch": 64}
    plain, scaled = (
        plan(plan_question(scenario(**job, **more))).found  # type: ignore[arg-type]
        for more in ({}, {"time_factor": 1.25})
    )
    assert scaled.step_s == pytest.approx(1.25 * plain.step_s)
    assert list(scaled.places) == list(plain.places)


def test_a_step_faster_than_the_peak_is_refused_with_the_least() -> None:
    asked = JOBS["LoRA"]
    plain = resolve(asked)
    least_s = plain.compute_efficiency * plain.estimate.step_time_s
    with pytest.raises(InputError, match=r"at least .*: below that, computing"):
        calibrated(asked, 0.99 * least_s)
    assert calibrated(asked, 1.01 * least_s).asked.compute_efficiency == pytest.approx(1 / 1.01)
    low = scenario(**dict(asked.chosen), time_factor=0.99 * plain.compute_efficiency)
    with pytest.raises(InputError, match=r"time_factor: expected at least 0\.\d{3}"):
        _ = resolve(low).estimate
    with pytest.raises(InputError, match="none with time_factor"):
        calibrated(scenario(**dict(asked.chosen), time_factor=1.1), 9.0)
    with pytest.raises(InputError, match="step_time: expected > 0 s"):
        calibrated(asked, 0.0)


def test_what_was_scaled_is_said() -> None:
    plain = resolve(JOBS["pipeline"]).estimate.step_time_s
    found = calibrated(JOBS["pipeline"], 1.18 * plain)
    [line] = calibration_lines(found)
    assert line.startswith("your step is 1.18 × the prediction of ")
    assert "1.18 times slower" in line
    assert line.endswith("--time-factor 1.18")
    assert "1.25 times faster" in calibration_lines(calibrated(JOBS["pipeline"], 0.8 * plain))[0]
    assert calibration_data(found)["predicted_step_time_s"] == plain


@pytest.mark.parametrize(
    "name",
    [
        "Megatron on Hopper, dense",
        "nanotron on Hopper, dense",
        "llm-foundry on Ampere, dense",
        "llm-foundry on Hopper, dense",
        "Megatron on Blackwell, experts",
    ],
)
def test_eight_of_ten_other_layouts_are_within_the_interval_of_a_calibrated_job(name: str) -> None:
    """It tests every pair of measured layouts of one model, chip and software; one calibrates the
    other."""
    known = residuals()[name]
    low, high = other_layout_interval(known.low, known.high)
    groups: dict[object, list[float]] = {}
    for one in judged_runs():
        if run_class(one.run).name == name:
            key = (one.run.shape, one.run.accelerator.name, one.run.framework, one.run.dtype)
            groups.setdefault(key, []).append(one.measured_s / one.predicted_s)
    pairs = [pair for group in groups.values() for pair in permutations(group, 2)]
    assert len(pairs) >= 40
    within = sum(low <= other / mine <= high for mine, other in pairs)
    assert within >= 0.8 * len(pairs)
    assert low < known.low < known.high < high
