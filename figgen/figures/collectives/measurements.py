"""Measured all-reduces as nccl-tests reports them: algbw and busbw, next to the models."""

from __future__ import annotations

from figgen.catalog import Link, Measurement, measurement, nccl_tuning
from figgen.catalog import link as catalog_link
from figgen.catalog.nccl_links import nccl_group, step_latency_s
from figgen.charts import Axis, Column, Curves, Named, Rule, Scalar, Series, Table
from figgen.errors import InputError, check_equal_lengths
from figgen.formulas.alpha_beta import algorithm_bandwidth, all_reduce_bus_bandwidth
from figgen.formulas.collectives import all_reduce_bytes_sent
from figgen.formulas.hierarchical_collectives import nccl_ring_latency
from figgen.models.machine.nccl_tuning import predictions
from figgen.plotting.placed import headings
from figgen.plotting.series import line, logarithmic
from figgen.quantity_shown import shown
from figgen.registry import figure


def _all_reduce(name: str) -> tuple[Measurement, Link]:
    """A measured all-reduce and the link of its accelerators."""
    found = measurement(name)
    if found.collective != "all_reduce" or found.accelerator is None:
        raise InputError("measurement", expected="an all-reduce on a known accelerator", got=name)
    return found, found.accelerator.scale_up


def _points(found: Measurement) -> tuple[tuple[int, float, float], ...]:
    """(ranks, message bytes, busbw) of every point."""
    if found.over == "ranks":
        return tuple((int(n), float(found.message_bytes or 0), bus) for n, bus in found.points)
    return tuple((int(found.ranks or 0), size, bus) for size, bus in found.points)


def _reach(found: Measurement, link: Link, nic: Link) -> float:
    """Return the rate of rings per rank: the node's link, or all its NICs if they are slower."""
    if found.nodes == 1:
        return link.bandwidth_bytes_per_s
    gpus = (found.ranks or 0) // found.nodes
    return min(link.bandwidth_bytes_per_s, gpus * nic.bandwidth_bytes_per_s)


