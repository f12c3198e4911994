"""Axes and links: the bandwidth that hides each axis, strategies side by side, fabrics."""

from __future__ import annotations

from typing import TypeAlias

from figgen.charts import Bars, Column, Named, Scalar, Table
from figgen.errors import InputError
from figgen.figures.mesh.placement_pictures import order_words
from figgen.figures.training.step import step_interval
from figgen.models.machine.fabric import one_leaf_share, pod_leaving_share
from figgen.models.machine.placement import communicator
from figgen.models.step.axis_traffic import AxisTraffic, axis_traffic
from figgen.models.step.step import step
from figgen.plotting.placed import headings
from figgen.plotting.step_bars import step_bars, step_parts
from figgen.plotting.words import identifier, label_of
from figgen.registry import figure
from figgen.scenarios.options.option import Choices
from figgen.scenarios.options.resolve import TrainingStep, parallel_layout, training_step
from figgen.scenarios.options.written import written_layout, written_step

NEEDED = (
    *headings("groups of", "collective"),
    Column(label="calls", spec=","),
    Column(label="sent per GPU", unit="B", spec="si"),
    Column(label="may take"),
    Column(label="that is", unit="s", spec="time"),
    Column(label="needs", unit="B/s", spec="si"),
    *headings("over a NIC", "over NVLink", spec=".2g"),
)


def _windows(found: TrainingStep, budget: float) -> dict[str, tuple[str, float]]:
    """Return the time that can hide each axis, in words and seconds.

    Nothing hides tensor parallelism, which gets a `budget` of the computing instead.
    """
    compute = found.estimate.compute_s
    last_backward = compute / found.setup.microbatches * 2 / 3
    return {
        "tp": (f"{budget:.0%} of computing", budget * compute),
        "pp": ("all of computing", compute),
        "dp": ("the last backward", last_backward),
    }


@figure("axis-bandwidth")
def axis_bandwidth(
    *, model: str, sizes: str, options: str = "", order: str = "megatron", budget: float = 0.1
) -> Table:
    """Per axis: bytes per step, the time that can hide them, and the bandwidth this requires."""
    found = written_step(model=model, sizes=sizes, options=f"{options} order={order}")
    windows = _windows(found, budget)
    cluster = found.cluster
    rows: list[tuple[Scalar, ...]] = []
    values = {
        "compute": Named(found.estimate.compute_s, "s"),
        "scale_up": Named(cluster.scale_up_bandwidth_bytes_per_s, "B/s"),
        "network": Named(cluster.network_bandwidth_bytes_per_s, "B/s"),
    }
    for entry in axis_traffic(found.setup):
        axis = entry.communicator
        if axis not in windows:
            raise InputError("axes of a layout", expected="tp, pp and dp alone", got=axis)
        words, seconds = windows[axis]
        needed = entry.sent_bytes / seconds
        over_nic = needed / cluster.network_bandwidth_bytes_per_s
        over_nvlink = needed / cluster.scale_up_bandwidth_bytes_per_s
        rows.append((
            label_of(axis), entry.collective, round(entry.operations), entry.sent_bytes,
            words, seconds, needed, over_nic, over_nvlink,
        ))  # fmt: skip
        values |= {
            f"{axis}_sent": Named(entry.sent_bytes, "B"),
            f"{axis}_calls": Named(round(entry.operations)),
            f"{axis}_window": Named(seconds, "s"),
            f"{axis}_needed": Named(needed, "B/s"),
            f"{axis}_over_nic": Named(over_nic),
            f"{axis}_over_nvlink": Named(over_nvlink),
            f"{axis}_network_time": Named(
                entry.sent_bytes / cluster.network_bandwidth_bytes_per_s, "s"
            ),
        }
    return Table(columns=NEEDED, rows=tuple(rows), values=values)


Strategy: TypeAlias = "tuple[str, str, Choices, str]"
"""(name, axis, options, work that hides it), each alone on eight GPUs."""

STRATEGIES: tuple[Strategy, ...] = (
    ("DP 8", "dp", {"zero_stage": 0, "microbatches": 1}, "backward"),
    ("ZeRO-1", "dp", {"zero_stage": 1, "microbatches": 1}, "backward, forward"),
    ("ZeRO-3, FSDP", "dp", {"zero_stage": 3, "microbatches": 1}, "the layer before"),
    ("TP 8", "tp", {"tp": 8, "sequence_parallel": False, "microbatches": 8}, "nothing"),
    ("TP 8 with SP", "tp", {"tp": 8, "microbatches": 8}, "nothing; a fifth, a product"),
    ("CP 8", "cp", {"cp": 8, "zero_stage": 0, "microbatches": 8}, "attention"),
    ("PP 8", "pp", {"pp": 8, "microbatches": 8}, "microbatches"),
)
EXPERTS: Strategy = ("EP 8", "ep", {"ep": 8, "zero_stage": 0, "microbatches": 1}, "nothing")

EXCHANGED = (
    *headings("strategy", "collective"),
    Column(label="calls", spec=","),
    *headings("buffer", "sent per GPU", unit="B", spec="si"),
    Column(label="over computing", spec=".1%"),
    Column(label="hides behind"),
)


