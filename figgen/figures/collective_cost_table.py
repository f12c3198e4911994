"""What the algorithms of every collective cost: terms, bytes of the busiest rank, times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from figgen.charts import Column, Named, Scalar, Table
from figgen.figures.all_reduce_algorithms import machine
from figgen.formulas import collectives as costs
from figgen.formulas.ops import Number
from figgen.models.collectives import Trace, bytes_sent_per_rank, trace
from figgen.registry import figure
from figgen.units import NBSP, format_quantity

SEGMENTS = 64
Time = Callable[[Number, Number, Number, Number], Number]


def _chain(n: Number, size: Number, latency: Number, bandwidth: Number) -> Number:
    return costs.chain_broadcast_time(n, SEGMENTS, size, latency, bandwidth)


@dataclass(frozen=True, slots=True)
class Cost:
    """One algorithm of a collective: its terms as printed, its time, and its trace."""

    collective: Literal["broadcast", "scatter", "all-gather", "all-reduce", "all-to-all"]
    title: str
    latency: str
    transfer: str
    time: Time
    traced: str
    segments: int | None = None

    def run(self, ranks: int) -> Trace:
        options = {} if self.segments is None else {"segments": self.segments}
        return trace(self.collective, self.traced, ranks, **options)


TREE = "⌈log₂ n⌉α"
SHARE = "(n − 1)/n S/B"
COSTS = (
    Cost("broadcast", "binomial tree", TREE, "⌈log₂ n⌉ S/B", costs.binomial_broadcast_time,
         "binomial-tree"),
    Cost("broadcast", "scatter, all-gather", "(⌈log₂ n⌉ + n − 1)α", f"2{SHARE}",
         costs.scatter_all_gather_broadcast_time, "scatter-all-gather"),
    Cost("broadcast", f"chain, k = {SEGMENTS}", "(n − 2 + k)α", "(n − 2 + k)/k S/B", _chain,
         "chain", SEGMENTS),
    Cost("scatter", "binomial tree", TREE, SHARE, costs.binomial_scatter_time, "binomial-tree"),
    Cost("all-gather", "ring", "(n − 1)α", SHARE, costs.ring_all_gather_time, "ring"),
    Cost("all-gather", "recursive doubling", "log₂ n α", SHARE,
         costs.recursive_doubling_all_gather_time, "recursive-doubling"),
    Cost("all-reduce", "ring", "2(n − 1)α", f"2{SHARE}", costs.ring_all_reduce_time, "ring"),
    Cost("all-reduce", "halving-doubling", "2 log₂ n α", f"2{SHARE}",
         costs.halving_doubling_all_reduce_time, "recursive-halving-doubling"),
    Cost("all-to-all", "pairwise", "(n − 1)α", SHARE, costs.pairwise_all_to_all_time, "pairwise"),
    Cost("all-to-all", "Bruck", TREE, "½⌈log₂ n⌉ S/B", costs.bruck_all_to_all_time, "bruck"),
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
        times = [
            float(cost.time(m.ranks, size, m.latency_s, m.bandwidth_bytes_per_s))
            for size in message_bytes
        ]
        terms = (term.replace(" ", NBSP) for term in (cost.latency, cost.transfer))
        sent = max(bytes_sent_per_rank(cost.run(m.ranks), 1.0))
        name = ALSO.get(cost.collective, cost.collective)
        rows.append((name, cost.title, *terms, sent, *times))
        for at, time in enumerate(times):
            values[f"time_{index}_{at}"] = Named(time, "s")
    columns = (
        Column(label="collective"),
        Column(label="algorithm"),
        Column(label="latency"),
        Column(label="transfer"),
        Column(label="busiest rank sends, in S", spec=".3f"),
        *(
            Column(label=format_quantity(size, "B", "bytes"), unit="s", spec="time")
            for size in message_bytes
        ),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
