"""Post-training: published steps above their lower bound, and defects of the catalog."""

from __future__ import annotations

import pytest

from figgen.catalog import load
from figgen.catalog.post_training import (
    PHASE_FILE,
    RUN_FILE,
    phase_times,
    post_training_runs,
    read_phase_times,
    read_post_training,
)
from figgen.charts import Bars, Curves
from figgen.errors import InputError
from figgen.registry import build
from figgen.scenarios.evidence.decoding import decoding_share
from figgen.scenarios.stories.post_training import predicted_post_training


def test_tokens_of_every_run_over_its_time_are_the_printed_rates() -> None:
    """The tables also print tokens per second per GPU: means of five steps, including prompts."""
    printed = {
        "nemo-rl-llama-3-8b-h100-16": 1581,
        "nemo-rl-qwen-3-32b-h100-32": 571,
        "nemo-rl-qwen-3-32b-gb200-32-async": 1025,
        "nemo-rl-deepseek-v3-h100-256": 12.1,
        "nemo-rl-qwen-3-235b-a22b-h100-128": 58.9,
        "nemo-rl-qwen-3-30b-a3b-h100-192-async": 1025,
        "nemo-rl-qwen-3-30b-a3b-gb200-16": 1910,
    }
    for name, rate in printed.items():
        run = post_training_runs()[name]
        assert run.answers * run.mean / run.step_s / run.gpus == pytest.approx(rate, rel=0.16), name


def test_no_published_step_is_faster_than_its_floor() -> None:
    """27 runs of one publisher, none of which was used to fit anything."""
    runs = post_training_runs()
    assert len(runs) == 27
    for name, run in runs.items():
        step = predicted_post_training(run)
        assert run.step_s > 0.98 * step.time_s, name
        assert step.time_s >= max(step.generate_s, step.train_s)


def test_floors_rank_the_runs_of_each_chip_as_measured() -> None:
    """Spearman's rank correlation of lower bounds and measured steps."""
    for chip in ("h100-sxm-80gb", "gb200-nvl72"):
        runs = [run for run in post_training_runs().values() if run.accelerator.name == chip]
        floors = [predicted_post_training(run).time_s for run in runs]
        times = [run.step_s for run in runs]
        ranks = [[sorted(row).index(each) for each in row] for row in (floors, times)]
        count = len(runs)
        apart = sum((a - b) ** 2 for a, b in zip(*ranks, strict=True))
        assert 1 - 6 * apart / (count * (count**2 - 1)) > 0.74


def test_one_gpu_reads_at_three_quarters_of_its_bandwidth() -> None:
    """TensorRT-LLM's two rates of Llama 2 7B on one H100: 73% and 77%."""
    assert decoding_share() == pytest.approx(0.75, abs=0.01)


def test_phases_are_within_their_steps_and_writing_is_the_largest() -> None:
    chart = build("post-training-phases", {})
    assert isinstance(chart, Bars)
    for place in range(len(chart.labels)):
        parts = [each.lengths[place] for each in chart.segments]
        assert sum(parts) == pytest.approx(1)
        assert parts[0] == max(parts)
    assert phase_times()["verl-1208"].phases["generate"] / 96.551 == pytest.approx(0.767, abs=1e-3)


def test_the_best_split_is_where_neither_group_waits() -> None:
    chart = build("post-training-split", {})
    assert isinstance(chart, Curves)
    write, train = (each.y for each in chart.series)
    step = [max(pair) for pair in zip(write, train, strict=True)]
    best = step.index(min(step))
    assert abs(write[best] - train[best]) <= abs(write[best - 1] - train[best - 1])
    assert list(write) == sorted(write, reverse=True)
    assert list(train) == sorted(train)


def test_ppo_holds_two_trained_models_and_two_frozen_ones() -> None:
    """18 bytes per parameter for each trained model, 2 for each frozen one, and a whole copy."""
    values = build("post-training-memory", {"gpus": 1}).values
    count = 8_030_261_248
    assert values["ppo"].value == pytest.approx(count * (2 * 18 + 2 * 2 + 2))
    assert values["grpo"].value == pytest.approx(count * (18 + 2 + 2))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("mean = 1019", "mean = 5000", "at most longest"),
        ("steps_old = 1\n", "", "fewer than gpus, with steps_old"),
        ('model = "llama-3-8b"', 'model = "llama-3-9b"', "dangling reference"),
        ("generation_tp = 4", "generation_tp = 5", "a divisor of"),
    ],
)
def test_defects_of_a_run_are_named(right: str, wrong: str, said: str) -> None:
    text = load.content(RUN_FILE)
    assert right in text
    with pytest.raises(InputError, match=said):
        read_post_training(
            text.replace(right, wrong, 1), load.sources(), load.models(), load.accelerators()
        )


def test_phases_longer_than_their_step_are_refused() -> None:
    text = load.content(PHASE_FILE).replace('generate = "32.52 s"', 'generate = "62.52 s"')
    with pytest.raises(InputError, match="phases within 66"):
        read_phase_times(text, load.sources())


def test_unknown_runs_and_impossible_limits_are_refused() -> None:
    with pytest.raises(InputError, match="post-training run"):
        build("post-training-step", {"run": "nemo-rl"})
    with pytest.raises(InputError, match="at least 1019"):
        build("rollout-tail", {"longest": 500})
