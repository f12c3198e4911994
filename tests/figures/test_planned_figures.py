"""The planner's figures show what the planner found."""

from __future__ import annotations

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.figures.training.planned import planned, planned_front, planned_layouts
from figgen.figures.training.planned_presets import planned_presets
from figgen.scenarios.evidence.measured import measured_runs, shown_runs
from figgen.scenarios.evidence.published_plans import published_plan
from figgen.scenarios.runs.residual_classes import generation_of

MIXTURES = ("deepseek-v3", "qwen-3-235b-a22b")
ASKED = {"model": "llama-3-8b", "sizes": "nodes=1", "options": "global_batch=8"}


def test_the_table_and_the_front_are_the_plan() -> None:
    found = planned("", ASKED["model"], ASKED["sizes"], ASKED["options"])
    table = planned_layouts(**ASKED, most=5)
    places = list(found.meshes)[:5]
    assert [row[1] for row in table.rows] == [found.meshes[place] for place in places]
    assert [row[2] for row in table.rows] == found.found.step_s[places].tolist()
    assert [row[4] for row in table.rows] == found.found.memory_bytes[places].tolist()
    assert table.values["tried"].value == found.layouts
    (front,) = planned_front(**ASKED).series
    assert front.y[0] == found.found.step_s[0]
    assert list(front.x) == sorted(front.x, reverse=True)
    assert list(front.y) == sorted(front.y)


def test_a_job_of_which_nothing_fits_is_refused() -> None:
    with pytest.raises(InputError, match="one that fits, got '164 GB at least'"):
        planned_layouts(model="llama-3-70b", sizes="nodes=1")


def test_half_of_the_published_layouts_are_behind_by_more_than_the_one_in_the_middle() -> None:
    table = planned_presets()
    behind = [row[5] for row in table.rows]
    assert table.values["median"].value == pytest.approx(np.median(behind))
    assert table.values["layouts"].value > 1e6


def test_choices_go_beyond_what_was_timed_as_the_page_says() -> None:
    timed = [run for run in (*measured_runs(), *shown_runs()) if run.step_time_s]
    gathered = [run for run in timed if run.zero_stage == 3]
    ampere = [run for run in gathered if generation_of(run.accelerator) == "ampere"]
    best = {name: published_plan(name).best.setup for name in ("opt-175b", *MIXTURES)}
    spread = best["opt-175b"].parallel
    assert best["opt-175b"].zero_stage == 3
    assert max(run.dp * run.cp for run in ampere) == 128 < spread.dp * spread.cp == 496
    assert max(run.ep for run in timed) == 64 >= best["deepseek-v3"].parallel.ep
    assert best["deepseek-v3"].zero_stage < 3
    whole = [run for run in timed if run.ep > 1 and run.etp == 1]
    mixture = best["deepseek-v3"].parallel
    assert mixture.etp == 1
    assert max(run.tp for run in whole) == 2 < mixture.tp == 4
    assert best["qwen-3-235b-a22b"].zero_stage < 3
