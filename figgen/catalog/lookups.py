"""Who asked the catalog for what: so that a server knows which figures a changed entry concerns.

Nothing is noted unless somebody watches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, ParamSpec, TypeAlias, TypeVar

Lookup: TypeAlias = tuple[str, str]
"""A table of the catalog and the name of an entry, `*` for all of them."""

Given = ParamSpec("Given")
Found = TypeVar("Found")
Entries = TypeVar("Entries")

_watchers: list[set[Lookup]] = []


def note(table: str, name: str = "*") -> None:
    """Tell everybody who watches that an entry was looked up."""
    for seen in _watchers:
        seen.add((table, name))


@contextmanager
def watched() -> Iterator[set[Lookup]]:
    """What is looked up meanwhile."""
    seen: set[Lookup] = set()
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.pop()


class Table(Generic[Entries]):
    """A table of the catalog, read once; called, it is the whole table, and noted as such."""

    def __init__(self, read: Callable[[], Entries]) -> None:
        self.name = read.__name__
        self.whole = functools.cache(functools.partial(_unwatched, read))

    def __call__(self) -> Entries:
        note(self.name)
        return self.whole()

    def only(self, name: str) -> Entries:
        """The table for somebody who looks up one entry of it."""
        note(self.name, name)
        return self.whole()


def _unwatched(read: Callable[[], Entries]) -> Entries:
    """Reading looks other tables up, which is of no matter to whoever happens to be the first."""
    watchers, _watchers[:] = _watchers[:], []
    try:
        return read()
    finally:
        _watchers[:] = watchers


def remembered(maxsize: int) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """`lru_cache` for what looks things up: an answer from memory is noted like a new one."""

    def decorate(function: Callable[Given, Found]) -> Callable[Given, Found]:
        @functools.lru_cache(maxsize=maxsize)
        def kept(*args: Given.args, **kwargs: Given.kwargs) -> tuple[Found, frozenset[Lookup]]:
            with watched() as seen:
                found = function(*args, **kwargs)
            return found, frozenset(seen)

        @functools.wraps(function)
        def answer(*args: Given.args, **kwargs: Given.kwargs) -> Found:
            found, seen = kept(*args, **kwargs)  # type: ignore[arg-type]  # all can be hashed
            for lookup in seen:
                note(*lookup)
            return found

        return answer

    return decorate
