"""Formulas as an ES module for the live tools.

`+ − * /`, min and max give the same bits as Python on the same doubles. Whole powers are printed
as products (JavaScript's `**` is not bit-equal to C's pow); other powers may differ by 2 ulp.
Counts are exact below 2**53. The functions do not check their domain: the tool that calls them
limits its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable

from figgen.equations.definition import Formula
from figgen.equations.syntax import expression


def javascript(formula: Formula) -> str:
    """The formula as an ES function of one object: `export function f({ ranks, … }) {…}`.

    What it means is in its note (`figgen.equations.notes`), which a reader loads when asking.
    """
    arguments = ", ".join(argument.name for argument in formula.args)
    body = print_javascript(formula)
    return f"export function {formula.name}({{ {arguments} }}) {{\n  return {body};\n}}\n"


HEADER = "// Printed from the Python formulas of figgen. Numbers are in SI units.\n\n"


def functions_module(formulas: Iterable[Formula]) -> str:
    """One ES module that exports every formula as a function."""
    ordered = sorted(formulas, key=lambda formula: formula.name)
    return HEADER + "".join(javascript(formula) for formula in ordered)


def module(formulas: Iterable[Formula]) -> str:
    """One ES module that exports every formula as a function, and `units` of their results."""
    ordered = sorted(formulas, key=lambda formula: formula.name)
    units = "".join(f'  {formula.name}: "{formula.unit}",\n' for formula in ordered)
    return f"{functions_module(ordered)}export const units = Object.freeze({{\n{units}}});\n"


def print_javascript(formula: Formula) -> str:
    """The formula's expression in JavaScript, computed in the same order."""
    # Loaded with the first formula that is printed: who only evaluates has no need of it.
    from figgen.translation.definitions import arithmetic

    names = [argument.name for argument in formula.args]
    return arithmetic(expression(formula), formula.module, names)
