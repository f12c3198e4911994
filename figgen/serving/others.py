"""Forks of a build that share its work.

The first process takes pieces of work from the front of a list and its forks from the back, until
they meet.  A fork has the memory of the first process, including code that a server loaded again,
and ends with the build.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pickle
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

Thing = TypeVar("Thing")

PATIENCE_S = 30.0
"""How long the first process waits for a result before it does the work itself."""
MOST = 3
"""With more forks, the first process, which alone renders templates, is the bottleneck."""


def forks() -> int:
    """Return the number of forks that save time: one per additional core on Linux, else 0."""
    if sys.platform != "linux":
        return 0
    return min(MOST, len(os.sched_getaffinity(0)) - 1)


class Others:
    """`count` forks that work on `pieces`, last piece first.

    `do` returns the result for a piece, which must be picklable, or None.  Each piece is one byte
    of a lock file, and the process that locks the byte does the piece; the system releases the
    locks of a killed fork.  A fork writes its results to a file of its own, because a pipe would
    block it until the first process reads.
    """

    def __init__(self, pieces: Iterable[str], do: Callable[[str], Any], count: int = 1) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._locks = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        self._made: dict[str, tuple[int, int, int]] = {}
        self._context = multiprocessing.get_context("fork")
        self._forks = [self._begin(do) for _ in range(count)]
        self._told = {told: file for _, told, file in self._forks}
        _running.add(self)

    def _begin(self, do: Callable[[str], Any]) -> tuple[Any, Connection, Any]:
        """Start a fork.  Returns its process, its connection and the file of its results."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        told, tell = self._context.Pipe(duplex=False)
        process = self._forked(self._work, do, tell, file)
        tell.close()
        return process, told, file

    def _forked(self, target: Callable[..., None], *args: Any) -> BaseProcess:
        process = self._context.Process(target=target, args=args, daemon=True)
        with warnings.catch_warnings():
            # Python warns of forking with threads; the forks use no lock of the server's threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        return process

    def made(self, piece: str) -> Any:
        """Return a fork's result for a piece; None if the first process must do the piece."""
        if piece not in self._numbers:
            return None
        while self._hear(0):
            pass
        while piece not in self._made:
            if self._is_ours(piece) or not self._hear(PATIENCE_S):
                return None
        length, start, file = self._made[piece]
        return pickle.loads(os.pread(file, length, start)) if length else None

    def end(self) -> None:
        """Kill the forks and close their files."""
        for process, told, file in self._forks:
            process.kill()
            process.join()
            told.close()
            file.close()
        self._locks.close()
        _running.discard(self)

    def _hear(self, patience_s: float) -> bool:
        """Wait for one more result; return False after a timeout or once all forks have ended."""
        for told in wait(list(self._told), patience_s):
            assert isinstance(told, Connection)
            try:
                piece, length, start = told.recv()
            except (EOFError, OSError):
                del self._told[told]
                return bool(self._told)
            self._made[piece] = length, start, self._told[told].fileno()
            return True
        return False

    def _is_ours(self, piece: str) -> bool:
        """Try to reserve a piece for this process; return False if another process has it."""
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._numbers[piece])
        except OSError:
            return False
        return True

    def _work(self, do: Callable[[str], Any], tell: Connection, file: Any) -> None:
        """Run a fork.  Pieces that raise are left to the first process, which reports the error."""
        _end_with_parent()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        end = 0
        for piece in filter(self._is_ours, reversed(self._numbers)):
            try:
                made = do(piece)
                result = pickle.dumps(made) if made is not None else b""
            except Exception:  # whatever a page meets
                result = b""
            os.pwrite(file.fileno(), result, end)
            tell.send((piece, len(result), end))
            end += len(result)


_running: set[Others] = set()


def end_all() -> None:
    """End all forks after a failed build."""
    for others in tuple(_running):
        others.end()


def beside(make: Callable[[], Thing]) -> Callable[[], Thing]:
    """Start `make` in a fork.  Returns a function that waits for its result.

    Without a fork, or if the fork fails or returns None, that function calls `make` itself.
    """
    if not forks():
        return make
    others = Others(["it"], lambda _: make())

    def made() -> Thing:
        result: Thing | None = others.made("it")
        others.end()
        return make() if result is None else result

    return made


def _end_with_parent() -> None:
    """Make this process exit as soon as its parent ends, for whatever reason."""

    def wait_for_it() -> None:
        parent = multiprocessing.parent_process()
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_for_it, daemon=True).start()
