"""What the algorithms of every collective cost: terms, bytes of the busiest rank, times."""

from __future__ import annotations

from figgen.charts import Column, Named, Scalar, Table
from figgen.equations.ops import Number
from figgen.formulas import collectives as costs
from figgen.registry import figure
from figgen.scenarios.stories.all_reduce import (
    HALVING,
    RING,
    Algorithm,
    flat,
    machine,
)
from figgen.units import NBSP, format_quantity

SEGMENTS = 64


def _chain(n: Number, size: Number, latency: Number, bandwidth: Number) -> Number:
    return costs.chain_broadcast_time(n, SEGMENTS, size, latency, bandwidth)


TREE = "⌈log₂ n⌉α"
SHARE = "(n − 1)/n S/B"
COSTS = (
    Algorithm("binomial tree", TREE, "⌈log₂ n⌉ S/B",
              flat(costs.binomial_broadcast_time), "binomial-tree", "broadcast"),
    Algorithm("scatter, all-gather", "(⌈log₂ n⌉ + n − 1)α", f"2{SHARE}",
              flat(costs.scatter_all_gather_broadcast_time), "scatter-all-gather", "broadcast"),
    Algorithm(f"chain, k = {SEGMENTS}", "(n − 2 + k)α", "(n − 2 + k)/k S/B",
              flat(_chain), "chain", "broadcast", segments=SEGMENTS),
    Algorithm("binomial tree", TREE, SHARE,
              flat(costs.binomial_scatter_time), "binomial-tree", "scatter"),
    Algorithm("ring", "(n − 1)α", SHARE, flat(costs.ring_all_gather_time), "ring", "all-gather"),
    Algorithm("recursive doubling", "log₂ n α", SHARE,
              flat(costs.recursive_doubling_all_gather_time), "recursive-doubling", "all-gather"),
    RING,
    HALVING,
    Algorithm("pairwise", "(n − 1)α", SHARE,
              flat(costs.pairwise_all_to_all_time), "pairwise", "all-to-all"),
    Algorithm("Bruck", TREE, "½⌈log₂ n⌉ S/B",
              flat(costs.bruck_all_to_all_time), "bruck", "all-to-all"),
)  # fmt: skip

ALSO = {
    "broadcast": "broadcast, reduce", "scatter": "scatter, gather",
    "all-gather": "all-gather, reduce-scatter",
}  # fmt: skip
"""Duals cost the same, since each is the other run backwards."""


@figure("collective-costs")
def collective_costs(
    *, preset: str = "h100-ndr", message_bytes: tuple[float, ...] = (64e3, 1e9)
) -> Table:
    """Both terms of every collective by algorithm, what its busiest rank sends, and its time.

    One node of the hardware preset. Bytes are counted in the proven trace; times are formulas.
    """
    m = machine(preset, 1)
    rows: list[tuple[Scalar, ...]] = []
    values = {
        "ranks": Named(m.ranks),
        "latency_s": Named(m.latency_s, "s"),
        "bandwidth": Named(m.bandwidth_bytes_per_s, "B/s"),
    }
    for index, cost in enumerate(COSTS):
        times = [cost.time(m, size, 1) for size in message_bytes]
        terms = (term.replace(" ", NBSP) for term in (cost.latency, cost.transfer))
        name = ALSO.get(cost.collective, cost.collective)
        rows.append((name, cost.title, *terms, cost.busiest_share(m), *times))
        for at, time in enumerate(times):
            values[f"time_{index}_{at}"] = Named(time, "s")
    columns = (
        Column(label="collective"),
        Column(label="algorithm"),
        Column(label="latency"),
        Column(label="transfer"),
        Column(label="busiest rank sends (its dual: receives), in S", spec=".3f"),
        *(
            Column(label=format_quantity(size, "B", "bytes"), unit="s", spec="time")
            for size in message_bytes
        ),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
