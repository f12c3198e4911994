"""Record lookups in the catalog, so that a server knows which figures a changed entry affects.

Lookups are recorded only inside `watched`.  A server rereads changed tables and forgets the cached
answers that used changed entries; other answers and all modules are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

Lookup: TypeAlias = tuple[str, str]
"""A table of the catalog and the name of an entry, or `WHOLE` or `NAMES`."""

WHOLE = "*"
NAMES = "names of all"

Given = ParamSpec("Given")
Found = TypeVar("Found")
Entries = TypeVar("Entries")


_watchers: list[set[Lookup]] = []
_tables: dict[str, LookupTable[Any]] = {}
_remembered: dict[str, dict[Any, tuple[Any, frozenset[Lookup]]]] = {}


def note(table: str, name: str = WHOLE) -> None:
    """Record that an entry was looked up, in every enclosing `watched`."""
    for seen in _watchers:
        seen.add((table, name))


@contextmanager
def watched() -> Iterator[set[Lookup]]:
    """Record the lookups of a `with` block; yields the set that they are added to."""
    seen: set[Lookup] = set()
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.pop()


class LookupTable(Generic[Entries]):
    """A table of the catalog, read once; calling it returns and records the whole table."""

    def __init__(self, read: Callable[[], Entries]) -> None:
        self.name = read.__name__
        self.whole = functools.cache(functools.partial(_unwatched, read))
        _tables[self.name] = self

    def __call__(self) -> Entries:
        note(self.name)
        return self.whole()

    def only(self, name: str) -> Entries:
        """Return the table, recording a lookup of one entry."""
        note(self.name, name)
        return self.whole()

    def names(self) -> tuple[str, ...]:
        """Return the names of the table's entries, recording a lookup of the names only."""
        note(self.name, NAMES)
        return tuple(self.whole())  # type: ignore[arg-type]  # of a mapping


def _unwatched(read: Callable[[], Entries]) -> Entries:
    """Read a table without recording lookups, because any caller may be the first to need it."""
    watchers, _watchers[:] = _watchers[:], []
    try:
        return read()
    finally:
        _watchers[:] = watchers


def stored(
    names: Callable[[], Iterable[str]] | None = None,
) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """Mark a lookup that is printed to JavaScript as a table of its answers, not from its source.

    The mark is the attribute `stored_names`. A lookup without `names` takes no argument and has one
    answer.
    """

    def mark(function: Callable[Given, Found]) -> Callable[Given, Found]:
        vars(function)["stored_names"] = names
        return function

    return mark


@dataclass(frozen=True, slots=True)
class OneOf:
    """Annotate a parameter that is a name: `Annotated[str, OneOf(model)]`.

    `known` is the stored lookup that takes the name, or a mapping whose keys are the names and
    whose values may be their titles.
    """

    known: Callable[[str], object] | Mapping[str, object]


def remembered(maxsize: int) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """Cache a function that looks things up; a cached answer records the same lookups.

    Beyond `maxsize` answers, the oldest is dropped.
    """

    def decorate(function: Callable[Given, Found]) -> Callable[Given, Found]:
        kept: dict[Any, tuple[Found, frozenset[Lookup]]] = {}
        _remembered[f"{function.__module__}.{function.__qualname__}"] = kept

        @functools.wraps(function)
        def answer(*args: Given.args, **kwargs: Given.kwargs) -> Found:
            asked = (args, tuple(sorted(kwargs.items())))
            known = kept.get(asked)
            if known is None:
                with watched() as seen:
                    made = function(*args, **kwargs)
                kept[asked] = known = made, frozenset(seen)
                if len(kept) > maxsize:
                    del kept[next(iter(kept))]
            for watching in _watchers:
                watching.update(known[1])
            return known[0]

        return answer

    return decorate


def forget() -> None:
    """Forget all cached answers, as after a change of code."""
    for kept in _remembered.values():
        kept.clear()


def renew() -> set[Lookup]:
    """Reread the tables that were read before, and return the lookups whose results changed.

    Raises the error of a table that cannot be read; cached answers are then kept.
    """
    read = {name: table for name, table in _tables.items() if table.whole.cache_info().currsize}
    old = {name: table.whole() for name, table in read.items()}
    for table in read.values():
        table.whole.cache_clear()
    changed = {
        (name, what) for name, table in read.items() for what in _differs(old[name], table.whole())
    }
    for kept in _remembered.values():
        for asked, (_, seen) in list(kept.items()):
            if not changed.isdisjoint(seen):
                del kept[asked]
    return changed


def _differs(old: object, new: object) -> set[str]:
    """Return the names of entries that differ between two versions of a table, as lookups."""
    if repr(old) == repr(new):
        return set()
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return {WHOLE}
    names = {name for name in old.keys() | new.keys() if repr(old.get(name)) != repr(new.get(name))}
    return names | {WHOLE} | ({NAMES} if list(old) != list(new) else set())
