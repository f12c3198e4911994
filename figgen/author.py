"""Everything that a site's own module needs: `from figgen.author import formulas, figure, …`.

unit("m²")
formula = formulas(positive("area", "A", "m²", "area of the wall"), …)

@formula(symbol="Q", unit="W", source="Fourier 1822")
def heat_loss(area, …): return …

@figure("heat-by-wall")
def heat_by_wall(*, house: str) -> Bars: …
"""

from __future__ import annotations

from functools import partial
from typing import Any

from figgen.charts import (
    Axis,
    Bars,
    Box,
    Chart,
    Column,
    Curves,
    Diagram,
    DiagramLink,
    Mark,
    Named,
    Rule,
    Segment,
    Series,
    Slot,
    Table,
    Timeline,
)
from figgen.entries.schema import choice, flag, number, quantity, text
from figgen.equations.definition import registered
from figgen.equations.evaluation import evaluate
from figgen.equations.notation import Argument, Notation, amount, count, index, positive
from figgen.equations.ops import (
    ceil,
    cos,
    exp,
    floor,
    log,
    log2,
    maximum,
    minimum,
    pi,
    sin,
    sqrt,
    where,
)
from figgen.errors import InputError
from figgen.registry import figure
from figgen.subject import Subject
from figgen.tables import catalog
from figgen.units import add_unit as unit
from figgen.units import format_quantity as shown

__all__ = [
    "Argument", "Axis", "Bars", "Box", "Chart", "Column", "Curves", "Diagram", "DiagramLink",
    "InputError", "Mark", "Named", "Rule", "Segment", "Series", "Slot", "Subject", "Table",
    "Timeline", "amount", "catalog", "ceil", "choice", "cos", "count", "evaluate", "exp",
    "figure", "flag", "floor", "formulas", "index", "log", "log2", "maximum", "minimum",
    "number", "pi", "positive", "quantity", "shown", "sin", "sqrt", "text", "unit", "where",
]  # fmt: skip


def formulas(*arguments: Argument) -> Any:
    """Return a decorator for formulas with these arguments, each with symbol, unit and range."""
    return partial(registered, Notation(*arguments))
