"""All-reduce algorithms compared: terms, times by size, the fastest by region, NICs."""

from __future__ import annotations

import re

from figgen.charts import Axis, Column, Curves, Mark, Named, Scalar, Series, Table
from figgen.errors import InputError
from figgen.figures.parameters import HardwareName
from figgen.formulas.collectives import all_reduce_bytes_sent
from figgen.formulas.hierarchical_collectives import flat_ring_bytes_per_nic
from figgen.plotting.placed import headings
from figgen.plotting.series import line, logarithmic
from figgen.quantity_shown import NBSP, shown
from figgen.registry import figure
from figgen.scenarios.stories.all_reduce import (
    COMPARED,
    DOUBLE_TREE,
    LEADERS,
    RING,
    RING_PER_NIC,
    TWO_LEVEL,
    Algorithm,
    Machine,
    competitors,
    envelope,
    lines,
    machine,
)


def _size(size: float) -> str:
    return shown(size, "B", "bytes")


def _terms(a: Algorithm) -> tuple[str, str]:
    """Return both terms; a narrow table breaks them only after a plus sign."""
    kept = (term.replace(" ", NBSP) for term in (a.latency, a.transfer))
    latency, transfer = (term.replace(f"+{NBSP}", "+ ") for term in kept)
    return latency, transfer


@figure("all-reduce-algorithms")
def all_reduce_algorithms(
    *,
    preset: str = "h100-ndr",
    nodes: int = 1,
    message_bytes: tuple[float, ...] = (1e4, 1e9),
) -> Table:
    """Both terms of every algorithm, what its busiest rank sends, and its time at some sizes.

    Bytes are counted in the proven trace of each algorithm; times are the closed forms.
    """
    m = machine(preset, nodes)
    rows: list[tuple[Scalar, ...]] = []
    times = {a.title: [a.time(m, size, 1) for size in message_bytes] for a in competitors(m)}
    for a in competitors(m):
        rows.append((a.title, *_terms(a), a.busiest_share(m), *times[a.title]))
    columns = (
        *headings("algorithm", "latency", "transfer"),
        Column(label="busiest rank sends, in S", spec=".3f"),
        *(Column(label=_size(size), unit="s", spec="time") for size in message_bytes),
    )
    values = {
        "ranks": Named(m.ranks),
        "latency_s": Named(m.latency_s, "s"),
        "bandwidth": Named(m.bandwidth_bytes_per_s, "B/s"),
    }
    for place, at in (("small", 0), ("large", -1)):
        best = min(times, key=lambda title: times[title][at])
        values[f"best_{place}"] = Named(best)
        values[f"least_{place}"] = Named(times[best][at], "s")
        values[f"most_{place}"] = Named(max(each[at] for each in times.values()), "s")
        values[f"ring_{place}"] = Named(times[RING.title][at], "s")
    return Table(columns=columns, rows=tuple(rows), values=values)


def _times(m: Machine, sizes: tuple[float, ...], relative: bool) -> tuple[Series, ...]:
    """Return one line per algorithm; `relative` divides every time by that of the fastest."""
    known = competitors(m)
    fastest = [min(a.time(m, s, 1) for a in known) if relative else 1.0 for s in sizes]
    return tuple(
        line(
            a.title,
            sizes,
            (a.time(m, s, 1) / f for s, f in zip(sizes, fastest, strict=True)),
            COMPARED.index(a),
        )
        for a in known
    )


