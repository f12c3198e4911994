"""A formula's syntax tree as one line of plain text: `2 · (n − 1) / n · S / B`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from figgen.errors import InputError
from figgen.units import NBSP, format_number, power_of_ten

Leaf = Callable[[str], str]

# How tightly each construct binds; an operand that binds less than its place gets parentheses.
OR, AND, COMPARE, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)

BINDING: dict[type[ast.AST], int] = {
    ast.Add: SUM, ast.Sub: SUM, ast.Mult: PRODUCT, ast.Div: PRODUCT, ast.FloorDiv: ATOM,
    ast.Pow: POWER, ast.And: AND, ast.Or: OR,
    # Loose on purpose: nobody knows by heart how "2 · a mod b" or "a · −b" is meant.
    ast.Mod: COMPARE, ast.USub: SUM,
}  # fmt: skip
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: " + ", ast.Sub: " − ", ast.Mult: " · ", ast.Div: " / ",
    ast.And: " and ", ast.Or: " or ",
    ast.Eq: " = ", ast.NotEq: " ≠ ", ast.Lt: " < ", ast.LtE: " ≤ ", ast.Gt: " > ", ast.GtE: " ≥ ",
}  # fmt: skip
CALLS = {
    "minimum": "min({}, {})", "maximum": "max({}, {})", "ceil": "⌈{}⌉", "floor": "⌊{}⌋",
    "log2": "log₂({})", "sqrt": "√({})", "exp": "e^({})", "where": "({1} if {0}, else {2})",
}  # fmt: skip


def unprintable(node: ast.AST) -> InputError:
    """The error for syntax that formulas may not use."""
    return InputError(f"cannot print {type(node).__name__} in a formula", got=ast.unparse(node))


def number(value: float) -> str:
    """A constant of a formula, exactly: "12", "0.076", "8.8 × 10¹³"."""
    # repr has the fewest digits that still are this very number.
    digits = len(re.sub(r"e.*|^0\.0*|\.0$|\.", "", repr(value)).rstrip("0")) or 1
    return format_number(value, digits) if abs(value) < 1e6 else power_of_ten(value, digits)


def binding(node: ast.expr) -> int:
    """The precedence of the printed form of `node`."""
    match node:
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.BoolOp(op=op) if type(op) in BINDING:
            return BINDING[type(op)]
        case ast.Compare():
            return COMPARE
        case ast.Constant(value=int() | float()) | ast.Name() | ast.Call():
            return ATOM
    raise unprintable(node)


def text(node: ast.expr, leaf: Leaf = str) -> str:
    """`node` as plain text; `leaf` turns the name of an argument into what is shown for it."""

    def show(child: ast.expr, least: int) -> str:
        shown = text(child, leaf)
        tight = binding(child)
        if isinstance(child, ast.Name | ast.Constant) and NBSP in shown:
            tight = PRODUCT if "×" in shown else POWER
        return shown if tight >= least else f"({shown})"

    match node:
        case ast.Name(id=name):
            return leaf(name)
        case ast.Constant(value=int() | float() as value):
            return number(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"−{show(operand, POWER)}"
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return f"⌊{show(left, PRODUCT)} / {show(right, SIGN)}⌋"
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return f"{show(left, PRODUCT)} mod {show(right, SIGN)}"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"{show(left, ATOM)}^{show(right, ATOM)}"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
            # a + (b + c) and a · (b · c) need no parentheses, a − (b + c) and a / (b · c) do.
            associative = isinstance(op, ast.Add | ast.Mult)
            least = BINDING[type(op)]
            return show(left, least) + SIGNS[type(op)] + show(right, least + (not associative))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            shown = show(left, COMPARE)
            for sign, comparator in zip(ops, comparators, strict=True):
                shown += SIGNS[type(sign)] + show(comparator, COMPARE)
            return shown
        case ast.BoolOp(op=op, values=values):
            return SIGNS[type(op)].join(show(value, COMPARE) for value in values)
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in CALLS:
            return CALLS[name].format(*(text(argument, leaf) for argument in arguments))
    raise unprintable(node)
