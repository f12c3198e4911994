"""Planner, modeler, command line and page give one number for a job's memory."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import fields, replace

import pytest

from figgen.errors import InputError
from figgen.models.memory.memory import fullest_load, memory
from figgen.models.memory.rank_bytes import RankBytes, rank_bytes
from figgen.models.planner.plan import Pipeline, PlannedJob, held_sizes, pipelines_of
from figgen.models.planner.plan_space import CHUNKS
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from tests.browser.training_cases import random_choices
from tests.scenarios.test_planner_space import columns_of, total_of
from tests.thorough import drawn

JOBS = drawn(100, 300)
KINDS = {
    "dense", "experts", "latent", "mixers", "ZeRO 0", "ZeRO 1", "ZeRO 2", "ZeRO 3", "offload",
    "full", "none", "selective", "context", "interleaved", "adapters", "fp8", "muon14",
}  # fmt: skip
"""Jobs are drawn until each kind has been among them."""
AXES = ("tp", "cp", "pp", "ep", "etp")
SAME = 1e-12
RESERVE_BYTES = 1.25e9


def jobs_that_can_be() -> Iterator[TrainingStep]:
    """Return random valid jobs."""
    rng = random.Random(25)
    while True:
        choices = random_choices(rng)
        choices = {name: tuple(v) if isinstance(v, list) else v for name, v in choices.items()}
        with contextlib.suppress(InputError):
            yield training_step(**choices)


@pytest.fixture(scope="module")
def any_job() -> PlannedJob:
    return plan_question(scenario(model="llama-3-8b", nodes=1, gpus_per_node=8)).job


def only_layout(setup: TrainingSetup, job: PlannedJob) -> Pipeline | None:
    """Return what a search with only this layout lists; None if no search would try it."""
    again, parallel = setup.recomputation, setup.parallel
    searched = again.method != "block" and again.number == 1 and not setup.layers_per_stage
    if setup.schedule not in CHUNKS or not searched:
        return None
    if parallel.pp == 1 and setup.schedule != "1f1b":
        return None  # without a pipeline no search tries a schedule
    chunks = setup.placement.stages // setup.placement.pipes // parallel.pp
    fixed = {axis: getattr(parallel, axis) for axis in AXES}
    fixed |= {"chunks": chunks, "microbatch_size": setup.microbatch_size}
    alone = replace(
        job,
        setup=setup,
        global_batch=setup.global_batch,
        schedules=(setup.schedule,),
        recompute=(setup.recompute,),
        reserve_bytes=RESERVE_BYTES,
        fixed=fixed | {"zero_stage": setup.zero_stage},
    )
    return next(iter(pipelines_of(alone)), None)


def lines(held: RankBytes) -> dict[str, float]:
    """Return every component of the only layout."""
    return {f.name: float(getattr(held, f.name)) for f in fields(held)}


def test_planner_and_step_hold_the_same_by_component_on_every_rank(any_job: PlannedJob) -> None:
    found, kinds = 0, set[str]()
    for one in jobs_that_can_be():
        setup = one.setup
        layout = only_layout(setup, any_job)
        if layout is None:
            continue
        step = memory(setup, reserve_bytes=RESERVE_BYTES)
        sizes = held_sizes(layout, layout.modes[0], layout.zeros[0], layout.entries[0])
        for rank in step.ranks:
            load = fullest_load(setup, rank.pipeline_rank, sizes)
            planned = lines(rank_bytes(load, sizes))
            assert planned == pytest.approx(lines(rank.held), rel=SAME), setup
        total = float(max(columns_of(layout, total_of)))
        assert total == pytest.approx(step.fullest.total_bytes, rel=SAME), setup
        found += 1
        kinds |= set(kinds_of(setup))
        if (found >= JOBS and kinds >= KINDS) or found == 3 * JOBS:
            break
    assert kinds >= KINDS


def kinds_of(setup: TrainingSetup) -> Iterator[str]:
    """Return the categories of jobs that a job is an example of."""
    shape = setup.shape
    yield "experts" if shape.experts else "dense"
    yield from ["latent"] * (shape.latent is not None)
    yield from ["mixers"] * (shape.state_space is not None)
    yield from ["offload"] * (setup.offloaded_optimizer > 0)
    yield from ["context"] * (setup.parallel.cp > 1)
    yield from ["interleaved"] * (setup.schedule == "interleaved-1f1b")
    yield from ["adapters"] * (setup.lora_rank is not None)
    yield from (f"ZeRO {setup.zero_stage}", setup.recompute, setup.activations, setup.recipe.name)
