"""Reads values off charts, and the frozen points that they are compared with."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from figgen.charts import Bars, Chart, Curves, Table
from figgen.registry import build
from tests.formulas.points import POINTS

DRAWN: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "goldens.toml").read_text("utf-8")
)
"""The arguments with which figures without defaults, or variants of a figure, are goldens."""


def value(chart: Chart, name: str) -> float:
    """Return the named number that a caption may quote."""
    return float(chart.values[name].value)


def table(name: str, **arguments: object) -> Table:
    chart = build(name, arguments)
    assert isinstance(chart, Table)
    return chart


def curves(name: str, **arguments: object) -> Curves:
    chart = build(name, arguments)
    assert isinstance(chart, Curves)
    return chart


def bars(name: str, **arguments: object) -> Bars:
    chart = build(name, arguments)
    assert isinstance(chart, Bars)
    return chart


def frozen(name: str, **arguments: float) -> float:
    """Return the catalog's value of a formula, by name or id; arguments not given are ignored."""
    return next(
        point.value
        for point in POINTS
        if name in (point.formula, point.catalogue_id)
        and arguments.items() <= point.arguments.items()
    )
