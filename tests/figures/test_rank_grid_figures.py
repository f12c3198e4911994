"""The rank grid draws what Megatron and nested loops place, in blocks and as a whole."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import defaultdict
from pathlib import Path

import pytest

from figgen.charts import RankGrid
from figgen.errors import InputError
from figgen.registry import build

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "megatron_rank_groups.json").read_text("utf-8")
)
SIZES = {
    "map-8": (8, 1, 1, 1),
    "map-16": (8, 1, 1, 2),
    "map-32": (8, 1, 2, 2),
    "map-64": (8, 1, 4, 2),
    "map-128": (8, 2, 2, 4),
    "map-256": (8, 1, 16, 2),
    "docstring-16": (2, 1, 2, 4),
}

"""TP, CP, DP, PP of each preset."""
# Megatron's name of a group and its grid, by the name that the figure gives it.
TOKENS = {
    **{name: ("dense", name) for name in ("tp", "cp", "dp", "pp", "dp-cp")},
    "ep": ("expert", "ep"),
    "edp": ("expert", "dp"),
}


def drawn_groups(chart: RankGrid, name: str) -> list[list[int]]:
    """Return the groups of a communicator as a reader sees them: ranks with the same number."""
    view = next(view for view in chart.communicators if view.name == name)
    found = defaultdict(list)
    for cell, group in zip(chart.cells, view.group_of_cell, strict=True):
        found[group].append(cell.rank)
    assert len(found) == view.group_count
    assert {len(ranks) for ranks in found.values()} == {view.size}
    return [found[number] for number in range(view.group_count)]


@pytest.mark.parametrize(
    ("preset", "case"), [("map-8", 0), ("map-32", 1), ("map-128", 2), ("map-256", 3)]
)
def test_a_drawn_preset_has_the_groups_that_megatron_prints(preset: str, case: int) -> None:
    chart = build("rank-grid", {"preset": preset})
    oracle = ORACLE["cases"][case]
    assert chart.world_size == oracle["world"] == len(chart.cells)
    for view in chart.communicators:
        grid, token = TOKENS[view.name]
        got, expected = drawn_groups(chart, view.name), oracle[grid][token]
        if isinstance(expected, dict):
            assert len(got) == expected["n"]
            assert hashlib.sha256(json.dumps(got).encode()).hexdigest() == expected["sha256"]
        else:
            assert got == expected


@pytest.mark.parametrize("preset", SIZES)
def test_cells_of_a_preset_are_the_nested_loop_tp_fastest_pp_slowest(preset: str) -> None:
    chart = build("rank-grid", {"preset": preset})
    tp, cp, dp, pp = map(range, SIZES[preset])
    assert chart.axes[:4] == ("tp", "cp", "dp", "pp")
    loop = [point[::-1] for point in itertools.product(pp, dp, cp, tp)]
    assert [cell.coordinates[:4] for cell in chart.cells] == loop
    assert [cell.rank for cell in chart.cells] == list(range(len(loop)))
    assert all((cell.node, cell.local_rank) == divmod(cell.rank, 8) for cell in chart.cells)


@pytest.mark.parametrize("preset", SIZES)
def test_ranks_of_a_drawn_group_agree_in_all_other_coordinates_of_their_grid(preset: str) -> None:
    chart = build("rank-grid", {"preset": preset})
    grids = ({"tp", "cp", "dp", "pp"}, {"etp", "ep", "edp", "pp"})
    points = {
        cell.rank: dict(zip(chart.axes, cell.coordinates, strict=True)) for cell in chart.cells
    }
    for view in chart.communicators:
        inside = set(view.name.split("-"))
        others = next(grid for grid in grids if inside <= grid) - inside
        for ranks in drawn_groups(chart, view.name):
            assert (
                len({tuple(points[rank][axis] for axis in sorted(others)) for rank in ranks}) == 1
            )


def test_communicators_are_offered_where_they_exist() -> None:
    names = ["tp", "cp", "dp", "pp", "ep", "edp"]
    for preset in SIZES:
        chart = build("rank-grid", {"preset": preset})
        extra = ["dp-cp"] if preset == "map-128" else []
        assert [view.name for view in chart.communicators] == names + extra
    dense = build("rank-grid", {"sizes": "nodes=2 gpus_per_node=8 tp=8", "order": "llama3"})
    assert [view.name for view in dense.communicators] == names[:4]
    assert dense.axes == ("tp", "cp", "dp", "pp")


def test_llama_3_on_16384_gpus_is_128_blocks_of_one_replica() -> None:
    chart = build("rank-grid", {"run": "llama-3-405b-8k-16384", "order": "llama3"})
    assert (len(chart.cells), chart.multiplicity, chart.world_size) == (128, 128, 16384)
    assert [cell.rank for cell in chart.cells] == list(range(128))
    assert chart.values["block"].value == "one model replica on 16 nodes"
    views = {view.name: view for view in chart.communicators}
    assert sorted(views["dp"].group_of_cell) == list(range(128))
    assert set(views["pp"].group_of_cell) == set(range(8))


@pytest.mark.parametrize("run", ["llama-3-405b-8k-16384", "llama-3-405b-131k", "deepseek-v3"])
def test_a_block_holds_whole_pipelines_and_tiles_the_world(run: str) -> None:
    chart = build("rank-grid", {"run": run})
    assert len(chart.cells) * chart.multiplicity == chart.world_size
    view = next(view for view in chart.communicators if view.name == "pp")
    counts = defaultdict(int)
    for group in view.group_of_cell:
        counts[group] += 1
    assert set(counts.values()) == {view.size}
    stages = chart.axes.index("pp")
    assert len({cell.coordinates[stages] for cell in chart.cells}) == view.size
    per_node = defaultdict(int)
    for cell in chart.cells:
        per_node[cell.node] += 1
    assert set(per_node.values()) == {chart.gpus_per_node}


def test_in_the_default_order_a_replica_is_on_every_128th_node() -> None:
    chart = build("rank-grid", {"run": "llama-3-405b-8k-16384", "order": "megatron"})
    assert sorted({cell.node for cell in chart.cells}) == list(range(0, 2048, 128))


def test_512_gpus_are_drawn_whole_and_1024_are_not() -> None:
    for nodes, shown in ((64, 512), (128, 128)):
        sizes = f"nodes={nodes} gpus_per_node=8 tp=8 pp=16"
        chart = build("rank-grid", {"sizes": sizes})
        assert (len(chart.cells), chart.multiplicity) == (shown, nodes * 8 // shown)


def test_rank_75_of_128_has_its_place_and_its_groups() -> None:
    chart = build("rank-grid", {"preset": "map-128"})
    cell = chart.cells[75]
    assert (cell.rank, cell.node, cell.local_rank, cell.coordinates[:4]) == (75, 9, 3, (3, 1, 0, 2))
    group = {view.name: view.group_of_cell[75] for view in chart.communicators}
    # TP groups are runs of eight; the PP group is the rank's place within a stage of 32.
    assert group.items() >= {"tp": 75 // 8, "pp": 75 % 32, "ep": 75}.items()


def test_the_whole_world_of_16384_ranks_agrees_with_the_block_that_is_drawn() -> None:
    asked = {"run": "llama-3-405b-8k-16384"}
    block, whole = build("rank-grid", asked), build("rank-grid", asked | {"whole": True})
    assert (len(whole.cells), whole.multiplicity) == (16384, 1)
    assert [cell.rank for cell in whole.cells] == list(range(16384))
    for at, cell in enumerate(block.cells):
        assert whole.cells[cell.rank] == cell
        for part, view in zip(block.communicators, whole.communicators, strict=True):
            assert part.group_of_cell[at] == view.group_of_cell[cell.rank]


def test_a_grid_may_show_fewer_gpus_and_some_communicators() -> None:
    sizes = "nodes=64 gpus_per_node=8 tp=8 cp=2 pp=8"
    part = build("rank-grid", {"sizes": sizes, "most": 256, "communicators": ["pp", "tp"],
                               "first": "tp"})  # fmt: skip
    # One replica of TP 8 · CP 2 · PP 8, of which 512 GPUs hold four.
    assert (len(part.cells), part.multiplicity) == (128, 4)
    assert [view.name for view in part.communicators] == ["tp", "pp"]
    assert len(build("rank-grid", {"sizes": sizes}).cells) == 512
    with pytest.raises(InputError, match="first: expected one of pp, tp"):
        build("rank-grid", {"sizes": sizes, "communicators": ["pp", "tp"], "first": "dp"})
    with pytest.raises(InputError, match="most: expected 8 to 512"):
        build("rank-grid", {"sizes": sizes, "most": 1024})
