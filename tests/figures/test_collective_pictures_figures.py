"""Pictures and tables of collectives, compared with definitions, traces, duals and nccl-tests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from figgen.charts import Diagram, Table
from figgen.errors import InputError
from figgen.figures.collectives.cost_table import COSTS
from figgen.figures.collectives.pictures import MOVES, SHOWN, before_and_after, shown_trace
from figgen.figures.collectives.tables import ORDER, dual
from figgen.models.collectives import (
    CONTRACTS,
    bytes_received_per_rank,
    bytes_sent_per_rank,
    synchronous_time_s,
    trace,
    verify,
)
from figgen.models.collectives.numbers import carry_out
from figgen.models.collectives.traces import CollectiveTrace, Send
from figgen.registry import build
from figgen.scenarios.stories.all_reduce import Algorithm, machine
from tests.renderers.overflows import overflows


def by_hand(collective: str, vectors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return what a collective leaves on every rank by its definition, with plain lists."""
    n = len(vectors)
    sums = [sum(column) for column in zip(*vectors, strict=True)]
    own = [vectors[rank][rank] for rank in range(n)]
    nothing: list[int] = []
    return {
        "broadcast": [list(vectors[0])] * n,
        "reduce": [sums, *[nothing] * (n - 1)],
        "scatter": [[value] for value in vectors[0]],
        "gather": [own, *[nothing] * (n - 1)],
        "all-gather": [own] * n,
        "reduce-scatter": [[value] for value in sums],
        "all-reduce": [sums] * n,
        "all-to-all": [list(column) for column in zip(*vectors, strict=True)],
    }[collective]


VECTORS = {
    2: ((1, 10), (100, 1000)),
    3: ((1, 2, 3), (4, 5, 6), (5, 13, 21)),
    5: tuple(tuple(10**r * (c + 1) for c in range(5)) for r in range(5)),
}


@pytest.mark.parametrize("ranks", VECTORS)
def test_the_numbers_after_each_collective_are_those_of_its_definition(ranks: int) -> None:
    table = build("collective-numbers", {"vectors": VECTORS[ranks]})
    assert [row[0] for row in table.rows] == list(ORDER)
    for name, *cells in table.rows:
        shown = [[int(n) for n in str(cell).split() if n != "–"] for cell in cells[ranks:]]
        assert shown == by_hand(str(name), VECTORS[ranks])


def test_three_ranks_sum_to_10_20_30() -> None:
    assert build("collective-numbers", {}).values["sums"].value == "10 20 30"


def test_numbers_are_refused_for_a_rank_or_a_chunk_too_few() -> None:
    run = trace("all-reduce", "ring", 2)
    with pytest.raises(InputError, match="inputs"):
        carry_out(run, [{0: 1.0, 1: 1.0}])
    with pytest.raises(InputError, match="chunks of rank 1"):
        carry_out(run, [{0: 1.0, 1: 1.0}, {0: 1.0}])


def test_every_algorithm_of_the_family_leads_where_its_collective_says() -> None:
    held = {"every": {"summands", "replicas"}, "root": {"root"}, "owner": {"shards"}}
    for name, (source, target) in MOVES.items():
        start, end = CONTRACTS[name]
        assert source in held[start]
        assert target in held[end]
        adds = source == "summands"
        assert adds == any(s.reduces for sends in shown_trace(name, 4).steps for s in sends)


@pytest.mark.parametrize("collective", SHOWN)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_before_and_after_show_what_the_definition_says(collective: str, ranks: int) -> None:
    names = "ABCDEFGH"[:ranks]
    single = CONTRACTS[collective][0] == "owner"
    spelled = [[c if single else f"{c}{part}" for part in range(ranks)] for c in names]
    coded = {f"Σ{part}": -part - 1 for part in range(ranks)}
    coded |= {cell: 100 * r + p for r, row in enumerate(spelled) for p, cell in enumerate(row)}
    if single:
        coded = {c: 101 * r for r, c in enumerate(names)}
    vectors = [[100 * r + p for p in range(ranks)] for r in range(ranks)]
    sums = {sum(100 * r + p for r in range(ranks)): -p - 1 for p in range(ranks)}
    wanted = [
        [sums.get(value, value) if "reduce" in collective else value for value in column]
        for column in by_hand(collective, vectors)
    ]
    _, after = before_and_after(shown_trace(collective, ranks))
    shown = [[coded[after[r, p]] for p in range(ranks) if (r, p) in after] for r in range(ranks)]
    assert shown == wanted


@pytest.mark.parametrize("collective", SHOWN)
def test_the_text_of_every_cell_fits(collective: str) -> None:
    for ranks in (2, 4, 8):
        assert overflows(build("collective-before-after", {"collective": collective})) == (), ranks


