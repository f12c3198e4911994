"""The table of named layouts, compared with products of sizes and strides computed here."""

from __future__ import annotations

import math

import pytest

from figgen.charts import Table
from figgen.errors import InputError
from figgen.registry import build
from figgen.scenarios.tools.data import layouts


def rows(**given: object) -> list[tuple[object, ...]]:
    chart = build("layout-presets", given)
    assert isinstance(chart, Table)
    return [tuple(row) for row in chart.rows]


def test_every_row_multiplies_out_to_its_cluster_on_both_grids() -> None:
    found = rows()
    assert len(found) == len(layouts())
    for title, nodes, gpus, tp, cp, pp, dp, ep, etp, *_ in found:
        world = nodes * gpus  # type: ignore[operator]
        assert math.prod((tp, cp, pp, dp)) == world, title  # type: ignore[arg-type]
        assert world % (ep * etp * pp) == 0, title  # type: ignore[operator]


def test_groups_span_the_nodes_that_their_stride_says() -> None:
    """In all of them TP is fastest and fits a node; DP neighbors are TP · CP ranks apart."""
    for title, _, gpus, tp, cp, _, dp, _, _, tp_nodes, dp_nodes in rows():
        assert tp_nodes == 1, title
        per_node = max(1, gpus // (tp * cp))  # type: ignore[operator]
        assert dp_nodes == math.ceil(dp / per_node), title  # type: ignore[operator]


def test_kinds_choose_and_unknown_ones_are_refused() -> None:
    assert len(rows(kinds=("map",))) == 7
    with pytest.raises(InputError, match="map or training"):
        rows(kinds=("hardware",))
