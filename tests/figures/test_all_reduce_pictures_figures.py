"""Pictures of all-reduce algorithms, compared with counting, NCCL's tree rules, and
closed forms."""

from __future__ import annotations

import math

import pytest

from figgen.models.collectives import synchronous_time_s
from figgen.models.collectives.folding import EXCHANGES, folded_all_reduce
from figgen.registry import build


def test_the_root_sends_n_minus_1_vectors_and_everybody_else_one() -> None:
    for ranks in (2, 4, 8, 16):
        chart = build("root-against-ring", {"ranks": ranks})
        naive, ring = (segment.lengths for segment in chart.segments)
        assert naive == (ranks - 1, *[1.0] * (ranks - 1))
        assert ring == pytest.approx([2 * (ranks - 1) / ranks] * ranks)
        assert sum(naive) == pytest.approx(sum(ring))


@pytest.mark.parametrize("ranks", [2, 4, 6, 8, 16])
def test_with_an_even_number_of_ranks_every_rank_is_a_leaf_of_exactly_one_tree(ranks: int) -> None:
    values = build("double-binary-tree", {"ranks": ranks}).values
    assert values["both_leaves"].value == 0
    assert values["leaves"].value == ranks // 2
    assert values["depth"].value == math.log2(ranks) or ranks == 6
    assert values["most_sent"].value == min(2.0, ranks / 2)


def test_exchange_partners_differ_in_one_bit_and_messages_halve() -> None:
    table = build("exchange-distances", {"ranks": 16, "message_bytes": "16 MB"})
    for row in table.rows:
        assert all(partner == rank ^ row[1] for rank, partner in enumerate(row[4:]))
    assert [row[2] for row in table.rows] == [1, 2, 4, 8, 8, 4, 2, 1]
    assert [row[3] for row in table.rows] == [8e6, 4e6, 2e6, 1e6, 1e6, 2e6, 4e6, 8e6]
    assert table.values["sent"].value == pytest.approx(2 * 15 / 16 * 16e6)


def test_a_switch_that_adds_carries_one_vector_and_an_nth_each_way() -> None:
    """N + 1 messages of S/N instead of 2(N − 1), which is NCCL's own count for NVLink SHARP."""
    values = build("switch-adds", {"ranks": 8}).values
    assert values["switch"].value == pytest.approx(9 / 8)
    assert values["ring"].value == pytest.approx(14 / 8)


@pytest.mark.parametrize("algorithm", EXCHANGES)
@pytest.mark.parametrize("ranks", range(1, 20))
def test_folding_costs_two_whole_vectors_unless_the_ranks_are_a_power_of_two(
    algorithm: str, ranks: int
) -> None:
    run = folded_all_reduce(ranks, algorithm)
    core = 2 ** math.floor(math.log2(ranks))
    rounds, extra = int(math.log2(core)), 0 if core == ranks else 2
    halving = algorithm == "recursive-halving-doubling"
    assert len(run.steps) == (2 if halving else 1) * rounds + extra
    moved = 2 * (core - 1) / core if halving else rounds
    assert synchronous_time_s(run, 1e6, 0.0, 1.0) == pytest.approx((moved + extra) * 1e6)


def test_rows_of_any_ranks_count_what_the_closed_forms_say() -> None:
    table = build("all-reduce-any-ranks", {"ranks": [6, 8]})
    six, eight = table.rows
    assert six == pytest.approx((6, 10, 10 / 6, 6, 6.0, 4, 4.0, 6, 3.5))
    assert eight == pytest.approx((8, 14, 1.75, 6, 6.0, 3, 3.0, 6, 1.75))
