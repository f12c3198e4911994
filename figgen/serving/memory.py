"""What a server remembers of earlier builds: figures by all that they were computed from.

A figure is computed again when its code, an entry of the catalog that it looked up, or its
arguments changed, and only then.  Nothing of this is ever written to disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

from figgen.cache import digest
from figgen.errors import InputError
from figgen.lookups import NAMES, WHOLE, Lookup, renew, watched
from figgen.serving.code import SourceCode, reload
from figgen.subject import subject

Thing = TypeVar("Thing")

LATER = "after the build"
"""What the threads are called that do what nobody waits for."""


@dataclass(slots=True, kw_only=True)
class KeptAnswer(Generic[Thing]):
    """Something computed, with what it was computed from; `version` is of the last check."""

    thing: Thing
    module: str
    code: str
    entries: dict[Lookup, str]
    version: int


@dataclass(kw_only=True)
class Memory:
    """Figures and pages of earlier builds of one server."""

    code: SourceCode = field(default_factory=SourceCode)
    figures: dict[str, KeptAnswer[Any]] = field(default_factory=dict)
    pages: dict[str, Any] = field(default_factory=dict)
    serials: Iterator[int] = field(default_factory=count)
    published: set[str] = field(default_factory=set)
    _shown: dict[str, str] = field(default_factory=dict)
    _pending: dict[str, str] = field(default_factory=dict)
    _same: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _entries: dict[Lookup, str] = field(default_factory=dict)
    _running: list[threading.Thread] = field(default_factory=list)
    _begun: dict[str, bytes] = field(default_factory=dict)

    def refresh(self) -> bool:
        """Load anew what changed since the last build, if there was one; whether anything did."""
        self.settle()  # it may use what is loaded now
        first = not self.code.version
        changed = self.code.look()
        if changed and not first:
            self._entries.clear()
            if not (changed <= self.code.entries() and _read_anew()):
                reload(self.code.dependents(changed))
        return bool(changed)

    def figure(self, request: str, module: str, make: Callable[[], Thing]) -> Thing:
        """What `make`, code of `module`, gives for a request; from memory while that holds."""
        kept = self.figures.get(request)
        if kept is not None and self._holds(kept):
            thing: Thing = kept.thing
            return thing
        with watched() as seen:
            made = make()
        entries = {lookup: self._entry(lookup) for lookup in seen}
        code = self.code.fingerprint(module)
        self.figures[request] = KeptAnswer(
            thing=made, module=module, code=code, entries=entries, version=self.code.version
        )
        return made

    def same(
        self, name: str, key: str, make: Callable[[], Thing], *, catalog: bool = True
    ) -> Thing:
        """What `make` gave for this key the last time, if code and key were the same then.

        `make` must not depend on the code of figures, and without `catalog` on no entry of it.
        """
        key = f"{self.code.beneath_figures(catalog=catalog)} {key}"
        if name not in self._same or self._same[name][0] != key:
            self._same[name] = key, make()
        found: Thing = self._same[name][1]
        return found

    def known(self) -> dict[str, KeptAnswer[Any]]:
        """All figures that were computed so far, by what was asked for."""
        return dict(self.figures)

    def news(self, before: Mapping[str, KeptAnswer[Any]]) -> dict[str, KeptAnswer[Any]]:
        """What was computed since, for the process that this one was forked from."""
        return {name: kept for name, kept in self.figures.items() if before.get(name) is not kept}

    def learn(self, news: Mapping[str, KeptAnswer[Any]]) -> None:
        """Remember what another process computed by the same code."""
        self.figures |= news

    def outdated(self, files: Iterable[str]) -> list[str]:
        """Those that changed since the first call, which this server cannot load anew."""
        now = {file: Path(file).read_bytes() for file in files}
        self._begun = self._begun or now
        return [file for file, content in now.items() if self._begun.get(file) != content]

    def stale(self, paths: set[str]) -> set[str]:
        """What earlier builds published and this one, which publishes `paths`, does not."""
        gone, self.published = self.published - paths, paths
        return gone

    def is_shown(self, path: str, key: str) -> bool:
        """Whether a page or a file was written with this key; from `shown` on it is."""
        self._pending[path] = key
        if self._shown.get(path) == key:
            return True
        self._shown.pop(path, None)  # it is about to be written over, if the build gets so far
        return False

    def shown(self) -> None:
        """All pages of this build are written; nothing is left of others, which may come back."""
        self._shown, self._pending = self._pending, {}
        self.pages = {path: kept for path, kept in self.pages.items() if path in self._shown}

    def later(self, work: Callable[[], None]) -> None:
        """Begin `work`, for which the page that is shown now need not wait; the next build does."""

        def begin() -> None:
            # A server that ends takes its folder with it.
            with suppress(FileNotFoundError):
                work()

        thread = threading.Thread(target=begin, name=LATER, daemon=True)
        self._running.append(thread)
        thread.start()

    def settle(self) -> None:
        """Wait for all that was begun for later."""
        while self._running:
            self._running.pop().join()

    def _holds(self, kept: KeptAnswer[Any]) -> bool:
        if kept.version == self.code.version:
            return True
        if kept.code != self.code.fingerprint(kept.module):
            return False
        if any(self._entry(lookup) != stamp for lookup, stamp in kept.entries.items()):
            return False
        kept.version = self.code.version
        return True

    def _entry(self, lookup: Lookup) -> str:
        """The digest of an entry of the catalog, or of a whole table of it."""
        if lookup not in self._entries:
            table, name = lookup
            entries = getattr(import_module(subject().entries), table)()
            if name == NAMES:
                found = tuple(entries)
            else:
                found = entries if name == WHOLE else entries.get(name)
            self._entries[lookup] = digest(repr(found))
        return self._entries[lookup]


def _read_anew() -> bool:
    """Whether the tables of the catalog could be; otherwise whoever asks for them is to be told."""
    try:
        renew()
    except InputError:
        return False
    return True