@figure("all-reduce-times", explorable=True, recomputed=True)
def all_reduce_times(
    *,
    preset: HardwareName = "h100-ndr",
    nodes: int = 1,
    low_bytes: float = 1e3,
    high_bytes: float = 1e10,
    relative: bool = False,
) -> Curves:
    """Time of every all-reduce algorithm over the message size, with the crossovers of the best.

    One node: all ranks on its own links. More: flat algorithms see a network port per rank.
    `relative` divides every time by that of the fastest.
    """
    m = machine(preset, nodes)
    winners = envelope(lines(m, competitors(m)))
    kinks = tuple(at for _, at in winners if low_bytes < at < high_bytes)
    sizes = tuple(sorted({*logarithmic(low_bytes, high_bytes), *kinks}))
    series = _times(m, sizes, relative)
    least = dict(zip(sizes, map(min, zip(*(each.y for each in series), strict=True)), strict=True))
    time = Axis(label="time", unit="s", scale="log10", spec="time")
    multiple = Axis(label="time, as a multiple of the fastest", scale="log2", low=1.0, spec="g")
    values = {
        "ranks": Named(m.ranks),
        "latency_s": Named(m.latency_s, "s"),
        "bandwidth": Named(m.bandwidth_bytes_per_s, "B/s"),
    }
    for index, (title, at) in enumerate(winners):
        values |= {f"winner_{index}": Named(title), f"from_{index}": Named(at, "B")}
    for each in series:
        name = re.sub(r"\W+", "_", each.name)
        unit = "1" if relative else "s"
        values |= {f"{name}_first": Named(each.y[0], unit), f"{name}_last": Named(each.y[-1], unit)}
    return Curves(
        x=Axis(label="message size S", unit="B", scale="log10", spec="bytes"),
        y=multiple if relative else time,
        series=series,
        marks=tuple(Mark(x=at, y=least[at], label=_size(at), role="ink") for at in kinks),
        values=values,
    )


@figure("all-reduce-regions")
def all_reduce_regions(*, preset: str = "h100-ndr", nodes: tuple[int, ...] = (1, 8)) -> Table:
    """The fastest algorithm by message size, on one node and on several.

    Each machine has two rows: among all algorithms, and between the flat ring and the double binary
    tree.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for count in nodes:
        m = machine(preset, count)
        for among, algorithms in (
            ("all", competitors(m)),
            ("ring, double tree", (RING, DOUBLE_TREE)),
        ):
            found = envelope(lines(m, algorithms))
            starts = [at for _, at in found]
            for (title, start), end in zip(found, [*starts[1:], None], strict=True):
                rows.append((f"{m.ranks:,} ranks", among, _region(start, end), title))
            key = f"{'all' if among == 'all' else 'tree'}_{m.ranks}"
            values |= {f"{key}_{i}": Named(at, "B") for i, at in enumerate(starts[1:], 1)}
    columns = headings("machine", "compared", "message size", "fastest")
    return Table(columns=columns, rows=tuple(rows), values=values)


def _region(start: float, end: float | None) -> str:
    if end is None:
        return f"from {_size(start)}"
    return f"{_size(start)} to {_size(end)}" if start else f"up to {_size(end)}"


@figure("all-reduce-nic-bytes")
def all_reduce_nic_bytes(
    *, preset: str = "h100-ndr", nodes: int = 8, message_bytes: float = 1e9
) -> Table:
    """What the busiest NIC of a node sends, and the time, for flat and hierarchical algorithms."""
    m = machine(preset, nodes)
    if nodes < 2:
        raise InputError("nodes", expected="≥ 2", got=nodes)
    width = m.hardware.nics_per_node
    across = float(all_reduce_bytes_sent(m.nodes, message_bytes))
    through: tuple[tuple[Algorithm, int, float], ...] = (
        (RING, 1, float(flat_ring_bytes_per_nic(m.ranks, 1, message_bytes))),
        (LEADERS, 1, across),
        (RING_PER_NIC, width, float(flat_ring_bytes_per_nic(m.ranks, width, message_bytes))),
        (TWO_LEVEL, width, across / width),
    )
    rows = tuple(
        (
            a.title if a is not RING else "one flat ring",
            nics,
            sent / message_bytes,
            sent / m.hardware.nic.bandwidth_bytes_per_s,
            a.time(m, message_bytes, 1),
        )
        for a, nics, sent in through
    )
    columns = (
        *headings("algorithm", "NICs in use per node"),
        Column(label="bytes through each, in S", spec=".3f"),
        *headings("time on the NIC alone", "time of the model", unit="s", spec="time"),
    )
    names = ("ring", "leader", "per_nic", "two_level")
    shares = {f"{name}_share": Named(row[2]) for name, row in zip(names, rows, strict=True)}
    times = {f"{name}_s": Named(row[4], "s") for name, row in zip(names, rows, strict=True)}
    return Table(columns=columns, rows=rows, values=shares | times)
