"""NCCL's own cost model of an all-reduce, next to the textbook's."""

from __future__ import annotations

from figgen.catalog import hardware_preset, nccl_tuning
from figgen.catalog.nccl_links import nccl_group
from figgen.charts import Axis, Column, Curves, Named, Scalar, Series, Table
from figgen.figures.parameters import HardwareName
from figgen.formulas.alpha_beta import all_reduce_bus_bandwidth
from figgen.models.machine.nccl_tuning import NcclGroup, predictions
from figgen.plotting.placed import headings
from figgen.plotting.series import line, logarithmic
from figgen.registry import figure
from figgen.scenarios.stories.all_reduce import RING, RING_PER_NIC, machine

TITLES = {
    "ring": "ring",
    "tree": "tree",
    "nvls": "NVLS",
    "nvls_tree": "NVLS tree",
    "ll": "LL",
    "ll128": "LL128",
    "simple": "Simple",
}
"""Names of NCCL's algorithms and protocols in its documentation."""


def _group(preset: str, nodes: int) -> NcclGroup:
    hardware = hardware_preset(preset)
    return nccl_group(hardware.scale_up, hardware.gpus_per_node * nodes, nodes, hardware.nic)


@figure("nccl-all-reduce-times", explorable=True, recomputed=True)
def nccl_all_reduce_times(
    *,
    preset: HardwareName = "h100-ndr",
    nodes: int = 1,
    low_bytes: float = 1e3,
    high_bytes: float = 1e10,
) -> Curves:
    """Time that NCCL predicts for each of its algorithms with its best protocol, over the size.

    Beside it, dashed, the textbook ring on the nominal link.
    """
    m, group = machine(preset, nodes), _group(preset, nodes)
    constants = nccl_tuning().constants
    sizes = logarithmic(low_bytes, high_bytes)
    fastest: dict[str, list[float]] = {}
    for size in sizes:
        times: dict[str, float] = {}
        for found in predictions(constants, group, "all-reduce", size):
            times.setdefault(found.algorithm, found.time_s)
        for algorithm, time_s in times.items():
            fastest.setdefault(algorithm, []).append(time_s)
    series = [
        line(f"NCCL {TITLES[name]}", sizes, y, index)
        for index, (name, y) in enumerate(sorted(fastest.items()))
    ]
    flat = RING if m.nodes == 1 else RING_PER_NIC
    textbook = tuple(flat.time(m, size, 1) for size in sizes)
    series.append(
        Series(name=f"{flat.title}, α–β", x=sizes, y=textbook, role="neutral", style="dashed")
    )
    return Curves(
        x=Axis(label="message size S", unit="B", scale="log10", spec="bytes"),
        y=Axis(label="predicted time", unit="s", scale="log10", spec="time"),
        series=tuple(series),
        values={
            "ranks": Named(m.ranks),
            "ring_first": Named(fastest["ring"][0], "s"),
            "tree_first": Named(fastest["tree"][0], "s"),
            "textbook_first": Named(textbook[0], "s"),
            "ring_last": Named(fastest["ring"][-1], "s"),
            "textbook_last": Named(textbook[-1], "s"),
        },
    )


@figure("nccl-choices")
def nccl_choices(
    *,
    preset: str = "h100-ndr",
    nodes: tuple[int, ...] = (1, 8),
    message_bytes: tuple[float, ...] = (1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10),
) -> Table:
    """The algorithm that NCCL would choose for each message size, and the time it predicts."""
    constants = nccl_tuning().constants
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for count in nodes:
        group = _group(preset, count)
        for size in message_bytes:
            best = predictions(constants, group, "all-reduce", size)[0]
            bus = float(all_reduce_bus_bandwidth(group.ranks, size, best.time_s))
            name = f"{TITLES[best.algorithm]}, {TITLES[best.protocol]}"
            rows.append((f"{group.ranks:,} ranks", name, size, best.time_s, bus))
        values[f"first_{group.ranks}"] = Named(str(rows[-len(message_bytes)][1]))
        values[f"last_{group.ranks}"] = Named(str(rows[-1][1]))
    columns = (
        *headings("machine", "NCCL’s choice"),
        Column(label="S", unit="B", spec="bytes"),
        Column(label="predicted time", unit="s", spec="time"),
        Column(label="predicted busbw", unit="B/s", spec="si"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
