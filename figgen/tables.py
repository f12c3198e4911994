"""A site's own catalogs: one call reads a TOML file and registers a lookup for pages.

    house = catalog("house", "houses.toml", area=quantity("m²", "1 m²", "9,999 m²"))

Each table of the file is an entry with `source`, `seen` and `confidence`, and sources stand in the
file's own `[sources]`.  Pages then write `{{ house("cottage").area }}`.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

from figgen.entries.entry import CatalogEntry
from figgen.entries.read import NAME, read_entry
from figgen.entries.schema import Key
from figgen.errors import EntryPlace, InputError, not_toml, raise_all, unknown
from figgen.registry import LOOKUPS
from figgen.subject import subject

SOURCES = "sources"


class OwnEntry(SimpleNamespace):
    """One entry: its keys are attributes; `name`, `source` and `note` are every entry's."""

    def __getattr__(self, key: str) -> NoReturn:
        if key.startswith("__"):
            raise AttributeError(key)
        raise AttributeError(str(unknown(f"key of {self.name}", key, vars(self))))


@dataclass(frozen=True, slots=True, eq=False)
class OwnCatalog:
    """A catalog of a site: calling it looks an entry up."""

    name: str
    entries: Mapping[str, OwnEntry]

    def __call__(self, entry: str) -> OwnEntry:
        if entry not in self.entries:
            raise unknown(self.name, entry, self.entries)
        return self.entries[entry]


def _own(entry: CatalogEntry) -> OwnEntry:
    every = {"name": entry.name, "source": entry.source, "note": entry.note}
    return OwnEntry(**{**every, **entry.words, **entry.flags, **entry.values})


def catalog(name: str, file: str | Path, **keys: Key) -> OwnCatalog:
    """Read a catalog, register it for pages under `name`, and return the function that looks up.

    Raises InputError, with file (as seen from the calling module), line, entry and key, for
    everything that is wrong in the file.
    """
    path, content = Path(file), ""
    beside = Path(sys._getframe(1).f_code.co_filename).parent
    told = path.relative_to(beside).as_posix() if path.is_relative_to(beside) else path.name
    try:
        content = path.read_text(encoding="utf-8")
        tables = tomllib.loads(content)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"catalog {name!r}: {path} cannot be read: {why}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise not_toml(told, content, error) from None
    cited = tables.pop(SOURCES, {})
    entries, faults = dict[str, OwnEntry](), list[InputError]()
    for entry, table in tables.items():
        where = f"[{SOURCES}] of {told}"
        place = EntryPlace(file=told, entry=entry, content=content, sources=where)
        if not isinstance(table, dict):
            faults.append(place.fault("a value outside any entry", expected="a table"))
        elif not NAME.fullmatch(entry):
            faults.append(place.fault("a name", expected="lower-case letters, digits and - . _"))
        else:
            try:
                entries[entry] = _own(read_entry(place, table, keys, cited))
            except InputError as error:
                faults += error.all
    raise_all(faults)

    LOOKUPS[name] = found = OwnCatalog(name, entries)
    return found


def catalogs() -> dict[str, Mapping[str, OwnEntry]]:
    """Return the entries of every catalog of the site's modules, by its name."""
    subject()  # which imports the modules
    return {name: one.entries for name, one in LOOKUPS.items() if isinstance(one, OwnCatalog)}
