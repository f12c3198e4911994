"""`figgen verdict` reads a job and its measurement, and answers in words and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.__main__ import main

JOB = (
    "verdict", "--model", "llama-3-70b", "--accelerator", "h200-sxm-141gb", "--nodes", "4",
    "--gpus-per-node", "8", "--tp", "8", "--zero", "3", "--microbatch-size", "8",
    "--global-batch", "32", "--sequence", "8192", "--recompute", "full", "--software", "torchtitan",
)  # fmt: skip
RUN = {
    "id": "mine", "model": "llama-3-8b", "hardware": "H100 SXM", "num_accelerators": 8, "tp": 1,
    "pp": 1, "global_batch_sequences": 128, "seq_length": 8192, "framework": "megatron-lm",
    "step_time_s": 30.0,
}  # fmt: skip


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_a_slow_network_is_named_first_for_70b_on_32_h200(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*JOB, "--tokens-per-s", "200"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("slower than predicted: a step took 41")
    assert "similar published runs reach more" in lines[1]
    first = next(line for line in lines if line.startswith("  1. "))
    assert "network between nodes" in first
    assert "costs" in first


def test_the_numbers_that_people_have_are_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    by_time = answered(capsys, *JOB, "--step-time", "40.96 s")
    by_rate = answered(capsys, *JOB, "--tokens-per-s", "200")
    assert by_time["measured_step_time_s"] == pytest.approx(by_rate["measured_step_time_s"])
    by_share = answered(capsys, *JOB, "--mfu", f"{by_rate['model_flops_utilisation']:.6f}")
    assert by_share["measured_step_time_s"] == pytest.approx(40.96, rel=1e-4)
    log = tmp_path / "train.log"
    line = "step: {}  loss:  9.0  memory: 99.00GiB(70%)  tps: 200  tflops: 1  mfu: 1%"
    log.write_text("\n".join(line.format(step) for step in range(1, 5)), encoding="utf-8")
    by_log = answered(capsys, *JOB, "--log", str(log))
    assert by_log["measured_step_time_s"] == pytest.approx(40.96)
    assert by_log["measured_from"] == "4 steps of torchtitan"
    assert "first-steps" in {one["cause"] for one in by_log["reasons"]}  # type: ignore[attr-defined]


def test_a_run_of_a_file_is_judged_by_its_own_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(RUN), encoding="utf-8")
    found = answered(capsys, "verdict", "--run", str(file))
    assert found["measured_step_time_s"] == 30
    assert found["verdict"] == "slower than predicted"
    file.write_text(json.dumps([RUN, RUN]), encoding="utf-8")
    assert main(["verdict", "--run", str(file)]) == 2
    assert "expected one run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "measured speed"),
        (("--tokens-per-s", "1", "--mfu", "40%"), "tokens_per_s and mfu"),
        (("--tokens-per-s", "many"), "tokens/s or TFLOP/s per GPU"),
        (("--step-time", "soon"), "expected a time"),
    ],
)
def test_what_cannot_be_read_is_named(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert main([*JOB, *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["200", "200 tokens/s/GPU", "0.2k tokens/s", "200 tok/s", "200 tokens/s per GPU"]
)
def test_a_rate_is_read_in_the_ways_that_people_write_it(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    found = answered(capsys, *JOB, "--tokens-per-s", text)
    assert found["measured_step_time_s"] == pytest.approx(32 * 8192 / 32 / 200)


@pytest.mark.parametrize("speed", [("--tokens-per-s", "6,400"), ("--step-time", "1.28 s")])
def test_a_rate_above_the_peak_is_called_impossible(
    capsys: pytest.CaptureFixture[str], speed: tuple[str, str]
) -> None:
    # 6 FLOPs for each of 70 billion parameters, at 6,400 tokens/s, are 2.7 times the 989 TFLOP/s.
    assert main([*JOB, *speed]) == 2
    told = capsys.readouterr().err
    assert "impossible for this job" in told
    assert "all GPUs together" in told


def test_a_log_is_judged_with_its_own_batch(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    line = (
        " iteration {}/ 100 | elapsed time per iteration (ms): 81920.0 | "
        "throughput per GPU (TFLOP/s/GPU): 90.0 | global batch size: {} |"
    )
    log.write_text("\n".join(line.format(step, 64) for step in range(1, 5)), encoding="utf-8")
    by_log = answered(capsys, *JOB, "--log", str(log))
    twice = answered(
        capsys, *("64" if one == "32" else one for one in JOB), "--step-time", "81.92 s"
    )
    for key in ("step_time_s", "model_flops_utilisation", "verdict"):
        assert by_log[key] == twice[key]
    assert main([*JOB, "--log", str(log)]) == 0
    assert "judged with it, not with 32" in capsys.readouterr().out
    log.write_text("\n".join(line.format(step, 65) for step in range(1, 5)), encoding="utf-8")
    assert main([*JOB, "--log", str(log)]) == 2
    assert "multiple of 32" in capsys.readouterr().err


def test_a_run_faster_than_predicted_gets_no_reasons_that_cost_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*JOB, "--mfu", "80%"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("faster than predicted")
    assert "the rate of the whole job" in told
    assert "costs" not in told
