"""A mesh as lists, strides, orders and checks, compared with documented groups and nested loops."""

from __future__ import annotations

import itertools

import pytest

from figgen.errors import InputError
from figgen.quantity_shown import NBSP
from figgen.registry import build
from tests.renderers.overflows import overflows


def plain(text: str) -> str:
    """Replace no-break spaces by plain ones, which are easier to type."""
    return text.replace(NBSP, " ")


def test_groups_of_16_gpus_are_listed_as_megatron_documents_them() -> None:
    asked = {"preset": "docstring-16", "communicators": ["dp", "tp", "pp"], "most": 8}
    listed = {row[0]: plain(row[-1]) for row in build("rank-groups", asked).rows}
    assert listed == {
        "DP": "[0, 2] [1, 3] [4, 6] [5, 7] [8, 10] [9, 11] [12, 14] [13, 15]",
        "TP": "[0, 1] [2, 3] [4, 5] [6, 7] [8, 9] [10, 11] [12, 13] [14, 15]",
        "PP": "[0, 4, 8, 12] [1, 5, 9, 13] [2, 6, 10, 14] [3, 7, 11, 15]",
    }


def test_combined_groups_say_when_they_have_no_single_stride() -> None:
    asked = {"preset": "map-128", "communicators": ["tp", "dp-cp", "tp-dp-cp", "tp-pp", "ep"]}
    rows = {row[0]: row[1:5] for row in build("rank-groups", asked).rows}
    assert rows == {
        "TP": ("dense", 16, 8, 1),
        "DP×CP": ("dense", 32, 4, 8),
        "TP×DP×CP": ("dense", 4, 32, 1),
        "TP×PP": ("dense", 4, 32, "–"),
        "EP": ("expert", 128, 1, "–"),
    }


def test_a_long_group_is_listed_by_its_ends() -> None:
    asked = {"preset": "map-256", "communicators": ["dp"], "most": 1}
    assert plain(build("rank-groups", asked).rows[0][-1]) == "[0, 8, …, 120] …"


def test_cp_and_ep_groups_coincide_on_8_gpus() -> None:
    table = build("two-grids", {"sizes": "nodes=1 gpus_per_node=8 tp=2 cp=2 ep=2"})
    pairs = ["[0, 2]", "[1, 3]", "[0, 2]", "[1, 3]", "[4, 6]", "[5, 7]", "[4, 6]", "[5, 7]"]
    assert [plain(row[3]) for row in table.rows] == [plain(row[4]) for row in table.rows] == pairs
    assert [plain(text) for text in table.rows[6][1:3]] == ["(0, 1, 1, 0)", "(0, 1, 1, 0)"]


def test_rank_75_is_the_sum_of_its_strides() -> None:
    chart = build("rank-strides", {"preset": "map-128", "rank": 75})
    lines = next(box.lines for box in chart.boxes if box.name == "sum")
    assert lines == ("rank = tp·1 + cp·8 + dp·16 + pp·32", "3·1 + 1·8 + 0·16 + 2·32 = 75")


def test_rank_147_on_the_expert_grid_is_ep_3_edp_2_pp_1() -> None:
    chart = build("rank-strides", {"preset": "map-256", "rank": 147, "grid": "expert"})
    names = ("etp_index", "ep_index", "edp_index", "pp_index")
    assert [chart.values[name].value for name in names] == [0, 3, 2, 1]


@pytest.mark.parametrize("rank", [0, 75, 127, 128, 147, 255])
def test_blocks_of_the_stride_figure_narrow_down_to_the_rank(rank: int) -> None:
    for preset, grid in (("map-128", "dense"), ("map-256", "dense"), ("map-256", "expert")):
        if preset == "map-128" and rank > 127:
            continue
        chart = build("rank-strides", {"preset": preset, "rank": rank, "grid": grid})
        assert not overflows(chart)
        chosen = [box for box in chart.boxes if box.role != "neutral" and " " in box.name]
        ranges = []
        for box in chosen:
            ends = [int(part) for part in box.lines[1].removeprefix("ranks ").split("–")]
            ranges.append(range(ends[0], ends[-1] + 1))
        assert all(rank in block for block in ranges)
        assert all(set(inner) < set(outer) for outer, inner in itertools.pairwise(ranges))
        assert len(ranges[-1]) == 1
        assert max(box.x + box.width for box in chart.boxes) <= chart.width


def test_48_of_64_ranks_move_between_the_two_families_of_orders() -> None:
    names = ["megatron", "megatron-tp-pp-dp", "llama3", "torchtitan", "deepspeed", "nanotron"]
    sizes = "nodes=8 gpus_per_node=8 tp=8 pp=4"
    rows = build("framework-orders", {"sizes": sizes, "orders": names}).rows
    # Rank r is in block r // 8, which is (dp + 2·pp) in one family and (pp + 4·dp) in the other.
    moved = sum((r // 8 % 2, r // 16) != (r // 32, r // 8 % 4) for r in range(64))
    assert [row[-1] for row in rows] == [0, moved, moved, 0, 0, 0]
    assert moved == 48
    listed = {(row[-1], plain(row[2]), plain(row[3])) for row in rows}
    assert listed == {(48, "[0, 32]", "[0, 8, 16, 24]"), (0, "[0, 8]", "[0, 16, 32, 48]")}


def test_the_unrepaired_preset_is_refused_and_dp_16_offered() -> None:
    asked = ["nodes=32 gpus_per_node=8 tp=8 pp=2 dp=4 ep=8"]
    ((_, verdict, reason, nearest),) = build("layout-checks", {"asked": asked}).rows
    assert verdict == "refused"
    assert reason == "TP·CP·DP·PP = 8·1·4·2: expected 256 (nodes × GPUs per node), got 64"
    assert nearest == "tp=8 pp=2 ep=8 dp=16"


def test_megatron_refuses_experts_with_other_data_parallelism_when_pp_is_inner() -> None:
    asked = ["nodes=2 gpus_per_node=8 tp=2 cp=2 pp=2 order=megatron-tp-pp-dp"]
    ((_, verdict, reason, nearest),) = build("layout-checks", {"asked": asked}).rows
    assert verdict == "refused"
    assert "different pipelines" in reason
    assert "ep=2" in nearest  # which makes ETP·EP equal to TP·CP


def test_a_layout_that_fits_but_is_slow_is_told_apart_and_a_good_one_is_not_listed() -> None:
    slow = "nodes=4 gpus_per_node=8 tp=16 pp=2"
    chart = build("layout-checks", {"asked": [slow]})
    assert chart.rows[0][1] == "fits, but slow"
    assert "TP=16 is larger than a node of 8 GPUs" in chart.rows[0][2]
    assert chart.values["refused"].value == 0
    with pytest.raises(InputError, match="refused or warned of"):
        build("layout-checks", {"asked": ["nodes=4 gpus_per_node=8 tp=8 pp=2"]})
