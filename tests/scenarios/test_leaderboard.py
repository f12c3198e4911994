"""The leaderboard: a split that stays as frozen, and errors that a reader can recompute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.catalog.leaderboard import frozen_split
from figgen.errors import InputError
from figgen.scenarios.evidence.leaderboard import board, our_seconds, scored, split_jobs
from figgen.scenarios.evidence.publishers import published_runs
from figgen.scenarios.evidence.split import PUBLISHER_SIDES, TEST, side_of_key


def test_the_split_is_of_whole_publishers_who_fit_nothing() -> None:
    """Eleven publishers and 155 runs since 2026-11-27, whatever is collected later."""
    split = frozen_split()
    sizes = {name: len(runs) for name, runs in split.publishers.items()}
    assert sizes == {
        "amd-te-threads": 3, "aws-neuron": 31, "fla-org-issue32": 5, "huggingface-smollm3": 1,
        "internlm-xtuner-megatron-h800": 18, "lightning-litgpt": 9, "modelscope-ms-swift": 15,
        "nvidia-jax-toolbox": 13, "nvidia-megatron-bridge-cards": 28,
        "primeintellect-prime-rl": 22, "pytorch-torchtune": 10,
    }  # fmt: skip
    assert all(PUBLISHER_SIDES[name] == side_of_key(name) == TEST for name in sizes)
    measured = {run: s for runs in split.publishers.values() for run, s in runs.items()}
    assert {job["run"]: job["measured_s"] for job in split_jobs()} == measured
    assert set(our_seconds()) == set(measured)
    doubtful = {one.run.name for one in published_runs() if one.doubt}
    assert doubtful & set(measured)  # Whoever doubts a run later takes it out of no score.


def test_publishers_count_once_whatever_their_runs() -> None:
    """Two runs of one publisher take twice as long (100% off), the only run of another 10% less."""
    runs = frozen_split().publishers
    many, alone = list(runs["aws-neuron"].items())[:2], list(runs["huggingface-smollm3"].items())
    answers = {name: 2 * s for name, s in many} | {name: 0.9 * s for name, s in alone}
    row = scored("a", "1", "", answers)
    assert (row.runs, row.publishers) == (3, 2)
    assert row.mean_absolute == pytest.approx((1.0 + 0.1) / 2)
    assert row.median_absolute == pytest.approx(1.0)
    assert row.within_quarter == pytest.approx(1 / 3)


def test_the_best_comes_first_and_rivals_stand_beside_ours() -> None:
    rows = board()
    assert [row.mean_absolute for row in rows] == sorted(row.mean_absolute for row in rows)
    assert len(rows) == 7
    assert next(row for row in rows if not row.source).runs == 155


def test_our_error_fell_by_two_fifths_since_the_set_was_frozen_as_the_page_says() -> None:
    """It was 32.5% on 2026-11-27, the day of the freeze."""
    ours = next(row for row in board() if not row.source)
    assert 1 - ours.mean_absolute / 0.325 == pytest.approx(0.4, abs=0.04)
    page = Path(__file__).parents[2] / "docs" / "validation" / "leaderboard.md"
    assert "Our mean error fell by two fifths" in page.read_text("utf-8")


def test_answers_are_scored_and_mistakes_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.json"
    runs = frozen_split().publishers["aws-neuron"]
    file.write_text(json.dumps({name: 1.25 * s for name, s in runs.items()}), encoding="utf-8")
    assert main(["validate", "--answers", str(file)]) == 0
    assert "31 runs of 1 publishers: mean error 25.0%" in capsys.readouterr().out
    for answers, said in (({"x": 1.0}, "unknown run"), ({next(iter(runs)): 0}, "positive")):
        with pytest.raises(InputError, match=said):
            scored("a", "1", "", answers)
