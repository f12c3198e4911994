"""The worked line: a formula's expression with the numbers and units of an evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from figgen.equations.evaluation import Evaluation
from figgen.equations.latex import print_latex
from figgen.equations.syntax import expression_tree
from figgen.equations.tree import relation, substituted, taken, text
from figgen.quantity_shown import NBSP
from figgen.quantity_text import lowered
from figgen.units import format_quantity


@dataclass(frozen=True, slots=True)
class Worked:
    """A worked line: `latex` is `symbol = numbers = result`, `text` is `numbers = result`."""

    latex: str
    text: str
    result: str


def worked(evaluation: Evaluation, spec: str = "") -> Worked:
    """Return a line that readers can check by hand; `spec` formats the result as on the page.

    The last sign is ≈ if the result or an argument is rounded.
    """
    formula, given = evaluation.formula, evaluation.arguments
    units = {argument.name: argument.unit for argument in formula.args}
    written = {name: substituted(units[name], value) for name, value in given.items()}
    result = format_quantity(evaluation.value, formula.unit, spec)
    equals = relation(given, written, result, evaluation.value)
    node = taken(expression_tree(formula), given)
    line = print_latex(node, {name: to_latex(shown) for name, shown in written.items()})
    sign = equals.replace("≈", r"\approx")
    return Worked(
        latex=rf"{formula.symbol} = {line} {sign} {to_latex(result)}",
        text=f"{text(node, written)} {equals} {result}",
        result=result,
    )


def to_latex(shown: str) -> str:
    r"""Convert a formatted quantity to LaTeX: "3.35 TB/s" becomes `3.35\,\text{TB/s}`."""
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
