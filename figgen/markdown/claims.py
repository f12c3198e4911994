"""`{? condition :: wording :: other wording ?}`: a statement that is true under a condition.

The page shows the first wording; a condition that fails is an error of the page. Where a script
recomputes the page for a different machine, the condition decides which wording is shown.
Conditions compare sums, products and quotients of inline values and numbers:

    {? rung(1).total_bytes < 0.9 * rung(1).capacity_bytes :: It fits. :: It does not fit. ?}
"""

from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as etree
from collections.abc import Callable

from markdown.inlinepatterns import InlineProcessor

from figgen.equations.call_data import CallData, Comparison, all_hold
from figgen.errors import InputError
from figgen.json_text import compact_json
from figgen.lookups import remembered
from figgen.markdown.conversion import Page, Site
from figgen.markdown.errors import inline_error
from figgen.markdown.questions import QUESTION
from figgen.subject import Subject, subject
from figgen.values import compute, evaluated_or_nan, looked_up_again, parse

CLAIM = (
    r"\{\?[ ]*(?P<condition>[^\n]+?)[ ]*::"
    r"[ ]*(?P<wording>[^\n]+?)[ ]*::[ ]*(?P<other>[^\n]*?)[ ]*\?\}"
)
GRAMMAR = "comparisons such as rung(1).total_bytes < 0.9 * rung(1).capacity_bytes, joined by and"

_SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Add: "+", ast.Mult: "*",
    ast.Div: "/",
}  # fmt: skip


def stated(text: str) -> str:
    """Return `text` as readers see it: each claim's first wording, each question's text."""
    asked = re.sub(QUESTION, lambda found: found["asked"], text, flags=re.M)
    return re.sub(CLAIM, lambda found: found["wording"], asked)


def holds(condition: str) -> bool:
    """Return whether a condition holds. Raises InputError if it cannot be parsed or computed."""
    return _holds(condition, subject())


@remembered(4096)
def _holds(condition: str, about: Subject) -> bool:
    """Return whether a condition holds; a server that reloads changed code has a new subject."""
    return bool(all_hold(comparisons(condition), evaluated_or_nan, looked_up_again))


def comparisons(condition: str) -> list[Comparison]:
    """Parse a condition; values that depend on the machine stay calls, all others are numbers."""
    return _parsed(condition, _computed)


def check_form(condition: str) -> None:
    """Raise InputError for a condition that cannot be parsed. Nothing is computed."""
    _parsed(condition, _unread)


def _parsed(condition: str, number: Callable[[str], CallData]) -> list[Comparison]:
    """Parse a condition, whose calls `number` turns into data."""
    try:
        tree = ast.parse(condition, mode="eval").body
    except (SyntaxError, ValueError):
        raise _unparsed(condition) from None
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    found: list[Comparison] = []
    for part in parts:
        if not isinstance(part, ast.Compare) or any(type(op) not in _SIGNS for op in part.ops):
            raise _unparsed(condition)
        sides = [_side(side, number) for side in (part.left, *part.comparators)]
        signs = [_SIGNS[type(op)] for op in part.ops]
        found += zip(signs, sides, sides[1:], strict=False)
    return found


def _unparsed(condition: str) -> InputError:
    return InputError("a claim's condition", expected=GRAMMAR, got=condition)


def _side(node: ast.expr, number: Callable[[str], CallData]) -> CallData:
    match node:
        case ast.BinOp(op=ast.Add() | ast.Mult() | ast.Div() as op, left=left, right=right):
            return [_SIGNS[type(op)], _side(left, number), _side(right, number)]
        case ast.Constant(value=int() | float() as value):
            return float(value)
    return number(ast.unparse(node))


def _computed(call: str) -> CallData:
    computed, _ = compute(call)
    if isinstance(computed.value, str):
        raise InputError("a claim's condition", expected="numbers", got=computed.value)
    return float(computed.value) if computed.follows is None else computed.follows


def _unread(call: str) -> CallData:
    parse(call)
    return 0.0


class ClaimInline(InlineProcessor):
    """Shows the first wording of a claim; its condition and second wording are kept for scripts."""

    def __init__(self, md: object, site: Site, page: Page) -> None:
        super().__init__(CLAIM, md)
        self.page = page

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[etree.Element, int, int]:
        try:
            found = comparisons(m["condition"])
            if not holds(m["condition"]):
                raise InputError("a claim", expected="a condition that holds", got=m["condition"])
        except InputError as error:
            return inline_error(self.page.report(error, m[0])), m.start(0), m.end(0)
        element = etree.Element("span", {"class": "fig-claim", "data-holds": compact_json(found)})
        element.text = m["wording"]
        other = etree.SubElement(element, "template")
        other.text = m["other"]
        return element, m.start(0), m.end(0)
