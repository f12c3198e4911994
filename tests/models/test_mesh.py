"""The mesh compared with nested loops, and with groups that Megatron-LM itself printed."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.machine.layout import layout
from figgen.models.machine.mesh import (
    RankMesh,
    axis_size,
    axis_stride,
    coordinate_array,
    coordinates_of,
    group_array,
    group_index,
    groups,
    rank_of,
)

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "megatron_rank_groups.json").read_text("utf-8")
)
NAMES = ("a", "b", "c", "d")


def mesh(**sizes: int) -> RankMesh:
    return RankMesh(tuple(sizes.items()))


def all_sizes(world_limit: int, axes: int) -> Iterator[tuple[int, ...]]:
    """Return every tuple of `axes` sizes whose product is at most `world_limit`."""
    if axes == 0:
        yield ()
        return
    for first in range(1, world_limit + 1):
        for rest in all_sizes(world_limit // first, axes - 1):
            yield (first, *rest)


def nested_loop_coordinates(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return every rank's coordinates from the nested loop that defines them (last axis
    outermost)."""
    slowest_first = itertools.product(*(range(size) for size in reversed(sizes)))
    return [point[::-1] for point in slowest_first]


def looped_groups(points: list[tuple[int, ...]], inside: tuple[int, ...]) -> list[tuple[int, ...]]:
    found = defaultdict(list)
    for rank, point in enumerate(points):
        found[tuple(x for i, x in enumerate(point) if i not in inside)].append(rank)
    return sorted(map(tuple, found.values()))


# The names are labels: all ordered size tuples are all sizes in all orders.
def test_every_mesh_up_to_64_ranks_has_the_coordinates_of_the_nested_loop() -> None:
    checked = 0
    for sizes in all_sizes(64, 4):
        grid = RankMesh(tuple(zip(NAMES, sizes, strict=True)))
        points = coordinate_array(grid)
        assert points.tolist() == [list(point) for point in nested_loop_coordinates(sizes)]
        checked += 1
    assert checked == 1824  # the sum of d₄(n), the ordered factorisations of n ≤ 64 in four


def test_every_mesh_up_to_64_ranks_is_partitioned_by_any_axes_as_the_loop_does() -> None:
    for sizes in all_sizes(64, 4):
        grid = RankMesh(tuple(zip(NAMES, sizes, strict=True)))
        points = nested_loop_coordinates(sizes)
        for count in (1, 2, 3, 4):
            for inside in itertools.combinations(range(4), count):
                names = tuple(NAMES[i] for i in inside)
                assert list(groups(grid, names)) == looped_groups(points, inside)


def test_group_index_is_the_row_that_a_rank_is_in() -> None:
    grid = mesh(tp=2, cp=3, dp=2, pp=2)
    for axes in ("tp", "cp", "dp-cp", "tp-pp"):
        index = group_index(grid, axes)
        for row, ranks in enumerate(groups(grid, axes)):
            assert index[list(ranks)].tolist() == [row] * len(ranks)


def test_scalar_coordinates_agree_with_the_array_and_invert() -> None:
    grid = mesh(tp=2, cp=3, dp=2, pp=4)
    for rank, point in enumerate(coordinate_array(grid).tolist()):
        assert list(coordinates_of(grid, rank).values()) == point
        assert rank_of(grid, coordinates_of(grid, rank)) == rank


def test_rank_75_is_tp_3_cp_1_dp_0_pp_2() -> None:
    grid = mesh(tp=8, cp=2, dp=2, pp=4)
    assert rank_of(grid, {"tp": 3, "cp": 1, "dp": 0, "pp": 2}) == 75
    assert coordinates_of(grid, 75) == {"tp": 3, "cp": 1, "dp": 0, "pp": 2}


def test_an_axis_of_size_one_may_be_left_out_of_coordinates() -> None:
    assert rank_of(mesh(tp=2, cp=1, dp=2), {"tp": 1, "dp": 1}) == 3


