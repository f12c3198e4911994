"""Orders and durations that no pipeline can run are refused with the reason."""

import contextlib
import itertools

import pytest

from figgen.errors import InputError
from figgen.models.pipeline.action import Action
from figgen.models.pipeline.order import _check_overlapped
from figgen.models.pipeline.schedules import (
    build,
    contiguous,
)
from figgen.models.pipeline.simulate import Durations, simulate
from tests.models.by_hand import of_orders


def test_waiting_for_a_later_action_of_the_same_rank_is_named():
    with pytest.raises(InputError, match=r"on rank 0, 0B0 waits for 0F0, which comes later"):
        simulate(of_orders("0B0 0F0"))
    with pytest.raises(InputError, match=r"on rank 1, 1W0 waits for 1I0, which comes later"):
        simulate(of_orders("0F0 0B0", "1F0 1W0 1I0"))


def test_a_deadlock_names_the_circle():
    crossed = of_orders("0F0 0B0 0F1 0B1", "1F1 1F0 1B0 1B1", microbatches=2)
    with pytest.raises(
        InputError, match="deadlocks: rank 0 at 0B0 waits for 1B0; rank 1 at 1F1 waits for 0F1"
    ):
        simulate(crossed)


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (("0F0 0B0", "1F0"), "order lacks 1I0"),
        (("0F0 0F0 0B0", "1F0 1B0"), "0F0 is repeated"),
        (("0F0 0B0 0W0", "1F0 1B0"), "0W0 is repeated"),
        (("0F0 0B0 0F1", "1F0 1B0"), "0F1 is repeated, or stage 0 has no such microbatch"),
        (("0F0 0B0 1F0", "1B0"), "rank 0 does not hold the stage of 1F0"),
        (("0F0 0B0 7F0", "1F0 1B0"), "rank 0 does not hold the stage of 7F0"),
    ],
)
def test_an_order_with_a_wrong_action_is_refused(orders, message):
    with pytest.raises(InputError, match=message):
        simulate(of_orders(*orders))


def test_an_order_too_many_is_refused():
    with pytest.raises(InputError, match="wrong number of orders"):
        simulate(of_orders("0F0 0B0", "1F0 1B0", placement=contiguous(1)))


@pytest.mark.parametrize("pair", ["0B0", "0F1"])
def test_an_overlap_without_a_backward_after_it_is_refused(pair):
    with pytest.raises(InputError, match="overlaps nothing"):
        simulate(of_orders("0F0 0B0 0F1 0F2 0B1 0B2", microbatches=3, overlapped=(pair,)))


def test_of_all_pairs_a_forward_with_a_backward_behind_it_may_overlap():
    taken = []
    for pair in itertools.chain("FBIW", map("".join, itertools.product("FBIW", repeat=2))):
        order = tuple(Action(0, kind, microbatch) for microbatch, kind in enumerate(pair))
        with contextlib.suppress(InputError):
            _check_overlapped(order, frozenset(order[:1]))
            taken.append(pair)
    assert taken == ["FB", "FI"]


@pytest.mark.parametrize(
    "durations",
    [
        {"forward": -1},
        {"backward_weight": (1, -1)},
        {"latency": -0.5},
        {"latency": float("inf")},
        {"forward": 0},
        {"forward": float("nan")},
        {"overlapped_pair": float("inf")},
        {"overlapped_pair": (3, -1)},
    ],
)
def test_impossible_durations_are_refused(durations):
    with pytest.raises(InputError, match="expected"):
        Durations(**durations)


def test_a_pair_shorter_than_its_longer_half_is_refused():
    schedule = of_orders("0F0 0F1 0B0 0B1", microbatches=2, overlapped=("0F1",))
    with pytest.raises(
        InputError, match=r"shorter than one half of 0F1 & 0B0: expected at least 2"
    ):
        simulate(
            schedule, Durations(forward=1, backward_input=1, backward_weight=1, overlapped_pair=1.5)
        )
    with pytest.raises(InputError, match="duration overlapped_pair: expected one time per virtual"):
        simulate(
            schedule,
            Durations(forward=1, backward_input=1, backward_weight=1, overlapped_pair=(3.0, 3.0)),
        )


def test_durations_for_another_number_of_stages_are_refused():
    with pytest.raises(InputError, match="one time per virtual stage, 4"):
        simulate(build("1f1b", stages=4, microbatches=4), Durations(forward=(1, 1, 1)))
