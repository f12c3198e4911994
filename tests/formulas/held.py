"""Which tests hold each formula, and how closely, as read from the tests themselves.

`figgen/formulas/held.json` stores it for the pages, since a build reads no tests; `pytest
tests/formulas/test_held.py --update-golden` rewrites it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from figgen.formulas import FORMULAS

ROOT = Path(__file__).parents[2]
POINTS = "tests/formulas/test_points.py::test_value_at_point_is_the_catalogues"
ROOMS = ("formulas/test_published.py", "formulas/test_identities_*.py", "models/**/test_*.py")
"""Folders of tests that compare formulas with printed values, with each other, and with
simulations; the first match counts."""

USUAL = "1e-6 relative"
"""The default tolerance of pytest.approx."""


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Return the tests of a file."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def named(test: ast.FunctionDef) -> set[str]:
    """Return the formulas that a test calls, or evaluates by name."""
    found = set()
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            texts = [one.value for one in node.args[:1] if isinstance(one, ast.Constant)]
            found |= {called, *(str(text) for text in texts if called == "evaluate")}
    return found & set(FORMULAS)


def tolerance(test: ast.FunctionDef) -> str:
    """Return how closely a test compares; empty if it compares no values."""
    found: list[str] = []
    for node in ast.walk(test):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if isinstance(node, ast.Call) and name in ("approx", "isclose"):
            told = [
                f"{ast.unparse(word.value).replace('e-0', 'e-')} {kind}"
                for word in node.keywords
                for kind in [{"rel": "relative", "abs": "absolute"}.get(str(word.arg)[:3], "")]
                if kind
            ]
            found += [" or ".join(told) or USUAL]
    equal = any(
        isinstance(op, ast.Eq)
        for node in ast.walk(test)
        if isinstance(node, ast.Compare)
        for op in node.ops
    )
    return ", ".join(dict.fromkeys(found)) or ("equal" if equal else "")


def held() -> Mapping[str, list[dict[str, str]]]:
    """Return for each formula its point of the catalog, and the first other test that holds it."""
    points = ast.parse((ROOT / POINTS.partition("::")[0]).read_text(encoding="utf-8"))
    [test] = [one for one in functions(points) if POINTS.endswith(f"::{one.name}")]
    found = {name: [{"test": POINTS, "within": tolerance(test)}] for name in sorted(FORMULAS)}
    for pattern in ROOMS:
        for path in sorted((ROOT / "tests").glob(pattern)):
            for test in functions(ast.parse(path.read_text(encoding="utf-8"))):
                within = tolerance(test)
                for name in named(test) if within else ():
                    if len(found[name]) == 1:
                        where = f"{path.relative_to(ROOT).as_posix()}::{test.name}"
                        found[name].append({"test": where, "within": within})
    return found
