"""`verify` refuses every kind of broken trace and names the fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from figgen.errors import InputError
from figgen.models.collectives import CollectiveTrace, Send, trace, verify
from figgen.models.collectives.rings import (
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from figgen.models.collectives.serial import serial_all_reduce, serial_broadcast


def edited(
    trace: CollectiveTrace, step: int, edit: Callable[[list[Send]], None]
) -> CollectiveTrace:
    sends = list(trace.steps[step])
    edit(sends)
    return replace(trace, steps=(*trace.steps[:step], tuple(sends), *trace.steps[step + 1 :]))


@pytest.mark.parametrize("schedule", ["nccl", "textbook"])
def test_dropping_any_one_message_of_a_ring_is_refused(schedule: str) -> None:
    whole = ring_all_reduce(4, schedule=schedule)
    for step in range(6):
        for i in range(4):
            with pytest.raises(InputError, match="all-reduce ring trace"):
                verify(edited(whole, step, lambda sends, i=i: sends.pop(i)))


def test_sending_any_other_chunk_in_a_ring_is_refused() -> None:
    whole = ring_all_reduce(4)
    for step in range(6):
        for i in range(4):
            right = whole.steps[step][i]
            for chunk in {0, 1, 2, 3} - set(right.chunks):
                wrong = replace(right, chunks=(chunk,))
                with pytest.raises(InputError, match="all-reduce ring trace"):
                    verify(edited(whole, step, lambda sends, i=i, w=wrong: sends.__setitem__(i, w)))


def test_adding_a_contribution_twice_is_refused() -> None:
    again = replace(serial_all_reduce(3).steps[0][0], step=1)
    whole = serial_all_reduce(3)
    renumbered = tuple(
        tuple(replace(send, step=send.step + 1) for send in sends) for sends in whole.steps[1:]
    )
    doubled = replace(
        whole,
        steps=(whole.steps[0], (again,), *renumbered),
        phases=("reduce", *whole.phases),
    )
    with pytest.raises(InputError, match=r"step 1: .* contribution of rank 1 a second time"):
        verify(doubled)


def test_reducing_in_the_all_gather_phase_is_refused() -> None:
    added = replace(ring_all_reduce(4).steps[3][0], reduces=True)
    with pytest.raises(InputError, match=r"step 3: .* a second time"):
        verify(edited(ring_all_reduce(4), 3, lambda sends: sends.__setitem__(0, added)))


def test_replacing_in_the_reduce_phase_is_refused() -> None:
    replaced = replace(ring_all_reduce(4).steps[0][0], reduces=False)
    with pytest.raises(InputError, match="overwrites the contribution of rank 1"):
        verify(edited(ring_all_reduce(4), 0, lambda sends: sends.__setitem__(0, replaced)))


def test_sending_what_is_not_held_is_refused() -> None:
    early = replace(ring_all_gather(4).steps[0][1], chunks=(3,))
    with pytest.raises(InputError, match="step 0: rank 1 sends chunk 3, which it lacks"):
        verify(edited(ring_all_gather(4), 0, lambda sends: sends.__setitem__(1, early)))


def test_stopping_early_is_refused_with_what_is_missing() -> None:
    whole = ring_reduce_scatter(4)
    short = replace(whole, steps=whole.steps[:2], phases=whole.phases[:2])
    with pytest.raises(InputError, match="expected those of ranks 0, 1, 2, 3, got '0'"):
        verify(short)


def test_two_messages_out_of_one_rank_in_a_step_are_refused() -> None:
    first, second = (sends[0] for sends in serial_broadcast(3).steps)
    at_once = replace(
        serial_broadcast(3), steps=((first, replace(second, step=0)),), phases=("broadcast",)
    )
    with pytest.raises(InputError, match="rank 0 sends 2 messages"):
        verify(at_once)


def test_two_messages_into_one_rank_in_a_step_are_refused() -> None:
    twice = Send(step=0, source=2, target=1, chunks=(0,), reduces=True)
    with pytest.raises(InputError, match="rank 1 receives 2 messages"):
        verify(edited(ring_all_reduce(3), 0, lambda sends: sends.__setitem__(2, twice)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            Send(step=0, source=4, target=1, chunks=(0,), reduces=True),
            "rank: expected a rank from 0 to 3, got 4",
        ),
        (
            Send(step=0, source=0, target=-1, chunks=(0,), reduces=True),
            "rank: expected a rank from 0 to 3, got -1",
        ),
        (Send(step=0, source=1, target=1, chunks=(0,), reduces=True), "rank 1 sends to itself"),
        (
            Send(step=2, source=0, target=1, chunks=(3,), reduces=True),
            "number of the step in a message, got 2",
        ),
        (Send(step=0, source=0, target=1, chunks=(), reduces=True), "distinct chunks"),
        (Send(step=0, source=0, target=1, chunks=(3, 3), reduces=True), "distinct chunks"),
        (Send(step=0, source=0, target=1, chunks=(4,), reduces=True), "chunk: expected 0 to 3"),
    ],
)
def test_a_malformed_message_is_refused(wrong: Send, message: str) -> None:
    with pytest.raises(InputError, match=message):
        verify(edited(ring_all_reduce(4), 0, lambda sends: sends.__setitem__(0, wrong)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"collective": "allreduce"}, "did you mean all-reduce"),
        ({"collective": "all-to-all"}, "chunks: expected 16"),
        ({"phases": ("reduce-scatter",)}, "phases: expected 3"),
        ({"owners": (0, 0, 1, 2)}, "owners: expected every rank 1 times"),
        ({"owners": (1, 2, 3, 0)}, "contributions to chunk 0"),
        ({"root": 4}, "root: expected a rank from 0 to 3"),
        ({"steps": ((), (), ())}, "step 0: no message"),
    ],
)
def test_a_malformed_trace_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        verify(replace(ring_reduce_scatter(4), **change))


@pytest.mark.parametrize("chunk", [-1, 4])
def test_a_chunk_beside_those_of_the_trace_is_refused(chunk: int) -> None:
    whole = ring_all_reduce(4)
    wrong = replace(whole.steps[0][0], chunks=(chunk,))
    with pytest.raises(InputError, match="chunk: expected 0 to 3"):
        verify(edited(whole, 0, lambda sends: sends.__setitem__(0, wrong)))


def test_more_ranks_than_a_trace_may_have_are_refused() -> None:
    with pytest.raises(InputError, match="ranks of a trace: expected at most 512, got 513"):
        trace("broadcast", "chain", 513)
