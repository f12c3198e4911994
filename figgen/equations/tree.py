"""A formula's expression as a tree, and as a line of plain text: `2 · (n − 1) / n · S / B`.

Pages print it in Python; the tools print it with a reader's numbers, by this code in JavaScript.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from figgen.errors import InputError
from figgen.quantity_shown import NBSP, format_number, power_of_ten, shown
from figgen.quantity_text import read_one
from figgen.quantity_units import MEASURED, is_counted

NAME, NUMBER, PI = "name", "number", "pi"
"""The signs of an argument, of a number, and of π."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An operation on operands; an argument by its `name`, or a constant with its `value`.

    The sign is a Python operator (`neg` for the unary minus), a function of `ops`, `NAME` or
    `NUMBER`.
    """

    sign: str
    operands: tuple[Node, ...] = ()
    name: str = ""
    value: float = 0.0


Compact: TypeAlias = float | str | list[Any]
"""A tree as JSON: a number, the name of an argument, or a list of a sign and operands."""


def compact(node: Node) -> Compact:
    """Convert a tree to JSON."""
    if node.sign == NUMBER:
        return node.value
    return node.name if node.sign == NAME else [node.sign, *map(compact, node.operands)]


def node_of(found: Compact) -> Node:
    """Convert JSON to a tree."""
    if isinstance(found, str):
        return Node(sign=NAME, name=found)
    if not isinstance(found, list):
        return Node(sign=NUMBER, value=found)
    return Node(sign=found[0], operands=tuple(node_of(one) for one in found[1:]))


# The precedence of each construct; an operand of lower precedence gets parentheses.
OR, AND, COMPARE, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)

BINDING: dict[str, int] = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "**": POWER, "and": AND, "or": OR,
    "==": COMPARE, "!=": COMPARE, "<": COMPARE, "<=": COMPARE, ">": COMPARE, ">=": COMPARE,
    # Low on purpose, so that "2 · a mod b" and "a · −b" get parentheses.
    "%": COMPARE, "neg": SUM,
}  # fmt: skip
SIGNS: dict[str, str] = {
    "+": "+", "-": "−", "*": "·", "/": "/", "and": "and", "or": "or",
    "==": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥",
}  # fmt: skip
CALLS: dict[str, tuple[str, str]] = {
    "minimum": ("min(", ")"), "maximum": ("max(", ")"), "ceil": ("⌈", "⌉"), "floor": ("⌊", "⌋"),
    "log2": ("log₂(", ")"), "log": ("ln(", ")"), "sqrt": ("√(", ")"), "exp": ("e^(", ")"),
    "sin": ("sin(", ")"), "cos": ("cos(", ")"),
}  # fmt: skip


def number(value: float) -> str:
    """Return a constant of a formula as exact text: "12", "0.076", "8.8 × 10¹³"."""
    # repr has the fewest digits that identify the number.
    digits = len(re.sub(r"e.*|^0\.0*|\.0$|\.", "", repr(value)).rstrip("0")) or 1
    return format_number(value, digits) if abs(value) < 1e6 else power_of_ten(value, digits)


def text(node: Node, names: Mapping[str, str]) -> str:
    """Return `node` as plain text; `names` gives the text for each argument."""
    sign, parts = node.sign, node.operands
    if sign == NAME:
        return names.get(node.name, node.name)
    if sign == NUMBER:
        return number(node.value)
    if sign == PI:
        return "π"
    if sign == "neg":
        return f"−{_operand(parts[0], POWER, names)}"
    if sign == "where":
        condition, value, other = [text(part, names) for part in parts]
        return f"({value} if {condition}, else {other})"
    if sign in CALLS:
        before, after = CALLS[sign]
        return before + ", ".join([text(part, names) for part in parts]) + after
    if sign in ("and", "or"):
        return f" {SIGNS[sign]} ".join([_operand(part, COMPARE, names) for part in parts])
    left, right = parts
    if sign == "//":
        return f"⌊{_operand(left, PRODUCT, names)} / {_operand(right, SIGN, names)}⌋"
    if sign == "%":
        return f"{_operand(left, PRODUCT, names)} mod {_operand(right, SIGN, names)}"
    if sign == "**":
        return f"{_operand(left, ATOM, names)}^{_operand(right, ATOM, names)}"
    # a + (b + c) and a · (b · c) need no parentheses, a − (b + c) and a / (b · c) do.
    least = BINDING[sign]
    more = 0 if sign in ("+", "*") or least == COMPARE else 1
    return f"{_operand(left, least, names)} {SIGNS[sign]} {_operand(right, least + more, names)}"


def _operand(node: Node, least: int, names: Mapping[str, str]) -> str:
    written = text(node, names)
    tight = BINDING.get(node.sign, ATOM)
    if node.sign in (NAME, NUMBER) and NBSP in written:
        tight = PRODUCT if "×" in written else POWER
    return written if tight >= least else f"({written})"


def taken(node: Node, given: Mapping[str, float]) -> Node:
    """Return `node` with each choice of expressions replaced by the branch that applies."""
    if not node.operands:
        return node
    parts = tuple(taken(part, given) for part in node.operands)
    if node.sign == "where":
        chosen = parts[1] if value_of(parts[0], given) else parts[2]
        if chosen.sign != NUMBER:
            return chosen
    return Node(sign=node.sign, operands=parts)


def value_of(node: Node, given: Mapping[str, float]) -> float:
    """Return the value of an expression; a condition is 1 if it holds, else 0."""
    if node.sign == NAME:
        return given[node.name]
    if node.sign == NUMBER:
        return node.value
    if node.sign == PI:
        return math.pi
    parts = [value_of(part, given) for part in node.operands]
    if node.sign == "and":
        return min(parts)
    if node.sign == "or":
        return max(parts)
    if node.sign in ("==", "!=", "<", "<=", ">", ">="):
        return 1.0 if _holds(node.sign, parts[0], parts[1]) else 0.0
    if node.sign in CALLS or node.sign in ("neg", "where"):
        return _called(node.sign, parts)
    return _combined(node.sign, parts[0], parts[1])


def _holds(sign: str, left: float, right: float) -> bool:
    if sign == "==":
        return left == right
    if sign == "!=":
        return left != right
    if sign == "<":
        return left < right
    if sign == "<=":
        return left <= right
    return left > right if sign == ">" else left >= right


def _combined(sign: str, left: float, right: float) -> float:
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    if sign == "/":
        return left / right
    if sign == "**":
        return float(left**right)
    return left // right if sign == "//" else left % right


def _called(sign: str, parts: list[float]) -> float:
    if sign == "neg":
        return -parts[0]
    if sign == "where":
        return parts[1] if parts[0] else parts[2]
    if sign == "minimum":
        return min(parts[0], parts[1])
    if sign == "maximum":
        return max(parts[0], parts[1])
    if sign == "ceil":
        return math.ceil(parts[0])
    if sign == "floor":
        return math.floor(parts[0])
    if sign == "log2":
        return math.log2(parts[0])
    if sign == "log":
        return math.log(parts[0])
    if sign == "sin":
        return math.sin(parts[0])
    if sign == "cos":
        return math.cos(parts[0])
    return math.sqrt(parts[0]) if sign == "sqrt" else math.exp(parts[0])


def is_bare(word: str) -> bool:
    """Return whether a unit is a count, which is not written: "8 − 1", not "8 ranks − 1"."""
    return word == "1" or is_counted(word)


def substituted(unit: str, value: float) -> str:
    """Return an argument's text in a line: up to six digits, its unit without counts ("2 B")."""
    above, *words = unit.split("/")
    below = [word for word in words if not is_bare(word)]
    # "380 tokens/s": a rate of bare numbers would be "380 /s".
    kept = "/".join(["1" if is_bare(above) and not below else above, *below])
    if kept != "1":
        spec = "si.6" if above in MEASURED and kept != "FLOP/B" else "unit.6"
        written = shown(value, kept, spec)
    elif abs(value) >= 1e6 and float(f"{value:.5e}") == value:
        written = power_of_ten(value, 6)
    else:
        written = format_number(value, 6)
    return f"({written})" if value < 0 else written


def is_exact(written: str, value: float) -> bool:
    """Return whether parsing the text gives exactly the value."""
    try:
        read = read_one(written.replace("(", "").replace(")", "")).value
    except InputError:
        return False
    return read == value or abs(read - value) <= 1e-12 * max(abs(read), abs(value))


def relation(
    given: Mapping[str, float], written: Mapping[str, str], result: str, value: float
) -> str:
    """Return `=` if the result and all arguments are shown exactly, else `≈`."""
    exact = [is_exact(written[name], one) for name, one in given.items()]
    return "=" if is_exact(result, value) and False not in exact else "≈"
