"""Rivals are judged by the same runs as our model, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from figgen.catalog.rivals import rivals
from figgen.models.step.compute import training_flops_per_token
from figgen.scenarios.evidence.rivals import RUN_GROUPS, comparisons, kind_of, refusals
from figgen.scenarios.evidence.validation import judged_runs


@pytest.mark.parametrize("name", rivals())
def test_each_answers_or_refuses_every_run_that_ours_is_judged_on(name: str) -> None:
    rival = rivals()[name]
    runs = {one.run.name for one in judged_runs()}
    assert rival.seconds.keys() | rival.refused.keys() == runs
    assert not rival.seconds.keys() & rival.refused.keys()
    assert sum(refusals()[name].values()) < len(runs)


GPT = "dgxc-v24.11.1-gpt3-175b-h100-bf16-g128-b256"


def test_llm_analysis_is_flops_over_a_share_of_the_peak_as_its_documentation_says() -> None:
    """A GPT with an MLP of four times the width, for which its FLOP count is the textbook's."""
    [one] = [one for one in judged_runs() if one.run.name == GPT]
    run, rival = one.run, rivals()["llm-analysis"]
    flops = training_flops_per_token(run.shape, "6nd+attention", sequence=run.sequence)
    tokens = run.global_batch * run.sequence
    peak = run.accelerator.peak_flops_per_s("bf16")
    documented, fitted = rival.seconds[run.name]
    assert documented == pytest.approx(flops * tokens / run.gpus / peak / 0.5, rel=1e-3)
    share = rival.fitted[kind_of(run)]
    assert fitted == pytest.approx(documented * rival.documented / share, rel=1e-3)


def test_both_sides_of_a_comparison_are_the_same_test_runs() -> None:
    found = comparisons()
    assert {one.kind for one in found} == set(RUN_GROUPS)
    for one in found:
        tests = [judged for judged in judged_runs() if judged.tested]
        of = [judged for judged in tests if kind_of(judged.run) == one.kind]
        expressed = [judged for judged in of if judged.run.name in one.rival.seconds]
        assert one.of == len(of)
        assert one.ours.runs == one.documented.runs == one.fitted.runs == len(expressed)
        errors = [abs(judged.error) for judged in expressed]
        assert one.ours.mean_absolute == pytest.approx(sum(errors) / len(errors))


def test_what_a_tool_can_express_and_no_comparison_has_is_two_runs_under_fsdp() -> None:
    """The page says that fewer than eight runs of a kind are no comparison."""
    tests = [one.run for one in judged_runs() if one.tested]
    compared = {(one.rival.name, one.kind) for one in comparisons()}
    left = [
        (name, kind_of(run))
        for name, rival in rivals().items()
        for run in tests
        if run.name in rival.seconds and (name, kind_of(run)) not in compared
    ]
    assert left == [("calculon", "dense, FSDP")] * 2


def test_ours_is_ahead_of_every_rival_on_what_that_can_express() -> None:
    for one in comparisons():
        assert one.ours.mean_absolute < one.fitted.mean_absolute, (one.kind, one.rival.name)
        assert one.ours.mean_absolute < one.documented.mean_absolute, (one.kind, one.rival.name)


def test_the_best_of_the_others_has_several_times_our_error_on_dense_models() -> None:
    tuned = [one for one in comparisons() if one.kind == "dense, tuned"]
    errors = [min(one.documented.mean_absolute, one.fitted.mean_absolute) for one in tuned]
    best = min(range(len(tuned)), key=errors.__getitem__)
    assert errors[best] > 3 * tuned[best].ours.mean_absolute
    page = (Path(__file__).parents[2] / "docs" / "validation" / "index.md").read_text("utf-8")
    assert "the best of the others has several times the error" in page
