"""What each axis of a layout sends in a step, and how much of it leaves the node.

A summary of `figgen.models.data_traffic` for one GPU: stages differ in layers and tables, so each
number is their mean, except for messages between stages, which are those of a GPU inside the
pipeline. Left out are the gathers that sequence parallelism repeats in backward, what the tables
exchange, and the sum over two copies of a tied table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from figgen.models.data_traffic import TIED, step_calls
from figgen.models.layer_traffic import AGAIN, TABLES
from figgen.models.layout import ParallelLayout, mesh_of
from figgen.models.mesh import group_array
from figgen.models.nic_load import ALL_TO_ALL, leaving_share
from figgen.models.step_traffic import SEND, Traffic
from figgen.models.training_setup import TrainingSetup


@dataclass(frozen=True, slots=True)
class AxisTraffic:
    """What one axis sends in a step: collectives, how often, their buffer, and bytes per GPU.

    `buffer_bytes` is the largest per-rank buffer of one operation, `sent_bytes` what a GPU sends
    in all operations of the step.
    """

    communicator: str
    collective: str
    operations: float
    buffer_bytes: float
    sent_bytes: float


def axis_traffic(setup: TrainingSetup) -> tuple[AxisTraffic, ...]:
    """Every axis of the setup that sends anything, in the order tp cp ep etp dp edp pp."""
    ranks = [_of_rank(setup, rank) for rank in range(setup.parallel.pp)]
    found = []
    for axis in ("tp", "cp", "ep", "etp", setup.dense_data_axis, "edp", "pp"):
        entries = [[pair for pair in rank if pair[0].axis == axis] for rank in ranks]
        if any(entries):
            found.append(_summary(axis, entries))
    return tuple(found)


def between_nodes(parallel: ParallelLayout, traffic: AxisTraffic) -> float:
    """Bytes of `traffic` that leave a node in the step, averaged over the GPUs.

    Pipelines send to the next stage and back, all-to-alls to every peer alike, all else runs in
    rings, of which those of one group that start on the same node share its crossing.
    """
    rows = group_array(mesh_of(parallel, traffic.communicator), traffic.communicator)
    if traffic.communicator == "pp":
        nodes = rows // parallel.gpus_per_node
        return traffic.sent_bytes * float((nodes[:, 1:] != nodes[:, :-1]).sum()) / np.size(rows)
    collective = ALL_TO_ALL if traffic.communicator == "ep" else "all-reduce"
    share = leaving_share(rows, parallel.gpus_per_node, collective)
    return traffic.sent_bytes * float(share.mean())


Calls = list[tuple[Traffic, int]]


def _of_rank(setup: TrainingSetup, rank: int) -> Calls:
    """Calls of a GPU of one pipeline rank, each with its number in the step."""
    return [
        (entry, calls)
        for stage in setup.placement.stages_of_rank(rank)
        for entry, calls in step_calls(setup, stage)
        if entry.purpose not in (AGAIN, TABLES, TIED)
    ]


def _summary(axis: str, ranks: list[Calls]) -> AxisTraffic:
    calls = [sum(number for _, number in rank) for rank in ranks]
    sent = [sum(number * entry.sent_bytes for entry, number in rank) for rank in ranks]
    buffers = [max((entry.buffer_bytes for entry, _ in rank), default=0.0) for rank in ranks]
    names = dict.fromkeys(entry.collective for rank in ranks for entry, _ in rank)
    if axis == "pp":
        return AxisTraffic(axis, "send and receive", max(calls), max(buffers), max(sent))
    count = len(ranks)
    return AxisTraffic(
        communicator=axis,
        collective=", ".join("send and receive" if name == SEND else name for name in names),
        operations=sum(calls) / count,
        buffer_bytes=sum(buffers) / count,
        sent_bytes=sum(sent) / count,
    )
