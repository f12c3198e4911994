"""The α–β model: one message over size, real links, everyday messages, and buckets."""

from __future__ import annotations

from figgen.catalog import link as catalog_link
from figgen.catalog.nccl_links import step_latency_s
from figgen.charts import Axis, Column, Curves, Mark, Named, Rule, Scalar, Table
from figgen.errors import check_between
from figgen.figures.parameters import LinkName
from figgen.formulas.alpha_beta import (
    algorithm_bandwidth,
    point_to_point_crossover_bytes,
    point_to_point_time,
    ring_all_reduce_crossover_bytes,
)
from figgen.formulas.data_parallel import chunked_all_reduce_time
from figgen.plotting.placed import headings
from figgen.plotting.series import line, logarithmic, series_role
from figgen.plotting.words import identifier
from figgen.quantity_shown import shown
from figgen.registry import figure
from figgen.scenarios.stories.all_reduce import RING, RING_PER_NIC, machine

SIZE = Axis(label="message size", unit="B", scale="log10", spec="bytes")
TIME = Axis(label="time", unit="s", scale="log10", spec="time")


@figure("message-time", explorable=True, recomputed=True)
def message_time(
    *, link: LinkName = "ib-ndr", low_bytes: float = 1e3, high_bytes: float = 1e9
) -> Curves:
    """Time of one message over its size, with its two terms and the size where they are equal."""
    over = catalog_link(link)
    latency, bandwidth = step_latency_s(over), over.bandwidth_bytes_per_s
    half = float(point_to_point_crossover_bytes(latency, bandwidth))
    sizes = tuple(sorted({*logarithmic(low_bytes, high_bytes), half}))
    total = tuple(float(point_to_point_time(size, latency, bandwidth)) for size in sizes)
    long = [size for size in sizes if size / bandwidth >= latency / 30]
    at_half = float(point_to_point_time(half, latency, bandwidth))
    return Curves(
        x=SIZE,
        y=TIME,
        series=(
            line("α + S/B", sizes, total),
            line("S/B", long, (size / bandwidth for size in long), 1, "dashed"),
            line("α", sizes, [latency] * len(sizes), 2, "dashed"),
        ),
        marks=(Mark(x=half, y=at_half, label=f"n½ = {shown(half, 'B', 'bytes')}", role="ink"),),
        values={
            "latency_s": Named(latency, "s"),
            "bandwidth": Named(bandwidth, "B/s"),
            "half": Named(half, "B"),
            "at_half": Named(at_half, "s"),
            "first": Named(total[0], "s"),
            "last": Named(total[-1], "s"),
            "rate_at_half": Named(float(algorithm_bandwidth(half, at_half)), "B/s"),
        },
    )


@figure("message-rates", explorable=True, recomputed=True)
def message_rates(
    *,
    links: tuple[LinkName, ...] = ("nvlink5", "nvlink4", "ib-ndr", "ib-hdr", "roce-100g"),
    low_bytes: float = 1e3,
    high_bytes: float = 1e9,
) -> Curves:
    """Bandwidth that one message reaches over its size, by link, with a mark at half of it."""
    sizes = logarithmic(low_bytes, high_bytes)
    series, marks = [], []
    values: dict[str, Named] = {}
    for index, name in enumerate(links):
        over = catalog_link(name)
        latency, bandwidth = step_latency_s(over), over.bandwidth_bytes_per_s
        half = float(point_to_point_crossover_bytes(latency, bandwidth))
        x = tuple(sorted({*sizes, half}))
        rates = tuple(
            float(algorithm_bandwidth(size, point_to_point_time(size, latency, bandwidth)))
            for size in x
        )
        role = series_role(index)
        series.append(line(over.title, x, rates, index))
        told = shown(half, "B", "bytes")
        marks.append(Mark(x=half, y=bandwidth / 2, label=told, role=role))
        values[f"half_{index}"] = Named(half, "B")
        values[f"first_{index}"] = Named(rates[0], "B/s")
    rate = Axis(label="message size over time", unit="B/s", scale="log10", spec="si")
    return Curves(x=SIZE, y=rate, series=tuple(series), marks=tuple(marks), values=values)


