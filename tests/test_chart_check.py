"""A slip in the result of a figure's function is reported in its own words."""

from __future__ import annotations

from typing import Any

import pytest

from figgen.chart_check import checked
from figgen.charts import Axis, Bars, Column, Curves, Mark, Named, Segment, Series, Table
from figgen.errors import InputError

LINE = Series(name="a", x=(0.0, 1.0), y=(0.0, 2.0), role="series-1")


def curves(**changed: Any) -> Curves:
    return Curves(**({"x": Axis(label="x"), "y": Axis(label="y"), "series": (LINE,)} | changed))


SLIPS = {
    "returns nothing": (None, r"its function returns nothing: expected return Curves, Bars"),
    "returns a number": (2.0, r"its function: .*, got 'float'"),
    "a bare number": (curves(values={"most": 2.0}), r"its value 'most': expected Named"),
    "an unknown unit": (curves(x=Axis(label="x", unit="metres")), r"its axis 'x': .*'metres'"),
    "a prefix": (curves(y=Axis(label="y", unit="GB")), r"its axis 'y': .*expected B, got 'GB'"),
    "an axis in a unit of something else": (
        curves(y=Axis(label="y", unit="s", spec="in GB")),
        r"its axis 'y': format 'in GB' does not fit: expected a unit of s",
    ),
    "an axis in a misspelled unit": (
        curves(y=Axis(label="y", unit="B/s", spec="in GBps")),
        r"its axis 'y': unknown unit 'GBps': .*did you mean GB/s",
    ),
    "a misspelled format": (
        curves(y=Axis(label="y", unit="B", spec="byte")),
        r"its axis 'y': bad format: .* \(did you mean bytes\?\)",
    ),
    "an unknown role": (
        curves(marks=(Mark(x=0, y=0, label="m", role="serie-1"),)),
        r"unknown role 'serie-1'",
    ),
    "fewer y than x": (
        curves(series=(Series(name="a", x=(0.0, 1.0), y=(0.0,), role="ink"),)),
        r"its series 'a': expected 2 numbers, as many as x, got 1",
    ),
    "fewer bars than labels": (
        Bars(
            labels=("a", "b"),
            segments=(Segment(name="s", role="ink", lengths=(1.0,)),),
            axis=Axis(label="x"),
        ),
        r"its segment 's': expected 2 numbers, as many as labels, got 1",
    ),
    "a row too short": (
        Table(columns=(Column(label="a"), Column(label="b")), rows=((1, 2), (1,))),
        "its row 2: expected as many cells as columns, 2, got 1",
    ),
    "a column in a unit of something else": (
        Table(columns=(Column(label="a", unit="s", spec="in GB"),), rows=((1,),)),
        "its column 'a': format 'in GB' does not fit: expected a unit of s",
    ),
    "a row too long": (
        Table(columns=(Column(label="a"),), rows=((1, 2),)),
        "its row 1: expected as many cells as columns, 1, got 2",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_told(slip: str) -> None:
    found, told = SLIPS[slip]
    with pytest.raises(InputError, match=told):
        checked(found)


def test_a_chart_is_returned_as_it_is() -> None:
    chart = curves(values={"most": Named(2.0)})
    assert checked(chart) is chart
