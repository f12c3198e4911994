"""The bytes that a placement makes every NIC send, for one collective or for a step.

A group that spans nodes crosses each node boundary with one link of each ring. With *one* ring, in
ascending rank order, all traffic leaves through the NIC of the group's last member on the node.
With *shared* rings there are as many as the node has members, each through a different one, as
NCCL opens them with one ring per NIC. The sum over a node is the same; the busiest NIC is not.

Local rank l uses NIC l·nics // gpus of its node, by default one NIC per GPU. Over a step a NIC
receives as much as it sends, at the same time; at the ends of a pipeline only the sums are equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from figgen.errors import InputError, check_size
from figgen.models.machine.layout import mesh_of
from figgen.models.machine.mesh import IntArray, RankMesh, coordinate_array, group_array
from figgen.models.machine.placement import members_of_node, nodes_touched
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.data_traffic import step_calls
from figgen.models.step.step_links import BETWEEN_NODES, NETWORK, WITHIN_NODE, group_link
from figgen.models.step.step_traffic import FORWARD, SEND, Traffic, sent_bytes

FloatArray = NDArray[np.float64]
ALL_TO_ALL = "all-to-all"
Rings = Literal["shared", "one"]


def leaving_share(
    rows: IntArray,
    gpus_per_node: int,
    collective: str = "all-reduce",
    *,
    rings: Rings = "shared",
) -> FloatArray:
    """Return the share of each rank's sent bytes that leaves its node, in the shape of `rows`.

    An all-to-all sends equally to every peer, a send goes to the next rank, and all other
    collectives run in `rings`.
    """
    nodes = rows // gpus_per_node
    if collective == SEND or (rings == "one" and collective != ALL_TO_ALL):
        return np.asarray(nodes != np.roll(nodes, -1, axis=1), dtype=np.float64)
    members = members_of_node(rows, gpus_per_node)
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
    rings: Rings = "shared",
    nics_per_node: int | None = None,
) -> FloatArray:
    """Return the bytes that every NIC sends when all groups along `axes` run one collective each.

    The result has shape (nodes, NICs). `message_bytes` is the largest per-rank buffer. Raises
    InputError if a node's NICs do not divide its GPUs evenly.
    """
    check_size("gpus_per_node", gpus_per_node)
    if mesh.world_size % gpus_per_node:
        expected = f"a divisor of the world of {mesh.world_size}"
        raise InputError("gpus_per_node", expected=expected, got=gpus_per_node)
    rows = group_array(mesh, axes)
    leaving = np.zeros(mesh.world_size)
    sent = sent_bytes(collective, rows.shape[1], message_bytes)
    leaving[rows] = sent * leaving_share(rows, gpus_per_node, collective, rings=rings)
    return _by_nic(leaving, gpus_per_node, nics_per_node)


def leaving_bytes(setup: TrainingSetup, *, without: Iterable[str] = ()) -> dict[str, FloatArray]:
    """Return, by axis, the bytes that every rank sends out of its node in a step, shape (world,).

    Rings are shared. Calls with a purpose in `without` are left out.
    """
    parallel, width = setup.parallel, setup.parallel.gpus_per_node
    stage_of = coordinate_array(parallel.dense)[:, parallel.dense.names.index("pp")]
    pipes = group_array(parallel.dense, "pp")
    found: dict[str, FloatArray] = defaultdict(lambda: np.zeros(parallel.world_size))
    skipped = frozenset(without)
    for (axis, collective), sent in _sent_by_pipeline_rank(setup, skipped).items():
        if axis in (WITHIN_NODE, BETWEEN_NODES):
            # Ranks of a node trade inside it, or each with its counterpart on the next node.
            apart = group_link(parallel, axis).level == NETWORK
            found[axis] += sent[stage_of] * float(apart)
            continue
        rows = group_array(mesh_of(parallel, axis), axis)
        found[axis][rows] += sent[stage_of[rows]] * leaving_share(rows, width, collective)
    for (axis, source, target), sent_once in _sent_between_stages(setup, skipped).items():
        ends = pipes[:, [source, target]]
        nodes = ends // width
        found[axis][ends[:, 0]] += np.where(nodes[:, 0] != nodes[:, 1], sent_once, 0.0)
    return dict(found)


def _calls(
    setup: TrainingSetup, skipped: frozenset[str]
) -> Iterator[tuple[int, int, Traffic, float]]:
    """Yield pipeline rank, virtual stage, call, and the bytes that a GPU sends with it per step."""
    for stage, rank in enumerate(setup.placement.rank_of_stage):
        for entry, calls in step_calls(setup, stage):
            if entry.purpose not in skipped:
                yield rank, stage, entry, calls * entry.sent_bytes


def _sent_by_pipeline_rank(
    setup: TrainingSetup, skipped: frozenset[str]
) -> dict[tuple[str, str], FloatArray]:
    """Map (axis, collective) to the bytes that a GPU of each pipeline rank sends per step."""
    found: dict[tuple[str, str], FloatArray] = {}
    for rank, _, entry, sent in _calls(setup, skipped):
        if entry.axis not in ("pp", "embedding"):
            key = entry.axis, entry.collective
            found.setdefault(key, np.zeros(setup.parallel.pp))[rank] += sent
    return found


def _sent_between_stages(
    setup: TrainingSetup, skipped: frozenset[str]
) -> dict[tuple[str, int, int], float]:
    """Map (axis, from, to) to the bytes a GPU sends its counterpart on another rank per step."""
    found: dict[tuple[str, int, int], float] = {}
    holder = setup.placement.rank_of_stage
    for rank, stage, entry, sent in _calls(setup, skipped):
        if entry.axis == "pp" and entry.collective == SEND:
            target = holder[stage + 1 if entry.phase == FORWARD else stage - 1]
        elif entry.axis == "embedding":
            # The two copies of a tied table are at opposite ends of the pipeline.
            target = setup.parallel.pp - 1 - rank
        else:
            continue
        key = entry.axis, rank, target
        found[key] = found.get(key, 0.0) + sent
    return found


def _by_nic(leaving: FloatArray, gpus_per_node: int, nics_per_node: int | None) -> FloatArray:
    """Return the bytes that leave through each NIC, given those of each rank."""
    nics = gpus_per_node if nics_per_node is None else check_size("nics_per_node", nics_per_node)
    if gpus_per_node % nics:
        raise InputError("nics_per_node", expected=f"a divisor of {gpus_per_node}", got=nics)
    ranks = np.arange(len(leaving))
    nic = ranks // gpus_per_node * nics + (ranks % gpus_per_node) * nics // gpus_per_node
    totals = np.bincount(nic, weights=leaving, minlength=len(leaving) // gpus_per_node * nics)
    return np.asarray(totals.reshape(-1, nics), dtype=np.float64)
