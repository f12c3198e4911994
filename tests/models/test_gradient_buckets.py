"""The best number of buckets, compared with simulating every number, one bucket after the other."""

from __future__ import annotations

import pytest

from figgen import catalog
from figgen.models.machine.layout import layout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.gradient_buckets import MOST_BUCKETS, best_number, gradient_buckets
from figgen.models.step.stage_time import stage_times
from figgen.models.step.step_traffic import BACKWARD
from tests.models.jobs import H100


def played_out(communication_s: float, compute_s: float, buckets: int, overhead_s: float) -> float:
    """Return what a queue of buckets adds to a backward that makes them ready one by one."""
    free_at = 0.0
    for bucket in range(1, buckets + 1):
        ready = compute_s * bucket / buckets
        free_at = max(free_at, ready) + communication_s / buckets + overhead_s
    return free_at - compute_s


@pytest.mark.parametrize("communication_s", [0.001, 0.08, 0.2, 0.5])
@pytest.mark.parametrize("overhead_s", [1e-5, 4e-4, 0.02])
def test_no_other_number_leaves_less_exposed(communication_s: float, overhead_s: float) -> None:
    best = best_number(communication_s, 0.2, overhead_s)
    tried = [played_out(communication_s, 0.2, n, overhead_s) for n in range(1, 150)]
    assert played_out(communication_s, 0.2, best, overhead_s) <= min(tried) * (1 + 1e-9)


def test_free_calls_want_as_many_buckets_as_are_tried_and_dear_ones_a_single_one() -> None:
    assert best_number(0.1, 0.2, 0.0) == MOST_BUCKETS
    assert best_number(0.1, 0.2, 1.0) == 1


def setup(zero_stage: int, nodes: int = 2) -> TrainingSetup:
    parallel = layout(nodes=nodes, gpus_per_node=8, tp=8)
    shape = catalog.model("llama-3-8b").shape
    return TrainingSetup(
        shape=shape, parallel=parallel, microbatches=4, sequence=4096, zero_stage=zero_stage
    )


@pytest.mark.parametrize("zero_stage", [0, 1, 2])
def test_buckets_of_a_setup_carry_its_gradients(zero_stage: int) -> None:
    given = setup(zero_stage)
    stage = stage_times(given, H100, 0.5)[0]
    found = gradient_buckets(given, [stage])
    assert found is not None
    # 32 layers and two tables; a ring of two sends half a buffer, an all-reduce twice.
    assert found.buckets == 34
    gradients = 8_030_261_248 / 8 * 4
    sent = gradients / 2 * (2 if zero_stage == 0 else 1)
    assert found.communication_s == pytest.approx(sent / 50e9, rel=1e-3)
    assert found.best_exposed_s <= found.exposed_s


def test_nothing_is_bucketed_under_zero_3_or_in_one_replica() -> None:
    for given in (setup(3), setup(1, nodes=1)):
        assert gradient_buckets(given, [stage_times(given, H100, 0.5)[0]]) is None


@pytest.mark.parametrize("zero_stage", [1, 2])
def test_zero_2_times_the_first_stage_of_a_rank_and_others_all_of_them(zero_stage: int) -> None:
    given = setup(zero_stage)
    stage = stage_times(given, H100, 0.5)[0]
    one, two = gradient_buckets(given, [stage]), gradient_buckets(given, [stage, stage])
    assert one is not None
    assert two is not None
    assert two.communication_s == (3 - zero_stage) * one.communication_s
    # Scatters in every microbatch hide behind one backward; what hides in it is no time to hide in.
    alone = stage.backward_s + (stage.exposed_s(BACKWARD) if zero_stage == 1 else 0)
    assert stage.exposed_s(BACKWARD) > 0
    assert (one.compute_s, two.compute_s) == (alone, (3 - zero_stage) * alone)
