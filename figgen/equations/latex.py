r"""A formula as LaTeX, in the order in which its source computes.

Chains of `*` and `/` become fractions where the source divides: `2 * (n - 1) / n * S / B` is
\frac{2(n - 1)}{n} \frac{S}{B}. Only commands that latex2mathml turns into correct MathML are
used (no \text with escapes, no digits split by \, or {,}).
"""

from __future__ import annotations

import ast
import re
from functools import cache

from figgen.equations.definition import Formula
from figgen.equations.syntax import conditions, expression
from figgen.equations.text import ATOM, PRODUCT, SIGN, SUM, Leaf, binding, unprintable

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: " + ", ast.Sub: " - ", ast.Mod: r" \bmod ",
    ast.And: r" \text{ and } ", ast.Or: r" \text{ or } ",
    ast.Eq: " = ", ast.NotEq: r" \ne ",
    ast.Lt: " < ", ast.LtE: r" \le ", ast.Gt: " > ", ast.GtE: r" \ge ",
}  # fmt: skip
CALLS = {
    "ceil": r"\left\lceil {} \right\rceil",
    "floor": r"\left\lfloor {} \right\rfloor",
    "sqrt": r"\sqrt{{{}}}",
    "exp": r"e^{{{}}}",
}
TALL = re.compile(r"\\(frac|left|begin|sqrt)")
CLOSED = re.compile(r"(\d|\)|\^\{[^{}]*\}|\\rceil|\\rfloor)$")
QUANTITY = re.compile(r"\d\}?\\,\\text\{[^{}]*\}$")
STARTS_WITH_DIGIT = re.compile(r"(\\text\{)?\d")

# A factor in the product: one operand, or numerators over denominators.
Factor = ast.expr | tuple[list[ast.expr], list[ast.expr]]


@cache
def latex(formula: Formula) -> str:
    """The whole equation, `symbol = expression`."""
    return f"{formula.symbol} = {print_latex(expression(formula), symbols(formula))}"


@cache
def domain_latex(formula: Formula) -> tuple[str, ...]:
    """The conditions of the domain, one LaTeX formula each."""
    return tuple(print_latex(condition, symbols(formula)) for condition in conditions(formula))


def symbols(formula: Formula) -> Leaf:
    """From the names of the formula's arguments to their symbols."""
    return {argument.name: argument.symbol for argument in formula.args}.__getitem__


def number(value: float) -> str:
    """A constant as LaTeX, exactly: `12`, `0.076`, `8.8 \\times 10^{13}`."""
    mantissa, _, exponent = f"{value:.15e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = int(exponent)
    if value and (power < -4 or (power > 5 and len(mantissa) < 5)):
        return f"10^{{{power}}}" if mantissa == "1" else rf"{mantissa} \times 10^{{{power}}}"
    # A comma in a number would become an operator with its space.
    plain = f"{value:,}" if abs(value) >= 10_000 else repr(value)
    plain = plain.removesuffix(".0")
    return rf"\text{{{plain}}}" if "," in plain else plain


def print_latex(node: ast.expr, leaf: Leaf) -> str:
    """`node` as LaTeX; `leaf` turns the name of an argument into what is shown for it."""

    def show(child: ast.expr, least: int = 0) -> str:
        shown = print_latex(child, leaf)
        return shown if _binding(child) >= least else parenthesised(shown)

    match node:
        case ast.Name(id=name):
            return leaf(name)
        case ast.Constant(value=int() | float() as value):
            return number(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-{show(operand, PRODUCT)}"
        case ast.BinOp(op=ast.Mult() | ast.Div()):
            return _product(_factors(node), leaf)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return rf"\left\lfloor \frac{{{show(left)}}}{{{show(right)}}} \right\rfloor"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base = show(left, ATOM)
            # "2 GB" or "CCR*" is a base only in parentheses.
            if isinstance(left, ast.Name) and re.search(r"\\,|\^", base):
                base = parenthesised(base)
            return f"{base}^{{{show(right)}}}"
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return show(left, PRODUCT) + SIGNS[ast.Mod] + show(right, SIGN)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
            return show(left, SUM) + SIGNS[type(op)] + show(right, SUM + isinstance(op, ast.Sub))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            pairs = zip(ops, comparators, strict=True)
            return show(left) + "".join(SIGNS[type(op)] + show(right) for op, right in pairs)
        case ast.BoolOp(op=op, values=values):
            return SIGNS[type(op)].join(show(value, 2) for value in values)
        case ast.Call(func=ast.Name(id="log2"), args=[argument]):
            return rf"\log_2 {show(argument, ATOM)}"
        case ast.Call(func=ast.Name(id="where")):
            rows = [rf"{print_latex(value, leaf)} & {when}" for value, when in _cases(node, leaf)]
            return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"
        case ast.Call(func=ast.Name(id="minimum" | "maximum" as name), args=[first, second]):
            return rf"\{name[:3]}" + parenthesised(f"{show(first)}, {show(second)}")
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in CALLS:
            return CALLS[name].format(*map(show, arguments))
    raise unprintable(node)


def _binding(node: ast.expr) -> int:
    """As `binding`, but cases and logarithms need parentheses inside products."""
    match node:
        case ast.Call(func=ast.Name(id="where" | "log2")):
            return SUM
    return binding(node)


def _factors(node: ast.expr) -> list[Factor]:
    """The chain of products and quotients at `node`, split after every denominator."""
    chain: list[tuple[bool, ast.expr]] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        chain.append((isinstance(node.op, ast.Div), node.right))
        node = node.left
    factors: list[Factor] = []
    above = [node]
    below: list[ast.expr] = []
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


def _product(factors: list[Factor], leaf: Leaf) -> str:
    shown = ""
    for factor in factors:
        if isinstance(factor, tuple):
            above, below = (_product([*side], leaf) for side in factor)
            piece = rf"\frac{{{above}}}{{{below}}}"
        else:
            piece = print_latex(factor, leaf)
            if len(factors) > 1 and _binding(factor) < PRODUCT:
                piece = parenthesised(piece)
        shown = piece if not shown else shown + _times(shown, piece) + piece
    return shown


def _times(before: str, after: str) -> str:
    """The separator of two factors: a dot if digits could run together, else a thin space."""
    digits = [STARTS_WITH_DIGIT.match(side.removeprefix(r"\frac{")) for side in (before, after)]
    if all(digits) or (digits[1] and not after.startswith(r"\frac")) or QUANTITY.search(before):
        return r" \cdot "
    # "b(" could be read as a function of what follows, "2(" and ")(" cannot.
    closed = CLOSED.search(before) and after.startswith(("(", r"\left("))
    return "" if closed else r"\,"


def parenthesised(shown: str) -> str:
    """`shown` in parentheses that grow where the content is taller than a line."""
    return rf"\left({shown}\right)" if TALL.search(shown) else f"({shown})"


def _cases(node: ast.expr, leaf: Leaf) -> list[tuple[ast.expr, str]]:
    """Value and condition of each row; a `where` in the last place continues the same rows."""
    match node:
        case ast.Call(func=ast.Name(id="where"), args=[condition, value, other]):
            when = rf"\text{{if }} {print_latex(condition, leaf)}"
            return [(value, when), *_cases(other, leaf)]
    return [(node, r"\text{otherwise}")]
