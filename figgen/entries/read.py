"""Read catalog files: check every key, attach each value's source, and report every fault."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from figgen.entries.entry import CatalogEntry
from figgen.entries.schema import Key, Keys, Value, wanted
from figgen.errors import EntryPlace, InputError, closest, not_toml, raise_all
from figgen.units import parse_quantity

CONFIDENCE = {
    "read": "seen in the source itself",
    "secondary": "seen in a work that cites it",
    "memory": "not looked up; quantities then need low and high",
}
PROVENANCE = ("source", "seen", "confidence")
SEEN = re.compile(r"20\d\d-(0[1-9]|1[0-2])(-[0-3]\d)?")
NAME = re.compile(r"(?=.*[a-z])[a-z0-9][a-z0-9._-]{0,63}")
"""A name must contain a letter, since JavaScript sorts numeric keys before all others."""
INHERITED = ("constructor",)
"""Names of this form that every JavaScript object has."""
MARKUP = re.compile(
    r"[<>&`{}\[\]$|*\\\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
"""Characters that no text of the catalog may contain: they are markup, or invisible."""
LONGEST_TEXT = 500  # characters; the longest note has about 300
ENTRY_KEYS = (*PROVENANCE, "note")
VALUE_KEYS = ("value", *PROVENANCE, "low", "high")


Thing = TypeVar("Thing")


def parse_file(file: str, content: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a catalog file. Raises InputError for text that is not valid TOML."""
    try:
        tables = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise not_toml(file, content, error) from None
    if not tables:
        raise InputError(f"{file} is empty", expected="at least one entry")
    for name, table in tables.items():
        place = EntryPlace(file=file, entry=name, content=content)
        if not isinstance(table, dict):
            raise place.fault("a value outside any entry", expected="a table")
        if not NAME.fullmatch(name):
            allowed = "at most 64 lower-case letters, digits and - . _, among them a letter"
            raise place.fault("a name", expected=allowed)
        if name in INHERITED:
            raise place.fault("a name", expected="no property of JavaScript objects")
    return tables


def read_entries(
    file: str,
    content: str,
    keys: Keys | Callable[[EntryPlace, Mapping[str, Any]], Keys],
    sources: Mapping[str, str],
) -> dict[str, CatalogEntry]:
    """Return every entry of a file, checked against `keys` (or the keys for each table).

    Raises InputError, naming file, line, entry and key, for every unknown or missing key, missing
    or dangling source, wrong unit, and value outside its plausible range.
    """
    entries, faults = {}, []
    for name, table in parse_file(file, content).items():
        place = EntryPlace(file=file, entry=name, content=content)
        try:
            fitting = keys(place, table) if callable(keys) else keys
            entries[name] = read_entry(place, table, fitting, sources)
        except InputError as error:
            faults.append(error)
    raise_all(faults)
    return entries


def read_entry(
    place: EntryPlace,
    table: Mapping[str, Any],
    keys: Keys,
    sources: Mapping[str, str],
    *,
    cited: bool = True,
) -> CatalogEntry:
    """Return one table as a `CatalogEntry`; raises InputError as `read_entries` does.

    An entry that is not `cited` only refers to a different entry, which has the source.
    """
    faults = _wrong_keys(place, table, keys, cited)

    def attempt(read: Callable[..., Thing], *given: Any) -> Thing | None:
        """Return the result of `read`, or None after collecting its error."""
        try:
            return read(*given)
        except InputError as error:
            faults.append(error)
            return None

    source, seen, confidence = (
        attempt(_provenance, place.at(name), table.get(name), name, sources) or "" if cited else ""
        for name in PROVENANCE
    )
    note = attempt(_plain, place.at("note"), str(table.get("note", ""))) or ""
    entry = CatalogEntry(
        place=place,
        source=source,
        seen=seen,
        confidence=confidence,
        note=note,
        values={},
        words={},
        flags={},
    )
    found: dict[str, dict[str, Any]] = {"text": {}, "flag": {}, "": {}}
    for key, spec in keys.items():
        if key in table:
            kind = spec.kind if spec.kind in found else ""
            given = (place.at(key), table[key])
            if kind == "text":
                found[kind][key] = attempt(_word, *given, spec)
            elif kind == "flag":
                found[kind][key] = attempt(_flag, *given)
            else:
                found[kind][key] = attempt(_value, *given, spec, entry, sources)
    raise_all(faults)
    return CatalogEntry(
        place=place,
        source=source,
        seen=seen,
        confidence=confidence,
        note=note,
        values=found[""],
        words=found["text"],
        flags=found["flag"],
    )


def _wrong_keys(
    place: EntryPlace, table: Mapping[str, Any], keys: Keys, cited: bool
) -> list[InputError]:
    """Return errors for unknown and missing keys; a misspelled key is reported once."""
    known = (*keys, *ENTRY_KEYS) if cited else (*keys, "note")
    missing = {key: spec for key, spec in keys.items() if spec.required and key not in table}
    faults = []
    for key in table:
        if key not in known:
            nearest = closest(key, missing, 1) or closest(key, known)
            faults.append(place.at(key).fault("unknown key", nearest=nearest))
            missing.pop(nearest[0] if nearest else "", None)
    faults += [place.at(k).fault("missing", expected=wanted(spec)) for k, spec in missing.items()]
    return faults