def test_stride_is_the_product_of_the_faster_sizes() -> None:
    grid = mesh(tp=8, cp=2, dp=2, pp=4)
    assert [axis_stride(grid, name) for name in grid.names] == [1, 8, 16, 32]
    for name in grid.names:
        assert (np.diff(group_array(grid, name), axis=1) == axis_stride(grid, name)).all()


def test_megatron_documented_example_of_16_gpus() -> None:
    grid = layout(nodes=2, gpus_per_node=8, tp=2, pp=4).dense
    assert groups(grid, "dp") == tuple((r, r + 2) for r in (0, 1, 4, 5, 8, 9, 12, 13))
    assert groups(grid, "tp") == tuple((r, r + 1) for r in range(0, 16, 2))
    assert groups(grid, "pp") == tuple((r, r + 4, r + 8, r + 12) for r in range(4))


ORACLE_GROUPS = [
    pytest.param(case, kind, token, id=f"{number}-{kind}-{token}")
    for number, case in enumerate(ORACLE["cases"])
    for kind in ("dense", "expert")
    for token in case[kind]
]


@pytest.mark.parametrize(("case", "kind", "token"), ORACLE_GROUPS)
def test_groups_are_those_of_megatron(case: dict, kind: str, token: str) -> None:
    sizes = {axis: case[axis] for axis in ("tp", "cp", "pp", "ep", "etp") if axis in case}
    nodes = case["world"] // 8
    parallel = layout(nodes=nodes, gpus_per_node=8, dp=case["dp"], order=case["order"], **sizes)
    assert parallel.edp == case["edp"]
    expert_token = {"tp": "etp", "dp": "edp", "tp-ep": "etp-ep"}.get(token, token)
    grid, axes = (parallel.dense, token) if kind == "dense" else (parallel.expert, expert_token)
    got = [list(row) for row in groups(grid, axes)]
    expected = case[kind][token]
    if isinstance(expected, dict):
        assert (len(got), got[:3], got[-1]) == (expected["n"], expected["first3"], expected["last"])
        assert hashlib.sha256(json.dumps(got).encode()).hexdigest() == expected["sha256"]
    else:
        assert got == expected


def test_131072_ranks_are_partitioned() -> None:
    grid = layout(nodes=16384, gpus_per_node=8, tp=8, cp=16, pp=16).dense
    rows = group_array(grid, "dp-cp")
    assert rows.shape == (128, 1024)
    assert np.array_equal(np.sort(rows.ravel()), np.arange(131_072))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RankMesh(()), "at least one axis"),
        (lambda: mesh(tp=0), "tp: expected a whole number ≥ 1, got 0"),
        (lambda: mesh(tp=True), "got True"),
        (lambda: mesh(tp=2.0), "got 2.0"),  # type: ignore[arg-type]
        (lambda: RankMesh((("tp", 2), ("tp", 2))), "each name once"),
        (lambda: groups(mesh(tp=2), "dp"), "unknown axis 'dp'"),
        (lambda: groups(mesh(tp=2), ()), "one or more"),
        (lambda: groups(mesh(tp=2), "tp-tp"), "each once"),
        (lambda: axis_size(mesh(tp=2), "pt"), "unknown axis 'pt'"),
        (lambda: rank_of(mesh(tp=2, dp=2), {"tp": 2, "dp": 0}), "expected 0 … 1, got 2"),
        (lambda: rank_of(mesh(tp=2, dp=2), {"tp": 1}), "without 'dp'"),
        (lambda: coordinates_of(mesh(tp=2), 2), "expected 0 … 1, got 2"),
        (lambda: coordinates_of(mesh(tp=2), -1), "expected 0 … 1, got -1"),
        (lambda: coordinate_array(mesh(tp=2), [0, -1, 5]), "expected 0 … 1, got -1"),
    ],
)
def test_impossible_input_is_refused_with_a_reason(build, message: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    assert message in str(caught.value)
