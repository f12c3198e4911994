"""What a server remembers of earlier builds: each figure with all that it depends on.

A figure is recomputed only when its code, its arguments or a catalog entry that it looked up has
changed. Nothing here is ever written to disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from pathlib import Path
from traceback import print_exception
from typing import Any, Generic, TypeVar

from figgen.cache import digest
from figgen.errors import InputError
from figgen.lookups import NAMES, WHOLE, Lookup, renew, watched
from figgen.serving.code import SourceCode, reload
from figgen.subject import subject

Thing = TypeVar("Thing")

LATER = "after the build"
"""The name of threads whose work no page waits for."""


class Interrupted(BaseException):
    """Ends a build of postponed pages, because something changed again."""


@dataclass(slots=True, kw_only=True)
class KeptAnswer(Generic[Thing]):
    """A result with everything that it was computed from; `version` is that of the last check."""

    thing: Thing
    module: str
    code: str
    entries: dict[Lookup, str]
    version: int


@dataclass(slots=True, kw_only=True)
class Generated:
    """The Markdown of the generated pages by path; `version` is that of the code that made them."""

    pages: dict[str, str]
    about: object
    version: int


@dataclass(kw_only=True)
class Memory:
    """The figures and pages of one server's earlier builds."""

    code: SourceCode = field(default_factory=SourceCode)
    figures: dict[str, KeptAnswer[Any]] = field(default_factory=dict)
    pages: dict[str, Any] = field(default_factory=dict)
    serials: Iterator[int] = field(default_factory=count)
    published: set[str] = field(default_factory=set)
    scripts: dict[str, str | bytes] | None = None
    """The scripts that are written after the pages are shown, by path; None before a build."""
    writing: threading.Thread | None = None
    """Writes these scripts: a request for one waits for it."""
    failure: BaseException | None = None
    """What ended the work that was left for later."""
    tell: Callable[[BaseException], object] = print_exception
    open: Callable[[], set[str]] | None = None
    """Returns the addresses of the pages that readers have open, if that is known."""
    again: Callable[[], object] | None = None
    """Builds the site, with the postponed pages, outside the main thread."""
    postponed: set[str] = field(default_factory=set)
    """Addresses of pages, and files beside them, that the last build left for a further one."""
    _generated: Generated | None = None
    _first: set[str] | None = None
    _postponing: set[str] = field(default_factory=set)
    _changed: threading.Event = field(default_factory=threading.Event)
    _shown: dict[str, object] = field(default_factory=dict)
    _pending: dict[str, object] = field(default_factory=dict)
    _same: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _entries: dict[Lookup, str] = field(default_factory=dict)
    _running: list[threading.Thread] = field(default_factory=list)
    _begun: dict[str, bytes] = field(default_factory=dict)

    def refresh(self) -> bool:
        """Reload what changed since the last build, if any; return whether anything did."""
        self.settle()  # it may use what is loaded now
        self.failure = None
        again = threading.current_thread() in self._running
        self._first = self.open() if self.open and not again else None
        self._postponing = set()
        first = not self.code.version
        changed = self.code.look()
        if changed and not first:
            self._entries.clear()
            if not (changed <= self.code.entries() and _reread()):
                reload(self.code.dependents(changed))
        return bool(changed)

    def figure(self, request: str, module: str, make: Callable[[], Thing]) -> Thing:
        """Return `make()`, code of `module`, for a request; from memory while that's valid."""
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

    def same(self, name: str, key: str, make: Callable[[], Thing]) -> Thing:
        """Return what `make` gave last time if code and key are unchanged, otherwise call it.

        `make` must not depend on the code of figures.
        """
        key = f"{self.code.beneath_figures()} {key}"
        if name not in self._same or self._same[name][0] != key:
            self._same[name] = key, make()
        found: Thing = self._same[name][1]
        return found

    def generated(self, about: object, make: Callable[[], dict[str, str]]) -> dict[str, str]:
        """Return the Markdown of the generated pages by path: the last build's if they can wait.

        They can while readers have other pages open and the code has changed since: then every
        page, and so each of these, is built again after the open ones. `about` is what else they
        follow from and what open pages may link to.
        """
        last = self._generated
        if last and self._first is not None and last.about == about:
            addresses = {self.pages[path].page.url for path in last.pages if path in self.pages}
            if last.version != self.code.version and not self._first & addresses:
                return last.pages
        made = make()
        self._generated = Generated(pages=made, about=about, version=self.code.version)
        return made

    def postpones(self, url: str, files: Iterable[str]) -> bool:
        """Return whether a page can wait for the next build; note it with the files beside it.

        Only a page that nobody has open can.
        """
        if self._first is None or url in self._first:
            return False
        self._postponing |= {url, *files}
        return True

    @property
    def is_partial(self) -> bool:
        """Whether the current build postpones pages, so that what lists all pages has to wait."""
        return bool(self._postponing)

    def go_on(self) -> None:
        """Raise Interrupted in a build of postponed pages if something changed again."""
        if self._changed.is_set() and threading.current_thread() in self._running:
            raise Interrupted

    def known(self) -> dict[str, KeptAnswer[Any]]:
        """Return the requests of all figures computed so far."""
        return dict(self.figures)

    def news(self, before: Mapping[str, KeptAnswer[Any]]) -> dict[str, KeptAnswer[Any]]:
        """Return what was computed since `before`, for a fork to report to its parent."""
        return {name: kept for name, kept in self.figures.items() if before.get(name) is not kept}

    def learn(self, news: Mapping[str, KeptAnswer[Any]]) -> None:
        """Remember what another process computed with the same code."""
        self.figures |= news

    def outdated(self, files: Iterable[str]) -> list[str]:
        """Return the modules that changed since the first call and that can't be reloaded."""
        now = {file: Path(file).read_bytes() for file in files}
        self._begun = self._begun or now
        return [file for file, content in now.items() if self._begun.get(file) != content]

    def stale(self, paths: set[str]) -> set[str]:
        """Return the paths that earlier builds published and that `paths` doesn't contain."""
        gone, self.published = self.published - paths, paths
        return gone

    def is_shown(self, path: str, key: object) -> bool:
        """Return whether a page or file was written with this key; note it as pending."""
        self._pending[path] = key
        if self._shown.get(path) == key:
            return True
        self._shown.pop(path, None)  # it is about to be written over, if the build gets so far
        return False

    def shown(self) -> None:
        """Mark all pages of this build as written and forget others, which may come back."""
        self.postponed = self._postponing
        self._shown, self._pending = self._pending, {}
        self.pages = {path: kept for path, kept in self.pages.items() if path in self._shown}

    def later(self, work: Callable[[], None]) -> threading.Thread:
        """Do work that no page needs, in a thread that the next build waits for.

        It begins after what was left for later before. An error is kept as the `failure`.
        """
        before = self._running[-1:]

        def begin() -> None:
            for thread in before:
                thread.join()
            try:
                work()
            except (FileNotFoundError, Interrupted):
                pass  # a server that ends takes its folder with it
            except (Exception, SystemExit) as error:  # MkDocs ends a build with the latter
                self.tell(error)
                self.failure = error

        thread = threading.Thread(target=begin, name=LATER, daemon=True)
        self._running.append(thread)
        thread.start()
        return thread

    def settle(self) -> None:
        """Wait for everything that `later` started, but for a build of postponed pages only until
        its next page; in such a build, for everything else."""
        own = threading.current_thread()
        if own not in self._running:
            self._changed.set()
        while others := [thread for thread in self._running if thread is not own]:
            others[-1].join()
            self._running.remove(others[-1])
        if own not in self._running:
            self._changed.clear()

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
        """Return the digest of a catalog entry, or of a whole table of the catalog."""
        if lookup not in self._entries:
            table, name = lookup
            entries = getattr(import_module(subject().entries), table)()
            if name == NAMES:
                found = tuple(entries)
            else:
                found = entries if name == WHOLE else entries.get(name)
            self._entries[lookup] = digest(repr(found))
        return self._entries[lookup]


def _reread() -> bool:
    """Reread the catalog; return False if that fails, and leave the error to its readers."""
    try:
        renew()
    except InputError:
        return False
    return True
