"""Command line, planner, timeline, trace and journey give one number for a job's time.

tests/translation/test_models.py compares the modeler with Python on such jobs.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.memory.memory import memory
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
from tests.browser.training_cases import Choices, random_choices
from tests.scenarios.test_planner_space import columns_of, total_of
from tests.thorough import drawn

JOBS, WINNERS = drawn(60, 300), drawn(5, 20)
EVERY = 5  # jobs of which one is asked on the command line too, which takes its time to start
TIMELINES = drawn(20, 100)
MOST_EVENTS = 4000
SAME = 1e-9


def jobs_that_can_be(count: int) -> list[tuple[Choices, TrainingStep]]:
    """Return random valid jobs."""
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
    return jobs_that_can_be(JOBS)


def printed(choices: Choices, verb: str = "step") -> Any:
    """Return what `figgen step --json` or a different verb prints for a job."""
    words = [verb, "--json"]
    for name, value in choices.items():
        option = OPTIONS[name]
        if value is None or value == option.default or verb not in option.asked_by:
            continue
        if option.kind == "switch":
            words.append(option.command_flag)
        else:
            word = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [option.command_flag, f"{word} {option.unit}".removesuffix(" 1").strip()]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert main(words) == 0
    return json.loads(text.getvalue())


def on_command_line(choices: Choices) -> tuple[float, float, float]:
    """Return seconds, MFU and bytes of the fullest GPU from `figgen step` and `figgen memory`."""
    step, memory = printed(choices), printed(choices, "memory")
    held = memory["ranks"][memory["fullest_rank"]]["total_bytes"]
    return step["step_time_s"], step["model_flops_utilisation"], held


def test_seconds_bytes_and_mfu_of_the_command_line_are_those_of_a_step_and_its_parts(
    jobs: list[tuple[Choices, TrainingStep]],
) -> None:
    for at, (choices, one) in enumerate(jobs):
        found = one.estimate
        if at % EVERY == 0:
            held = memory(
                one.setup, capacity_bytes=None, reserve_bytes=choices["reserve_bytes"]
            ).fullest.total_bytes
            shown = found.step_time_s, found.model_flops_utilisation, held
            assert shown == on_command_line(choices), choices
        assert found.step_time_s == pytest.approx(one.predicted.step_time_s, rel=SAME), choices
        parts = [found.compute_s, found.recompute_s, found.bubble_s]
        parts += [seconds for _, seconds in found.exposed]
        assert math.fsum(parts) == pytest.approx(found.step_time_s, rel=SAME), choices
        assert min(parts) > -SAME * found.step_time_s, choices


def test_timeline_and_trace_last_as_long_as_the_step(
    jobs: list[tuple[Choices, TrainingStep]],
) -> None:
    checked = 0
    for choices, one in jobs[:TIMELINES]:
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
    assert checked > 0.9 * TIMELINES


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
        reserve = question.job.reserve_bytes
        held = memory(setup, capacity_bytes=None, reserve_bytes=reserve).fullest.total_bytes
        # A job without a pipeline has no order to choose, and the planner none but the usual.
        sizes = [columns_of(p, total_of) for p in found if p.schedule == setup.schedule]
        for each in sizes:
            assert each == pytest.approx(held, rel=SAME), choices
        checked += 1
    assert checked > JOBS / 4


def won(rng: random.Random) -> Iterator[tuple[Choices, tuple[float, float, float], float]]:
    """Return layouts that the planner offers for random jobs, its numbers for them and the chance
    to fit."""
    names = sorted(catalog.MODELS)
    while True:
        job: Choices = {
            "model": rng.choice(names),
            "nodes": rng.choice((1, 1, 1, 2)),
            "gpus_per_node": 8,
            "global_batch": 16,  # few layouts to search
            "sequence": 4096,
            "lora_rank": rng.choice((None, None, 16)),
        }
        with contextlib.suppress(InputError):
            plan = fastest(plan_question(scenario(**job)))
            if plan.fitting:
                [row] = plan_rows(plan, [0])
                shown = row.step_s, row.model_flops_utilisation, row.memory_bytes
                yield {**job, **choices_of(plan, 0)}, shown, plan.chance(0)


def test_winners_of_the_planner_are_the_same_in_a_step_of_their_own() -> None:
    winners = list(islice(won(random.Random(5)), WINNERS))
    assert len({str(choices["lora_rank"]) for choices, *_ in winners}) == 2
    for choices, wanted, chance in winners:
        assert on_command_line(choices) == pytest.approx(wanted, rel=SAME), choices
        one = training_step(**choices)
        timeline = step_timeline(one.setup, one.stages, each_call=False)
        assert timeline.step_time_s == pytest.approx(wanted[0], rel=SAME), choices
        assert one.memory.fit_probability == pytest.approx(chance, abs=SAME), choices


@pytest.mark.parametrize("page", range(1, len(RUNGS) + 1))
def test_the_journey_tells_the_time_of_the_command_line(page: int) -> None:
    one = rung(page)
    asked = dict(one.found.asked.chosen)
    said = printed(asked)
    assert said["step_time_s"] == one.step_time_s == one.found.estimate.step_time_s
    assert one.exposed_s == pytest.approx(math.fsum(said["exposed_s"].values()), rel=SAME)
