"""The planner's figures show what the planner found."""

from __future__ import annotations

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.figures.training.planned import planned, planned_front, planned_layouts
from figgen.figures.training.planned_presets import planned_presets
from figgen.scenarios.evidence.measured import measured_runs, shown_runs
from figgen.scenarios.evidence.published_plans import published_plan

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
    for name in ("gpt-177b-h100", "megascale-175b"):
        setup = published_plan(name).best.setup
        chunks = setup.placement.stages // setup.parallel.pp
        assert max(run.virtual_stages for run in timed) == 12 < chunks == 16
    long = published_plan("llama-3-405b-131k").best.setup
    assert max(run.cp for run in timed) == 16 < long.parallel.cp == 32
