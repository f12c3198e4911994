"""Formulas as an ES module for the live tools.

`+ − * /`, min and max give the same bits as Python on the same doubles. Whole powers are printed
as products (JavaScript's `**` is not bit-equal to C's pow); other powers may differ by 2 ulp.
Counts are exact below 2**53. The functions do not check their domain: the tool that calls them
limits its inputs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from figgen.equations.definition import Formula
from figgen.equations.syntax import expression
from figgen.equations.text import ATOM, POWER, PRODUCT, SIGN, SUM, binding, unprintable

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: " + ", ast.Sub: " - ", ast.Mult: " * ", ast.Div: " / ",
    ast.And: " && ", ast.Or: " || ",
    ast.Eq: " === ", ast.NotEq: " !== ",
    ast.Lt: " < ", ast.LtE: " <= ", ast.Gt: " > ", ast.GtE: " >= ",
}  # fmt: skip
CALLS = {
    "minimum": "Math.min({}, {})", "maximum": "Math.max({}, {})", "ceil": "Math.ceil({})",
    "floor": "Math.floor({})", "log2": "Math.log2({})", "sqrt": "Math.sqrt({})",
    "exp": "Math.exp({})",
    "where": "({} ? {} : {})",
}  # fmt: skip


def javascript(formula: Formula) -> str:
    """The formula as an ES function of one object: `export function f({ ranks, … }) {…}`.

    What it means is in its note (`figgen.equations.notes`), which a reader loads when asking.
    """
    arguments = ", ".join(argument.name for argument in formula.args)
    body = print_javascript(expression(formula))
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


def print_javascript(node: ast.expr) -> str:
    """`node` as a JavaScript expression that computes in the same order."""

    def show(child: ast.expr, least: int) -> str:
        shown = print_javascript(child)
        return shown if binding(child) >= least else f"({shown})"

    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=int() | float() as value):
            return repr(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-{show(operand, ATOM)}"
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return f"Math.floor({show(left, PRODUCT)} / {show(right, SIGN)})"
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            a, b = show(left, PRODUCT), show(right, SIGN)
            return f"({a} % {b} + {b}) % {b}"
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if (
            2 <= power <= 4
        ):
            return "(" + " * ".join([show(left, POWER)] * power) + ")"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"Math.pow({print_javascript(left)}, {print_javascript(right)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
            # Left to right: every compound right operand keeps its parentheses.
            return show(left, binding(node)) + SIGNS[type(op)] + show(right, binding(node) + 1)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return show(left, SUM) + SIGNS[type(op)] + show(right, SUM)
        case ast.BoolOp(op=op, values=values):
            return SIGNS[type(op)].join(show(value, binding(node) + 1) for value in values)
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in CALLS:
            return CALLS[name].format(*map(print_javascript, arguments))
    raise unprintable(node)
