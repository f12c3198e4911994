"""Drives `serving_session.py`: a server's builds, each on request."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).with_name("serving_session.py")
PATIENCE_S = 30


class Session:
    """A running session on the sources in `folder`, which has built the site once.

    Raises RuntimeError with the end of the output if a build ends the session.
    """

    def __init__(
        self,
        folder: Path,
        configuration: str,
        site: Path,
        environment: Mapping[str, str],
        command: str = "serve",
    ) -> None:
        self.folder = folder
        shutil.copy(PROGRAM, folder)
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM.name, configuration, str(site), command],
            cwd=folder,
            env=os.environ | {"NO_MKDOCS_2_WARNING": "1"} | dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._wait()

    def replace(self, name: str, old: str, new: str) -> None:
        """Edit a file at the first occurrence of `old`."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} has changed: say what to edit there now"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def build(self, page: str = "") -> float:
        """Build again including deferred work; return seconds until readers had the pages.

        `page` is the address of the only page that a reader has open, such as `guide/memory/`.
        """
        assert self.process.stdin is not None
        began = time.perf_counter()
        self.process.stdin.write(f"{page}\n")
        self.process.stdin.flush()
        return self._wait() - began

    def _wait(self) -> float:
        assert self.process.stdout is not None
        said, shown = [], 0.0
        for line in self.process.stdout:
            if line == "shown\n":
                shown = time.perf_counter()
            elif line == "built\n":
                return shown
            else:
                said.append(line)
        self.end()
        raise RuntimeError("".join(said[-40:]))

    def end(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)


@contextmanager
def session(
    folder: Path,
    configuration: str,
    site: Path,
    environment: Mapping[str, str],
    command: str = "serve",
) -> Iterator[Session]:
    """Open a session that ends with the block; see `Session`."""
    running = Session(folder, configuration, site, environment, command)
    try:
        yield running
    finally:
        running.end()
