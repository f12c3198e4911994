"""What placement puts on the network: bytes that every NIC sends, for one collective or a step.

Local rank l uses NIC l·nics // gpus of its node, by default one NIC per GPU. A NIC receives as
much as it sends over a step, at the same time; of a pipeline's ends that holds for the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from figgen.errors import InputError, check_size
from figgen.models.data_traffic import step_calls
from figgen.models.layout import mesh_of
from figgen.models.mesh import IntArray, RankMesh, coordinate_array, group_array
from figgen.models.placement import nodes_touched
from figgen.models.step_traffic import FORWARD, SEND, sent_bytes
from figgen.models.training_setup import TrainingSetup

FloatArray = NDArray[np.float64]
ALL_TO_ALL = "all-to-all"


def leaving_share(rows: IntArray, gpus_per_node: int, collective: str = "all-reduce") -> FloatArray:
    """Share of what each rank of `rows` sends that leaves its node, shape of `rows`.

    An all-to-all goes to every peer alike. All else runs in rings: a group with several ranks on
    a node opens as many rings as it has ranks there, so that each of them carries an equal share
    of what leaves the node (as NCCL does with one ring per NIC).
    """
    nodes = rows // gpus_per_node
    _, pair, counts = np.unique(
        np.arange(len(rows))[:, None] * (int(nodes.max()) + 1) + nodes,
        return_inverse=True,
        return_counts=True,
    )
    members = counts[pair.reshape(rows.shape)]
    if collective == ALL_TO_ALL:
        size = rows.shape[1]
        return np.asarray((size - members) / max(1, size - 1), dtype=np.float64)
    crosses = (nodes_touched(rows, gpus_per_node) > 1)[:, None]
    return np.where(crosses, 1 / members, 0.0)


def nic_bytes(
    mesh: RankMesh,
    axes: str | Sequence[str],
    *,
    gpus_per_node: int,
    message_bytes: float,
    collective: str = "all-reduce",
    nics_per_node: int | None = None,
) -> FloatArray:
    """Bytes sent by every NIC when all groups along `axes` run one collective each.

    Shape (nodes, NICs); `message_bytes` is the largest per-rank buffer.
    Raises InputError when the NICs of a node do not share its GPUs evenly.
    """
    check_size("gpus_per_node", gpus_per_node)
    if mesh.world_size % gpus_per_node:
        expected = f"a divisor of the world of {mesh.world_size}"
        raise InputError("gpus_per_node", expected=expected, got=gpus_per_node)
    rows = group_array(mesh, axes)
    leaving = np.zeros(mesh.world_size)
    sent = sent_bytes(collective, rows.shape[1], message_bytes)
    leaving[rows] = sent * leaving_share(rows, gpus_per_node, collective)
    return _by_nic(leaving, gpus_per_node, nics_per_node)


def step_nic_bytes(setup: TrainingSetup, *, nics_per_node: int | None = None) -> FloatArray:
    """Bytes sent by every NIC in one step of `setup`, shape (nodes, NICs).

    All that `figgen.models.data_traffic` counts; messages between pipeline ranks go to the rank
    that holds the next or previous stage. Raises InputError like `nic_bytes`.
    """
    parallel = setup.parallel
    stage_of = coordinate_array(parallel.dense)[:, parallel.dense.names.index("pp")]
    leaving = np.zeros(parallel.world_size)
    for (axis, collective), sent in _sent_by_pipeline_rank(setup).items():
        rows = group_array(mesh_of(parallel, axis), axis)
        leaving[rows] += sent[stage_of[rows]] * leaving_share(
            rows, parallel.gpus_per_node, collective
        )
    pipes = group_array(parallel.dense, "pp")
    for (source, target), sent_once in _sent_between_stages(setup).items():
        ends = pipes[:, [source, target]]
        nodes = ends // parallel.gpus_per_node
        leaving[ends[:, 0]] += np.where(nodes[:, 0] != nodes[:, 1], sent_once, 0.0)
    return _by_nic(leaving, parallel.gpus_per_node, nics_per_node)


def _sent_by_pipeline_rank(setup: TrainingSetup) -> dict[tuple[str, str], FloatArray]:
    """(axis, collective) → bytes of a step that a GPU of each pipeline rank sends in groups."""
    found: dict[tuple[str, str], FloatArray] = {}
    for rank in range(setup.parallel.pp):
        for stage in setup.placement.stages_of_rank(rank):
            for entry, calls in step_calls(setup, stage):
                if entry.axis in ("pp", "embedding"):
                    continue
                key = entry.axis, entry.collective
                found.setdefault(key, np.zeros(setup.parallel.pp))[rank] += calls * entry.sent_bytes
    return found


def _sent_between_stages(setup: TrainingSetup) -> dict[tuple[int, int], float]:
    """(pipeline rank, pipeline rank) → bytes of a step from one GPU to its counterpart."""
    found: dict[tuple[int, int], float] = {}
    holder = setup.placement.rank_of_stage
    for stage, rank in enumerate(holder):
        for entry, calls in step_calls(setup, stage):
            if entry.axis == "pp" and entry.collective == SEND:
                target = holder[stage + 1 if entry.phase == FORWARD else stage - 1]
            elif entry.axis == "embedding":
                # The two copies of a tied table are at either end of the pipeline.
                target = setup.parallel.pp - 1 - rank
            else:
                continue
            found[rank, target] = found.get((rank, target), 0.0) + calls * entry.sent_bytes
    return found


def _by_nic(leaving: FloatArray, gpus_per_node: int, nics_per_node: int | None) -> FloatArray:
    """Bytes that leave through each NIC, from those of each rank."""
    nics = gpus_per_node if nics_per_node is None else check_size("nics_per_node", nics_per_node)
    if gpus_per_node % nics:
        raise InputError("nics_per_node", expected=f"a divisor of {gpus_per_node}", got=nics)
    ranks = np.arange(len(leaving))
    nic = ranks // gpus_per_node * nics + (ranks % gpus_per_node) * nics // gpus_per_node
    totals = np.bincount(nic, weights=leaving, minlength=len(leaving) // gpus_per_node * nics)
    return np.asarray(totals.reshape(-1, nics), dtype=np.float64)
