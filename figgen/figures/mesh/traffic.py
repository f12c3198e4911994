"""Costs of placement: groups that leave their node, and the bytes that they send."""

from __future__ import annotations

from typing import cast

from figgen import catalog
from figgen.charts import Axis, Bars, Column, Named, Table
from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.placement import communicator
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import Recipe
from figgen.models.step.axis_traffic import axis_traffic
from figgen.models.step.nic_load import Rings, nic_bytes
from figgen.plotting.blocks import shown_communicators
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.plotting.words import hue, identifier, label_of
from figgen.registry import figure
from figgen.scenarios.options.assumptions import known_of
from figgen.scenarios.options.resolve import parallel_layout
from figgen.scenarios.options.written import written_layout

CROSSINGS = (
    *headings("groups of", "GPUs each", "groups", "nodes each", "that cross"),
    Column(label="links between nodes", spec=".0%"),
    *headings("busiest NIC, one ring", "with shared rings", unit="B", spec="si"),
)
TRAFFIC = (
    *headings("groups of", "collective"),
    Column(label="per step", spec=","),
    *headings("largest buffer", "sent per GPU", "of it out of the node", unit="B", spec="si"),
    Column(label="link"),
    Column(label="time", unit="s", spec="time"),
)
RINGS: tuple[Rings, ...] = ("one", "shared")


@figure("node-crossings", about=written_layout)
def node_crossings(
    parallel: ParallelLayout,
    *,
    message_bytes: float = 1e9,
) -> Table:
    """Per communicator: nodes per group, groups and ring links that leave their node.

    The last columns are the most bytes that any NIC sends when every group all-reduces
    `message_bytes`, with one ring in rank order and with as many rings as the group has ranks on a
    node.
    """
    rows = []
    values: dict[str, Named] = {}
    for name in shown_communicators(parallel):
        found = communicator(parallel, name)
        one, shared = (
            float(
                nic_bytes(
                    mesh_of(parallel, name),
                    name,
                    gpus_per_node=parallel.gpus_per_node,
                    message_bytes=message_bytes,
                    rings=rings,
                ).max()
            )
            for rings in RINGS
        )
        rows.append(
            (
                label_of(name),
                found.size,
                found.group_count,
                found.nodes_touched_max,
                found.crossing_groups,
                found.inter_node_share,
                one,
                shared,
            )
        )
        key = identifier(name)
        values |= {
            f"{key}_share": Named(found.inter_node_share),
            f"{key}_crossing": Named(found.crossing_groups),
            f"{key}_nodes": Named(found.nodes_touched_max),
            f"{key}_nic_bytes": Named(one, "B"),
            f"{key}_shared_nic_bytes": Named(shared, "B"),
        }
    return Table(columns=CROSSINGS, rows=tuple(rows), values=values)


def setup_of(
    run: catalog.Run, parallel: ParallelLayout, microbatch_size: int, gradient_bytes: float
) -> TrainingSetup:
    """Return a step of a published run, gradients reduced and 16-bit weights gathered once.

    Stages are cut into the run's chunks, given or assumed. Raises InputError for a run without a
    global batch, and for microbatches that do not divide it.
    """
    if run.global_batch is None:
        raise InputError(f"run {run.name!r}", expected="a published global batch", key="run")
    share = parallel.dp * microbatch_size
    if run.global_batch % share:
        expected = f"a divisor of {run.global_batch}"
        raise InputError(
            "DP · microbatch_size", expected=expected, got=share, key="microbatch_size"
        )
    known, _ = known_of(run)
    chunks = cast("int", known.get("chunks") or 1)
    return TrainingSetup(
        shape=run.model.shape,
        parallel=parallel,
        microbatches=run.global_batch // share,
        sequence=run.sequence,
        microbatch_size=microbatch_size,
        schedule="interleaved-1f1b" if chunks > 1 else "1f1b",
        chunks=chunks if chunks > 1 else None,
        recipe=Recipe(
            name="given",
            label="16-bit weights, gradients as given",
            weight_bytes=2,
            gradient_bytes=gradient_bytes,
            optimizer_bytes=12,
        ),
        context_exchange="all-gather",
        buckets=1,
        mtp_layers=cast("int", known.get("mtp_layers") or 0),
    )


