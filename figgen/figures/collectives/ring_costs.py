"""The cost of a ring all-reduce: its bytes over n, its latency, and where the two are equal."""

from __future__ import annotations

from figgen.catalog import link as catalog_link
from figgen.catalog.nccl_links import step_latency_s
from figgen.charts import Axis, Column, Curves, Mark, Named, Rule, Scalar, Table
from figgen.errors import check_between
from figgen.figures.parameters import LinkName
from figgen.formulas.alpha_beta import (
    all_reduce_bus_bandwidth,
    point_to_point_crossover_bytes,
    ring_all_reduce_crossover_bytes,
)
from figgen.formulas.collectives import all_reduce_bytes_sent, ring_all_reduce_time
from figgen.plotting.series import doublings, line, logarithmic, series_role
from figgen.plotting.words import identifier
from figgen.quantity_shown import shown
from figgen.registry import figure


@figure("all-reduce-factor", explorable=True, recomputed=True)
def all_reduce_factor(*, most_ranks: int = 64) -> Curves:
    """Bytes that each rank sends to all-reduce one byte, over the number of ranks."""
    check_between("most_ranks", most_ranks, 2, 4096)
    ranks = tuple(range(2, most_ranks + 1))
    sent = tuple(float(all_reduce_bytes_sent(ranks=n, message_bytes=1.0)) for n in ranks)
    return Curves(
        x=Axis(label="ranks n", scale="log2", spec=","),
        y=Axis(label="bytes sent per rank, in S", low=0.0, high=2.2, spec=".1f"),
        series=(line("2(n − 1)/n", map(float, ranks), sent),),
        rules=(Rule(axis="y", at=2.0, label="limit for many ranks"),),
        values={
            "first": Named(sent[0]),
            "at_8": Named(float(all_reduce_bytes_sent(ranks=8, message_bytes=1.0))),
            "last": Named(sent[-1]),
            "most_ranks": Named(most_ranks),
        },
    )


@figure("ring-time-over-ranks", explorable=True, recomputed=True)
def ring_time_over_ranks(
    *,
    message_bytes: tuple[float, ...] = (1e6, 1e9),
    link: LinkName = "ib-ndr",
    most_ranks: int = 1024,
) -> Curves:
    """Time of a ring all-reduce over the number of ranks, with α and with α = 0."""
    check_between("most_ranks", most_ranks, 2, 2**30)
    over = catalog_link(link)
    latency, bandwidth = step_latency_s(over), over.bandwidth_bytes_per_s
    ranks = doublings(most_ranks)
    series, values = [], {"latency_s": Named(latency, "s")}
    for index, size in enumerate(message_bytes):
        told = shown(size, "B", "bytes")
        for alpha in (latency, 0.0):
            y = tuple(float(ring_all_reduce_time(n, size, alpha, bandwidth)) for n in ranks)
            name = told if alpha else f"{told}, α = 0"
            series.append(
                line(name, map(float, ranks), y, 2 * index, "line" if alpha else "dashed")
            )
            values[f"{'last' if alpha else 'flat'}_{index}"] = Named(y[-1], "s")
    return Curves(
        x=Axis(label="ranks n", scale="log2", spec=","),
        y=Axis(label="time", unit="s", scale="log10", spec="time"),
        series=tuple(series),
        values=values,
    )


@figure("ring-bus-bandwidth", explorable=True, recomputed=True)
def ring_bus_bandwidth(
    *,
    ranks: tuple[int, ...] = (8, 64, 512),
    link: LinkName = "ib-ndr",
    low_bytes: float = 1e4,
    high_bytes: float = 1e11,
) -> Curves:
    """Share of the link's bandwidth that a ring all-reduce uses, over the message size.

    A mark shows each visible crossover n·α·B, where latency and transfer take equally long.
    """
    over = catalog_link(link)
    latency, bandwidth = step_latency_s(over), over.bandwidth_bytes_per_s
    sizes = logarithmic(low_bytes, high_bytes)

    def share(n: int, size: float) -> float:
        time = ring_all_reduce_time(n, size, latency, bandwidth)
        return float(all_reduce_bus_bandwidth(n, size, time) / bandwidth)

    marks, series = [], []
    values = {"latency_s": Named(latency, "s"), "bandwidth": Named(bandwidth, "B/s")}
    for index, n in enumerate(ranks):
        y = tuple(share(n, size) for size in sizes)
        series.append(line(f"n = {n}", sizes, y, index))
        equal = float(ring_all_reduce_crossover_bytes(n, latency, bandwidth))
        if low_bytes <= equal <= high_bytes:
            label = shown(equal, "B", "bytes")
            marks.append(Mark(x=equal, y=share(n, equal), label=label, role=series_role(index)))
        values["share_at_crossover"] = Named(share(n, equal))
        values["share_at_nine"] = Named(share(n, 9 * equal))
        values[f"crossover_{n}"] = Named(equal, "B")
        values[f"ninety_{n}"] = Named(9 * equal, "B")  # share is S/(S + nαB)
    return Curves(
        x=Axis(label="message size S", unit="B", scale="log10", spec="bytes"),
        y=Axis(label="busbw as a share of the link", low=0.0, high=1.0, spec=".0%"),
        series=tuple(series),
        marks=tuple(marks),
        values=values,
    )


@figure("ring-crossovers")
def ring_crossovers(
    *,
    links: tuple[str, ...] = ("nvlink3", "nvlink4", "nvlink5", "ib-hdr", "ib-ndr", "ib-xdr"),
    ranks: tuple[int, ...] = (8, 64),
) -> Table:
    """Size at which latency and transfer are equal, for one message and for rings, by link."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in links:
        over = catalog_link(name)
        latency, bandwidth = step_latency_s(over), over.bandwidth_bytes_per_s
        message = float(point_to_point_crossover_bytes(latency, bandwidth))
        rings = [float(ring_all_reduce_crossover_bytes(n, latency, bandwidth)) for n in ranks]
        rows.append((over.title, bandwidth, latency, message, *rings))
        values |= {
            f"{identifier(name)}_{n}": Named(size, "B")
            for n, size in zip(ranks, rings, strict=True)
        }
    columns = (
        Column(label="link"),
        Column(label="B", unit="B/s", spec="si"),
        Column(label="α", unit="s", spec="time"),
        Column(label="one message, αB", unit="B", spec="bytes"),
        *(Column(label=f"ring of {n}, {n}αB", unit="B", spec="bytes") for n in ranks),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
