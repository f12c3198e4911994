"""`figgen schedule`: recorded orders, both measures of the bubble, and the meaning of durations."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.models.pipeline.schedules import SCHEDULES

ORACLES = Path(__file__).parents[1] / "oracles"
ORDERS = json.loads((ORACLES / "pipeline_orders.json").read_text(encoding="utf-8"))
P4_M8 = ("--stages", "4", "--microbatches", "8")


def schedule(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["schedule", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_schedule_prints_megatrons_order_and_both_measures(capsys):
    answer = schedule(capsys, "1f1b", *P4_M8)

    wanted = [order.split() for order in ORDERS["megatron_1f1b"]["orders"]["P4 M8"]]
    assert answer["order"] == wanted
    assert answer["bubble_fraction"] == pytest.approx(3 / 11)
    assert answer["bubble_overhead"] == pytest.approx(3 / 8)
    assert answer["bubble_fraction_by_rank"] == pytest.approx([3 / 11] * 4)
    assert answer["bubble_overhead_by_rank"] == pytest.approx([3 / 8] * 4)
    assert answer["peak_in_flight"] == [4, 3, 2, 1]
    assert answer["critical_path"][0] == "0F0"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("interleaved-1f1b", ("megatron_interleaved", "P4 M8 v2")),
        ("looped-bfs", ("torch", "LoopedBFS P4 M8 v2")),
        ("zbv", ("torch", "ZBVZeroBubble P4 M8 v2")),
    ],
)
def test_schedule_prints_recorded_orders_of_virtual_stages(capsys, name, key):
    answer = schedule(capsys, name, *P4_M8, "--chunks", "2")
    section, sizes = key
    assert answer["order"] == [order.split() for order in ORDERS[section]["orders"][sizes]]


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_answers_with_the_promised_keys(capsys, name):
    answer = schedule(capsys, name, *P4_M8)
    promised = {"order", "makespan", "bubble_fraction", "bubble_overhead", "peak_in_flight"}
    assert promised <= set(answer)
    assert len(answer["order"]) == len(answer["peak_in_flight"]) == 4


@pytest.mark.parametrize(
    ("name", "times", "makespan"),
    [
        # (M + P − 1)(F + B) with B whole, or input and weight parts given apart.
        ("1f1b", (), 11 * 3),
        ("1f1b", ("--backward", "2"), 11 * 3),
        ("1f1b", ("--backward", "1", "--weight", "1"), 11 * 3),
        ("1f1b", ("--forward", "1", "--backward", "1"), 11 * 2),
        ("1f1b", ("--forward", "10 ms", "--backward", "0,02 s"), 11 * 30),
        ("1f1b", ("--weight", "0"), 11 * 2),
        ("gpipe", ("--forward", "0.5", "--backward", "1.5"), 11 * 2),
        # ZB1P: M(F + I + W) + (P − 1)(F + I − W).
        ("zb1p", (), 8 * 3 + 3),
        ("zb1p", ("--backward", "2", "--forward", "2"), 8 * 5 + 3 * 3),
        # Each way between ranks 1F1B waits for P − 1 messages to fill and to drain.
        ("gpipe", ("--p2p", "0.25"), 33 + 6 * 0.25),
    ],
)
def test_makespan_follows_from_the_times(capsys, name, times, makespan):
    assert schedule(capsys, name, *P4_M8, *times)["makespan"] == makespan


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1f2b", *P4_M8), "did you mean 1f1b"),
        (("1f1b", *P4_M8, "--chunks", "2"), "chunks of schedule '1f1b': expected 1, got 2"),
        (("dualpipe", "--stages", "4", "--microbatches", "6"), "expected an even number ≥"),
        (("1f1b", "--stages", "600", "--microbatches", "8"), "expected at most 512, got 600"),
        (("zbv", "--stages", "512", "--microbatches", "129"), "at most 131,072, got 132096"),
        (("dualpipe", *P4_M8, "--pair", "0.5"), "overlapped_pair is shorter than one half"),
        (("1f1b", *P4_M8, "--forward", "0"), "duration forward: expected times > 0"),
        (
            ("1f1b", *P4_M8, "--layers", "3,1"),
            "expected 4, one for each rank or each virtual stage",
        ),
        (("zbv", *P4_M8, "--layers", "3,1,0,1"), "layers of rank 2: expected more than 0, got 0"),
        (("1f1b", *P4_M8, "--layers", "1,1,1,-1"), "layers: expected finite numbers ≥ 0"),
        (("1f1b", *P4_M8, "--layers", "a"), "expected numbers with commas between, as 9,9,9,5"),
        (("dualpipe", *P4_M8, "--as", "torch"), "expected every microbatch on every stage"),
    ],
)
def test_impossible_schedules_are_one_line_and_status_two(capsys, arguments, message):
    assert main(["schedule", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_unequal_stages_take_and_keep_their_share_of_the_layers(capsys):
    sizes = ("--stages", "2", "--microbatches", "4", "--layers", "3,1", "--memory", "1 GB")
    answer = schedule(capsys, "1f1b", *sizes)
    # Rank 0 has 3/2 of the mean and never waits: 4 · 3/2 · (F + I + W); it holds two microbatches.
    assert answer["makespan"] == 4 * 1.5 * 3
    assert answer["bubble_fraction_by_rank"] == pytest.approx([0, 1 - 6 / 18])
    assert answer["peak_bytes"] == [2 * 1.5e9, 0.5e9]
    chunked = schedule(capsys, "interleaved-1f1b", *P4_M8, "--layers", "1,1,1,1,1,1,1,1")
    assert chunked == schedule(capsys, "interleaved-1f1b", *P4_M8, "--per-rank")
    assert chunked["makespan"] == (8 + 3 / 2) * 3


def test_torch_is_given_every_action_in_words_that_it_reads(capsys):
    # The patterns of `_Action.from_str` in torch 2.13, torch/distributed/pipelining/schedules.py.
    single, pair = r"\d+[FIBW]\d+", r"\((?:\d+[FIBW]\d+);(?:\d+[FIBW]\d+)\)OVERLAP_F_B"
    for name in set(SCHEDULES) - {"dualpipe"}:
        assert main(["schedule", name, *P4_M8, "--as", "torch"]) == 0
        scope: dict = {}
        listing = capsys.readouterr().out
        exec(listing.partition("def ")[0].replace("from torch", "# from torch"), scope)
        order = scope["ORDER"]
        assert all(
            re.fullmatch(f"{single}|{pair}", word) for row in order.values() for word in row.split()
        )
        words = [re.findall(single, row) for row in order.values()]
        assert words == schedule(capsys, name, *P4_M8)["order"]
