"""Results that a build takes over from earlier builds by the same code.

Each request has one file with its last answer. Its key is a digest of every source and data file
that is followed and of the versions of all libraries, so a change in any of them discards the
answer. Answers are read with `pickle` after only a checksum is compared: trust the cache as much as
the program that it belongs to.
"""

from __future__ import annotations

import pickle
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from figgen import cache
from figgen.serving.code import SourceCode

Thing = TypeVar("Thing")

PREFIX = "computed-"


@dataclass(kw_only=True)
class Answers:
    """The figures and pages of the last build in `folder`, by request.

    `used` holds the names of the files that this build asked for.
    """

    folder: Path
    code: str = ""
    used: set[str] = field(default_factory=set)
    sources: SourceCode = field(default_factory=SourceCode)
    _given: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.code = self.code or code_digest(self.sources)

    def figure(self, request: str, module: str, make: Callable[[], Thing]) -> Thing:
        """Return `make()` for a request, cached if `module` is followed."""
        return self.same(request, "", make) if self.sources.knows(module) else make()

    def same(self, name: str, key: str, make: Callable[[], Thing]) -> Thing:
        """Return `make()` for this key, or the last build's result for the same key."""
        given = self._given.get(name)
        if given is None or given[0] != key:
            found = self.stored(name, key)
            if found is None:
                found = make()
                self.put(name, key, found)
            self._given[name] = given = key, found
        thing: Thing = given[1]
        return thing

    def stored(self, name: str, key: str) -> Any:
        """Return the stored answer if this code made it for this key, or None."""
        file = file_of(name)
        self.used.add(file)
        head, _, stored = (cache.read_bytes(self.folder, file) or b"").partition(b"\n")
        if head != self._head(key):
            return None
        try:
            return pickle.loads(stored)
        except Exception:  # whatever unpickling meets
            return None

    def put(self, name: str, key: str, thing: object) -> None:
        """Store an answer under a name, replacing the one before."""
        cache.write(self.folder, file_of(name), self._head(key) + b"\n" + pickle.dumps(thing))

    def has(self, name: str, key: str = "") -> bool:
        """Return whether `same` would find an answer without computing it."""
        return self.stored(name, key) is not None

    def known(self) -> set[str]:
        """Return the files that this process has asked for so far."""
        return set(self.used)

    def news(self, before: set[str]) -> set[str]:
        """Return the files asked for since `before`, for a fork to report to its parent."""
        return self.used - before

    def learn(self, news: set[str]) -> None:
        """Add the files that another process asked for; their contents are already on disk."""
        self.used |= news

    def _head(self, key: str) -> bytes:
        return cache.digest(f"{self.code}\0{key}").encode()


def file_of(name: str) -> str:
    """Return the file name of the answer called `name`."""
    return f"{PREFIX}{cache.digest(name)[:40]}"


def code_digest(sources: SourceCode) -> str:
    """Return a digest of all sources and data, the interpreter, and all library versions."""
    sources.look()
    return cache.digest("\0".join((platform.python_version(), *_libraries(), sources.everything())))


def _libraries() -> list[str]:
    """Return the names, with versions, of the installed distributions' folders."""
    return sorted({found.name for path in sys.path for found in Path(path).glob("*.dist-info")})