@figure("strategy-exchanges")
def strategy_exchanges(*, model: str, mixture: str, sequence: int = 8192) -> Table:
    """Each strategy alone on one node of eight GPUs, with eight sequences per step.

    Expert parallelism is that of the `mixture`. Weights and gradients are 16-bit. Times are
    relative to the computing time of each model: a GPU's eighth of the work at the predicted share
    of the peak for plain data parallelism.
    """

    def alone(name: str, chosen: Choices) -> TrainingStep:
        return training_step(
            model=name, nodes=1, gpus_per_node=8, recipe="zero16", sequence=sequence, **chosen
        )

    rows: list[tuple[Scalar, ...]] = []
    plain = alone(model, STRATEGIES[0][2])
    share_of_peak = plain.compute_efficiency
    mixed = alone(mixture, EXPERTS[2])
    alike = step(mixed.setup, mixed.cluster, compute_efficiency=share_of_peak)
    computing_s = {model: plain.estimate.compute_s, mixture: alike.compute_s}
    values = {
        "computing": Named(computing_s[model], "s"),
        "mixture_computing": Named(computing_s[mixture], "s"),
        "share_of_peak": Named(share_of_peak),
    }
    cases = [(model, case) for case in STRATEGIES] + [(mixture, EXPERTS)]
    for name, (title, axis, chosen, behind) in cases:
        found = alone(name, chosen)
        entry = _entry(found, axis)
        seconds = entry.sent_bytes / found.cluster.scale_up_bandwidth_bytes_per_s
        share = seconds / computing_s[name]
        rows.append((
            title, entry.collective, round(entry.operations), entry.buffer_bytes,
            entry.sent_bytes, share, behind,
        ))  # fmt: skip
        key = title.lower().split(",")[0].replace(" ", "_").replace("-", "")
        values |= {
            f"{key}_sent": Named(entry.sent_bytes, "B"),
            f"{key}_share": Named(share),
        }
    return Table(columns=EXCHANGED, rows=tuple(rows), values=values)


def _entry(found: TrainingStep, axis: str) -> AxisTraffic:
    return next(entry for entry in axis_traffic(found.setup) if entry.communicator == axis)


@figure("oversubscription", explorable=True)
def oversubscription(
    *, run: str, options: str = "", ratios: tuple[int, ...] = (1, 3, 5, 7)
) -> Bars:
    """The step of a published run when every byte between nodes gets 1/ratio of its NIC."""
    found = written_step(run=run, options=options)
    steps: list[dict[str, float]] = []
    values: dict[str, Named] = step_interval(found)
    for ratio in ratios:
        if ratio < 1:
            raise InputError("ratios", expected="at least 1", got=ratio)
        estimate = found.with_links(network=1 / ratio)
        named = step_parts(estimate)
        steps.append(named)
        values |= {
            f"step_{ratio}": Named(estimate.step_time_s, "s"),
            f"longer_{ratio}": Named(
                estimate.step_time_s / float(values["step_1"].value) - 1
                if "step_1" in values
                else 0.0
            ),
            f"exposed_{ratio}": Named(estimate.exposed_s, "s"),
            f"dp_{ratio}": Named(named["dp"], "s"),
            f"pp_{ratio}": Named(named["pp"], "s"),
            f"tp_{ratio}": Named(named["tp"], "s"),
        }
    return step_bars(tuple(f"{ratio}:1" for ratio in ratios), steps, values)


@figure("fabric-hops")
def fabric_hops(*, sizes: str, orders: tuple[str, ...], ports: int = 32) -> Table:
    """Share of the links between nodes under one leaf switch, by cabling and order."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"ports": Named(ports)}
    for order in orders:
        parallel = written_layout(sizes=sizes, order=order)
        for axes in ("tp", "cp", "dp", "pp"):
            group = communicator(parallel, axes)
            if group.size == 1 or not group.crossing_groups:
                continue
            shares = [
                one_leaf_share(parallel, axes, ports=ports, cabling=cabling)
                for cabling in ("rails", "racks")
            ]
            rows.append((order_words(parallel), label_of(axes), group.nodes_touched_max, *shares))
            key = f"{identifier(order)}_{axes}"
            values |= {f"{key}_rails": Named(shares[0]), f"{key}_racks": Named(shares[1])}
    columns = (
        *headings("ranks count up in", "groups of", "nodes each"),
        *headings("one leaf, rails", "one leaf, racks", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("pod-crossings")
def pod_crossings(*, run: str, orders: tuple[str, ...], gpus_per_pod: int) -> Table:
    """Per order and axis: bytes that leave the pod, and the oversubscription that costs nothing."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"gpus_per_pod": Named(gpus_per_pod)}
    for order in orders:
        parallel = parallel_layout(run=run, order=order)
        for axes in ("dp", "pp"):
            share = pod_leaving_share(parallel, axes, gpus_per_pod)
            free: Scalar = "any" if share.busiest == 0 else 1 / share.busiest
            rows.append((
                order_words(parallel), label_of(axes), share.mean, share.busiest, free,
            ))  # fmt: skip
            key = f"{identifier(order)}_{axes}"
            values |= {
                f"{key}_share": Named(share.mean),
                f"{key}_busiest": Named(share.busiest),
                f"{key}_free": Named(free),
            }
    columns = (
        *headings("ranks count up in", "groups of"),
        *headings("of all bytes, leaves its pod", "of a full pod's, at most", spec=".1%"),
        Column(label="free up to, to 1", spec=".1f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
