"""Rank grids: what is drawn, what the page may switch, and how large it is."""

from __future__ import annotations

import dataclasses
import gzip
import re
from xml.etree import ElementTree

import pytest

from figgen import theme
from figgen.charts import CommunicatorView, RankCell, RankGrid
from figgen.errors import InputError
from figgen.renderers import svg, svg_grid

# name -> (stride, size) of the axis in the rank; written out so that the groups are not ours.
AXES = {"tp": (1, 8), "dp": (8, 16), "pp": (128, 2)}


def view(name: str, stride: int, size: int, ranks: int) -> CommunicatorView:
    groups = tuple(rank // (stride * size) * stride + rank % stride for rank in range(ranks))
    return CommunicatorView(
        name=name, label=name.upper(), size=size, group_count=ranks // size, group_of_cell=groups
    )


def grid(ranks: int = 256, per_node: int = 8, world: int | None = None) -> RankGrid:
    cells = tuple(
        RankCell(
            rank=rank,
            node=rank // per_node,
            local_rank=rank % per_node,
            coordinates=tuple(rank // stride % size for stride, size in AXES.values()),
        )
        for rank in range(ranks)
    )
    views = [view(name, stride, size, ranks) for name, (stride, size) in AXES.items()]
    views += [view("ep", 1, 8, ranks), view("edp", 8, 16, ranks), view("dp-cp", 8, 16, ranks)]
    return RankGrid(
        axes=tuple(AXES),
        cells=cells,
        communicators=tuple(views),
        gpus_per_node=per_node,
        world_size=world or ranks,
        multiplicity=(world or ranks) // ranks,
    )


def cells(drawn: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(drawn).findall(".//*[@class='cells']/rect")


@pytest.mark.parametrize(("ranks", "per_node"), [(1, 1), (8, 8), (16, 4), (72, 72), (512, 8)])
def test_every_gpu_is_one_cell_that_says_where_it_is(ranks: int, per_node: int) -> None:
    drawn = cells(svg.render(grid(ranks, per_node), "map"))
    assert len(drawn) == ranks
    for rank, cell in enumerate(drawn):
        tp, dp, pp = rank % 8, rank // 8 % 16, rank // 128 % 2
        where = f"rank {rank} · node {rank // per_node} · GPU {rank % per_node}"
        assert cell.findtext("title") == f"{where} · tp {tp} · dp {dp} · pp {pp}"


def test_a_cell_is_of_the_shade_of_its_group() -> None:
    drawn = cells(svg.render(grid(), "map"))
    for rank, cell in enumerate(drawn):
        tp, dp, pp = rank // 8, rank // 128 * 8 + rank % 8, rank % 128
        classes = [f"tp-{tp % 7}", f"dp-{dp % 7}", f"pp-{pp % 7}"]
        assert (cell.get("class") or "").split()[:3] == classes


def test_group_numbers_stand_in_the_order_of_the_cells() -> None:
    root = ElementTree.fromstring(svg.render(grid(), "map"))
    for name in ("tp", "dp", "pp"):
        rows = [text for text in root.iter("text") if text.get("class") == f"of of-{name}"]
        numbers = [int(span.text or "") for row in rows for span in row]
        stride, size = AXES[name]
        assert numbers == [r // (stride * size) * stride + r % stride for r in range(256)]


def test_no_two_cells_overlap_and_all_lie_inside_the_drawing() -> None:
    for ranks, per_node in ((16, 8), (256, 8), (512, 4), (144, 72)):
        root = ElementTree.fromstring(svg.render(grid(ranks, per_node), "map"))
        _, _, width, height = map(float, root.get("viewBox", "").split())
        assert width <= 720
        corners = set()
        for node in root.iter("g"):
            if node.get("class") != "node":
                continue
            shift = re.fullmatch(r"translate\((\S+) (\S+)\)", node.get("transform", ""))
            assert shift
            for rect in node.findall("g/rect"):
                x = float(shift[1]) + float(rect.get("x", ""))
                y = float(shift[2]) + float(rect.get("y", ""))
                assert 0 <= x <= width - float(rect.get("width", ""))
                assert 0 <= y <= height - float(rect.get("height", ""))
                corners.add((x, y))
        assert len(corners) == ranks
        assert all(
            abs(a - c) >= 34 or abs(b - d) >= 32
            for a, b in corners
            for c, d in corners
            if (a, b) < (c, d)
        )


def test_nine_nodes_fit_a_phone() -> None:
    width = re.search(r'viewBox="0 0 (\d+)', svg.render(grid(72), "map"))
    assert width
    assert int(width[1]) <= 350


def test_256_gpus_weigh_at_most_12_kb_and_64_at_most_5() -> None:
    assert len(gzip.compress(svg.render(grid(256), "map").encode())) <= 12_000
    assert len(gzip.compress(svg.render(grid(64), "map").encode())) <= 5_000


def test_a_block_of_a_larger_world_says_so() -> None:
    drawn = svg.render(grid(128, world=16_384), "map")
    assert "× 128 such blocks, 16,384 GPUs in all" in drawn
    assert "such blocks" not in svg.render(grid(128), "map")


def test_controls_offer_each_communicator_once_and_none_with_the_first_chosen() -> None:
    form = svg_grid.controls(grid(), "map")
    closed = re.sub(r"(<input[^>]*)>", r"\1/>", form.replace(" checked", ' checked="checked"'))
    fieldset = ElementTree.fromstring(closed)
    radios = list(fieldset.iter("input"))
    values = ["tp", "dp", "pp", "ep", "edp", "dp-cp", "none"]
    assert [radio.get("value") for radio in radios] == values
    assert {radio.get("name") for radio in radios} == {"map-comm"}
    assert [bool(radio.get("checked")) for radio in radios] == [True] + [False] * 6
    said = ["".join(label.itertext()).strip() for label in fieldset.iter("label")]
    assert said[:3] == ["TP 32 groups of 8", "DP 16 groups of 16", "PP 128 groups of 2"]


def test_every_class_of_a_cell_has_a_rule_for_its_communicator() -> None:
    sheet = theme.stylesheet()
    for cell in cells(svg.render(grid(), "map")):
        for class_ in (cell.get("class") or "").split():
            name = class_.rpartition("-")[0]
            assert f'[value="{name}"]:checked)~.fig-scroll .{class_}{{fill:' in sheet


def test_a_communicator_without_a_hue_is_refused_with_the_nearest_name() -> None:
    chart = dataclasses.replace(grid(8), communicators=(view("dpcp", 1, 8, 8),))
    with pytest.raises(InputError, match=r"unknown communicator 'dpcp'.*did you mean.*dp-cp"):
        svg.render(chart, "map")


def test_groups_for_other_cells_are_refused() -> None:
    chart = dataclasses.replace(grid(8), communicators=(view("tp", 1, 8, 16),))
    with pytest.raises(InputError, match="one per cell, 8"):
        svg.render(chart, "map")
