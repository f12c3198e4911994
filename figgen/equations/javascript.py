"""Print formulas as an ES module for the live tools.

`+ − * /`, min and max give the same bits as Python on the same doubles. Whole powers are printed as
products (JavaScript's `**` is not bit-equal to C's pow); other powers may differ by 2 ulp. Counts
are exact below 2**53. The functions do not check their domain: tools limit their inputs.
"""

from __future__ import annotations

from collections.abc import Iterable

from figgen.equations.definition import Formula
from figgen.equations.syntax import expression


def javascript(formula: Formula) -> str:
    """Print a formula as an ES function of one object: `export function f({ ranks, … }) {…}`.

    Its meaning is in its note (`figgen.equations.notes`), which is loaded on demand.
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
    """Print a formula's expression in JavaScript, evaluated in the same order."""
    # Imported here because evaluation does not need it.
    from figgen.translation.definitions import arithmetic

    names = [argument.name for argument in formula.args]
    return arithmetic(expression(formula), formula.module, names)
