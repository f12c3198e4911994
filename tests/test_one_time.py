"""What command line, planner, modeler, timeline, trace and journey say of one job is one number."""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
from typing import Any

import numpy as np
import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.planner.plan import pipelines_of, step_s
from figgen.models.planner.plan_space import CHUNKS
from figgen.models.profiles.chrome_trace import trace_events
from figgen.models.step.step_timeline import step_timeline
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.planning.plan_question import NOT_PLANNED, plan_question
from figgen.scenarios.planning.plan_rows import choices_of, plan_rows
from figgen.scenarios.planning.planner import fastest
from figgen.scenarios.stories.journey import rung
from figgen.scenarios.stories.journey_ladder import RUNGS
from tests.browser.training_cases import Choices, answered, random_choices
from tests.scenarios.test_planner_space import columns_of

JOBS, WINNERS = 120, 5
MOST_EVENTS = 4000
SAME = 1e-9


def drawn(count: int) -> list[tuple[Choices, TrainingStep]]:
    """Random jobs that can be."""
    rng, found = random.Random(2025), list[tuple[Choices, TrainingStep]]()
    while len(found) < count:
        choices = random_choices(rng)
        choices = {name: tuple(v) if isinstance(v, list) else v for name, v in choices.items()}
        with contextlib.suppress(InputError):
            one = training_step(**choices)
            assert one.estimate.step_time_s > 0
            found.append((choices, one))
    return found


@pytest.fixture(scope="module")
def jobs() -> list[tuple[Choices, TrainingStep]]:
    return drawn(JOBS)


def printed(choices: Choices) -> Any:
    """What `figgen step --json` prints of a job."""
    words = ["step", "--json"]
    for name, value in choices.items():
        option = OPTIONS[name]
        if value is None or value == option.default:
            continue
        if isinstance(value, bool):
            words.append(option.command_flag.replace("--", "--" if value else "--no-", 1))
        else:
            words += [option.command_flag, str(value)]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert main(words) == 0
    return json.loads(text.getvalue())


def test_the_page_answers_what_the_command_line_computes(
    jobs: list[tuple[Choices, TrainingStep]],
) -> None:
    """The modeler's answer to these is equal to the bit (tests/translation)."""
    for choices, one in jobs:
        said = answered({**choices, "layers_per_stage": list(choices.get("layers_per_stage", ()))})
        step = said["step"]
        assert step["step_time_s"] == one.estimate.step_time_s, choices
        assert step["compute_efficiency"] == one.compute_efficiency, choices
        if one.setup.lora_rank is None:
            assert step["step_time_s"] == one.predicted.step_time_s, choices
        parts = [step["compute_s"], step["recompute_s"], step["bubble_s"]]
        whole = math.fsum([*parts, *step["exposed_s"].values()])
        assert whole == pytest.approx(step["step_time_s"], rel=SAME), choices
        assert min(*parts, *step["exposed_s"].values()) > -SAME * whole, choices


def test_timeline_and_trace_last_as_long_as_the_step(
    jobs: list[tuple[Choices, TrainingStep]],
) -> None:
    checked = 0
    for choices, one in jobs:
        setup = one.setup
        if setup.microbatches * setup.placement.stages > MOST_EVENTS:
            continue
        timeline = step_timeline(setup, one.stages, each_call=False)
        wanted_s = one.estimate.step_time_s
        assert timeline.step_time_s == pytest.approx(wanted_s, rel=SAME), choices
        # The predicted time knows no rank order: with others, calls may cross more adapters.
        if setup.parallel.order == "megatron":
            assert min(event.start_s for event in timeline.events) > -SAME * wanted_s, choices
            latest_s = max(event.end_s for event in timeline.events)
            assert latest_s < (1 + SAME) * wanted_s, choices
        if checked % 8 == 0 and setup.microbatches <= 64:
            events = list(trace_events(setup, timeline))
            steps = [e["dur"] for e in events if e.get("cat") == "user_annotation"]
            assert steps, choices
            assert steps == pytest.approx([wanted_s * 1e6] * len(steps), rel=1e-6), choices
        checked += 1
    assert checked > 0.9 * JOBS


def test_arrays_of_the_planner_have_the_time_of_each_layout(
    jobs: list[tuple[Choices, TrainingStep]],
) -> None:
    checked = 0
    for choices, _ in jobs:
        told = {n: v for n, v in choices.items() if n == "microbatches" or n not in NOT_PLANNED}
        try:
            one = training_step(**told)
        except InputError:
            continue
        setup, parallel = one.setup, one.setup.parallel
        layout = {
            **{axis: getattr(parallel, axis) for axis in ("tp", "cp", "pp", "ep", "etp")},
            "microbatch_size": setup.microbatch_size,
            "zero_stage": setup.zero_stage,
            "schedule": setup.schedule,
            "recompute": setup.recompute,
            "global_batch": setup.global_batch,
        }
        asked = {n: v for n, v in told.items() if n not in ("microbatches", "chunks")} | layout
        if setup.schedule not in CHUNKS:
            continue
        try:
            question = plan_question(scenario(**asked))
        except InputError:
            continue  # recomputation of some layers only
        chunks = setup.placement.stages // setup.placement.pipes // parallel.pp
        found = [p for p in pipelines_of(question.job) if p.chunks == chunks]
        if not found:
            continue  # chunks that no search tries
        times = np.concatenate([columns_of(p, step_s) for p in found])
        assert times == pytest.approx(one.estimate.step_time_s, rel=SAME), choices
        checked += 1
    assert checked > JOBS / 4


def test_winners_of_the_planner_take_as_long_in_a_step_of_their_own() -> None:
    rng = random.Random(5)
    names = rng.sample(sorted(catalog.MODELS), len(catalog.MODELS))
    found = 0
    for name in names:
        if found == WINNERS:
            break
        job = {
            "model": name,
            "nodes": rng.choice((1, 2, 4)),
            "gpus_per_node": 8,
            "global_batch": 64,
            "sequence": 4096,
        }
        with contextlib.suppress(InputError):
            plan = fastest(plan_question(scenario(**job)))
            if not plan.fitting:
                continue
            choices = {**job, **choices_of(plan, 0)}
            wanted_s = float(plan.found.step_s[0])
            assert printed(choices)["step_time_s"] == pytest.approx(wanted_s, rel=SAME), choices
            one = training_step(**choices)
            timeline = step_timeline(one.setup, one.stages, each_call=False)
            assert timeline.step_time_s == pytest.approx(wanted_s, rel=SAME), choices
            mfu = plan_rows(plan, [0])[0].model_flops_utilisation
            assert one.estimate.model_flops_utilisation == pytest.approx(mfu, rel=SAME), choices
            found += 1
    assert found == WINNERS


@pytest.mark.parametrize("page", range(1, len(RUNGS) + 1))
def test_the_journey_tells_the_time_of_the_command_line(page: int) -> None:
    one = rung(page)
    asked = dict(one.found.asked.chosen)
    said = printed(asked)
    assert said["step_time_s"] == one.step_time_s == one.found.estimate.step_time_s
    assert one.exposed_s == pytest.approx(math.fsum(said["exposed_s"].values()), rel=SAME)
