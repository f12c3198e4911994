"""Read the glossary and the references, and check all of their keys."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from figgen.errors import EntryPlace, InputError, closest, not_toml, raise_all

Kinds = Mapping[str, type]

TERM: Kinds = {"means": str, "see": str, "short": str, "also": list, "never": list, "hover": bool}
REFERENCE: Kinds = {
    "authors": str, "title": str, "label": str, "where": str, "url": str, "year": str, "note": str,
}  # fmt: skip
WORDS = {str: "text", list: "a list of strings", bool: "true or false"}


def read_list(path: Path, kinds: Kinds, *needed: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a TOML file by name; empty if there is no such file.

    Raises InputError, with file, line and entry, if the file is not valid TOML, or for each key
    that is unknown, missing or of the wrong type.
    """
    if not path.exists():
        return {}
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        entries = _read(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise not_toml(path.name, text, error) from None
    places = {name: EntryPlace(file=path.name, entry=name, content=text) for name in entries}
    raise_all(
        fault
        for name, entry in entries.items()
        for fault in _faults(places[name], entry, kinds, needed)
    )
    return entries


_read = lru_cache(maxsize=8)(tomllib.loads)
"""Nobody changes what it returns."""


def _faults(
    place: EntryPlace, entry: object, kinds: Kinds, needed: tuple[str, ...]
) -> Iterator[InputError]:
    if not isinstance(entry, dict):
        yield place.fault("a value outside any entry", expected="a table")
        return
    for key, value in entry.items():
        kind = kinds.get(key)
        if kind is None:
            yield place.at(key).fault("unknown key", nearest=closest(key, kinds, 1))
        elif not _is(value, kind):
            yield place.at(key).fault("a value", expected=WORDS[kind], got=value)
        elif key == "url" and not str(value).startswith("https://"):
            yield place.at(key).fault("not an address", expected="https://…", got=value)
    for key in needed:
        if key not in entry:
            yield place.at(key).fault("missing", expected=WORDS[kinds[key]])


def _is(value: object, kind: type) -> bool:
    if isinstance(value, list):
        return kind is list and all(isinstance(item, str) for item in value)
    return isinstance(value, kind)


def read_references(docs: Path) -> dict[str, dict[str, Any]]:
    """Return the works that pages cite as `[@key]`; raises InputError as `read_list` does."""
    return read_list(docs / "references.toml", REFERENCE, "title", "authors")


def unknown_reference(key: str, known: Iterable[str]) -> InputError:
    """Return the error for a `[@key]` that `references.toml` lacks."""
    nearest = closest(key, known)
    wanted = f'in docs/references.toml, [{key}] with authors = "…" and title = "…"'
    expected = None if nearest else wanted
    return InputError(f"unknown reference {key!r}", expected=expected, nearest=nearest)


def term_anchor(term: str) -> str:
    """Return the id of a term's entry on the glossary page."""
    return re.sub(r"[^\w]+", "-", term.lower()).strip("-")
