"""Goodput of a planned layout: the source of its checkpoint, its interval and its days."""

from __future__ import annotations

import json
import random
from math import fsum

import pytest

from figgen.__main__ import main
from figgen.catalog.interruptions import interruption
from figgen.errors import InputError
from figgen.models.planner.saving import WAYS, SavedTraining
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.goodput_plan import kept
from figgen.scenarios.planning.plan_question import plan_question

LARGE = plan_question(scenario(model="llama-3-405b", nodes=2048, gpus_per_node=8)).job.setup


def trained_share(one: SavedTraining, failures: int, draw: random.Random) -> float:
    """Return the share of time that was trained and not lost, failure by failure."""
    trained, spent = [], []
    for _ in range(failures):
        until = draw.expovariate(1 / one.mtbf_s)
        period = one.interval_s + one.saving.stall_s
        safe = max(0, int((until - one.saving.restart_s - one.saving.lag_s) // period))
        spent.append(until)
        trained.append(safe * one.interval_s if until > one.saving.restart_s else 0.0)
    return fsum(trained) / fsum(spent)


@pytest.mark.parametrize("way", WAYS)
def test_goodput_is_what_is_trained_between_failures_drawn_one_by_one(way: str) -> None:
    found = kept(LARGE, way)
    assert trained_share(found, 40_000, random.Random(5)) == pytest.approx(found.goodput, abs=0.008)


def test_a_checkpoint_has_the_weights_and_the_optimizer_once() -> None:
    found = kept(LARGE, "storage")
    assert found.checkpoint_bytes == pytest.approx(14 * 405.85e9, rel=1e-3)
    assert found.mtbf_s == pytest.approx(54 * 86_400 / 419)  # Llama 3, table 5, on as many GPUs


def test_days_are_those_of_the_steps_over_what_is_left_of_the_time() -> None:
    found = kept(LARGE, "memory", interruption("rsc-2"))
    steps = 15e12 / 2**24
    assert found.days(15e12, 2**24, 6.0) * 86_400 * found.goodput == pytest.approx(steps * 6.0)
    with pytest.raises(InputError, match="way to save"):
        kept(LARGE, "tape")


def test_the_command_says_the_days_of_the_fastest_layout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["plan", "--model", "llama-3-8b", "--nodes", "1", "--global-batch", "8", "--top", "1",
             "--tokens", "1e12", "--failures", "rsc-1"]  # fmt: skip
    assert main([*asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    best = said["best"][0]
    assert said["failures"] == "rsc-1"
    for way, one in said["goodput"].items():
        days = one["days"]
        assert way in WAYS
        steps = 1e12 / (8 * 8192)
        assert days[0] == pytest.approx(steps * best["step_time_s"] / one["goodput"] / 86_400)
        low, high = best["step_time_interval_s"]
        assert [days[1] / days[0], days[2] / days[0]] == pytest.approx(
            [low / best["step_time_s"], high / best["step_time_s"]]
        )
    assert main(asked) == 0
    assert "spare nodes" in capsys.readouterr().out
    assert main(["rsc-3" if word == "rsc-1" else word for word in asked]) == 2
    assert "rsc-1" in capsys.readouterr().err
