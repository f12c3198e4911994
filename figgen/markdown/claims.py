"""`{? condition :: wording :: other wording ?}`: a sentence that holds while its condition does.

The page shows the first wording, and a page whose condition fails is refused. Where a script
computes the page again for another machine, the condition decides which wording is shown. A
condition compares sums and products of inline values and numbers:

    {? rung(1).total_bytes < 0.9 * rung(1).capacity_bytes :: It fits. :: It does not fit. ?}
"""

from __future__ import annotations

import ast
import operator
import re
import xml.etree.ElementTree as etree
from collections.abc import Callable
from math import prod

from markdown.inlinepatterns import InlineProcessor

from figgen.errors import InputError
from figgen.markdown.conversion import Page, Site
from figgen.markdown.errors import inline_error
from figgen.markdown.questions import QUESTION
from figgen.values import compute

CLAIM = (
    r"\{\?[ ]*(?P<condition>[^\n]+?)[ ]*::"
    r"[ ]*(?P<wording>[^\n]+?)[ ]*::[ ]*(?P<other>[^\n]*?)[ ]*\?\}"
)
GRAMMAR = "comparisons such as rung(1).total_bytes < 0.9 * rung(1).capacity_bytes, joined by and"

_COMPARE: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def stated(text: str) -> str:
    """A text with the first wording of every claim and what questions ask, as readers see it."""
    asked = re.sub(QUESTION, lambda found: found["asked"], text, flags=re.M)
    return re.sub(CLAIM, lambda found: found["wording"], asked)


def holds(condition: str) -> bool:
    """Whether a condition holds. Raises InputError for one that cannot be read or computed."""
    try:
        tree = ast.parse(condition, mode="eval").body
    except (SyntaxError, ValueError):
        raise InputError("a claim's condition", expected=GRAMMAR, got=condition) from None
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    return all(_compared(part, condition) for part in parts)


def _compared(node: ast.expr, text: str) -> bool:
    if not isinstance(node, ast.Compare) or any(type(op) not in _COMPARE for op in node.ops):
        raise InputError("a claim's condition", expected=GRAMMAR, got=text)
    sides = [_side(side, text) for side in (node.left, *node.comparators)]
    pairs = zip(node.ops, sides, sides[1:], strict=False)
    return all(_COMPARE[type(op)](left, right) for op, left, right in pairs)


def _side(node: ast.expr, text: str) -> float:
    match node:
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _side(left, text) + _side(right, text)
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return prod((_side(left, text), _side(right, text)))
        case ast.Constant(value=int() | float() as value):
            return float(value)
    computed, _ = compute(ast.unparse(node))
    if isinstance(computed.value, str):
        raise InputError("a claim's condition", expected="numbers", got=computed.value)
    return float(computed.value)


class ClaimInline(InlineProcessor):
    """Show the first wording of a claim, with the condition and the other one beside it."""

    def __init__(self, md: object, site: Site, page: Page) -> None:
        super().__init__(CLAIM, md)
        self.page = page

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[etree.Element, int, int]:
        try:
            if not holds(m["condition"]):
                raise InputError("a claim", expected="a condition that holds", got=m["condition"])
        except InputError as error:
            return inline_error(self.page.report(error, m[0])), m.start(0), m.end(0)
        element = etree.Element("span", {"class": "fig-claim", "data-holds": m["condition"]})
        element.text = m["wording"]
        other = etree.SubElement(element, "template")
        other.text = m["other"]
        return element, m.start(0), m.end(0)
