"""How fast the models are, each compared with a plain implementation in the same run.

The plain ones are first drafts: nested loops over coordinates, a simulator that scans all ranks
until nothing moves, a trace stored as lists of sets. Time is the best of three.
"""

from __future__ import annotations

import itertools
import time
import tracemalloc
from collections.abc import Callable

import pytest

from figgen.models.collectives import trace
from figgen.models.machine.mesh import RankMesh, group_array
from figgen.models.pipeline.schedules import Schedule, build
from figgen.models.pipeline.simulate import Durations, simulate

MESH = RankMesh((("tp", 8), ("cp", 16), ("dp", 64), ("pp", 16)))


def measured(work: Callable[[], object], rounds: int = 3) -> tuple[float, float]:
    """Return the best seconds of `rounds` runs, and the peak MiB of one more run."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds), peak / 2**20


def report(what: str, ours: Callable[[], object], plain: Callable[[], object]) -> None:
    ours_s, ours_mib = measured(ours)
    plain_s, plain_mib = measured(plain)
    print(
        f"\n{what}: {ours_s * 1e3:.1f} ms, {ours_mib:.1f} MiB; "
        f"plain {plain_s * 1e3:.1f} ms, {plain_mib:.1f} MiB; "
        f"ours takes {ours_s / plain_s:.2f} of plain"
    )


def all_groups() -> list[list[list[int]]]:
    return [group_array(MESH, axis).tolist() for axis in MESH.names]


def plain_groups() -> list[list[list[int]]]:
    """Put every rank into the group of its other coordinates."""
    found = []
    for axis in range(len(MESH.sizes)):
        members: dict[tuple[int, ...], list[int]] = {}
        for rank, place in enumerate(itertools.product(*(range(s) for s in MESH.sizes[::-1]))):
            coordinates = place[::-1]
            members.setdefault(coordinates[:axis] + coordinates[axis + 1 :], []).append(rank)
        found.append(sorted(members.values()))
    return found


def test_groups_of_131072_ranks() -> None:
    assert all_groups() == plain_groups()
    report("all groups of 131,072 ranks", all_groups, plain_groups)


def plain_makespan(schedule: Schedule, durations: Durations) -> float:
    """Scan the ranks repeatedly; each runs an action whose inputs are ready."""
    rank_of = schedule.placement.rank_of_stage
    last = len(rank_of) - 1
    times = {"F": durations.forward, "B": durations.backward_input + durations.backward_weight}
    ends: dict[tuple[str, int, int], float] = {}
    position, free = [0] * len(schedule.orders), [0.0] * len(schedule.orders)
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(schedule.orders):
            if position[rank] == len(order):
                continue
            a = order[position[rank]]
            needs = [("F", a.stage - 1, a.microbatch)] if a.kind == "F" and a.stage else []
            if a.kind == "B":
                needs = [("F", a.stage, a.microbatch)]
                needs += [("B", a.stage + 1, a.microbatch)] if a.stage < last else []
            if all(need in ends for need in needs):
                start = max([free[rank], *(ends[need] for need in needs)])
                free[rank] = ends[a.kind, a.stage, a.microbatch] = start + times[a.kind]
                position[rank] += 1
                moved = True
    return max(free)


def test_64_stages_512_microbatches_interleaved() -> None:
    schedule = build("interleaved-1f1b", stages=64, microbatches=512, chunks=4)
    durations = Durations()

    assert simulate(schedule, durations).makespan == plain_makespan(schedule, durations)
    report(
        "simulating 64 stages × 512 microbatches × 4 chunks",
        lambda: simulate(schedule, durations),
        lambda: plain_makespan(schedule, durations),
    )
    seconds, peak = measured(
        lambda: build("interleaved-1f1b", stages=64, microbatches=512, chunks=4)
    )
    print(f"writing its order: {seconds * 1e3:.1f} ms, {peak:.1f} MiB")


def plain_ring(ranks: int) -> list[list[set[int]]]:
    """Run a ring all-reduce on sets of contributors, checked only at the end."""
    held = [[{rank} for _ in range(ranks)] for rank in range(ranks)]
    for step in range(2 * ranks - 2):
        sent = []
        for rank in range(ranks):
            chunk = (rank - step - 1) % ranks
            sent.append((chunk, set(held[rank][chunk])))
        for rank, (chunk, content) in enumerate(sent):
            held[(rank + 1) % ranks][chunk] |= content
    assert all(len(chunk) == ranks for row in held for chunk in row)
    return held


def test_ring_of_256_ranks() -> None:
    report(
        "tracing and proving a ring all-reduce of 256 ranks",
        lambda: trace("all-reduce", "ring", 256),
        lambda: plain_ring(256),
    )


def plain_binomial(ranks: int) -> list[set[int]]:
    """Run a binomial tree up and down on one set of contributors per rank."""
    held = [{rank} for rank in range(ranks)]
    gaps = [2**k for k in range((ranks - 1).bit_length())]
    for gap in gaps:
        for rank in range(0, ranks - gap, 2 * gap):
            held[rank] |= held[rank + gap]
    for gap in reversed(gaps):
        for rank in range(0, ranks - gap, 2 * gap):
            held[rank + gap] = set(held[rank])
    assert all(len(content) == ranks for content in held)
    return held


@pytest.mark.parametrize("algorithm", ["binomial-tree", "double-binary-tree"])
def test_tree_of_256_ranks(algorithm: str) -> None:
    report(
        f"tracing and proving a {algorithm} all-reduce of 256 ranks, beside a binomial tree",
        lambda: trace("all-reduce", algorithm, 256),
        lambda: plain_binomial(256),
    )
