"""A sharded step's two streams compared with the closed forms and with each action's inputs."""

from __future__ import annotations

import itertools

import pytest

from figgen.errors import InputError
from figgen.formulas.data_parallel import prefetched_gather_time, serial_gather_time
from figgen.models.algorithms.sharded_step import (
    COMPUTE,
    GATHER,
    NETWORK,
    SCATTER,
    ShardedAction,
    makespan_s,
    peak_gathered,
    sharded_step,
)

TIMES = [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (0.0, 1.0), (3.0, 1.0)]


def step(layers: int, gather: float, forward: float, prefetch: int) -> tuple[ShardedAction, ...]:
    return sharded_step(
        layers,
        gather_s=gather,
        forward_s=forward,
        backward_s=2 * forward,
        scatter_s=gather,
        prefetch=prefetch,
    )


def forward_end(actions: tuple[ShardedAction, ...]) -> float:
    return max(a.end_s for a in actions if a.kind == "forward")


@pytest.mark.parametrize("layers", [1, 2, 3, 8])
@pytest.mark.parametrize(("gather", "forward"), TIMES)
def test_forward_takes_what_the_closed_forms_say(
    layers: int, gather: float, forward: float
) -> None:
    serial = serial_gather_time(layers=layers, gather_s=gather, layer_compute_s=forward)
    ahead = prefetched_gather_time(layers=layers, gather_s=gather, layer_compute_s=forward)
    assert forward_end(step(layers, gather, forward, 0)) == pytest.approx(serial)
    assert forward_end(step(layers, gather, forward, 1)) == pytest.approx(ahead)


@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("prefetch", [0, 1, 2, 9])
@pytest.mark.parametrize(("gather", "forward"), TIMES)
def test_every_action_has_what_it_needs(
    layers: int, prefetch: int, gather: float, forward: float
) -> None:
    actions = step(layers, gather, forward, prefetch)
    assert len(actions) == layers * 5
    for stream in (COMPUTE, NETWORK):
        lane = sorted((a.start_s, a.end_s) for a in actions if a.stream == stream)
        assert all(a[1] <= b[0] + 1e-12 for a, b in itertools.pairwise(lane))
    work = {(a.layer, a.phase): a for a in actions if a.stream == COMPUTE}
    order = sorted(work.values(), key=lambda a: (a.start_s, a.end_s))
    forwards = [a.layer for a in order if a.kind == "forward"]
    backwards = [a.layer for a in order if a.kind == "backward"]
    assert forwards == sorted(forwards)
    assert backwards == sorted(backwards, reverse=True)
    for action in actions:
        if action.kind == GATHER:
            assert action.end_s <= work[action.layer, action.phase].start_s + 1e-12
        if action.kind == SCATTER:
            assert action.start_s >= work[action.layer, "backward"].end_s - 1e-12


def test_prefetch_never_costs_time_and_always_memory() -> None:
    for gather, forward in TIMES[:3]:
        serial, ahead = step(4, gather, forward, 0), step(4, gather, forward, 1)
        assert makespan_s(ahead) < makespan_s(serial)
        assert (peak_gathered(serial), peak_gathered(ahead)) == (1, 2)


def test_without_the_network_only_the_work_is_left() -> None:
    assert makespan_s(step(3, 0.0, 1.0, 0)) == pytest.approx(3 * 1.0 + 3 * 2.0)


@pytest.mark.parametrize("arguments", [{"layers": 0}, {"prefetch": -1}, {"gather_s": -1.0}])
def test_what_cannot_be_is_refused(arguments: dict[str, float]) -> None:
    usual = {"layers": 2, "gather_s": 1.0, "forward_s": 1.0, "backward_s": 1.0, "scatter_s": 1.0}
    with pytest.raises(InputError):
        sharded_step(**(usual | arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", [1, 2, 3, 7])
@pytest.mark.parametrize("prefetch", [0, 1, 2])
def test_weights_that_are_kept_are_gathered_once_and_all_whole_at_the_turn(
    layers: int, prefetch: int
) -> None:
    times = {"gather_s": 1.0, "forward_s": 2.0, "backward_s": 4.0, "scatter_s": 1.0}
    kept, freed = (
        sharded_step(layers, **times, prefetch=prefetch, reshard=reshard)
        for reshard in (False, True)
    )
    assert [a.kind for a in kept].count("all-gather") == layers
    assert [a.kind for a in freed].count("all-gather") == 2 * layers
    assert peak_gathered(kept) == layers
    # Serial: every gather and forward, then backwards behind which all but the last scatter hides.
    serial = layers * (1 + 2) + layers * 4 + 1
    ahead = 1 + layers * 2 + layers * 4 + 1
    assert makespan_s(kept) == (ahead if prefetch else serial)
    assert makespan_s(kept) <= makespan_s(freed)
