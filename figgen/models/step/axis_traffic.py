"""What each axis of a layout sends in a step, and how many of those bytes leave the node.

This summarizes `figgen.models.step.data_traffic` for one GPU. Stages hold different layers and
tables, so operations and bytes are means over all GPUs, some of which may send nothing on an axis;
buffers are means over the GPUs that have one. Messages between stages are those of a GPU inside the
pipeline, except for the bytes that leave the node. The gathers that sequence parallelism repeats in
backward are counted. Messages of the embedding and the head, and the sum over two copies of a tied
table, are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.data_traffic import TIED, step_calls
from figgen.models.step.layer_traffic import HEAD_AGAIN, TABLES
from figgen.models.step.nic_load import leaving_bytes
from figgen.models.step.step_links import BETWEEN_NODES, WITHIN_NODE
from figgen.models.step.step_traffic import SEND, Traffic

LEFT_OUT = (TABLES, HEAD_AGAIN, TIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTraffic:
    """The collectives that one axis runs in a step: how many, their buffer, and bytes per GPU.

    `buffer_bytes` is the largest per-rank buffer of one operation. `sent_bytes` is what a GPU sends
    in all operations of a step, and `leaving_bytes` the part that leaves its node; both are means
    over all GPUs.
    """

    communicator: str
    collective: str
    operations: float
    buffer_bytes: float
    sent_bytes: float
    leaving_bytes: float


def axis_traffic(setup: TrainingSetup) -> tuple[AxisTraffic, ...]:
    """Return the axes of `setup` that send anything, in the order tp cp ep etp dp edp pp."""
    ranks = [_of_rank(setup, rank) for rank in range(setup.parallel.pp)]
    leaving = leaving_bytes(setup, without=LEFT_OUT)
    found = []
    context = ("cp", WITHIN_NODE, BETWEEN_NODES)
    for axis in ("tp", *context, "ep", "etp", setup.dense_data_axis, "edp", "pp"):
        entries = [[pair for pair in rank if pair[0].axis == axis] for rank in ranks]
        if any(entries):
            found.append(_summary(axis, entries, float(leaving[axis].mean())))
    return tuple(found)


Calls = list[tuple[Traffic, int]]


def _of_rank(setup: TrainingSetup, rank: int) -> Calls:
    """Return the calls of a GPU of one pipeline rank, each with its number per step."""
    return [
        (entry, calls)
        for stage in setup.placement.stages_of_rank(rank)
        for entry, calls in step_calls(setup, stage)
        if entry.purpose not in LEFT_OUT
    ]


def _summary(axis: str, ranks: list[Calls], leaving: float) -> AxisTraffic:
    calls = [sum(number for _, number in rank) for rank in ranks]
    sent = [fsum(number * entry.sent_bytes for entry, number in rank) for rank in ranks]
    buffers = [max(entry.buffer_bytes for entry, _ in rank) for rank in ranks if rank]
    names = dict.fromkeys(entry.collective for rank in ranks for entry, _ in rank)
    if axis == "pp":
        return AxisTraffic(
            communicator=axis,
            collective="send and receive",
            operations=max(calls),
            buffer_bytes=max(buffers),
            sent_bytes=max(sent),
            leaving_bytes=leaving,
        )
    count = len(ranks)
    return AxisTraffic(
        communicator=axis,
        collective=", ".join("send and receive" if name == SEND else name for name in names),
        operations=sum(calls) / count,
        buffer_bytes=fsum(buffers) / len(buffers),
        sent_bytes=fsum(sent) / count,
        leaving_bytes=leaving,
    )
