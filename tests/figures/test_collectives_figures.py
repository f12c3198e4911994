"""Figures of the ring all-reduce, message by message, compared with states checked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.charts import Frame, Steps
from figgen.models.collectives import trace
from figgen.registry import build
from tests.renderers.overflows import overflows

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "collective_ring_4_ranks.json").read_text("utf-8")
)
SCHEDULES = ("nccl", "textbook")


def steps(ranks: int, schedule: str) -> Steps:
    arguments = {"collective": "all-reduce", "algorithm": "ring", "ranks": ranks}
    return build("collective-steps", {**arguments, "schedule": schedule})


def in_letters(frame: Frame) -> list[list[str]]:
    return [
        ["+".join(f"{'ABCD'[rank]}{chunk}" for rank in held) for chunk, held in enumerate(chunks)]
        for chunks in frame.contents
    ]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_frames_of_four_ranks_are_the_hand_checked_states(schedule: str) -> None:
    chart = steps(4, schedule)
    assert [in_letters(frame) for frame in chart.frames] == ORACLE[schedule]["states"]
    assert [
        [[t.source, t.target, *t.chunks] for t in frame.transfers] for frame in chart.frames[:-1]
    ] == ORACLE[schedule]["sends"]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("ranks", range(2, 10))
def test_every_frame_follows_from_the_messages_of_the_one_before(ranks: int, schedule: str) -> None:
    chart = steps(ranks, schedule)
    held = [[{rank} for _ in range(ranks)] for rank in range(ranks)]
    for number, frame in enumerate(chart.frames):
        assert [[sorted(chunk) for chunk in rank] for rank in held] == [
            [list(chunk) for chunk in rank] for rank in frame.contents
        ]
        arriving = [
            (t.target, chunk, t.reduces, set(held[t.source][chunk]))
            for t in frame.transfers
            for chunk in t.chunks
        ]
        for target, chunk, reduces, content in arriving:
            assert not reduces or not held[target][chunk] & content
            held[target][chunk] = content | (held[target][chunk] if reduces else set())
        reducing = number < ranks - 1
        assert {t.reduces for t in frame.transfers} <= {reducing}
        if frame.transfers:
            assert frame.phase == ("reduce-scatter" if reducing else "all-gather")
    assert len(chart.frames) == 2 * (ranks - 1) + 1
    assert chart.frames[-1].title == "result"
    assert all(len(chunk) == ranks for rank in held for chunk in rank)


@pytest.mark.parametrize(("schedule", "first", "owned"), [("nccl", 3, 0), ("textbook", 0, 1)])
def test_rank_0_sends_and_owns_what_the_two_schedules_say(
    schedule: str, first: int, owned: int
) -> None:
    values = steps(4, schedule).values
    assert (values["first_sent"].value, values["owned_by_rank_0"].value) == (first, owned)
    assert (values["steps"].value, values["reduce_steps"].value) == (6, 3)
    assert values["sent_share"].value == 1.5


def nccl_loop(rank: int, ranks: int) -> list[int]:
    """Return the chunks of NCCL's runRing (src/device/all_reduce.h), send by send."""
    order = [rank + ranks - 1, *(rank + ranks - j for j in range(2, ranks)), rank]
    order += [rank + ranks - j for j in range(1, ranks - 1)]
    return [chunk % ranks for chunk in order]


@pytest.mark.parametrize("ranks", range(2, 9))
def test_the_schedule_is_the_loop_of_nccl_or_its_shift(ranks: int) -> None:
    loops = [nccl_loop(rank, ranks) for rank in range(ranks)]
    for name, shift in (("nccl", 0), ("textbook", 1)):
        run = trace("all-reduce", "ring", ranks, schedule=name)
        for step, sends in enumerate(run.steps):
            sent = {send.source: send.chunks for send in sends}
            assert sent == {r: ((loops[r][step] + shift) % ranks,) for r in range(ranks)}


@pytest.mark.parametrize("ranks", range(2, 10))
def test_messages_carry_one_contribution_more_per_step_until_they_carry_all(ranks: int) -> None:
    rows = build("ring-proof-by-step", {"ranks": ranks}).rows
    assert [row[3] for row in rows] == [*range(1, ranks), *(ranks - 1) * [ranks]]
    final = [*(ranks - 2) * [0], *(ranks * k for k in range(1, ranks + 1))]
    assert [row[4] for row in rows] == final
    assert [row[5] for row in rows] == pytest.approx(
        [(k + 1) / ranks for k in range(2 * (ranks - 1))]
    )
    assert {row[2] for row in rows} == {ranks}


@pytest.mark.parametrize("ranks", [4, 6, 8, 16])
def test_the_drawn_ring_is_one_cycle_through_all_ranks(ranks: int) -> None:
    chart = build("ring-diagram", {"ranks": ranks})
    following = {link.source: link.target for link in chart.links}
    seen, at = [], "rank 0"
    while at not in seen:
        seen.append(at)
        at = following[at]
    assert at == "rank 0"
    assert seen == [f"rank {rank}" for rank in range(ranks)]
    assert overflows(chart) == ()