@figure("link-crossovers")
def link_crossovers(
    *,
    links: tuple[str, ...] = (
        "nvlink3",
        "nvlink4",
        "nvlink5",
        "ib-hdr",
        "ib-ndr",
        "ib-xdr",
        "roce-100g",
        "roce-400g",
    ),
    ranks: int = 8,
) -> Table:
    """n½ of one message by link, with NCCL's α of a step and the wire's if it was measured."""
    check_between("ranks", ranks, 2, 2**20)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in links:
        over = catalog_link(name)
        step, bandwidth = step_latency_s(over), over.bandwidth_bytes_per_s
        half = float(point_to_point_crossover_bytes(step, bandwidth))
        ring = float(ring_all_reduce_crossover_bytes(ranks, step, bandwidth))
        wire: tuple[Scalar, Scalar] = ("–", "–")
        if over.latency is not None:
            bare = float(point_to_point_crossover_bytes(over.latency.value, bandwidth))
            wire = (over.latency.value, bare)
            values[f"{identifier(name)}_wire"] = Named(bare, "B")
        rows.append((over.title, bandwidth, step, half, *wire, ring))
        values[identifier(name)] = Named(half, "B")
    columns = (
        Column(label="link"),
        Column(label="B", unit="B/s", spec="si"),
        Column(label="α, one NCCL step", unit="s", spec="time"),
        Column(label="n½", unit="B", spec="bytes"),
        Column(label="α, 64 B measured", unit="s", spec="time"),
        *headings("n½ of that", f"ring of {ranks}", unit="B", spec="bytes"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("everyday-times")
def everyday_times(
    *,
    preset: str = "h100-ndr",
    nodes: int = 8,
    message_bytes: tuple[float, ...] = (8, 64e3, 16e6, 26214400, 400e6, 14e9),
) -> Table:
    """Times of everyday messages: one message and an all-reduce, within a node and between nodes.

    Between nodes an all-reduce runs a ring through every NIC. `latency share` is that of the
    all-reduce between nodes.
    """
    inside, outside = machine(preset, 1), machine(preset, nodes)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"ranks": Named(inside.ranks), "all": Named(outside.ranks)}
    for index, size in enumerate(message_bytes):
        single = [
            float(point_to_point_time(size, m.latency_s, m.bandwidth_bytes_per_s))
            for m in (inside, outside)
        ]
        ring, rings = RING.time(inside, size, 1), RING_PER_NIC.time(outside, size, 1)
        share = RING_PER_NIC.time(outside, 0.0, 1) / rings
        rows.append((shown(size, "B", "bytes"), *single, ring, rings, share))
        values |= {
            f"message_{index}": Named(single[0], "s"),
            f"far_{index}": Named(single[1], "s"),
            f"ring_{index}": Named(ring, "s"),
            f"rings_{index}": Named(rings, "s"),
            f"share_{index}": Named(share),
        }
    columns = (
        Column(label="size"),
        *headings(
            "one message, NVLink",
            "one message, network",
            f"all-reduce, {inside.ranks} ranks",
            f"all-reduce, {outside.ranks} ranks",
            unit="s",
            spec="time",
        ),
        Column(label="of which latency", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("bucket-times", explorable=True, recomputed=True)
def bucket_times(
    *,
    message_bytes: float = 14e9,
    ranks: tuple[int, ...] = (8, 64, 512),
    link: LinkName = "ib-ndr",
    low_bytes: float = 1e6,
    marked_bytes: float = 26214400,
) -> Curves:
    """Time to all-reduce a long vector in buckets, over the bucket size, by number of ranks.

    Buckets go around a ring one after the other and pay 2(n − 1)α each; times are multiples of the
    transfer alone. A mark shows where latency and transfer are equal.
    """
    over = catalog_link(link)
    latency, bandwidth = step_latency_s(over), over.bandwidth_bytes_per_s
    sizes = logarithmic(low_bytes, message_bytes, per_decade=6)

    def multiple(n: int, bucket: float) -> float:
        buckets, overhead = message_bytes / bucket, 2 * (n - 1) * latency
        time = chunked_all_reduce_time(
            buckets=buckets,
            ranks=n,
            message_bytes=message_bytes,
            bandwidth_bytes_per_s=bandwidth,
            bucket_overhead_s=overhead,
        )
        least = chunked_all_reduce_time(
            buckets=1,
            ranks=n,
            message_bytes=message_bytes,
            bandwidth_bytes_per_s=bandwidth,
            bucket_overhead_s=0.0,
        )
        return float(time / least)

    series, marks = [], []
    values: dict[str, Named] = {"marked": Named(marked_bytes, "B")}
    for index, n in enumerate(ranks):
        role = series_role(index)
        equal = float(ring_all_reduce_crossover_bytes(n, latency, bandwidth))
        x = tuple(sorted({*sizes, equal, marked_bytes}))
        y = tuple(multiple(n, size) for size in x)
        series.append(line(f"n = {n}", x, y, index))
        label = shown(equal, "B", "bytes")
        marks.append(Mark(x=equal, y=multiple(n, equal), label=label, role=role))
        values |= {
            f"crossover_{n}": Named(equal, "B"),
            f"marked_{n}": Named(multiple(n, marked_bytes)),
        }
    return Curves(
        x=Axis(label="bucket size", unit="B", scale="log10", spec="bytes"),
        y=Axis(label="time over that of the bytes alone", scale="log2", low=1.0, spec="g"),
        series=tuple(series),
        marks=tuple(marks),
        rules=(Rule(axis="x", at=marked_bytes, label=shown(marked_bytes, "B", "gib")),),
        values=values,
    )
