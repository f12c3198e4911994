"""Show the progress of a long job on one line of a terminal, and sum its time by task."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO


@dataclass(kw_only=True)
class Progress:
    """Counts finished pieces of `total`, and shows them on one line of a terminal."""

    what: str
    total: int
    stream: TextIO | None = None
    done: int = 0

    def advance(self) -> None:
        """Count one more finished piece."""
        self.done += 1
        stream = self.stream or sys.stderr
        if not stream.isatty():
            return
        width = 24
        filled = width * self.done // self.total
        bar = "━" * filled
        rest = "─" * (width - filled)
        if "NO_COLOR" not in os.environ:
            bar = f"\x1b[36m{bar}\x1b[0m"
        # The line is cleared at the end: the caller reports the result.
        end = f"\r {bar}{rest} {self.done} of {self.total} {self.what} "
        stream.write(end if self.done < self.total else "\r\x1b[2K")
        stream.flush()


@dataclass(kw_only=True)
class Share:
    """Shows on one line of a terminal how much of a file has been read."""

    what: str
    bytes: int
    stream: TextIO | None = None
    shown: int = -1

    def reached(self, read: int) -> None:
        """Report the number of bytes read so far."""
        percent = min(100, 100 * read // max(1, self.bytes))
        if percent > self.shown:
            self.shown = percent
            self._write(f"\r {percent} % {self.what} ")

    def end(self) -> None:
        """Clear the line, after the whole file was read or reading stopped."""
        self._write("\r\x1b[2K")

    def _write(self, text: str) -> None:
        stream = self.stream or sys.stderr
        if stream.isatty():
            stream.write(text)
            stream.flush()


@dataclass(kw_only=True)
class Spent:
    """Seconds by task; nested tasks are not counted in the outer one."""

    clock: Callable[[], float] = time.perf_counter
    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0
    _running: list[str] = field(default_factory=list)

    @contextmanager
    def on(self, work: str) -> Iterator[None]:
        """Count the time of a `with` block as `work`."""
        self.begin(work)
        try:
            yield
        finally:
            self.end()

    def begin(self, work: str) -> None:
        """Begin a task, which interrupts the current one."""
        self._charge()
        self._running.append(work)

    def end(self) -> None:
        """End the current task, and resume the one that it interrupted."""
        self._charge()
        self._running.pop()

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add the times of another process."""
        for work, spent in seconds.items():
            self.seconds[work] = self.seconds.get(work, 0.0) + spent

    def words(self) -> str:
        """Return each task with its seconds, in the order in which they began."""
        return ", ".join(f"{seconds:.1f} s {work}" for work, seconds in self.seconds.items())

    def _charge(self) -> None:
        now = self.clock()
        if self._running:
            work = self._running[-1]
            self.seconds[work] = self.seconds.get(work, 0.0) + now - self._since
        self._since = now
