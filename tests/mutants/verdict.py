"""Which tests run on a mutant, and the name of the first that fails."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis  # noqa: F401 - loaded once here and not by every fork
import numpy  # noqa: F401
import pytest

from tests.mutants.cover import PLUGINS, Cover

SURVIVED = ""
GOLDEN = "golden: "  # before the name of a test that compares with our own text
# Hypothesis is loaded before pytest could rewrite its assertions.
OPTIONS = (*PLUGINS, "-x", "-p", "no:cov", "-W", "ignore::pytest.PytestAssertRewriteWarning")
MEMORY_BYTES = 6 << 30
LEAST_S = 5
FIRST = 2  # files


@dataclass(frozen=True, kw_only=True)
class Question:
    """A file's text with one change, in the named function, and the tests in order.

    Without a name, the change is in code that runs at import.
    """

    path: str
    function: str
    mutated: str
    tests: Sequence[str]
    limit_s: float


def order(cover: Cover, path: str, direct: frozenset[str], budget_s: float) -> list[str]:
    """Order tests so that those that run the line come before others of their files.

    Files named after the module come first, then those of its room, then the quick ones. For a test
    with many parameters one case comes before the others, since it usually has the same result.
    """
    stem, room = Path(path).stem, f"tests/{Path(path).parts[1]}/"
    seconds: dict[str, float] = defaultdict(float)
    for test in direct & cover.seconds.keys():
        seconds[file_of(test)] += cover.seconds[test]
    seen: dict[tuple[str, bool], int] = defaultdict(int)
    keys: dict[str, tuple[bool, bool, bool, int, float, str]] = {}
    for test in (test for file in seconds for test in cover.files[file]):
        name = test.partition("[")[0]
        file = file_of(test)
        turn = seen[name, test in direct].bit_length()
        seen[name, test in direct] += 1
        far = not file.startswith(room)
        keys[test] = (test not in direct, stem not in file, far, turn, seconds[file], file)
    chosen: list[str] = []
    for test in sorted(keys, key=lambda test: keys[test]):
        if cover.seconds[test] <= budget_s:
            budget_s -= cover.seconds[test]
            chosen.append(test)
    return chosen


def file_of(test: str) -> str:
    return test.partition("::")[0]


class Chosen:
    """Keeps the chosen tests in their order, and the name of the first that fails."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.tests = tests
        self.killer = SURVIVED
        self.golden: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.golden = {item.nodeid for item in items if _has_golden(item)}
        if any("::" in test for test in self.tests):
            items[:] = in_order(items, self.tests)
        items.sort(key=lambda item: item.nodeid in self.golden)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.killer = self.killer or f"{report.nodeid} (collecting)"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            golden = GOLDEN if report.nodeid in self.golden else ""
            self.killer = self.killer or golden + report.nodeid


def in_order(items: Sequence[pytest.Item], tests: Sequence[str]) -> list[pytest.Item]:
    by_name = {item.nodeid: item for item in items}
    return [by_name[test] for test in tests if test in by_name]


def _has_golden(item: pytest.Item) -> bool:
    return "golden" in getattr(item, "fixturenames", ()) or "golden" in item.keywords


def files_of(tests: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(map(file_of, tests)))


def afresh(root: Path, question: Question) -> str:
    """Return the verdict of a process that loads the mutated file with everything that depends on
    it.

    Most mutants are detected by the tests of one file, so the other test files are only loaded
    after those.
    """
    killer = SURVIVED
    first = files_of(question.tests)[:FIRST]
    near = [test for test in question.tests if file_of(test) in first]
    far = [test for test in question.tests if file_of(test) not in first]
    with _written(root / question.path, question.mutated):
        for tests in (near, far):
            if tests and not killer:
                killer = forked(lambda tests=tests: _run(root, tests), question.limit_s)
    return killer


def _run(root: Path, tests: Sequence[str]) -> str:
    enter(root)
    chosen = Chosen(tests)
    code = pytest.main([*OPTIONS, *files_of(tests)], plugins=[chosen])
    fine = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return chosen.killer if chosen.killer or fine else f"pytest ends with {int(code)}"


def enter(root: Path) -> None:
    """Change to the copy and unload the checkout's own modules."""
    os.chdir(root)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for name in [name for name in sys.modules if name.partition(".")[0] in ("figgen", "tests")]:
        del sys.modules[name]
    sys.path.insert(0, str(root))


def forked(ask: Callable[[], str], limit_s: float) -> str:
    """Return the result of `ask` in a separate process with a time limit of about this length."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            _limit(limit_s)
            answer = ask()
        except BaseException as error:
            answer = f"raises {type(error).__name__}"
        os.write(writer, answer.encode("utf-8"))
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as told:
        answer = told.read()
    _, status = os.waitpid(child, 0)
    return (
        f"ends by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else answer
    )


def _limit(limit_s: float) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    seconds = int(LEAST_S + limit_s)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


@contextlib.contextmanager
def _written(file: Path, text: str) -> Iterator[None]:
    """Write the file with other text, and restore its time afterward so that compiled files stay
    valid."""
    before, stat = file.read_bytes(), file.stat()
    file.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        file.write_bytes(before)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
