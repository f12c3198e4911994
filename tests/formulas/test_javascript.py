"""The printed module, run in a real browser, equals the Python functions bit for bit."""

from __future__ import annotations

import ast
import json
import math
import random
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Page

from figgen.equations.syntax import expression
from figgen.errors import InputError
from figgen.formulas import FORMULAS, Formula, evaluate, module
from tests.formulas.points import POINTS

RUN = """async ([source, cases]) => {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const formulas = await import(url);
  URL.revokeObjectURL(url);
  return {
    names: Object.keys(formulas).sort(),
    units: formulas.units,
    values: cases.map(([name, given]) => JSON.stringify(formulas[name](given))),
  };
}"""


@cache
def cases() -> list[tuple[str, dict[str, float], float]]:
    """Return every point and forty variations of it: name, arguments, Python's value."""
    rng = random.Random(0)
    found = []
    for point in POINTS:
        whole = {a.name for a in FORMULAS[point.formula].args if a.whole}
        for trial in range(41):
            given = {
                name: value
                if trial == 0
                else rng.randint(0, 70)
                if name in whole
                else float(value) * rng.uniform(0.1, 10)
                for name, value in point.arguments.items()
            }
            try:
                found.append((point.formula, given, evaluate(point.formula, **given).value))
            except InputError:
                continue
    return found


@pytest.fixture(scope="module")
def ran() -> dict[str, Any]:
    return {}


@pytest.fixture
def browser_results(page: Page, ran: dict[str, Any]) -> dict[str, Any]:
    if not ran:
        given = [[name, arguments] for name, arguments, _ in cases()]
        ran.update(page.evaluate(RUN, [module(FORMULAS.values()), given]))
    return ran


def uses_a_power_function(formula: Formula) -> bool:
    """Return whether some power is not a small whole one, which is printed as a product."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Pow)
        and not (isinstance(node.right, ast.Constant) and isinstance(node.right.value, int))
        for node in ast.walk(expression(formula))
    )


def test_enough_cases_are_inside_the_domains() -> None:
    counted = dict.fromkeys(FORMULAS, 0)
    for name, _, _ in cases():
        counted[name] += 1
    assert min(counted.values()) >= 1
    assert len(cases()) > 5000


def test_module_exports_every_formula_and_its_unit(browser_results: dict[str, Any]) -> None:
    assert browser_results["names"] == sorted([*FORMULAS, "units"])
    assert browser_results["units"] == {name: found.unit for name, found in FORMULAS.items()}


def test_javascript_gives_pythons_bits(browser_results: dict[str, Any]) -> None:
    powers = {name for name, found in FORMULAS.items() if uses_a_power_function(found)}
    different = []
    for (name, given, value), shown in zip(cases(), browser_results["values"], strict=True):
        allowed = 2 * math.ulp(value) if name in powers else 0
        if abs(json.loads(shown) - value) > allowed:
            different.append((name, given, value, shown))
    assert not different, f"{len(different)} differ, as {different[:5]}"
