"""Bytes per NIC of a step: counted message by message, and by hand for GPT-3."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.models.machine.layout import layout, mesh_of
from figgen.models.machine.mesh import coordinates_of, groups
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ExpertShape, ModelShape
from figgen.models.shape.recipes import recipe
from figgen.models.step.data_traffic import stage_traffic
from figgen.models.step.nic_load import leaving_share, nic_bytes
from tests.models.jobs import job, small
from tests.models.leaving import leaving_by_gpu

DENSE = small(layers=8, kv_heads=2, sequence=16, tied_embeddings=True)
MIXTURE = small(layers=8, sequence=16, experts=ExpertShape(count=4, top_k=2, ffn_hidden=8))


def counted(run: TrainingSetup) -> list[list[float]]:
    """Return [node][local rank], counted over every call of every rank, peer by peer."""
    parallel, width = run.parallel, run.parallel.gpus_per_node
    load: Counter[tuple[int, int]] = Counter()

    def send(source: int, target: int, size: float) -> None:
        if source // width != target // width:
            load[source // width, source % width] += size

    pipes = {rank: group for group in groups(parallel.dense, "pp") for rank in group}
    for rank in range(parallel.world_size):
        place, pipe = coordinates_of(parallel.dense, rank)["pp"], pipes[rank]
        for stage in run.placement.stages_of_rank(place):
            for entry in stage_traffic(run, stage):
                often = len(run.order.microbatches_of(stage)) if entry.per_microbatch else 1
                size = entry.calls * often * entry.sent_bytes
                if entry.axis == "pp":
                    step = 1 if entry.phase == "forward" else -1
                    send(rank, pipe[run.placement.rank_of_stage[stage + step]], size)
                elif entry.axis == "embedding":
                    send(rank, pipe[-1 - place], size)
                else:
                    mesh = mesh_of(parallel, entry.axis)
                    group = next(g for g in groups(mesh, entry.axis) if rank in g)
                    for target, share in peers(rank, group, entry.collective, width):
                        send(rank, target, size * share)
    return [[load[node, place] for place in range(width)] for node in range(parallel.nodes)]


def peers(
    rank: int, group: tuple[int, ...], collective: str, width: int
) -> list[tuple[int, float]]:
    """Return the ranks to which a rank sends, with the share of its bytes."""
    if collective == "all-to-all":
        return [(peer, 1 / (len(group) - 1)) for peer in group if peer != rank]
    if collective == "send":
        return [(group[(group.index(rank) + 1) % len(group)], 1.0)]
    # One ring for each rank that the group has on a node: each leaves the node from another.
    inside = [peer for peer in group if peer // width == rank // width]
    outside = [peer for peer in group if peer // width != rank // width]
    if not outside:
        return []
    rings = len(inside)
    neighbour = inside[(inside.index(rank) + 1) % rings]
    return [(outside[0], 1 / rings), (neighbour, (rings - 1) / rings)]


RUNS = [
    (shape, sizes, order, schedule)
    for shape, sizes in (
        (DENSE, {"tp": 2, "pp": 2}),
        (DENSE, {"tp": 2, "cp": 2, "pp": 4}),
        (MIXTURE, {"pp": 2, "ep": 4}),
        (MIXTURE, {"tp": 2, "ep": 2, "etp": 2}),
    )
    for order, schedule in itertools.product(
        ("megatron", "pp-ep-dp-cp-tp"), ("1f1b", "interleaved-1f1b", "zbv", "dualpipe")
    )
    if "pp" in sizes or schedule == "1f1b"
]


@pytest.mark.parametrize(("shape", "sizes", "order", "schedule"), RUNS)
def test_every_nic_sends_what_its_ranks_send_to_other_nodes(
    shape: ModelShape, sizes: dict[str, int], order: str, schedule: str
) -> None:
    parallel = layout(nodes=4, gpus_per_node=4, order=order, **sizes)
    for zero in (0, 1, 3):
        run = TrainingSetup(
            shape=shape,
            parallel=parallel,
            microbatches=8,
            sequence=16,
            schedule=schedule,
            zero_stage=zero,
            recipe=recipe("zero16"),
        )
        expected = np.array(counted(run))
        assert leaving_by_gpu(run) == pytest.approx(expected)
        assert expected.sum() > 0


def test_gpt_3_sends_10_gigabytes_of_gradients_and_its_share_of_the_activations() -> None:
    parallel = layout(nodes=128, gpus_per_node=8, tp=8, pp=8)
    run = TrainingSetup(
        shape=catalog.model("gpt-3-175b").shape,
        parallel=parallel,
        microbatches=3,
        sequence=2048,
        recipe=recipe("zero16"),
        zero_stage=0,
    )
    sent = leaving_by_gpu(run)
    # TP stays inside; DP 16 is one rank per node, and every stage but the last is 16 nodes away.
    boundary = 3 * 50_331_648 / 8
    inner = sent[32:96]
    assert inner == pytest.approx(np.full((64, 8), inner[0, 0]))
    gradients = inner[0, 0] - 2 * boundary
    assert gradients == pytest.approx(2 * 15 / 16 * 175e9 / 64 * 2, rel=0.01)


def test_one_node_sends_nothing_and_nics_must_share_the_gpus() -> None:
    run = job(DENSE, gpus_per_node=4, tp=2, microbatches=2, sequence=16, recipe=recipe("zero16"))
    assert leaving_by_gpu(run).tolist() == [[0.0] * 4]
    with pytest.raises(InputError, match="nics_per_node: expected a divisor of 4, got 3"):
        nic_bytes(run.parallel.dense, "tp", gpus_per_node=4, message_bytes=8.0, nics_per_node=3)


@pytest.mark.parametrize("collective", ["all-gather", "all-reduce", "reduce-scatter"])
def test_one_ring_leaves_a_node_once_whatever_runs_in_it(collective: str) -> None:
    rows = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [0, 2, 4, 6]])
    one = leaving_share(rows, 2, collective, rings="one")
    assert one.tolist() == [[0, 1, 0, 1], [0, 1, 0, 1], [1, 1, 1, 1]]
    shared = leaving_share(rows, 2, collective)
    assert shared.tolist() == [[0.5] * 4, [0.5] * 4, [1.0] * 4]
    everywhere = leaving_share(rows, 2, "all-to-all", rings="one")
    assert everywhere[0].tolist() == pytest.approx([2 / 3] * 4)
