"""The printed pipeline schedules: orders, times, tables and boards equal to the bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from figgen.models.pipeline.arrivals import arrivals, by_action, free_at
from figgen.models.pipeline.board import (
    Board,
    action_of,
    empty_board,
    follow,
    left,
    offers,
    place,
    undo,
)
from figgen.models.pipeline.schedule_work import (
    carried_out,
    held,
    peak_held,
    slots_csv,
    stage_shares,
    torch_listing,
)
from figgen.models.pipeline.schedules import SCHEDULES, build
from figgen.models.pipeline.simulate import simulate
from figgen.models.pipeline.trace import Durations, Trace, critical_path
from figgen.models.profiles.chrome_trace import schedule_events
from tests.browser.engine import differing, said
from tests.translation.run import imported, started

CASES = 250
MEASURES = (
    "starts", "ends", "busy", "makespan", "bubble_fraction", "bubble_fraction_by_rank",
    "bubble_overhead", "bubble_overhead_by_rank", "span_by_rank", "bubble_fraction_without_flush",
    "peak_in_flight",
)  # fmt: skip
PROGRAM = Path(__file__).with_name("schedules.js").read_text("utf-8")


def slot(placed: Any) -> list[Any]:
    return [str(placed.action), placed.rank, placed.start, placed.end, placed.overlapped]


def move_on(board: Board, move: int | str) -> Any:
    if isinstance(move, str):
        return slot(place(board, action_of(board, move)))
    if move % 7 == 0:
        return undo(board)
    offered = [action for rank in range(len(board.lanes)) for action in offers(board, rank)]
    return slot(place(board, offered[move % len(offered)])) if offered else None


def played(trace: Trace, moves: list[int | str]) -> dict[str, Any]:
    board = empty_board(trace.schedule, trace.durations)
    answers = [said(move_on, board, move) for move in moves]
    placed = [follow(board, trace, trace.makespan / 2), left(board)]
    placed += [follow(board, trace), left(board)]
    lanes = [list(map(slot, lane)) for lane in board.lanes]
    return {"answers": answers, "placed": placed, "lanes": lanes}


def answered(case: dict[str, Any]) -> dict[str, Any]:
    sizes = {name: case[name] for name in ("stages", "microbatches", "chunks")}
    schedule = build(case["name"], **sizes)
    times = {k: tuple(v) if isinstance(v, list) else v for k, v in case["times"].items()}
    durations, placement = Durations(**times), schedule.placement
    layers = None if case["layers"] is None else tuple(case["layers"])
    if case["cut"] is None:
        trace = carried_out(schedule, durations, layers)
    else:
        cut = durations.per_chunk(placement.chunks) if case["cut"] else durations
        trace = simulate(schedule, cut)
    shares = [case["memory"] * share for share in stage_shares(placement, layers)]
    by = by_action(trace.placed)

    def waits(lane: Any, at: int, action: Any) -> list[Any]:
        found = arrivals(placement, trace.durations.latency, by, action)
        return [free_at(lane, at), [[str(one.source.action), one.time] for one in found]]

    return {
        "orders": str(schedule),
        **{name: getattr(trace, name) for name in MEASURES},
        "path": list(map(slot, critical_path(trace))),
        "held": [held(lane, shares) for lane in trace.placed],
        "peaks": peak_held(trace.placed, shares),
        "waits": [
            [waits(lane, at, placed.action) for at, placed in enumerate(lane)]
            for lane in trace.placed
        ],
        "csv": slots_csv(trace),
        "torch": said(torch_listing, schedule),
        "played": played(trace, case["moves"]),
        "events": list(schedule_events(trace)),
    }


TYPED = ("0F0", "1f0", " 0b0", "0I0", "99F0", "0F99", "0X0", "", "0F0.", "1234567F1", "it's")


def time(rng: random.Random, stages: int) -> float | list[float]:
    """Return one time per rank, or unequal ones per stage, exact and inexact."""
    one = (lambda: rng.choice((1, 2, 0.25, 1.375)), rng.random)[rng.random() < 0.5]
    return [one() for _ in range(stages)] if rng.random() < 0.15 else one()


def drawn(rng: random.Random) -> dict[str, Any]:
    """Return a job of the lab, whose sizes, times and layers need not fit together."""
    name = rng.choice(list(SCHEDULES)) if rng.random() < 0.97 else rng.choice(("zbvv", "", "1F1B"))
    stages = rng.choice((1, 2, 3, 4, 4, 6, 8))
    chunks = rng.choice((None, None, None, None, None, 1, 2, 3))
    times: dict[str, Any] = {
        kind: time(rng, stages)
        for kind in ("forward", "backward_input", "backward_weight")
        if rng.random() < 0.7
    }
    if rng.random() < 0.5:
        times["latency"] = rng.choice((0.25, rng.random()))
    if rng.random() < 0.3:
        times["overlapped_pair"] = rng.choice((1.0, 4.0, 6.5, 5 + rng.random()))
    if rng.random() < 0.05:
        times[rng.choice(("latency", "forward", "overlapped_pair"))] = rng.choice((-1, 0))
    if rng.random() < 0.03:
        times["forward"] = rng.choice(([1, -2], [1, 0]))
    layers = None
    if rng.random() < 0.4:
        count = stages * (chunks or 1) if rng.random() < 0.3 else stages
        layers = [rng.choice((0, 1, 4, 6, 7, 8.5)) for _ in range(count)]
    sizes = [stages, rng.choice((1, 3, 4, 8, 10, 13, 16)), chunks]
    if rng.random() < 0.05:
        sizes[rng.randrange(3)] = rng.choice((0, -1, 2.5, 10**9, 513))
    return {
        "name": name,
        **dict(zip(("stages", "microbatches", "chunks"), sizes, strict=True)),
        "times": times,
        "layers": layers,
        "memory": rng.choice((1e9, 0.5, 2.75)),
        "cut": None if layers is not None else rng.choice((None, False, True)),
        "moves": [
            rng.choice(TYPED) if rng.random() < 0.15 else rng.randrange(10**6)
            for _ in range(rng.randrange(20))
        ],
    }


def test_schedules_are_made_timed_and_played_on_a_page_as_in_python(tmp_path: Path) -> None:
    rng = random.Random(12)
    cases = [drawn(rng) for _ in range(CASES)]
    found = started(tmp_path, PROGRAM, imported(PROGRAM), {"cases": cases})
    wanted = [said(answered, case) for case in cases]
    assert differing(cases, found(), wanted) == []
    refused = [answer["error"] for answer in wanted if "error" in answer]
    assert len(set(refused)) > 40
    good = [case for case, answer in zip(cases, wanted, strict=True) if "error" not in answer]
    assert len(good) > CASES // 3
    assert {case["name"] for case in good} == set(SCHEDULES)
