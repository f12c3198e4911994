"""A schedule that a reader builds one action at a time."""

from __future__ import annotations

import itertools
import random

import pytest

from figgen.errors import InputError
from figgen.models.pipeline.arrivals import arrivals, by_action, free_at
from figgen.models.pipeline.board import (
    Board,
    action_of,
    as_schedule,
    empty_board,
    follow,
    left,
    offers,
    place,
    refusal,
    undo,
)
from figgen.models.pipeline.order import check_orders
from figgen.models.pipeline.schedule_work import carried_out
from figgen.models.pipeline.schedules import CHUNKED, SCHEDULES, USUAL_CHUNKS, build
from figgen.models.pipeline.simulate import Durations, Trace, simulate

UNEQUAL = Durations(forward=1.0, backward_input=1.5, backward_weight=0.75, latency=0.25)


def traced(name: str, stages: int, microbatches: int, durations: Durations = UNEQUAL) -> Trace:
    return carried_out(build(name, stages=stages, microbatches=microbatches), durations)


def words(board: Board) -> list[list[str]]:
    return [[str(placed.action) for placed in lane] for lane in board.lanes]


@pytest.mark.parametrize(
    ("name", "stages", "microbatches"),
    [
        (name, p, m)
        for name, (p, m) in itertools.product(SCHEDULES, ((1, 2), (4, 8), (4, 14)))
        if not (name == "dualpipe" and p == 1)
    ],
)
def test_a_schedule_placed_action_by_action_runs_as_it_is_simulated(
    name: str, stages: int, microbatches: int
) -> None:
    trace = traced(name, stages, microbatches)
    board = empty_board(trace.schedule, trace.durations)
    assert follow(board, trace) == len(board.moves) == sum(map(len, trace.schedule.orders))
    assert left(board) == 0
    again = simulate(as_schedule(board), trace.durations)
    assert again.placed == tuple(map(tuple, board.lanes))
    if not trace.schedule.overlapped:
        assert again.placed == trace.placed


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["1f1b", "interleaved-1f1b", "zbv", "dualpipe"])
def test_taking_any_offer_that_is_not_refused_ends_with_an_order_that_runs(
    name: str, seed: int
) -> None:
    draw = random.Random(seed)
    trace = traced(name, *draw.choice(((2, 4), (4, 8))))
    board = empty_board(trace.schedule, trace.durations)
    while left(board):
        offered = [a for rank in range(len(board.lanes)) for a in offers(board, rank)]
        place(board, draw.choice([a for a in offered if refusal(board, a) is None]))
        if draw.random() < 0.15:
            before = words(board)
            move = board.moves[-1]
            undo(board)
            assert words(board) != before
            place(board, move)
            assert words(board) == before
            undo(board)
    check_orders(as_schedule(board))
    again = simulate(as_schedule(board), trace.durations)
    assert again.makespan == max(lane[-1].end for lane in board.lanes)


def test_what_cannot_be_placed_is_refused_with_the_reason() -> None:
    turns = [
        ("0F0", None),
        ("0F0", "0F0 has been placed already: every action runs once"),
        ("1F1", "1F1 waits for the activation of 0F1 on rank 0, which has not been placed"),
        ("0B0", "0B0 waits for the gradient of 1B0 or 1I0 on rank 1, which has not been placed"),
        (" 1f0", None),
        ("1W0", "1W0 waits for the gradient of 1I0 on rank 1, which has not been placed"),
        ("1I0", None),
        ("1B0", "1I0 has been placed: B does the work of I and W"),
        ("0B0", None),
        ("0W0", "0B0 has been placed: B does the work of I and W"),
        ("2F0", "stage of 2F0: expected 0 to 1, got 2 (did you mean 1F0?)"),
        ("0F7", "microbatch of 0F7: expected 0 to 1, got 7 (did you mean 0F1?)"),
        ("<img>", "cannot read action: expected stage, F, B, I or W, microbatch, as 2F0"),
    ]
    trace = traced("1f1b", 2, 2)
    board = empty_board(trace.schedule, trace.durations)
    for word, why in turns:
        if why is None:
            place(board, action_of(board, word))
            continue
        with pytest.raises(InputError) as caught:
            place(board, action_of(board, word))
        assert str(caught.value).startswith(why)
    assert words(board) == [["0F0", "0B0"], ["1F0", "1I0"]]
    assert left(board) == 5
    assert [str(action) for action in offers(board, 1)] == ["1F1", "1B1", "1I1", "1W0"]


def test_following_up_to_a_time_takes_what_starts_before_it() -> None:
    trace = traced("zbv", 4, 8)
    board = empty_board(trace.schedule, trace.durations)
    follow(board, trace, trace.makespan / 3)
    wanted = [[p for p in lane if p.start < trace.makespan / 3] for lane in trace.placed]
    assert board.lanes == wanted


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_start_is_the_end_of_the_rank_or_the_arrival_of_an_input(name: str) -> None:
    pair = 6.0 if name.startswith("dualpipe") else None
    durations = Durations(
        forward=1.0, backward_input=1.5, backward_weight=0.7, latency=0.2, overlapped_pair=pair
    )
    trace = traced(name, 4, 10, durations)
    placed = by_action(trace.placed)
    for rank, lane in enumerate(trace.placed):
        at = 0
        for block in trace.placed_blocks(rank):
            free = free_at(lane, at)
            assert {free_at(lane, at + member) for member in range(len(block))} == {free}
            inputs = [
                arrival.time
                for member in block
                for arrival in arrivals(trace.schedule.placement, 0.2, placed, member.action)
            ]
            assert block[0].start == max([free, *inputs])
            at += len(block)


@pytest.mark.parametrize("name", SCHEDULES)
def test_only_chunked_schedules_take_other_chunks_than_their_usual(name: str) -> None:
    assert build(name, stages=4, microbatches=8).placement.chunks == USUAL_CHUNKS[name]
    if name in CHUNKED:
        assert build(name, stages=4, microbatches=8, chunks=3).placement.chunks == 3
    else:
        with pytest.raises(InputError, match="chunks of schedule"):
            build(name, stages=4, microbatches=8, chunks=3)
