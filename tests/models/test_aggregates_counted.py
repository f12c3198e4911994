"""Means, maxima and busiest ports of 100 random layouts, compared with a count over every rank.

`test_step_traffic_counted` counts what one call of a virtual stage sends. Here its senders and
receivers are derived from the definition of a rank order, without the package's meshes.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import pytest

from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.fabric import pod_leaving_share
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.placement import communicator
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ExpertShape
from figgen.models.step.axis_traffic import LEFT_OUT, axis_traffic
from figgen.models.step.data_traffic import stage_traffic
from figgen.models.step.level_loads import port_bytes
from figgen.models.step.nic_load import leaving_bytes, nic_bytes
from figgen.models.step.step import step
from figgen.models.step.step_links import group_link
from figgen.models.step.step_traffic import Traffic
from tests.models.jobs import job, sized
from tests.models.leaving import leaving_by_gpu

DENSE = sized(16, 48, 12, 12, 4, 96, 96, 48, tied_embeddings=True)
MIXTURE = sized(
    16,
    48,
    12,
    12,
    4,
    96,
    96,
    48,
    experts=ExpertShape(count=12, top_k=2, ffn_hidden=24, dense_layers=5),
)
CLUSTER = Cluster(
    peak_flops_per_s=1e15,
    scale_up_bandwidth_bytes_per_s=450e9,
    network_bandwidth_bytes_per_s=50e9,
    scale_up_latency_s=3e-6,
    network_latency_s=14e-6,
)
EXPERT = {"tp": "etp", "ep": "ep", "dp": "edp", "pp": "pp"}


@dataclass
class World:
    """A layout rank by rank: coordinates by counting, groups by comparing coordinates."""

    parallel: ParallelLayout

    @cached_property
    def places(self) -> list[dict[str, int]]:
        """The index of every rank along each axis of both grids, fastest axis first."""
        p, order = self.parallel, self.parallel.convention.order
        axes = [*order, *(axis for axis in ("tp", "cp", "ep", "dp", "pp") if axis not in order)]
        grids = [[axis for axis in axes if axis != "ep"]]
        if p.has_experts:
            grids.append([EXPERT[axis] for axis in axes if axis != "cp"])
        places = []
        for rank in range(p.world_size):
            place = {}
            for grid in grids:
                left = rank
                for axis in grid:
                    left, place[axis] = divmod(left, getattr(p, axis))
            places.append(place)
        return places

    def group(self, rank: int, axis: str) -> list[int]:
        """Return all ranks that differ from `rank` only along `axis` (or several,
        joined by "-")."""
        moving = set(axis.split("-"))
        grid = {"tp", "cp", "dp", "pp"} if moving <= {"tp", "cp", "dp", "pp"} else {
            "etp", "ep", "edp", "pp"}  # fmt: skip
        fixed = grid - moving
        mine = self.places[rank]
        return [
            other
            for other, place in enumerate(self.places)
            if all(place[name] == mine[name] for name in fixed)
        ]

    def node(self, rank: int) -> int:
        return rank // self.parallel.gpus_per_node

    def groups(self, axis: str) -> list[list[int]]:
        found = {tuple(self.group(rank, axis)) for rank in range(self.parallel.world_size)}
        return [list(group) for group in found]

    def targets(self, rank: int, axis: str, collective: str) -> list[tuple[int, float]]:
        """Return the ranks to which a rank sends the bytes of a collective, with shares."""
        group = self.group(rank, axis)
        at, size = group.index(rank), len(group)
        if size == 1:
            return []
        if collective == "all-to-all":
            return [(other, 1 / (size - 1)) for other in group if other != rank]
        if collective == "send":
            return [(group[(at + 1) % size], 1.0)]
        # Ring k goes through the members of a node beginning with its k-th, so that it leaves
        # from the one before; there are as many rings as this node has members.
        mine = [other for other in group if self.node(other) == self.node(rank)]
        elsewhere = [other for other in group if self.node(other) != self.node(rank)]
        found = []
        for ring in range(len(mine)):
            turned = mine[ring:] + mine[:ring]
            following = turned.index(rank) + 1
            on_node = following < len(mine)
            target = turned[following] if on_node else (elsewhere or turned)[0]
            found.append((target, 1 / len(mine)))
        return found


def drawn(count: int) -> Iterator[TrainingSetup]:
    draw = random.Random(9)
    while count:
        sizes = {
            "nodes": draw.randint(1, 6),
            "gpus_per_node": draw.choice((2, 3, 4, 6, 8)),
            "tp": draw.choice((1, 1, 2, 3, 4)),
            "cp": draw.choice((1, 1, 2, 3)),
            "pp": draw.choice((1, 2, 3, 4)),
        }
        experts = draw.random() < 0.5
        if experts:
            sizes |= {"ep": draw.choice((2, 3, 4, 6)), "etp": draw.choice((1, 1, 2))}
        axes = ["tp", "cp", "ep", "dp"] if experts else ["tp", "cp", "dp", "pp"]
        draw.shuffle(axes)
        schedule, chunks = draw.choice(
            (("1f1b", None), ("interleaved-1f1b", 2), ("zbv", None), ("dualpipe", None))
        )
        try:
            yield job(
                MIXTURE if experts else DENSE,
                order="-".join([*axes, "pp"] if experts else axes),
                **sizes,
                microbatches=2 * sizes["pp"],
                sequence=24,
                schedule=schedule,
                chunks=chunks,
                zero_stage=draw.randint(0, 3),
                context_exchange=draw.choice(("p2p", "all-gather", "all-to-all")),
            )
        except InputError:
            continue
        count -= 1


@cache
def setups() -> tuple[TrainingSetup, ...]:
    return tuple(drawn(100))


def calls_of(setup: TrainingSetup, place: int) -> Iterator[tuple[int, Traffic, int]]:
    """Return virtual stage, call and number of calls in a step, for a GPU of one pipeline rank."""
    for stage, holder in enumerate(setup.placement.rank_of_stage):
        if holder == place:
            passing = len(setup.order.microbatches_of(stage))
            for entry in stage_traffic(setup, stage):
                yield stage, entry, entry.calls * (passing if entry.per_microbatch else 1)


def counted(setup: TrainingSetup) -> list[dict[tuple[str, str], list[float]]]:
    """Return for every rank, by axis and purpose: calls, largest buffer, bytes sent,
    bytes leaving."""
    world, holder = World(setup.parallel), setup.placement.rank_of_stage
    found = []
    for rank, place in enumerate(world.places):
        mine: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
        pipe = world.group(rank, "pp")
        for stage, entry, calls in calls_of(setup, place["pp"]):
            sent = calls * entry.sent_bytes
            if entry.axis == "pp":
                ahead = 1 if entry.phase == "forward" else -1
                targets = [(pipe[holder[stage + ahead]], 1.0)]
            elif entry.axis == "embedding":
                targets = [(pipe[len(pipe) - 1 - place["pp"]], 1.0)]
            else:
                targets = world.targets(rank, entry.axis, entry.collective)
            total = mine[entry.axis, entry.purpose]
            total[0] += calls
            total[1] = max(total[1], entry.buffer_bytes)
            total[2] += sent
            for target, share in targets:
                total[3] += sent * share if world.node(target) != world.node(rank) else 0.0
        found.append(dict(mine))
    return found


@cache
def all_counted() -> tuple[list[dict[tuple[str, str], list[float]]], ...]:
    return tuple(counted(setup) for setup in setups())


def test_the_layouts_are_a_mixed_lot() -> None:
    assert sum(setup.shape.experts is not None for setup in setups()) > 20
    assert {setup.schedule for setup in setups()} == {"1f1b", "interleaved-1f1b", "zbv", "dualpipe"}
    uneven = [
        setup
        for setup in setups()
        for group in World(setup.parallel).groups("dp")
        if len(
            {
                sum(rank // setup.parallel.gpus_per_node == node for rank in group)
                for node in {rank // setup.parallel.gpus_per_node for rank in group}
            }
        )
        > 1
    ]
    assert uneven
    # Some GPUs hold no experts: a mean over all and one over those that have any differ.
    assert any(
        setup.parallel.ep > 1 and not all(any(axis == "ep" for axis, _ in mine) for mine in ranks)
        for setup, ranks in zip(setups(), all_counted(), strict=True)
    )


def test_traffic_of_an_axis_is_the_mean_of_all_ranks() -> None:
    for setup, ranks in zip(setups(), all_counted(), strict=True):
        world = len(ranks)
        for entry in axis_traffic(setup):
            mine = [
                [
                    total
                    for (axis, purpose), total in rank.items()
                    if axis == entry.communicator and purpose not in LEFT_OUT
                ]
                for rank in ranks
            ]
            calls, sent, leaving = (
                [sum(total[at] for total in totals) for totals in mine] for at in (0, 2, 3)
            )
            buffers = [max(total[1] for total in totals) for totals in mine if totals]
            assert entry.leaving_bytes == pytest.approx(sum(leaving) / world)
            if entry.communicator == "pp":
                expected = max(calls), max(buffers), max(sent)
            else:
                expected = sum(calls) / world, sum(buffers) / len(buffers), sum(sent) / world
            assert (entry.operations, entry.buffer_bytes, entry.sent_bytes) == pytest.approx(
                expected
            )


def test_every_nic_and_the_busiest_send_what_their_ranks_send_to_other_nodes() -> None:
    for setup, ranks in zip(setups(), all_counted(), strict=True):
        leaving = [sum(total[3] for total in rank.values()) for rank in ranks]
        assert leaving_by_gpu(setup).ravel() == pytest.approx(leaving)
        assert leaving_by_gpu(setup).max() == pytest.approx(max(leaving))
        for axis, by_rank in leaving_bytes(setup).items():
            mine = [
                sum(total[3] for (name, _), total in rank.items() if name == axis) for rank in ranks
            ]
            assert by_rank == pytest.approx(mine)


def test_busiest_port_of_an_axis_is_that_of_the_rank_with_fewest_neighbours_on_its_node() -> None:
    for setup in setups():
        world = World(setup.parallel)
        for row in step(setup, CLUSTER, compute_efficiency=0.5).rows:
            if row.axis in ("pp", "embedding"):
                continue
            most = max(
                sum(
                    share
                    for target, share in world.targets(rank, row.axis, row.collective)
                    if world.node(target) != world.node(rank)
                )
                for rank in range(setup.parallel.world_size)
            )
            found = port_bytes(row, group_link(setup.parallel, row.axis))
            assert found["network"] == pytest.approx(row.call_bytes * most)
            if row.collective != "send":
                assert sum(found.values()) == pytest.approx(row.call_bytes)


def test_groups_links_and_nodes_are_those_of_every_group() -> None:
    for setup in setups():
        world, width = World(setup.parallel), setup.parallel.gpus_per_node
        for axis in ("tp", "cp", "dp", "pp", "dp-cp"):
            groups = world.groups(axis)
            touched = [len({world.node(rank) for rank in group}) for group in groups]
            rings = [
                [(rank, group[(at + 1) % len(group)]) for at, rank in enumerate(group)]
                for group in groups
                if len(group) > 1
            ]
            apart = [world.node(a) != world.node(b) for ring in rings for a, b in ring]
            found = communicator(setup.parallel, axis)
            assert (found.nodes_touched_min, found.nodes_touched_max) == (
                min(touched),
                max(touched),
            )
            assert found.crossing_groups == sum(count > 1 for count in touched)
            assert (found.intra_node_links, found.inter_node_links) == (
                len(apart) - sum(apart),
                sum(apart),
            )
            # In one ring of ascending ranks, the last member on a node sends all that leaves it.
            sent = [0.0] * setup.parallel.world_size
            for ring in rings:
                for rank, target in ring:
                    if world.node(rank) != world.node(target):
                        sent[rank] += 2 * (len(ring) - 1) / len(ring) * 1e9
            nics = nic_bytes(
                mesh_of(setup.parallel, axis),
                axis,
                gpus_per_node=width,
                message_bytes=1e9,
                rings="one",
            )
            assert nics.ravel() == pytest.approx(sent)


def test_what_leaves_a_pod_is_what_its_ranks_send_out_of_it() -> None:
    for setup in setups():
        world, p = World(setup.parallel), setup.parallel
        pod = 2 * p.gpus_per_node
        for axis in ("dp", "pp"):
            by_pod: dict[int, float] = defaultdict(float)
            everything = 0.0
            for group in world.groups(axis):
                pairs = list(itertools.pairwise(group))
                if axis == "pp":
                    weighed = [(a, b, 0.5) for pair in pairs for a, b in (pair, pair[::-1])]
                else:
                    ring = [*pairs, (group[-1], group[0])] if pairs else []
                    weighed = [(a, b, 1.0) for a, b in ring]
                for a, b, share in weighed:
                    everything += share
                    by_pod[a // pod] += share if a // pod != b // pod else 0.0
            found = pod_leaving_share(p, axis, pod)
            assert found.busiest == pytest.approx(max(by_pod.values(), default=0.0) / pod)
            whole = sum(by_pod.values()) / everything if everything else 0.0
            assert found.mean == pytest.approx(whole)