@figure("bus-bandwidth-table")
def bus_bandwidth_table(
    *, measurements: tuple[str, ...], names: tuple[str, ...], nic: str = "roce-400g"
) -> Table:
    """The last point of each measurement: time, algbw, busbw, and its share of what rings carry.

    Time and algbw are computed from the measured busbw. `names` labels the measurements; `nic` is
    the port of each GPU for measurements on several nodes.
    """
    check_equal_lengths(measurements=measurements, names=names)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for index, (name, title) in enumerate(zip(measurements, names, strict=True)):
        found, link = _all_reduce(name)
        ranks, size, bus = _points(found)[-1]
        time = float(all_reduce_bytes_sent(ranks, size)) / bus
        reach = _reach(found, link, catalog_link(nic))
        algorithm = float(algorithm_bandwidth(size, time))
        rows.append((title, size, time, algorithm, bus, reach, bus / reach))
        values |= {
            f"busbw_{index}": Named(bus, "B/s"),
            f"algbw_{index}": Named(algorithm, "B/s"),
            f"time_{index}": Named(time, "s"),
            f"share_{index}": Named(bus / reach),
            f"reach_{index}": Named(reach, "B/s"),
        }
    columns = (
        Column(label="measured"),
        Column(label="S", unit="B", spec="gib"),
        Column(label="time", unit="s", spec="time"),
        *headings("algbw", "busbw", "rings can carry", unit="B/s", spec="si"),
        Column(label="share", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("all-reduce-measured-by-ranks", explorable=True)
def all_reduce_measured_by_ranks(
    *, measurements: tuple[str, ...], names: tuple[str, ...]
) -> Curves:
    """Measured busbw over the number of GPUs in a node, with the rate of their links.

    `names` labels the lines.
    """
    check_equal_lengths(measurements=measurements, names=names)
    series: list[Series] = []
    links: dict[str, Link] = {}
    values: dict[str, Named] = {}
    for index, (name, title) in enumerate(zip(measurements, names, strict=True)):
        found, link = _all_reduce(name)
        x, _, y = zip(*_points(found), strict=True)
        series.append(line(title, map(float, x), y, index))
        links[link.name] = link
        values[f"size_{index}"] = Named(found.message_bytes or 0.0, "B")
        values |= {f"last_{index}": Named(y[-1], "B/s"), f"first_{index}": Named(y[0], "B/s")}
    rules = tuple(
        Rule(axis="y", at=link.bandwidth_bytes_per_s, label=f"link: {link.title}")
        for link in links.values()
    )
    for index, rule in enumerate(rules):
        values[f"link_{index}"] = Named(rule.at, "B/s")
    return Curves(
        x=Axis(label="GPUs in the all-reduce", spec=","),
        y=Axis(label="busbw", unit="B/s", low=0.0, spec="si"),
        series=tuple(series),
        rules=rules,
        values=values,
    )


def ring_time_s(found: Measurement, link: Link, nic: Link, size: float) -> float:
    """Return the α–β time of rings through every NIC, with NCCL's latency and nominal bandwidth."""
    ranks = int(found.ranks or 0)
    inner, outer = step_latency_s(link), step_latency_s(nic)
    latency = nccl_ring_latency(ranks, found.nodes, 0.0, inner, outer)
    return float(latency + all_reduce_bytes_sent(ranks, size) / _reach(found, link, nic))


@figure("all-reduce-measured-by-size", explorable=True)
def all_reduce_measured_by_size(*, measurement: str, nic: str = "roce-400g") -> Curves:
    """Measured busbw over the message size, next to an α–β ring and NCCL's own prediction.

    `nic` is the port of each GPU, for a measurement on several nodes. The values give the largest
    factor by which each model is too fast, over all points and over the "settled" ones: those from
    the message with the shortest time on, since no model can follow smaller messages that took
    longer.
    """
    found, link = _all_reduce(measurement)
    if found.over != "message":
        raise InputError("measurement", expected="one over message sizes", got=measurement)
    port, ranks = catalog_link(nic), int(found.ranks or 0)
    constants, group = nccl_tuning().constants, nccl_group(link, ranks, found.nodes, port)

    def ring(size: float) -> float:
        time_s = ring_time_s(found, link, port, size)
        return float(all_reduce_bus_bandwidth(ranks, size, time_s))

    def nccl(size: float) -> float:
        best = predictions(constants, group, "all-reduce", size)[0]
        return float(all_reduce_bus_bandwidth(ranks, size, best.time_s))

    x, y = zip(*found.points, strict=True)
    sizes = logarithmic(x[0], x[-1])
    reach = _reach(found, link, port)
    times = [float(all_reduce_bytes_sent(ranks, size)) / bus for size, bus in found.points]
    fastest = times.index(min(times))
    values = {
        "first_size": Named(x[0], "B"),
        "last_size": Named(x[-1], "B"),
        "first": Named(y[0], "B/s"),
        "last": Named(y[-1], "B/s"),
        "first_time": Named(times[0], "s"),
        "fastest_time": Named(times[fastest], "s"),
        "fastest_size": Named(x[fastest], "B"),
    }
    for name, model in (("ring", ring), ("nccl", nccl)):
        ratios = [model(size) / bus for size, bus in found.points]
        values |= {
            f"{name}_first": Named(model(x[0]), "B/s"),
            f"{name}_last": Named(model(x[-1]), "B/s"),
            f"{name}_worst": Named(max(ratios)),
            f"{name}_worst_at": Named(x[ratios.index(max(ratios))], "B"),
            f"{name}_settled": Named(max(ratios[fastest:])),
            f"{name}_last_ratio": Named(ratios[-1]),
        }
    rate = shown(reach, "B/s", "si")
    return Curves(
        x=Axis(label="message size S", unit="B", scale="log10", spec="bytes"),
        y=Axis(label="busbw", unit="B/s", low=0.0, spec="si"),
        series=(
            line("NCCL’s model, its choice", sizes, map(nccl, sizes), 2),
            line("ring, α–β", sizes, map(ring, sizes), 1, "dashed"),
            line("measured", x, y, 0, "points"),
        ),
        rules=(Rule(axis="y", at=reach, label=f"rings can carry {rate}"),),
        values=values,
    )
