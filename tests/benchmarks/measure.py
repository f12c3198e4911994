"""Runs one build and measures what it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.contenders import Contender


class Failed(Exception):
    """A build that ended with an error, with the end of its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Wall time and processor time of a build, including its worker processes.

    `peak_mb` is the peak memory of the largest of its processes.
    """

    wall_s: float
    cpu_s: float
    log: str
    peak_mb: float


@dataclass
class Best:
    """The best of several rounds, separately for wall and processor time."""

    wall_s: float = float("inf")
    cpu_s: float = float("inf")
    log: str = field(default="", repr=False)

    def add(self, taken: Taken) -> None:
        self.wall_s = min(self.wall_s, taken.wall_s)
        self.cpu_s = min(self.cpu_s, taken.cpu_s)
        self.log = taken.log


def build(contender: Contender) -> Taken:
    """Run one build in a separate process, including the interpreter's start. Raises Failed."""
    environment = _environment() | dict(contender.environment) | {"NO_MKDOCS_2_WARNING": "1"}
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            contender.command, cwd=contender.folder, env=environment, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        log = output.read().decode(errors="replace")
    if process.returncode:
        raise Failed(log[-3000:])
    largest = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return Taken(wall_s=wall_s, cpu_s=usage.ru_utime + usage.ru_stime, log=log, peak_mb=largest)


def _environment() -> dict[str, str]:
    """Return this environment, but let Python write bytecode, which some shells disable."""
    return {name: said for name, said in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def drawn_and_cached(log: str) -> tuple[int, int]:
    """Return what a build of this site reports about its figures."""
    found = re.search(r"figures: (\d+) drawn, (\d+) from the cache", log)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def contents(root: Path, cache: Path) -> str:
    """Return the pages of the checkout in `root`, read with its own code."""
    command = [sys.executable, "-m", "tests.benchmarks.content", str(cache)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=_environment())
    if done.returncode:
        sys.exit(f"the pages cannot be read:\n{done.stderr[-3000:]}")
    return done.stdout
