"""The worked line: a formula's own expression with this evaluation's numbers and units in it."""

from __future__ import annotations

import ast
import copy
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.equations.definition import Formula
from figgen.equations.evaluation import Evaluation, value_of
from figgen.equations.latex import print_latex
from figgen.equations.notation import Argument
from figgen.equations.syntax import expression
from figgen.equations.text import text
from figgen.errors import InputError
from figgen.quantity_text import MEASURED, lowered
from figgen.units import (
    COUNTS,
    NBSP,
    format_number,
    format_quantity,
    parse_quantity,
    power_of_ten,
)

# A count is a bare number in a calculation: "8 ranks − 1" would not say more than "8 − 1".
BARE = COUNTS | {"1"}


@dataclass(frozen=True, slots=True)
class Worked:
    """`latex` and `text` are whole lines, `symbol = numbers = result`; `result` is its end."""

    latex: str
    text: str
    result: str


def worked(evaluation: Evaluation, spec: str = "") -> Worked:
    """The line a reader can check by hand; `spec` formats the result as the page shows it.

    The last sign is ≈ where the result, or an argument, is shown rounded.
    """
    formula = evaluation.formula
    units = {argument.name: argument for argument in formula.args}
    shown = {name: _substituted(units[name], value) for name, value in evaluation.arguments.items()}
    result = format_quantity(evaluation.value, formula.unit, spec)
    exact = _exact(result, evaluation.value) and all(
        _exact(shown[name], value) for name, value in evaluation.arguments.items()
    )
    node = _taken(formula, evaluation.arguments)
    line = text(node, shown.__getitem__)
    relation = "=" if exact else r"\approx"
    math_line = print_latex(node, lambda name: to_latex(shown[name]))
    return Worked(
        latex=rf"{formula.symbol} = {math_line} {relation} {to_latex(result)}",
        text=f"{line} {'=' if exact else '≈'} {result}",
        result=result,
    )


def _taken(formula: Formula, arguments: Mapping[str, float]) -> ast.expr:
    """The formula's expression, with each choice replaced by the branch that applies."""
    if not _chooses(formula):
        return expression(formula)
    node: ast.expr = _Taken(arguments).visit(copy.deepcopy(expression(formula)))
    return node


@cache
def _chooses(formula: Formula) -> bool:
    calls = (node for node in ast.walk(expression(formula)) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "where" for call in calls)


class _Taken(ast.NodeTransformer):
    """Puts the branch that was computed in the place of a choice between expressions."""

    def __init__(self, arguments: Mapping[str, float]) -> None:
        self.arguments = arguments

    def visit_Call(self, call: ast.Call) -> ast.AST:
        self.generic_visit(call)
        match call:
            case ast.Call(func=ast.Name(id="where"), args=[condition, value, other]):
                chosen = value if value_of(condition, self.arguments) else other
                return call if isinstance(chosen, ast.Constant) else chosen
        return call


def _substituted(argument: Argument, value: float) -> str:
    """The argument as it stands in the line: up to six digits, its unit without counts ("2 B")."""
    above, *below = argument.unit.split("/")
    below = [word for word in below if word not in BARE]
    # "380 tokens/s": a rate of bare numbers would be "380 /s".
    kept = ["1" if above in BARE and not below else above, *below]
    if kept != ["1"]:
        spec = "si.6" if kept[0] in MEASURED and kept != ["FLOP", "B"] else "unit.6"
        shown = format_quantity(value, "/".join(kept), spec)
    elif abs(value) >= 1e6 and float(f"{value:.5e}") == value:
        shown = power_of_ten(value, 6)
    else:
        shown = format_number(value, 6)
    return f"({shown})" if value < 0 else shown


def _exact(shown: str, value: float) -> bool:
    """Whether parsing the text gives exactly the value."""
    try:
        read = parse_quantity(shown.strip("()")).value
    except InputError:
        return False
    return math.isclose(read, value, rel_tol=1e-12)


def to_latex(shown: str) -> str:
    r"""A formatted quantity as LaTeX: "3.35 TB/s" becomes `3.35\,\text{TB/s}`."""
    if shown.startswith("("):
        return f"({to_latex(shown[1:-1])})"
    number, _, rest = shown.partition(NBSP)
    sign = "-" if number.startswith("−") else ""
    number = number.removeprefix("−")
    number = number.replace("∞", r"\infty").replace("%", r"\%")
    # A comma in a number would become an operator with its space.
    plain = re.fullmatch(r"[\d.]+(\\%)?|\\infty", number)
    latex = sign + (number if plain else rf"\text{{{number}}}".replace(r"\%}", r"}\%"))
    if rest.startswith("×"):
        power, _, rest = rest.removeprefix(f"×{NBSP}10").partition(NBSP)
        latex += rf" \times 10^{{{lowered(power)}}}"
    return rf"{latex}\,\text{{{rest}}}" if rest else latex