@figure("axis-traffic")
def axis_traffic_table(
    *,
    run: str,
    nic: str = "ib-ndr",
    order: str = "megatron",
    microbatch_size: int = 1,
    gradient_bytes: float = 4.0,
) -> Table:
    """Per axis of a published run: bytes, calls, link and time.

    Values are means over all GPUs, for the pipeline those of a GPU between two stages. The time is
    bytes over bandwidth per direction, without latency or overlap: the longer of the bytes that
    leave the node over the network and the rest inside it.
    """
    found, network = catalog.run(run), catalog.link(nic)
    parallel = parallel_layout(run=run, order=order)
    chip = found.accelerator
    rows = []
    values = {
        "scale_up": Named(chip.scale_up.title),
        "scale_up_bytes_per_s": Named(chip.scale_up_bandwidth_bytes_per_s, "B/s"),
        "network": Named(network.title),
        "network_bytes_per_s": Named(network.bandwidth_bytes_per_s, "B/s"),
    }
    for entry in axis_traffic(setup_of(found, parallel, microbatch_size, gradient_bytes)):
        group = communicator(parallel, entry.communicator)
        nodes = group.nodes_touched_max
        # Both ends of a pipeline have one neighbor; a GPU between them is what the row is about.
        staged = entry.communicator == "pp"
        words = f"{entry.collective}, inner stage" if staged else entry.collective
        leaves = staged and group.crossing_groups
        outside = entry.sent_bytes if leaves else entry.leaving_bytes
        inside = entry.sent_bytes - outside
        slow, fast = network.bandwidth_bytes_per_s, chip.scale_up_bandwidth_bytes_per_s
        taken = max(outside / slow, inside / fast)
        where = "inside a node" if nodes == 1 else f"between {nodes} nodes"
        sizes = round(entry.operations), entry.buffer_bytes, entry.sent_bytes, outside
        rows.append((label_of(entry.communicator), words, *sizes, where, taken))
        key = identifier(entry.communicator)
        values |= {
            f"{key}_buffer_bytes": Named(entry.buffer_bytes, "B"),
            f"{key}_sent_bytes": Named(entry.sent_bytes, "B"),
            f"{key}_operations": Named(round(entry.operations)),
            f"{key}_nodes": Named(nodes),
            f"{key}_outside_bytes": Named(outside, "B"),
            f"{key}_inside_bytes": Named(inside, "B"),
            f"{key}_s": Named(taken, "s"),
            f"{key}_all_scale_up_s": Named(entry.sent_bytes / fast, "s"),
            f"{key}_all_network_s": Named(entry.sent_bytes / slow, "s"),
        }
    sent = sorted((row[4] for row in rows), reverse=True)
    if len(sent) > 1:
        values["most_over_next"] = Named(sent[0] / sent[1])
    return Table(columns=TRAFFIC, rows=tuple(rows), values=values)


@figure("order-network-bytes", explorable=True)
def order_network_bytes(
    *,
    run: str,
    orders: tuple[str, ...],
    microbatch_size: int = 1,
    gradient_bytes: float = 4.0,
) -> Bars:
    """Bytes per GPU per step between nodes, by axis, for several rank orders."""
    found = catalog.run(run)
    sent: dict[str, list[float]] = {}
    for order in orders:
        parallel = parallel_layout(run=run, order=order)
        for entry in axis_traffic(setup_of(found, parallel, microbatch_size, gradient_bytes)):
            sent.setdefault(entry.communicator, []).append(entry.leaving_bytes)
    totals = [sum(lengths) for lengths in zip(*sent.values(), strict=True)]
    return Bars(
        labels=tuple(order.replace("-", " ") for order in orders),
        segments=segments({label_of(name): sent[name] for name in sent}, map(hue, sent)),
        axis=Axis(label="bytes per GPU per step that leave the node", unit="B", low=0.0),
        values={
            "first": Named(totals[0], "B"),
            "least": Named(min(totals), "B"),
            "most": Named(max(totals), "B"),
            "ratio": Named(max(totals) / min(totals)),
        },
    )