def backwards(run: CollectiveTrace) -> CollectiveTrace:
    """Reverse the steps and each message, and exchange copying and adding."""
    last = len(run.steps) - 1
    adds = dual(run.collective) in ("reduce", "reduce-scatter", "all-reduce")
    steps = tuple(
        tuple(
            Send(step=last - step, source=s.target, target=s.source, chunks=s.chunks, reduces=adds)
            for s in run.steps[step]
        )
        for step in range(last, -1, -1)
    )
    return CollectiveTrace(
        collective=dual(run.collective),
        algorithm=f"reversed {run.algorithm}",
        ranks=run.ranks,
        chunk_count=run.chunk_count,
        steps=steps,
        phases=run.phases[::-1],
        owners=run.owners,
        root=run.root,
    )


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("broadcast", "binomial-tree"),
        ("broadcast", "chain"),
        ("reduce", "binomial-tree"),
        ("scatter", "binomial-tree"),
        ("gather", "binomial-tree"),
        ("all-gather", "ring"),
        ("all-gather", "recursive-doubling"),
        ("reduce-scatter", "ring"),
        ("reduce-scatter", "recursive-halving"),
    ],
)
def test_an_algorithm_run_backwards_is_one_for_the_dual(collective: str, algorithm: str) -> None:
    run = trace(collective, algorithm, 8)
    assert verify(backwards(run)).collective == dual(collective)


def test_the_dual_of_the_dual_is_the_collective_itself() -> None:
    assert all(dual(dual(name)) == name for name in CONTRACTS)
    table = build("collective-duality", {})
    assert {row[0]: row[-1] for row in table.rows}["all-gather"] == "reduce-scatter"
    assert table.values["own_duals"].value == 2


def test_the_least_that_the_busiest_port_carries_is_the_bus_factor_of_nccl_tests() -> None:
    """Factors of nccl-tests, src/*.cu: k(n − 1)/n, and 1 for broadcast and reduce."""
    for ranks in (2, 4, 8):
        table = build("collective-sizes", {"ranks": ranks, "message_bytes": "1 GB"})
        share = {row[0]: row[-1] for row in table.rows}
        most = (ranks - 1) / ranks
        assert share == pytest.approx(
            {"broadcast": 1, "reduce": 1, "all-reduce": 2 * most}
            | dict.fromkeys(
                ("scatter", "gather", "all-gather", "reduce-scatter", "all-to-all"), most
            )
        )
        parts = {row[0]: row[2:4] for row in table.rows}
        assert parts["all-gather"] == pytest.approx((1e9 / ranks, 1e9))
        assert parts["reduce-scatter"] == pytest.approx((1e9, 1e9 / ranks))


@pytest.mark.parametrize("cost", COSTS, ids=lambda c: f"{c.collective} {c.title}")
def test_every_cost_is_that_of_its_trace_run_step_by_step(cost: Algorithm) -> None:
    node = machine("h100-ndr", 1)
    run = trace(cost.collective, cost.traced, node.ranks, **cost.options(node))
    for size in (1.0, 64e3, 1e9):
        played = synchronous_time_s(run, size, 3.4e-6, 450e9)
        assert cost.time(node, size, 1) == pytest.approx(played)


def test_a_broadcast_of_1_gb_to_8_ranks_takes_the_corrected_times() -> None:
    """60, 35 and 21.9 ms at 50 GB/s without latency, depending on the algorithm."""
    times = [cost.time(machine("h100-ndr", 1), 9e9, 0) for cost in COSTS[:3]]  # at 9 · 50 GB/s
    assert times == pytest.approx([60e-3, 35e-3, 21.875e-3])


DUALS = {
    ("broadcast", "binomial-tree"): "binomial-tree",
    ("broadcast", "scatter-all-gather"): "reduce-scatter-gather",
    ("broadcast", "chain"): "chain",
    ("scatter", "binomial-tree"): "binomial-tree",
    ("all-gather", "ring"): "ring",
    ("all-gather", "recursive-doubling"): "recursive-halving",
}
"""The name of each algorithm of the table when it runs backwards."""


def test_what_the_busiest_rank_sends_its_dual_receives_and_no_rank_of_a_gather_sends() -> None:
    m = machine("h100-ndr", 1)
    for (collective, algorithm), backwards in DUALS.items():
        (cost,) = (c for c in COSTS if (c.collective, c.traced) == (collective, algorithm))
        run = trace(dual(collective), backwards, m.ranks, **cost.options(m))
        assert max(bytes_received_per_rank(run, 1)) == pytest.approx(cost.busiest_share(m))
    # The label said "sends" of the gather, too, where a root receives 7/8 S and nobody sends so.
    gather = trace("gather", "binomial-tree", m.ranks)
    assert max(bytes_sent_per_rank(gather, 1)) == 0.5
    table = build("collective-costs", {})
    assert isinstance(table, Table)
    assert "dual: receives" in table.columns[4].label


@pytest.mark.parametrize("ranks", range(2, 33))
def test_brucks_exchange_sends_half_the_buffer_a_step_for_powers_of_two_only(ranks: int) -> None:
    steps = (ranks - 1).bit_length()
    sent = max(bytes_sent_per_rank(trace("all-to-all", "bruck", ranks), 1))
    assert sent <= steps / 2 + 1e-12
    assert (sent == pytest.approx(steps / 2)) == (ranks & (ranks - 1) == 0)


def test_send_and_receive_go_both_ways_over_every_boundary() -> None:
    chart = build("send-recv", {"stages": 5})
    assert isinstance(chart, Diagram)
    assert chart.values["pairs"].value == len(chart.links) == 8
    assert {(a.source, a.target) for a in chart.links} == {
        (f"stage {a}", f"stage {b}") for a in range(5) for b in range(5) if abs(a - b) == 1
    }
