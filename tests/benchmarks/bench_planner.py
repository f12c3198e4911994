"""How many layouts the planner tries per second, in Python on one core and in the page, and how
many of the same layouts other models evaluate.

`make bench ROUNDS=1` prints it; nothing here fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from figgen.scenarios.options.resolve import resolve
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.planner import plan
from tests.browser.conftest import RUN
from tests.browser.site import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

RIVALS = ROOT / ".cache" / "rivals"

JOBS: dict[str, dict[str, Any]] = {
    "70B on 64 GPUs": {"model": "llama-3-70b", "nodes": 8},
    "405B on 1,024 GPUs": {"model": "llama-3-405b", "nodes": 128, "global_batch": 2048},
    "8 × 7B on 32 GPUs": {"model": "mixtral-8x7b", "nodes": 4, "sequence": 4096},
}


def test_rivals_on_the_same_layouts() -> None:
    """The rivals run in their own environment, which `make rivals` sets up."""
    if not (RIVALS / "ready").exists():
        pytest.skip("make rivals sets up the other tools")
    told = subprocess.run(
        [RIVALS / "bin" / "python", "-m", "tests.benchmarks.rivals.rate"],
        env=os.environ | {"CALCULON": str(RIVALS / "calculon")},
        check=True,
        capture_output=True,
        text=True,
    )
    print(f"\n{told.stdout}")


@pytest.mark.parametrize("name", JOBS)
def test_layouts_per_second(page: Page, scripts_address: str, name: str) -> None:
    job = {"gpus_per_node": 8, **JOBS[name]}
    question = plan_question(scenario(**job))
    started = time.process_time()
    found = plan(question)
    ours = found.layouts / (time.process_time() - started)
    asked = question.asked.but(tp=8, pp=4, global_batch=question.job.global_batch)
    started = time.process_time()
    alone = resolve(asked)
    one = (alone.predicted.step_time_s, alone.memory.fits, time.process_time() - started)
    page.goto(f"{scripts_address}/index.html")
    suites = f"{scripts_address}/planner_suites.js"
    rate = json.loads(page.evaluate(RUN, [suites, "rate", job]))
    print(
        f"\n{name}: {found.layouts:,} layouts, {ours:,.0f} a CPU second in Python, "
        f"{rate:,.0f} a second in the page; one by one {1 / one[2]:,.0f}"
    )
