"""The syntax that a formula may use, and how every printer prints it."""

from collections.abc import Callable

import pytest

from figgen.equations.javascript import print_javascript
from figgen.equations.latex import print_latex, symbols
from figgen.equations.ops import (
    Number,
    ceil,
    cos,
    floor,
    log,
    log2,
    maximum,
    minimum,
    pi,
    sin,
    sqrt,
    where,
)
from figgen.equations.syntax import expression, expression_tree, tree
from figgen.equations.tree import text
from figgen.formulas import latex
from tests.formulas.conftest import Register, Written

CONSTRUCTS: list[tuple[Written, str, str, str]] = []


def printed(plain: str, math: str, script: str) -> Callable[[Written], Written]:
    """Return what a function prints as: plain text, LaTeX, JavaScript."""

    def keep(function: Written) -> Written:
        CONSTRUCTS.append((function, plain, math, script))
        return function

    return keep


@printed(
    "(ranks + 1)^2 · ranks^3 / 2^steps",
    r"\frac{(n + 1)^{2}\,n^{3}}{2^{k}}",
    "(ranks + 1) * (ranks + 1) * (ranks * ranks * ranks) / Math.pow(2, steps)",
)
def power(ranks: Number, steps: Number) -> Number:
    """Powers."""
    return (ranks + 1) ** 2 * ranks**3 / 2**steps


@printed(
    "−ranks − (steps − ranks) − 2 · (−steps)",
    r"-n - (k - n) - 2(-k)",
    "-ranks - (steps - ranks) - 2 * -steps",
)
def minus(ranks: Number, steps: Number) -> Number:
    """Signs and differences."""
    return -ranks - (steps - ranks) - 2 * (-steps)


@printed(
    "ranks / steps / 2 / (ranks / steps) · 3 · steps",
    r"\frac{n}{k \cdot 2\,\frac{n}{k}} \cdot 3\,k",
    "ranks / steps / 2 / (ranks / steps) * (3 * steps)",
)
def quotient(ranks: Number, steps: Number) -> Number:
    """Quotients of quotients."""
    return ranks / steps / 2 / (ranks / steps) * (3 * steps)


@printed(
    "⌊(ranks + steps) / 2⌋ · (ranks mod steps) + (steps mod 2)",
    r"\left\lfloor \frac{n + k}{2} \right\rfloor(n \bmod k) + (k \bmod 2)",
    "Math.floor((ranks + steps) / 2) * ((ranks % steps + steps) % steps) + (steps % 2 + 2) % 2",
)
def integers(ranks: Number, steps: Number) -> Number:
    """Whole quotients and remainders."""
    return (ranks + steps) // 2 * (ranks % steps) + steps % 2


@printed(
    "min(ranks, 2) · ⌈log₂(ranks)⌉ · √(steps) − log₂(ranks) · ⌊ranks⌋",
    r"\min(n, 2)\,\left\lceil \log_2 n \right\rceil\,\sqrt{k}"
    r" - (\log_2 n)\,\left\lfloor n \right\rfloor",
    "Math.min(ranks, 2) * Math.ceil(Math.log2(ranks)) * Math.sqrt(steps)"
    " - Math.log2(ranks) * Math.floor(ranks)",
)
def calls(ranks: Number, steps: Number) -> Number:
    """Operators."""
    return minimum(ranks, 2) * ceil(log2(ranks)) * sqrt(steps) - log2(ranks) * floor(ranks)


@printed(
    "2 · π · sin(ranks) · cos(ranks / 2) − ln(steps) · ranks",
    r"2\,\pi\,(\sin n)\left(\cos \left(\frac{n}{2}\right)\right) - (\ln k)\,n",
    "2 * Math.PI * Math.sin(ranks) * Math.cos(ranks / 2) - Math.log(steps) * ranks",
)
def angles(ranks: Number, steps: Number) -> Number:
    """Angles and natural logarithms."""
    return 2 * pi * sin(ranks) * cos(ranks / 2) - log(steps) * ranks


@printed(
    "(0 if ranks = 1, else (1 if ranks < 5 and steps ≥ 2, else max(steps, 2)))",
    r"\begin{cases} 0 & \text{if } n = 1 \\ 1 & \text{if } n < 5 \text{ and } k \ge 2"
    r" \\ \max(k, 2) & \text{otherwise} \end{cases}",
    "ranks === 1 ? 0 : ranks < 5 && steps >= 2 ? 1 : Math.max(steps, 2)",
)
def choice(ranks: Number, steps: Number) -> Number:
    """A choice of three."""
    return where(ranks == 1, 0, where(ranks < 5 and steps >= 2, 1, maximum(steps, 2)))


@printed(
    "8.8 × 10¹³ · ranks + 86,400 · 0.076 + 1 × 10⁶ − 5 × 10⁻⁶ · steps",
    r"8.8 \times 10^{13}\,n + \text{86,400} \cdot 0.076 + 10^{6} - 5 \times 10^{-6}\,k",
    "88000000000000 * ranks + 86400 * 0.076 + 1000000 - 5e-06 * steps",
)
def constants(ranks: Number, steps: Number) -> Number:
    """Constants."""
    return 8.8e13 * ranks + 86400 * 0.076 + 1e6 - 5e-6 * steps


def test_locals_are_put_in_where_they_stand(register: Register) -> None:
    def invented(ranks: Number, message_bytes: Number) -> Number:
        """An invented formula."""
        share = message_bytes / ranks
        twice = 2 * share
        return twice - share

    found = register(invented)
    assert text(expression_tree(found), {}) == ("2 · message_bytes / ranks − message_bytes / ranks")
    assert latex(found) == r"X = 2\,\frac{S}{n} - \frac{S}{n}"


@pytest.mark.parametrize(
    ("function", "plain", "math", "script"),
    CONSTRUCTS,
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_construct_is_printed(
    register: Register, function: Written, plain: str, math: str, script: str
) -> None:
    found = register(function)
    node = expression(found)
    assert text(tree(node), {}).replace("\N{NO-BREAK SPACE}", " ") == plain
    assert print_latex(tree(node), symbols(found)) == math
    assert print_javascript(found) == script
