"""A second process for what an edit asks for: a fork of the server that begins at the other end.

Both go through the same pieces of work, the server from the first on and its fork from the last,
until they meet.  A fork knows all that the server knows, changed code included, and lives no longer
than a build.
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
from multiprocessing.connection import Connection
from typing import Any

PATIENCE_S = 30.0
"""How long a fork may say nothing before the server does its work too."""


def end_with_parent() -> None:
    """Let a process end when the one that started it does, however that ended."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def pays() -> bool:
    """Whether there is a processor for it, on a system whose libraries bear to be forked."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


class Second:
    """A fork that does what it can of `pieces`, the last first; `do` gives what can be pickled.

    Each piece is a byte of a file, and whoever locks that does it: where the fork is killed, its
    locks go with it.  What it made is appended to the same file, since a pipe would hold it up
    until the server has time to read.
    """

    def __init__(self, pieces: Iterable[str], do: Callable[[str], Any]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        self._made: dict[str, tuple[int, int]] = {}
        context = multiprocessing.get_context("fork")
        self._told, tell = context.Pipe(duplex=False)
        self._process = context.Process(target=self._work, args=(do, tell), daemon=True)
        with warnings.catch_warnings():
            # Of the server's threads, whose locks a fork cannot wait for; it needs none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        tell.close()

    def made(self, piece: str) -> Any:
        """What the fork made of a piece that it began; None where the server is to do it."""
        if piece not in self._numbers:
            return None
        while self._told.poll() and self._hear():
            pass
        if piece not in self._made and self._is_ours(piece):
            return None
        while piece not in self._made:
            if not (self._told.poll(PATIENCE_S) and self._hear()):
                return None
        length, start = self._made[piece]
        return pickle.loads(os.pread(self._file.fileno(), length, start)) if length else None

    def end(self) -> None:
        """Nobody asks any more."""
        self._process.kill()
        self._process.join()
        self._told.close()
        self._file.close()

    def _hear(self) -> bool:
        """Whether the fork told of one more piece; one that has ended tells nothing."""
        try:
            piece, length, start = self._told.recv()
        except (EOFError, OSError):
            return False
        self._made[piece] = length, start
        return True

    def _is_ours(self, piece: str) -> bool:
        """Whether no other process does a piece; from now on none will."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._numbers[piece])
        except OSError:
            return False
        return True

    def _work(self, do: Callable[[str], Any], tell: Connection) -> None:
        """What the fork does; what goes wrong is left for the server, which tells of it."""
        end_with_parent()
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
            os.pwrite(self._file.fileno(), found, end)
            tell.send((piece, len(found), end))
            end += len(found)