def _plain(place: EntryPlace, got: str) -> str:
    """Return `got` if it contains no markup and is not too long; else raise InputError."""
    if unfit := MARKUP.search(got):
        raise place.fault("not plain text", expected=f"no {unfit[0]!r} in it", got=got)
    if len(got) > LONGEST_TEXT:
        raise place.fault("too long", expected=f"at most {LONGEST_TEXT} characters", got=len(got))
    return got


def cite(place: EntryPlace, cited: object, sources: Mapping[str, str]) -> str:
    """Return the citation for `"key"`, `"key: where in it"` or a list of these."""
    parts = cited if isinstance(cited, list) else [cited]
    if not parts or not all(isinstance(part, str) and part.strip() for part in parts):
        raise place.fault("missing source", expected=f"a key of {place.sources}", got=cited)
    whole: list[str] = []
    for part in map(str, parts):
        key, _, where = part.partition(":")
        if key not in sources:
            raise place.fault(
                "unknown source",
                expected=f"a key of {place.sources}",
                got=key,
                nearest=closest(key, sources),
            )
        whole.append(sources[key] + (f", {_plain(place, where.strip())}" if where.strip() else ""))
    return "; ".join(whole)


def referred(entry: CatalogEntry, key: str, known: Mapping[str, Thing], file: str) -> Thing:
    """Return the entry of a different file that `key` names. Raises InputError if missing."""
    name = entry.words[key]
    if name not in known:
        raise entry.place.at(key).fault(
            "dangling reference",
            expected=f"an entry of {file}",
            got=name,
            nearest=closest(name, known),
        )
    return known[name]


def _provenance(place: EntryPlace, got: object, name: str, sources: Mapping[str, str]) -> str:
    if name == "source":
        return cite(place, got, sources)
    if name == "seen":
        if not isinstance(got, str) or not SEEN.fullmatch(got):
            raise place.fault("missing or malformed", expected='a month as "2026-11"', got=got)
        return got
    if got not in CONFIDENCE:
        known = " or ".join(f'"{word}" ({means})' for word, means in CONFIDENCE.items())
        raise place.fault("missing or unknown", expected=known, got=got)
    return str(got)


def _word(place: EntryPlace, got: object, spec: Key) -> str:
    if not isinstance(got, str) or not got.strip():
        raise place.fault("not text", expected=wanted(spec), got=got)
    if spec.choices and got not in spec.choices:
        raise place.fault("unknown", expected=wanted(spec), got=got)
    return _plain(place, got)


def _flag(place: EntryPlace, got: object) -> bool:
    if not isinstance(got, bool):
        raise place.fault("not a flag", expected="true or false", got=got)
    return got


def _value(
    place: EntryPlace, got: object, spec: Key, entry: CatalogEntry, sources: Mapping[str, str]
) -> Value:
    table: Mapping[str, Any] = got if isinstance(got, dict) else {"value": got}
    for key in table:
        if key not in VALUE_KEYS:
            raise place.fault(f"unknown key {key!r}", nearest=closest(key, VALUE_KEYS))
    if "value" not in table:
        raise place.fault("missing value", expected=wanted(spec))
    source, seen, confidence = (
        _provenance(place, table[name], name, sources) if name in table else getattr(entry, name)
        for name in PROVENANCE
    )
    found = amount(place, table["value"], spec)
    low, high = (
        amount(place, table[end], spec) if end in table else None for end in ("low", "high")
    )
    printed = str(table["value"])
    if low is None or high is None:
        if low is not high or (spec.kind == "quantity" and confidence == "memory"):
            raise place.fault('confidence "memory" needs a range', expected="low and high")
    elif not low <= found <= high:
        raise place.fault("outside its own range", expected=f"{low:g} to {high:g}", got=found)
    else:
        printed += f" ({table['low']} to {table['high']})"
    return Value(
        value=found,
        unit=spec.unit,
        source=source,
        seen=seen,
        confidence=confidence,
        low=low,
        high=high,
        printed=printed,
    )


def amount(place: EntryPlace, got: object, spec: Key) -> float:
    """Return a number of `spec`'s kind in SI. Raises InputError for a wrong unit or range."""
    if spec.kind == "quantity":
        if not isinstance(got, str):
            raise place.fault("a number without a unit", expected=wanted(spec), got=got)
        try:
            found = parse_quantity(got, spec.unit).value
        except InputError as error:
            raise place.fault(str(error)) from None
    else:
        whole = isinstance(got, int) and not isinstance(got, bool)
        if not whole and not (spec.kind == "number" and isinstance(got, float)):
            raise place.fault("not a number", expected=wanted(spec), got=got)
        found = got  # type: ignore[assignment]
    if not spec.low <= found <= spec.high:
        raise place.fault("implausible", expected=wanted(spec), got=got)
    return found


def read_sources(content: str) -> dict[str, str]:
    """Return citations by key from `sources.toml`. Raises InputError for a missing title."""
    found = {}
    for name, table in parse_file("sources.toml", content).items():
        place = EntryPlace(file="sources.toml", entry=name, content=content)
        for key, value in table.items():
            if key not in ("title", "url"):
                raise place.at(key).fault("unknown key", nearest=closest(key, ("title", "url")))
            if not isinstance(value, str) or not value.strip():
                raise place.at(key).fault("not text", got=value)
            _plain(place.at(key), value.replace("&", "") if key == "url" else value)
        if "title" not in table:
            raise place.at("title").fault("missing", expected="a citation")
        if not table.get("url", "https://").startswith("https://"):
            raise place.at("url").fault("not an address", expected="https://…", got=table["url"])
        found[name] = table["title"]
    return found
