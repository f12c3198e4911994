"""Other processes for what a build does: forks of it that begin at the other end.

All go through the same pieces of work, the first process from the first on and its forks from the
last, until they meet.  A fork knows all that the first knows, a server's changed code included, and
lives no longer than a build.
"""

from __future__ import annotations

import fcntl
import mmap
import multiprocessing
import os
import pickle
import signal
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
"""How long all forks may say nothing before the first process does their work too."""
MOST = 3
"""More forks than this wait for the first process, which alone puts pages into the theme."""


def forks() -> int:
    """How many pay: one for each further processor, on a system whose libraries bear it."""
    if sys.platform != "linux":
        return 0
    return min(MOST, len(os.sched_getaffinity(0)) - 1)


class Others:
    """Forks that do what they can of `pieces`, the last first; `do` gives what can be pickled.

    Each piece is a byte of a file, and whoever locks that does it: where a fork is killed, its
    locks go with it.  What a fork made is appended to a file of its own, since a pipe would hold it
    up until the first process has time to read.

    What kills every fork is done by the first process in the end, and kills that too: one more
    fork, which does nothing else, says on which piece that was.
    """

    def __init__(self, pieces: Iterable[str], do: Callable[[str], Any], count: int = 1) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._locks = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        self._made: dict[str, tuple[int, int, int]] = {}
        self._here = mmap.mmap(-1, mmap.PAGESIZE)
        self._context = multiprocessing.get_context("fork")
        self._forks = [self._begin(do) for _ in range(count)]
        self._told = {told: file for _, told, file in self._forks}
        several = len(self._numbers) > 1
        self._witnesses = [self._forked(self._watch)] if several else []
        _running.add(self)

    def _begin(self, do: Callable[[str], Any]) -> tuple[Any, Connection, Any]:
        """A process, what it tells through, and the file of what it made."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        told, tell = self._context.Pipe(duplex=False)
        process = self._forked(self._work, do, tell, file)
        tell.close()
        return process, told, file

    def _forked(self, target: Callable[..., None], *args: Any) -> BaseProcess:
        process = self._context.Process(target=target, args=args, daemon=True)
        with warnings.catch_warnings():
            # Of the server's threads, whose locks a fork cannot wait for; it needs none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        return process

    def made(self, piece: str) -> Any:
        """What a fork made of a piece that it began; None where the first process is to do it."""
        self._here[:] = bytes(len(self._here))
        if piece not in self._numbers:
            return None
        while self._hear(0):
            pass
        while piece not in self._made:
            if self._is_ours(piece) or not self._hear(PATIENCE_S):
                name = piece.encode()[: len(self._here)]
                self._here[: len(name)] = name
                return None
        length, start, file = self._made[piece]
        return pickle.loads(os.pread(file, length, start)) if length else None

    def end(self) -> None:
        """Nobody asks any more."""
        for witness in self._witnesses:
            witness.kill()
            witness.join()
        for process, told, file in self._forks:
            process.kill()
            process.join()
            told.close()
            file.close()
        self._locks.close()
        _running.discard(self)

    def _hear(self, patience_s: float) -> bool:
        """Whether a fork told of one more piece in this time; one that has ended tells nothing."""
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
        """Whether no other process does a piece; from now on none will."""
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._numbers[piece])
        except OSError:
            return False
        return True

    def _work(self, do: Callable[[str], Any], tell: Connection, file: Any) -> None:
        """What a fork does; what goes wrong is left for the first process, which tells of it."""
        _end_with_parent()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        end = 0
        for piece in filter(self._is_ours, reversed(self._numbers)):
            try:
                made = do(piece)
                found = pickle.dumps(made) if made is not None else b""
            except Exception:  # whatever a page meets
                found = b""
            os.pwrite(file.fileno(), found, end)
            tell.send((piece, len(found), end))
            end += len(found)

    def _watch(self) -> None:
        """Wait until the first process has ended without a word, and say what it was at."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends all, without a trace
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        if piece := self._here[:].rstrip(b"\0").decode(errors="replace"):
            os.write(2, f"figgen: the build ended while it made {piece}\n".encode())


_running: set[Others] = set()


def end_all() -> None:
    """Let no process go on, for a build that failed."""
    for others in tuple(_running):
        others.end()


def beside(make: Callable[[], Thing]) -> Callable[[], Thing]:
    """Begin to make something, not None, in a fork; what is returned gives it, or makes it here."""
    if not forks():
        return make
    others = Others(["it"], lambda _: make())

    def made() -> Thing:
        found: Thing | None = others.made("it")
        others.end()
        return make() if found is None else found

    return made


def _end_with_parent() -> None:
    """Let a process end when the one that started it does, however that ended."""

    def wait_for_it() -> None:
        parent = multiprocessing.parent_process()
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_for_it, daemon=True).start()
