"""Which test runs which line, and how long each takes, measured in one run of the tests.

Values that are computed once (`functools.cache`, module fixtures) are recorded for the first test
that uses them. Other tests in a file that runs a line are therefore tried after the recorded ones.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOMS = ("equations", "formulas", "models", "scenarios")
# Neither the browser's tests, whose mirrored JavaScript would find what no outside truth finds, nor
# those that build sites or start programs.
TESTS = (
    *(f"tests/{room}" for room in (*ROOMS, "catalog", "figures", "commands")),
    *("tests/test_configurations.py", "tests/test_goldens.py"),
    *("tests/test_claims.py", "tests/test_layouts.py", "tests/test_measured.py"),
    *("tests/test_memory_snapshot.py", "tests/test_profile.py", "tests/test_thresholds.py"),
    *("tests/test_command_line.py", "tests/test_command_memory.py", "tests/test_command_step.py"),
)
PLUGINS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not browser", "-q")


@dataclass(frozen=True)
class Cover:
    """The tests that run each line by file, and the seconds of every test."""

    lines: dict[str, dict[int, frozenset[str]]]
    seconds: dict[str, float]
    files: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        found = defaultdict(list)
        for test in self.seconds:
            found[test.partition("::")[0]].append(test)
        object.__setattr__(self, "files", dict(found))

    def tests(self, path: str, statement: range) -> frozenset[str]:
        """Return the tests that run a statement; for what runs at import, those that use the
        module.

        For a module without functions its users are unknown, so all tests are returned.
        """
        lines = self.lines.get(path, {})
        found = frozenset().union(*(lines.get(line, ()) for line in statement))
        # Also where the first test that imported the module is noted beside the import itself.
        if "" in found:
            found = frozenset().union(*lines.values())
            found = found if found != {""} else frozenset(self.seconds)
        return found - {""}


def measure(root: Path, notes: Path, only: Sequence[str] = ()) -> None:
    """Run the tests of the copy at `root`, which must pass, or only these files to add them."""
    told, new = notes / "seconds.json", notes / "seconds-new.json"
    before = json.loads(told.read_text("utf-8")) if only else {}
    options = [f"--cov=figgen.{room}" for room in ROOMS] + ["--cov-context=test", "--cov-report="]
    options += ["--cov-append"] if only else []
    command = [sys.executable, "-m", "pytest", *PLUGINS, *(only or TESTS), *options]
    places = {"COVERAGE_FILE": str(notes / "coverage"), "MUTANTS_SECONDS": str(new)}
    # From the root, `-m` finds the copy's figgen and tests before those of the checkout.
    clock = ["-p", "tests.mutants.clock"]
    subprocess.run([*command, *clock], cwd=root, env=os.environ | places, check=True)
    told.write_text(json.dumps(before | json.loads(new.read_text("utf-8"))), encoding="utf-8")


def read(root: Path, notes: Path) -> Cover:
    """Read what `measure` wrote for files that still exist, wherever the copy was then."""
    from coverage import CoverageData  # in this tool's own environment

    data = CoverageData(str(notes / "coverage"))
    data.read()
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for file in data.measured_files():
        path = f"figgen/{file.rpartition('/figgen/')[2]}"
        for line, contexts in data.contexts_by_lineno(file).items():
            lines[path][line].update(context.rpartition("|")[0] for context in contexts)
    seconds = json.loads((notes / "seconds.json").read_text("utf-8"))
    return Cover(
        {
            path: {line: frozenset(tests) for line, tests in found.items()}
            for path, found in lines.items()
        },
        {test: each for test, each in seconds.items() if (root / test.partition("::")[0]).exists()},
    )


def statement(source: str, line: int) -> range:
    """Return the lines of the innermost statement at a line; for a compound statement its head."""
    best = range(line, line + 1)
    least = float("inf")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        lines = range(node.lineno, max(end, node.lineno) + 1)
        if line in lines and len(lines) < least:
            best, least = lines, len(lines)
    return best
