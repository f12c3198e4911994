"""Buses and fabrics: PCIe lanes, copies through the host, fabrics, links between sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from figgen.catalog import link, model, nccl_tuning
from figgen.charts import Axis, Bars, Column, Curves, Named, Scalar, Table
from figgen.errors import check_between
from figgen.figures.parameters import LinkName
from figgen.formulas.collectives import double_binary_tree_all_reduce_time, ring_all_reduce_time
from figgen.formulas.data_parallel import data_parallel_time
from figgen.formulas.topology import (
    bisection_all_to_all_time,
    dragonfly_bisection_links,
    dragonfly_endpoints,
    fat_tree_bisection_links,
    fat_tree_switches,
    lanes_bandwidth,
    local_steps_to_hide,
    staged_copy_time,
    torus_all_gather_time,
    torus_bisection_links,
    torus_diameter,
)
from figgen.plotting.placed import headings
from figgen.plotting.series import line, segments
from figgen.registry import figure

PCIE: Mapping[int, tuple[float, float]] = {
    3: (8e9, 128 / 130),
    4: (16e9, 128 / 130),
    5: (32e9, 128 / 130),
    6: (64e9, 242 / 256),
    7: (128e9, 242 / 256),
}
"""Transfers per second of a lane, and the share of its bits that is payload, by generation."""

WIDTHS = (1, 4, 8, 16)


@figure("pcie-generations")
def pcie_generations(*, message_bytes: float = 1e9) -> Table:
    """Bandwidth per direction by generation and lanes, and the time of a copy over 16 lanes."""
    check_between("message_bytes", message_bytes, 1, 1e15)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for generation, (transfers, coding) in PCIE.items():
        rates = [float(lanes_bandwidth(lanes, transfers, coding)) for lanes in WIDTHS]
        nvlink = link("nvlink4").bandwidth_bytes_per_s / rates[-1]
        rows.append(
            (f"Gen{generation}", transfers / 1e9, *rates, message_bytes / rates[-1], nvlink)
        )
        values |= {
            f"gen{generation}": Named(rates[-1], "B/s"),
            f"nvlink_over_gen{generation}": Named(nvlink),
        }
        if before := values.get(f"gen{generation - 1}"):
            values[f"growth_to_gen{generation}"] = Named(rates[-1] / float(before.value))
    columns = (
        Column(label="PCIe"),
        Column(label="GT/s per lane", spec="g"),
        *(Column(label=f"x{lanes}", unit="B/s", spec="si") for lanes in WIDTHS),
        Column(
            label="1 GB over x16" if message_bytes == 1e9 else "message over x16",
            unit="s",
            spec="time",
        ),
        Column(label="NVLink 4 over x16", spec=".1f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("host-copies", recomputed=True)
def host_copies(
    *, message_bytes: float = 1e9, bus: LinkName = "pcie5-x16", launch_s: float = 10e-6
) -> Bars:
    """Paths from one GPU to another: over NVLink, over the bus directly, or through the host."""
    check_between("message_bytes", message_bytes, 1, 1e15)
    check_between("launch_s", launch_s, 0, 1)
    rate = link(bus).bandwidth_bytes_per_s
    times = {
        "NVLink 4": message_bytes / link("nvlink4").bandwidth_bytes_per_s,
        "peer to peer": message_bytes / rate,
        "host, 32 pieces": float(staged_copy_time(32, message_bytes, launch_s, rate)),
        "host, 4 pieces": float(staged_copy_time(4, message_bytes, launch_s, rate)),
        "host, whole": float(staged_copy_time(1, message_bytes, launch_s, rate)),
    }
    return Bars(
        labels=tuple(times),
        segments=segments({"copy": list(times.values())}),
        axis=Axis(label="time of the copy", unit="s", low=0.0, spec="time"),
        values={
            "nvlink": Named(times["NVLink 4"], "s"),
            "peer": Named(times["peer to peer"], "s"),
            "whole": Named(times["host, whole"], "s"),
            "pieces": Named(times["host, 32 pieces"], "s"),
            "message": Named(message_bytes, "B"),
            "launch": Named(launch_s, "s"),
        },
    )


class Fabric(NamedTuple):
    """A fabric of `endpoints`: switches, most hops, links across its bisection, collectives.

    `links` are those of one endpoint. Times are those of one message in bytes.
    """

    name: str
    endpoints: int
    switches: int
    links: int
    hops: int
    bisection_links: float
    all_reduce_s: Callable[[float], float]
    thinned: float = 1.0
    leaf: int = 1

    def all_to_all_s(self, message_bytes: float, rate: float) -> float:
        """Return the least time of an even all-to-all.

        The bisection, a leaf or the endpoint's own link bounds it. An endpoint keeps its own part
        and a `leaf` those of its endpoints; the leaf's uplinks carry 1/`thinned` of what its
        endpoints do.
        """
        n = self.endpoints
        cut = bisection_all_to_all_time(n, message_bytes, self.bisection_links, rate)
        sent = max((n - 1) / n, (n - self.leaf) / n * self.thinned) * message_bytes
        return max(float(cut), sent / (self.links * rate))


def _switched(endpoints: int, rate: float, latency_s: float) -> Callable[[float], float]:
    """Return the time through one port, with the fewest bytes or the fewest steps if faster."""

    def all_reduce_s(size: float) -> float:
        ways = (ring_all_reduce_time, double_binary_tree_all_reduce_time)
        return min(float(way(endpoints, size, latency_s, rate)) for way in ways)

    return all_reduce_s


def fat_tree(tiers: int, ports: int, rate: float, latency_s: float, over: float = 1.0) -> Fabric:
    """Return a fat tree whose top tier has 1/`over` of the switches and links."""
    endpoints = 2 * (ports // 2) ** tiers
    name = f"fat tree, {tiers} tiers" + (f", {over:g}:1" if over > 1 else "")
    top = (ports // 2) ** (tiers - 1)
    switches = round(float(fat_tree_switches(ports, tiers)) - top * (1 - 1 / over))
    return Fabric(
        name,
        endpoints,
        switches,
        1,
        2 * tiers,
        float(fat_tree_bisection_links(endpoints, over)),
        _switched(endpoints, rate, latency_s),
        over,
        ports // 2,
    )


def dragonfly(quarter: int, rate: float, latency_s: float) -> Fabric:
    """Return a balanced dragonfly with `quarter` endpoints per router.

    A group has twice as many routers.
    """
    p, a, h = quarter, 2 * quarter, quarter
    endpoints = int(dragonfly_endpoints(p, a, h))
    return Fabric(
        f"dragonfly, {a} · {a * h + 1} routers",
        endpoints,
        a * (a * h + 1),
        1,
        5,
        float(dragonfly_bisection_links(a, h)),
        _switched(endpoints, rate, latency_s),
    )


def torus(side: int, dimensions: int, rate: float, latency_s: float) -> Fabric:
    """Return a torus whose endpoints are its switches, with links both ways in every dimension."""

    def all_reduce_s(size: float) -> float:
        return 2 * float(torus_all_gather_time(side, dimensions, size, latency_s, rate))

    return Fabric(
        f"torus {'·'.join([str(side)] * dimensions)}",
        side**dimensions,
        0,
        2 * dimensions,
        int(torus_diameter(side, dimensions)),
        float(torus_bisection_links(side, dimensions)),
        all_reduce_s,
    )


def _fabrics(message_bytes: float, rate: float) -> Mapping[str, Fabric]:
    """Return fabrics of about one or two thousand endpoints with links of equal rate."""
    check_between("rate", rate, 1e6, 1e15)
    check_between("message_bytes", message_bytes, 1, 1e15)
    latency_s = nccl_tuning().network_latency_s
    return {
        "tree": fat_tree(2, 64, rate, latency_s),
        "thin": fat_tree(2, 64, rate, latency_s, 4),
        "fly": dragonfly(4, rate, latency_s),
        "flat": torus(32, 2, rate, latency_s),
        "cube": torus(10, 3, rate, latency_s),
    }


@figure("fabric-collectives", recomputed=True)
def fabric_collectives(*, message_bytes: float = 1e9, rate: float = 50e9) -> Bars:
    """The same all-reduce and all-to-all on fabrics with links of equal rate."""
    found = _fabrics(message_bytes, rate)
    reduced = [fabric.all_reduce_s(message_bytes) for fabric in found.values()]
    exchanged = [fabric.all_to_all_s(message_bytes, rate) for fabric in found.values()]
    values = {
        "message": Named(message_bytes, "B"),
        "rate": Named(rate, "B/s"),
        "latency": Named(nccl_tuning().network_latency_s, "s"),
    }
    for key, reduce_s, exchange_s in zip(found, reduced, exchanged, strict=True):
        values |= {
            f"{key}_all_reduce": Named(reduce_s, "s"),
            f"{key}_all_to_all": Named(exchange_s, "s"),
        }
    return Bars(
        labels=tuple(fabric.name for fabric in found.values()),
        segments=segments({"all-reduce": reduced, "all-to-all, at least": exchanged}),
        axis=Axis(label="time of the collective", unit="s", low=0.0, spec="time"),
        stacked=False,
        values=values,
    )


@figure("fabrics-compared")
def fabrics_compared(*, message_bytes: float = 1e9, rate: float = 50e9) -> Table:
    """Fabrics side by side: parts, bisection, and two collectives on each."""
    values: dict[str, Named] = {"message": Named(message_bytes, "B"), "rate": Named(rate, "B/s")}
    rows: list[tuple[Scalar, ...]] = []
    for key, fabric in _fabrics(message_bytes, rate).items():
        share = fabric.bisection_links / (fabric.endpoints / 2)
        reduce_s = fabric.all_reduce_s(message_bytes)
        exchange_s = fabric.all_to_all_s(message_bytes, rate)
        rows.append((
            fabric.name, fabric.endpoints, fabric.switches, fabric.links, fabric.hops, share,
            reduce_s, exchange_s,
        ))  # fmt: skip
        values |= {
            f"{key}_bisection": Named(share),
            f"{key}_all_reduce": Named(reduce_s, "s"),
            f"{key}_all_to_all": Named(exchange_s, "s"),
            f"{key}_endpoints": Named(fabric.endpoints),
        }
    columns = (
        Column(label="fabric"),
        *headings("endpoints", "switches", spec=",d"),
        *headings("links each", "most links crossed", spec="d"),
        Column(label="bisection over half the endpoints", spec=".2f"),
        *headings("all-reduce", "all-to-all, at least", unit="s", spec="time"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("all-to-all-by-fabric", explorable=True, recomputed=True)
def all_to_all_by_fabric(*, message_bytes: float = 1e8, rate: float = 50e9) -> Curves:
    """Least time of an all-to-all over the size of the fabric: a full tree, a fly, two tori."""
    check_between("rate", rate, 1e6, 1e15)
    families: Mapping[str, list[Fabric]] = {
        "torus, 2D": [torus(side, 2, rate, 0.0) for side in (8, 16, 32, 64, 128)],
        "torus, 3D": [torus(side, 3, rate, 0.0) for side in (4, 6, 8, 12, 16, 24)],
        "fat tree, 4:1": [fat_tree(2, ports, rate, 0.0, 4) for ports in (12, 32, 64, 128, 180)],
        "fat tree or dragonfly": [dragonfly(p, rate, 0.0) for p in (2, 4, 6, 8)],
    }
    values: dict[str, Named] = {"message": Named(message_bytes, "B")}
    lines = []
    for index, (name, family) in enumerate(families.items()):
        times = [fabric.all_to_all_s(message_bytes, rate) for fabric in family]
        lines.append(line(name, (float(each.endpoints) for each in family), times, index))
        key = ("flat", "cube", "thin", "fly")[index]
        values |= {
            f"{key}_first": Named(times[0], "s"),
            f"{key}_last": Named(times[-1], "s"),
            f"{key}_endpoints": Named(family[-1].endpoints),
        }
    return Curves(
        x=Axis(label="endpoints", scale="log10", spec=",.0f"),
        y=Axis(label="all-to-all, at least", unit="s", scale="log10", spec="time"),
        series=tuple(lines),
        values=values,
    )


SITE_LINKS = {"10 Gb/s": 1.25e9, "100 Gb/s": 12.5e9, "800 Gb/s": 100e9, "6.4 Tb/s": 800e9}
"""Rates between two sites, per direction."""


@figure("site-exchanges")
def site_exchanges(
    *,
    model_name: str = "llama-3-70b",
    step_s: float = 10.0,
    kept_share: float = 0.95,
    latency_s: float = 20e-3,
    bytes_per_param: float = 4.0,
) -> Table:
    """Two sites that synchronize their models: the time it takes, and the longest interval."""
    check_between("step_s", step_s, 1e-3, 1e6)
    check_between("kept_share", kept_share, 0.01, 0.999)
    parameters = model(model_name).parameters
    values: dict[str, Named] = {
        "step": Named(step_s, "s"),
        "kept": Named(kept_share),
        "apart": Named(latency_s, "s"),
    }
    rows: list[tuple[Scalar, ...]] = []
    for name, rate in SITE_LINKS.items():
        took = float(data_parallel_time(parameters, bytes_per_param, 2, latency_s, rate))
        steps = int(local_steps_to_hide(took, step_s, kept_share))
        rows.append((name, rate, took, step_s / (step_s + took), steps, steps * step_s))
        key = name.split()[0].replace(".", "_")
        values |= {f"took_{key}": Named(took, "s"), f"steps_{key}": Named(steps)}
    columns = (
        Column(label="between the sites"),
        Column(label="per direction", unit="B/s", spec="si"),
        Column(label="one exchange", unit="s", spec="time"),
        Column(label="time left if every step has one", spec=".1%"),
        Column(label=f"steps apart for {kept_share:.0%}", spec=",d"),
        Column(label="that is", unit="s", spec="time"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
