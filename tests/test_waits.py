"""No test waits a fixed time, and none waits longer than half a minute for anything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
LONGEST_S = 30
# A clock is what is measured in benchmarks; `until` looks again at what tells nobody that it came;
# answers that come late are what --late is for.
ALLOWED = {("browser/test_serve.py", "sleep"), ("browser/slow.py", "sleep")}
# A browser, before there are tests; tools of the site gate, which no test starts.
OTHERS = {"INSTALL_TIMEOUT_S", "TOOL_TIMEOUT_S"}

FILES = [
    path
    for path in sorted([*FOLDER.rglob("*.py"), *FOLDER.rglob("*.js")])
    if "benchmarks" not in path.parts
]


def sleeps(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("sleep", "wait_for_timeout"):
                yield name


def limits(tree: ast.AST) -> Iterator[tuple[str, float]]:
    """Return timeouts in seconds: given as `timeout…=` or stored as a constant with such a name."""
    for node in ast.walk(tree):
        named: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Call):
            named = [(key.arg or "", key.value) for key in node.keywords]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named = [(node.targets[0].id, node.value)]
        for name, value in named:
            word = name.lower()
            if ("timeout" in word or "patience" in word) and isinstance(value, ast.Constant):
                in_ms = "_ms" in word or (word == "timeout" and value.value >= 1000)
                yield name, value.value / 1000 if in_ms else value.value


def unbounded(path: Path) -> list[str]:
    """Return the waits of a file that only wait for time, or too long."""
    text, name = path.read_text(encoding="utf-8"), path.relative_to(FOLDER).as_posix()
    if path.suffix == ".js":
        return [f"{name}: setTimeout"] * ("setTimeout" in text)
    tree = ast.parse(text)
    found = [f"{name}: {call}" for call in sleeps(tree) if (name, call) not in ALLOWED]
    found += [f"{name}: networkidle may never come, see `resting`"] * (
        re.search(r"['\"]networkidle['\"]", text) is not None
    )
    found += [f"{name}: setTimeout"] * (re.search(r"setTimeout\(", text) is not None)
    return found + [
        f"{name}: {what} = {limit:g} s"
        for what, limit in limits(tree)
        if limit > LONGEST_S and what not in OTHERS
    ]


def test_waits_are_for_events_and_bounded() -> None:
    assert len(FILES) > 100
    assert [wait for path in FILES for wait in unbounded(path)] == []


def test_a_wait_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.FOLDER", tmp_path)
    path = tmp_path / "test_it.py"
    path.write_text(
        "MOST_PATIENCE_S = 31\ntime.sleep(1)\npage.goto(timeout=60_000)\nrun(timeout=30)\n"
    )
    assert unbounded(path) == [
        "test_it.py: sleep",
        "test_it.py: MOST_PATIENCE_S = 31 s",
        "test_it.py: timeout = 60 s",
    ]


def test_a_clock_that_stands_is_in_a_profile_of_its_own() -> None:
    """A fake clock affects a whole profile, whose later pages had no `performance` entries."""
    shared = []
    for path in FILES:
        text = path.read_text("utf-8")
        standing = path.suffix == ".py" and ".clock.install(" in text  # to parse all takes seconds
        for node in ast.walk(ast.parse(text)) if standing else ():
            if isinstance(node, ast.FunctionDef):
                source = ast.unparse(node)
                if ".clock.install(" in source and ".new_context(" not in source:
                    shared.append(f"{path.name}: {node.name}")
    assert shared == []
