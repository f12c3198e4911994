"""What a build takes over from earlier ones: all that the same code made of the same words.

One file for each request holds the last answer, under a key with the digest of every source and
data file that is followed and the versions of all libraries; where any of them changed, nothing is
taken over.  It is read by `pickle`, so a cache is as trusted as the program beside which it lies,
and only its checksum is looked at.
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
    """Figures and pages of the last build in `folder`, by what was asked for.

    `used` are the files of what this build asked for.
    """

    folder: Path
    code: str = ""
    used: set[str] = field(default_factory=set)
    sources: SourceCode = field(default_factory=SourceCode)
    _given: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.code = self.code or code_digest(self.sources)

    def figure(self, request: str, module: str, make: Callable[[], Thing]) -> Thing:
        """What `make`, code of `module`, gives for a request; kept where the digest knows it."""
        return self.same(request, "", make) if self.sources.knows(module) else make()

    def same(
        self, name: str, key: str, make: Callable[[], Thing], *, catalog: bool = True
    ) -> Thing:
        """The result of `make` for this key, taken from the last build where that has it.

        `catalog` makes no difference here: the digest of an answer covers all code and data.
        """
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
        """What is on disk under a name, if it was made by this code for this key, or None."""
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
        """Keep a thing under a name in place of what was there."""
        cache.write(self.folder, file_of(name), self._head(key) + b"\n" + pickle.dumps(thing))

    def has(self, name: str, key: str = "") -> bool:
        """Whether `same` would make nothing."""
        return self.stored(name, key) is not None

    def known(self) -> set[str]:
        """The files of what was asked for so far."""
        return set(self.used)

    def news(self, before: set[str]) -> set[str]:
        """Those of what was asked for since, for the process that this one was forked from."""
        return self.used - before

    def learn(self, news: set[str]) -> None:
        """Count what another process asked for; its answers are on disk."""
        self.used |= news

    def _head(self, key: str) -> bytes:
        return cache.digest(f"{self.code}\0{key}").encode()


def file_of(name: str) -> str:
    """The file of the answer that is so called."""
    return f"{PREFIX}{cache.digest(name)[:40]}"


def code_digest(sources: SourceCode) -> str:
    """Changes with any source or data file, the interpreter, and the version of any library."""
    sources.look()
    return cache.digest("\0".join((platform.python_version(), *_libraries(), sources.everything())))


def _libraries() -> list[str]:
    """The installed distributions with their versions, by the names of their folders."""
    return sorted({found.name for path in sys.path for found in Path(path).glob("*.dist-info")})
