"""A verdict on a measured step, from the data people have, with reasons that the model computes."""

from __future__ import annotations

from collections import Counter

import pytest

from figgen.errors import InputError
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.runs.classes import run_class
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.rates import attained
from figgen.scenarios.runs.step_as_run import described, job_of
from figgen.scenarios.verdict.causes import AS_PREDICTED, CAUSES
from figgen.scenarios.verdict.changed import (
    TimedJob,
    larger_microbatches,
    not_recomputed,
    recomputed,
    shared_once,
    slow_experts,
    slow_inside,
    slow_network,
)
from figgen.scenarios.verdict.measurement import measured_time
from figgen.scenarios.verdict.reasons import spread_of
from figgen.scenarios.verdict.threads import judged_threads
from figgen.scenarios.verdict.verdict import timed_job, verdict_of_step

JOB = {
    "model": "llama-3-8b", "nodes": 2, "gpus_per_node": 8, "tp": 2, "zero_stage": 1,
    "microbatch_size": 1, "global_batch": 64, "sequence": 8192, "software": "megatron-lm",
}  # fmt: skip


def timed(asked: TrainingStep) -> TimedJob:
    run = described(asked.setup, asked.accelerator, asked.nic, asked.dtype, asked.software)
    seconds = asked.predicted.step_time_s
    return timed_job(run, job_of(asked.setup, run), attained(run), seconds)


def run_of(asked: TrainingStep) -> DescribedRun:
    return described(asked.setup, asked.accelerator, asked.nic, asked.dtype, asked.software)


def test_the_cause_is_among_the_first_three_reasons_of_threads_of_the_order() -> None:
    judged = judged_threads(False)
    assert len(judged) == 35
    assert sum(one.found for one in judged) / len(judged) >= 0.7


def test_frequencies_of_causes_are_those_of_the_threads_of_the_order() -> None:
    named: Counter[str] = Counter()
    concerned: Counter[str] = Counter()
    for one in judged_threads(False):
        concerned.update(reason.name for reason in one.verdict.reasons)
        for place, cause in enumerate(one.thread.causes):
            named[cause] += 2 if place == 0 else 1
    for name, cause in CAUSES.items():
        assert cause.named == named[name] / 2, name
        assert cause.concerned == concerned[name], name


def test_every_number_that_people_have_says_the_same_time() -> None:
    run = run_of(training_step(**JOB))
    tokens = run.global_batch * run.sequence / run.gpus
    seconds = measured_time(run, tokens_per_s=tokens / 4).step_time_s
    assert seconds == pytest.approx(4)
    # 6 FLOPs a parameter and 12·layers·width·sequence of attention, as the log counts them.
    flops = 6 * (8.03e9 - 128256 * 4096) + 12 * 32 * 4096 * 8192
    assert measured_time(run, flops_per_s=tokens * flops / 4).step_time_s == pytest.approx(
        4, rel=0.01
    )
    peak = run.accelerator.peak_flops_per_s("bf16")
    by_share = measured_time(run, utilisation=tokens * flops / 4 / peak).step_time_s
    assert by_share == pytest.approx(4, rel=0.01)
    line = "elapsed time per iteration (ms): {} | throughput per GPU (TFLOP/s/GPU): 1 |"
    found = measured_time(run, log="\n".join(line.format(ms) for ms in (90000, 4000, 4100, 3900)))
    assert found.step_time_s == 4
    assert found.steps == 4


def test_one_number_is_needed_and_no_more() -> None:
    run = run_of(training_step(**JOB))
    with pytest.raises(InputError, match="expected one of"):
        measured_time(run)
    with pytest.raises(InputError, match="tokens_per_s and step_time"):
        measured_time(run, tokens_per_s=1.0, step_time_s=1.0)
    with pytest.raises(InputError, match="log"):
        measured_time(run, log="nothing of a step")
    with pytest.raises(InputError, match="> 0"):
        measured_time(run, step_time_s=0.0)


def test_a_change_takes_as_long_as_the_job_that_is_configured_so() -> None:
    plain, again = training_step(**JOB), training_step(**JOB, recompute="full")
    assert not_recomputed(timed(again)) == pytest.approx(plain.predicted.step_time_s)
    least, most = recomputed(timed(plain)) or (0.0, 0.0)
    assert least == most == pytest.approx(again.predicted.step_time_s)
    assert recomputed(timed(again)) is None
    assert not_recomputed(timed(plain)) is None
    shared = training_step(**{**JOB, "zero_stage": 3, "software": "fsdp"})
    whole = training_step(**{**JOB, "software": "fsdp"})
    assert shared_once(timed(shared)) == pytest.approx(whole.predicted.step_time_s)
    per_node = training_step(**JOB, nic="50 GB/s per node")
    found = slow_network(timed(training_step(**JOB, nic="50 GB/s per GPU")))
    assert found is not None
    assert found[0] == pytest.approx(per_node.predicted.step_time_s)
    assert found[1] > found[0]
    larger = training_step(**{**JOB, "microbatch_size": 4})
    assert larger_microbatches(timed(training_step(**JOB))) == pytest.approx(
        larger.predicted.step_time_s
    )


def test_what_a_job_does_not_have_cannot_be_wrong_with_it() -> None:
    alone = timed(training_step(model="llama-3-1b", nodes=1, gpus_per_node=1))
    assert slow_network(alone) is None
    assert slow_inside(alone) is None
    assert slow_experts(alone) is None


def test_a_step_within_its_interval_is_as_predicted_and_a_faster_one_too() -> None:
    asked = training_step(**JOB)
    low, high = asked.predicted.low_s, asked.predicted.high_s
    words = {}
    for seconds in (0.8 * low, 0.99 * high, 3 * high):
        found = verdict_of_step(asked, {"step_time_s": seconds})
        words[found.word] = found.reasons[0].name
        assert sum(one.score for one in found.reasons) == pytest.approx(1)
        for one in found.reasons:
            assert one.worth_s is None or 0 <= one.worth_s[0] <= one.worth_s[1] <= seconds
    assert words["faster than predicted"] == words["as predicted"] == AS_PREDICTED
    assert words["slower than predicted"] != AS_PREDICTED


def test_a_density_is_one_over_all_times() -> None:
    spread = spread_of(0.8, 1.3)
    for least, most in ((1.0, 1.0), (2.0, 2.0), (1.5, 9.0)):
        ratios = [1.001**step for step in range(-4000, 6000)]
        whole = sum(spread.density(ratio, least, most) for ratio in ratios) * 0.0009995
        assert whole == pytest.approx(1, abs=0.01)


def test_like_runs_are_of_the_same_chips_and_format_and_have_a_source() -> None:
    found = verdict_of_step(training_step(**JOB), {"step_time_s": 10.0})
    assert found.like
    own = run_class(found.run)
    for one in found.like:
        assert one.row.chips == own.chips
        assert one.row.dtype == "bf16"
        assert one.row.source
    assert 0 <= found.slower_than <= len(found.like)
    nearest = [one.distance for one in found.like]
    assert nearest == sorted(nearest)
