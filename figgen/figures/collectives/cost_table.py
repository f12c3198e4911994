"""Costs of the algorithms of every collective: terms, bytes of the busiest rank, times."""

from __future__ import annotations

from figgen.charts import Column, Named, Scalar, Table
from figgen.equations.ops import Number
from figgen.formulas import collectives as costs
from figgen.plotting.placed import headings
from figgen.quantity_shown import NBSP
from figgen.registry import figure
from figgen.scenarios.stories.all_reduce import (
    HALVING,
    RING,
    Algorithm,
    flat,
    machine,
)
from figgen.units import format_quantity

SEGMENTS = 64


def _chain(n: Number, size: Number, latency: Number, bandwidth: Number) -> Number:
    return costs.chain_broadcast_time(n, SEGMENTS, size, latency, bandwidth)


TREE = "⌈log₂ n⌉α"
SHARE = "(n − 1)/n S/B"
COSTS = (
    Algorithm(
        title="binomial tree",
        latency=TREE,
        transfer="⌈log₂ n⌉ S/B",
        time=flat(costs.binomial_broadcast_time),
        traced="binomial-tree",
        collective="broadcast",
    ),
    Algorithm(
        title="scatter, all-gather",
        latency="(⌈log₂ n⌉ + n − 1)α",
        transfer=f"2{SHARE}",
        time=flat(costs.scatter_all_gather_broadcast_time),
        traced="scatter-all-gather",
        collective="broadcast",
    ),
    Algorithm(
        title=f"chain, k = {SEGMENTS}",
        latency="(n − 2 + k)α",
        transfer="(n − 2 + k)/k S/B",
        time=flat(_chain),
        traced="chain",
        collective="broadcast",
        segments=SEGMENTS,
    ),
    Algorithm(
        title="binomial tree",
        latency=TREE,
        transfer=SHARE,
        time=flat(costs.binomial_scatter_time),
        traced="binomial-tree",
        collective="scatter",
    ),
    Algorithm(
        title="ring",
        latency="(n − 1)α",
        transfer=SHARE,
        time=flat(costs.ring_all_gather_time),
        traced="ring",
        collective="all-gather",
    ),
    Algorithm(
        title="recursive doubling",
        latency="log₂ n α",
        transfer=SHARE,
        time=flat(costs.recursive_doubling_all_gather_time),
        traced="recursive-doubling",
        collective="all-gather",
    ),
    RING,
    HALVING,
    Algorithm(
        title="pairwise",
        latency="(n − 1)α",
        transfer=SHARE,
        time=flat(costs.pairwise_all_to_all_time),
        traced="pairwise",
        collective="all-to-all",
    ),
    Algorithm(
        title="Bruck",
        latency=TREE,
        transfer="½⌈log₂ n⌉ S/B",
        time=flat(costs.bruck_all_to_all_time),
        traced="bruck",
        collective="all-to-all",
    ),
)

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
        *headings("collective", "algorithm", "latency", "transfer"),
        Column(label="busiest rank sends (its dual: receives), in S", spec=".3f"),
        *(
            Column(label=format_quantity(size, "B", "bytes"), unit="s", spec="time")
            for size in message_bytes
        ),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
