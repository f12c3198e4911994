r"""Print a formula as LaTeX, in the order of its source.

Chains of `*` and `/` become fractions where the source divides: `2 * (n - 1) / n * S / B` is
\frac{2(n - 1)}{n} \frac{S}{B}. Only commands that latex2mathml turns into correct MathML are
used (no \text with escapes, no digits split by \, or {,}).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from figgen.equations.definition import Formula
from figgen.equations.syntax import conditions, expression_tree, tree
from figgen.equations.tree import ATOM, BINDING, NAME, NUMBER, PRODUCT, SIGN, SUM, Node

SIGNS = {
    "+": " + ", "-": " - ", "%": r" \bmod ", "and": r" \text{ and } ", "or": r" \text{ or } ",
    "==": " = ", "!=": r" \ne ", "<": " < ", "<=": r" \le ", ">": " > ", ">=": r" \ge ",
}  # fmt: skip
CALLS = {
    "ceil": r"\left\lceil {} \right\rceil",
    "floor": r"\left\lfloor {} \right\rfloor",
    "sqrt": r"\sqrt{{{}}}",
    "exp": r"e^{{{}}}",
    "pi": r"\pi",
}
FUNCTIONS = {"log2": r"\log_2", "log": r"\ln", "sin": r"\sin", "cos": r"\cos"}
TALL = re.compile(r"\\(frac|left|begin|sqrt)")
CLOSED = re.compile(r"(\d|\)|\^\{[^{}]*\}|\\rceil|\\rfloor)$")
QUANTITY = re.compile(r"\d\}?\\,\\text\{[^{}]*\}$")
STARTS_WITH_DIGIT = re.compile(r"(\\text\{)?\d")

# A factor in the product: one operand, or numerators over denominators.
Factor = Node | tuple[list[Node], list[Node]]


@cache
def latex(formula: Formula) -> str:
    """Return the whole equation, `symbol = expression`."""
    return f"{formula.symbol} = {print_latex(expression_tree(formula), symbols(formula))}"


@cache
def domain_latex(formula: Formula) -> tuple[str, ...]:
    """Return the conditions of the domain, one LaTeX formula each."""
    return tuple(
        print_latex(tree(condition), symbols(formula)) for condition in conditions(formula)
    )


def symbols(formula: Formula) -> dict[str, str]:
    """Return the symbols of the formula's arguments by name."""
    return {argument.name: argument.symbol for argument in formula.args}


def number(value: float) -> str:
    """Return a constant as exact LaTeX: `12`, `0.076`, `8.8 \\times 10^{13}`."""
    mantissa, _, exponent = f"{value:.15e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = int(exponent)
    if value and (power < -4 or (power > 5 and len(mantissa) < 5)):
        return f"10^{{{power}}}" if mantissa == "1" else rf"{mantissa} \times 10^{{{power}}}"
    # A comma in a number would become an operator with its space.
    plain = f"{value:,}" if abs(value) >= 10_000 else repr(value)
    plain = plain.removesuffix(".0")
    return rf"\text{{{plain}}}" if "," in plain else plain


def print_latex(node: Node, names: Mapping[str, str]) -> str:
    """Return `node` as LaTeX; `names` gives the text for each argument."""

    def show(child: Node, least: int = 0) -> str:
        shown = print_latex(child, names)
        return shown if _binding(child) >= least else parenthesised(shown)

    sign, parts = node.sign, node.operands
    if sign == NAME:
        return names[node.name]
    if sign == NUMBER:
        return number(node.value)
    if sign in ("*", "/"):
        return _product(_factors(node), names)
    if sign in ("and", "or"):
        return SIGNS[sign].join(show(part, 2) for part in parts)
    if sign == "where":
        rows = [rf"{print_latex(value, names)} & {when}" for value, when in _cases(node, names)]
        return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"
    if sign in CALLS:
        return CALLS[sign].format(*map(show, parts))
    if sign == "neg":
        return f"-{show(parts[0], PRODUCT)}"
    if sign in FUNCTIONS:
        return f"{FUNCTIONS[sign]} {show(parts[0], ATOM)}"
    left, right = parts
    if sign in ("minimum", "maximum"):
        return rf"\{sign[:3]}" + parenthesised(f"{show(left)}, {show(right)}")
    if sign == "//":
        return rf"\left\lfloor \frac{{{show(left)}}}{{{show(right)}}} \right\rfloor"
    if sign == "**":
        base = show(left, ATOM)
        # "2 GB" or "CCR*" is a base only in parentheses.
        if left.sign == NAME and re.search(r"\\,|\^", base):
            base = parenthesised(base)
        return f"{base}^{{{show(right)}}}"
    if sign == "%":
        return show(left, PRODUCT) + SIGNS[sign] + show(right, SIGN)
    if sign in ("+", "-"):
        return show(left, SUM) + SIGNS[sign] + show(right, SUM + (sign == "-"))
    return show(left) + SIGNS[sign] + show(right)


def _binding(node: Node) -> int:
    """Return precedence as in text, but cases and logarithms get parentheses in products."""
    loose = node.sign == "where" or node.sign in FUNCTIONS
    return SUM if loose else BINDING.get(node.sign, ATOM)


def _factors(node: Node) -> list[Factor]:
    """Return the chain of products and quotients at `node`, split after every denominator."""
    chain: list[tuple[bool, Node]] = []
    while node.sign in ("*", "/"):
        chain.append((node.sign == "/", node.operands[1]))
        node = node.operands[0]
    factors: list[Factor] = []
    above = [node]
    below: list[Node] = []
    for divides, operand in reversed(chain):
        if not divides:
            above.append(operand)
        elif above:
            below = [operand]
            factors.append((above, below))
            above = []
        else:
            below.append(operand)
    return [*factors, *above]


def _product(factors: list[Factor], names: Mapping[str, str]) -> str:
    shown = ""
    for factor in factors:
        if isinstance(factor, tuple):
            above, below = (_product([*side], names) for side in factor)
            piece = rf"\frac{{{above}}}{{{below}}}"
        else:
            piece = print_latex(factor, names)
            if len(factors) > 1 and _binding(factor) < PRODUCT:
                piece = parenthesised(piece)
        shown = piece if not shown else shown + _times(shown, piece) + piece
    return shown


def _times(before: str, after: str) -> str:
    """Return the separator of two factors: a dot if digits would run together, else a space."""
    digits = [STARTS_WITH_DIGIT.match(side.removeprefix(r"\frac{")) for side in (before, after)]
    if all(digits) or (digits[1] and not after.startswith(r"\frac")) or QUANTITY.search(before):
        return r" \cdot "
    # "b(" could be read as a function of what follows, "2(" and ")(" cannot.
    closed = CLOSED.search(before) and after.startswith(("(", r"\left("))
    return "" if closed else r"\,"


def parenthesised(shown: str) -> str:
    """Return `shown` in parentheses, which grow if the content is taller than a line."""
    return rf"\left({shown}\right)" if TALL.search(shown) else f"({shown})"


def _cases(node: Node, names: Mapping[str, str]) -> list[tuple[Node, str]]:
    """Return value and condition of each row; a final nested `where` continues the rows."""
    if node.sign != "where":
        return [(node, r"\text{otherwise}")]
    condition, value, other = node.operands
    when = rf"\text{{if }} {print_latex(condition, names)}"
    return [(value, when), *_cases(other, names)]
