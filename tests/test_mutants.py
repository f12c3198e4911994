"""The report of `make mutants`: its interval, its reasons, its lock. No test runs the mutants."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants import score
from tests.mutants.cover import ROOMS, Cover, statement
from tests.mutants.quick import Session, applies, code_of, function_at
from tests.mutants.score import Outcome
from tests.mutants.verdict import Question, order

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("killed", "total", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_the_printed_one(killed: int, total: int, low: float, high: float) -> None:
    assert score.wilson(killed, total) == pytest.approx((low, high), abs=5e-5)


def test_the_table_counts_what_only_golden_texts_find_apart() -> None:
    survivor = Outcome(
        path="figgen/models/a.py",
        line=3,
        operator="core/NumberReplacer",
        before="x = 1",
        after="x = 2",
        killer="",
    )
    golden = replace(survivor, killer="golden: t", golden=True)
    outcomes = [replace(survivor, killer="t"), golden, survivor]
    *_, every, strict = score.table(outcomes)

    assert re.search(r"all +2 of +3 +66\.7%", every)
    assert re.search(r"without golden texts: +1 of +3 +33\.3%", strict)
    assert score.survivors(outcomes) == [
        "figgen/models/a.py:3: NumberReplacer\n  - x = 1\n  + x = 2"
    ]


def test_a_reason_to_leave_mutants_out_is_written_and_still_has_its_line() -> None:
    files = [file for room in ROOMS for file in (ROOT / "figgen" / room).rglob("*.py")]
    lines = [
        (file.relative_to(ROOT).as_posix(), line)
        for file in files
        for line in file.read_text("utf-8").splitlines()
    ]
    for entry in score.equivalents():
        assert len(entry.reason) > 20
        assert any(
            re.search(entry.path, path) and re.search(entry.line, line) for path, line in lines
        ), entry


SOURCE = """\
LIMIT = 3

class Box:
    def size(self) -> int:
        inner = [
            1,
        ]
        if inner:
            return 2
        return 0

def outer(n: int = 1) -> int:
    return n
"""


@pytest.mark.parametrize(
    ("line", "name", "lines"),
    [
        (1, "", range(1, 2)),
        (6, "Box.size", range(5, 8)),
        (8, "Box.size", range(8, 9)),
        (12, "", range(12, 13)),
        (13, "outer", range(13, 14)),
    ],
)
def test_a_line_belongs_to_its_innermost_statement_and_function(
    line: int, name: str, lines: range
) -> None:
    assert function_at(SOURCE, line) == name
    assert statement(SOURCE, line) == lines
    code = code_of(compile(SOURCE, "box", "exec"), name)
    assert (code.co_qualname if code and name else "") == name


def test_tests_that_run_the_line_come_first_and_those_named_like_the_module_before_others() -> None:
    tests = ("t/test_b.py::x[0]", "t/test_b.py::x[1]", "t/test_step.py::y", "t/test_c.py::z")
    run = {"figgen/models/step/step.py": {4: frozenset(tests[1:3])}}
    cover = Cover(run, dict(zip(tests, (1, 1, 3, 1), strict=True)))
    direct = cover.tests("figgen/models/step/step.py", range(4, 5))

    assert order(cover, "figgen/models/step/step.py", direct, 10) == [
        *("t/test_step.py::y", "t/test_b.py::x[1]", "t/test_b.py::x[0]")
    ]
    assert order(cover, "figgen/models/step/step.py", direct, 2) == [
        *("t/test_b.py::x[1]", "t/test_b.py::x[0]")
    ]


def test_tests_of_the_modules_room_come_before_quicker_ones_of_others() -> None:
    tests = ("tests/models/test_a.py::x", "tests/figures/test_a.py::x")
    cover = Cover({}, dict(zip(tests, (3, 1), strict=True)))
    assert order(cover, "figgen/models/step/step.py", frozenset(tests), 10) == [*tests]


def test_a_mutant_that_no_test_runs_has_nothing_to_run() -> None:
    """If all loaded tests ran instead, it would count as killed by its time limit."""
    untested = Question(
        path="figgen/models/a.py",
        function="f",
        mutated="def f():\n    return 2\n",
        tests=(),
        limit_s=1.0,
    )
    assert not applies(untested)
    assert applies(replace(untested, tests=("t/test_a.py::x",)))


def test_a_mutant_that_is_no_python_is_found_and_the_next_one_asked() -> None:
    question = Question(
        path="figgen/a.py",
        function="f",
        mutated="def f():\n    return 2 ** not 1\n",
        tests=(),
        limit_s=1.0,
    )
    session = Session(Path("/"), [question], None)
    assert session._answer(None, question, [], []) == "is no Python"
