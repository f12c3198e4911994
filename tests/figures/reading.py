"""What the tests of figures read off a chart, and the frozen points that they hold it against."""

from __future__ import annotations

from figgen.charts import Bars, Chart, Curves, Table
from figgen.registry import build
from tests.formulas.points import POINTS


def value(chart: Chart, name: str) -> float:
    """The named number that a caption may quote."""
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
    """The catalogue's value of a formula, by name or by id; arguments not given may be any."""
    return next(
        point.value
        for point in POINTS
        if name in (point.formula, point.catalogue_id)
        and arguments.items() <= point.arguments.items()
    )
