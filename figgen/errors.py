"""The exception for bad input, with its place and the nearest valid inputs."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sized
from dataclasses import dataclass, field, replace
from numbers import Integral


class InputError(ValueError):
    """Bad input: what is wrong, what was expected and what was given.

    `nearest` are the closest valid inputs, as a reader would type them. `key` is the key or
    parameter at fault, if there is one; by default it is `what`, if that is a bare name.
    The message is one line; callers that know the place (`page.md:30`) put it in front.
    """

    def __init__(
        self,
        what: str,
        *,
        expected: str | None = None,
        got: object = None,
        nearest: Iterable[str] = (),
        key: str = "",
    ) -> None:
        self.what = what
        self.key = key or (what if what.isidentifier() else "")
        self.expected = expected
        self.got = got
        self.nearest = tuple(nearest)
        super().__init__(self._message())

    @property
    def all(self) -> tuple[InputError, ...]:
        """This error, or all errors that it combines."""
        return (self,)

    def about(self, key: str) -> InputError:
        """The same error, with `key` to blame."""
        return InputError(
            self.what, expected=self.expected, got=self.got, nearest=self.nearest, key=key
        )

    def _message(self) -> str:
        text = self.what
        if self.expected is not None:
            text += f": expected {self.expected}"
        if self.got is not None:
            text += f", got {self.got!r}"
        if self.nearest:
            text += f" (did you mean {' or '.join(self.nearest)}?)"
        return text


class PlacedError(InputError):
    """Bad input whose message names file and line."""


class InputErrors(InputError):
    """Several errors in one; the message has a line for each."""

    def __init__(self, faults: Iterable[InputError]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))

    @property
    def all(self) -> tuple[InputError, ...]:
        """The errors that this one combines."""
        return self.faults


def raise_all(faults: Iterable[InputError]) -> None:
    """Raise the given errors: none, a single one, or several as `InputErrors`."""
    found = tuple(one for fault in faults for one in fault.all)
    if found:
        raise found[0] if len(found) == 1 else InputErrors(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPlace:
    """The place of an entry in a TOML file, for messages."""

    file: str
    entry: str
    key: str = ""
    content: str = field(default="", repr=False, compare=False)
    sources: str = field(default="sources.toml", repr=False, compare=False)
    """Where the citations stand that an entry of this file names."""

    def fault(
        self,
        what: str,
        *,
        expected: str | None = None,
        got: object = None,
        nearest: tuple[str, ...] = (),
    ) -> InputError:
        """The error for this place: "links.toml:12: [nvlink4] bandwidth: what …"."""
        line = f":{self.line}" if self.line else ""
        key = f" {_cut(self.key)}" if self.key else ""
        where = f"{self.file}{line}: [{_cut(self.entry)}]{key}"
        got = (
            f"{got[:LONGEST_SHOWN]}…" if isinstance(got, str) and len(got) > LONGEST_SHOWN else got
        )
        return PlacedError(f"{where}: {what}", expected=expected, got=got, nearest=nearest)

    def at(self, key: str) -> EntryPlace:
        """Return the place of a different key of the same entry."""
        return replace(self, key=key)

    @property
    def line(self) -> int:
        """The line of the key, or of the entry's header if it lacks the key; 0 if unknown."""
        lines, header = self.content.splitlines(), re.compile(r"\[([^\[\]]+)\]")
        own, found = False, 0
        for number, text in enumerate(lines, 1):
            if match := header.match(text):
                own = match[1].strip().strip("\"'") == self.entry
                found = number if own else found
            elif own and self.key and re.match(rf"{re.escape(self.key)}\s*=", text):
                return number
        return found


def not_toml(file: str, content: str, error: ValueError) -> PlacedError:
    """Return the error for a file that is not valid TOML, with its line and what to write there."""
    place = re.search(r" \(at line (\d+), column \d+\)", str(error))
    if not place:
        return PlacedError(f"{file}: not TOML: {error}")
    line = content.splitlines()[int(place[1]) - 1 :][:1]
    bare = re.fullmatch(r"\s*([\w.-]+)\s*=\s*([^\s\"'\[{].*)", line[0]) if line else None
    found = _table_named(str(error).replace(place[0], ""))
    expected = f'text in quotes: {bare[1]} = "{bare[2]}"' if bare else None
    return PlacedError(f"{file}:{place[1]}: not TOML: {found}", expected=expected)


def _table_named(message: str) -> str:
    """Return a message of Python's reader with a table's name as TOML writes it."""

    def named(found: re.Match[str]) -> str:
        parts = re.findall(r"'([^']*)'", found[1])
        return f"[{'.'.join(parts)}]"

    return re.sub(r"\(((?:'[^']*',? ?)+)\)", named, message)


LONGEST_SHOWN = 80  # characters of a name or text that a message repeats


def _cut(name: str) -> str:
    """Return a name as one short line, with unprintable characters escaped."""
    shown = name if name.isprintable() else repr(name)[1:-1]
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def closest(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Names in `known` that are spelled most like `name`, best first; may be empty."""
    return tuple(difflib.get_close_matches(name, list(known), n=count, cutoff=0.6))


def check_between(name: str, value: float, low: float, high: float) -> None:
    """Raise InputError unless low ≤ `value` ≤ high; larger inputs could take hours."""
    if not low <= value <= high:
        raise InputError(name, expected=f"{low:,} to {high:,}", got=value)


def check_size(name: str, size: object) -> int:
    """`size` if it is a whole number of at least 1; raises InputError otherwise."""
    if isinstance(size, bool) or not isinstance(size, (int, Integral)) or size < 1:
        raise InputError(name, expected="a whole number ≥ 1", got=size)
    return int(size)


def check_share(name: str, value: float) -> None:
    """Raise InputError unless 0 < `value` ≤ 1."""
    if not 0 < value <= 1:
        raise InputError(name, expected="above 0, at most 1", got=value)


def check_once(what: str, names: Iterable[str], key: str = "") -> None:
    """Raise InputError for a name that occurs twice: one of its two values would be lost."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{what} {name!r}", expected="one value", got=count, key=key)


def check_equal_lengths(**lists: Sized) -> None:
    """Raise InputError unless the named lists, which are read in step, are equally long."""
    lengths = tuple(map(len, lists.values()))
    if len(set(lengths)) > 1:
        *first, last = lists
        what = f"{', '.join(first)} and {last}"
        raise InputError(what, expected="equal lengths", got=lengths)


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a `name` that is not among `known` things of this `kind`."""
    names = sorted(known)
    nearest = closest(name, names)
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return InputError(
        f"unknown {kind} {name!r}",
        expected=f"one of {listed}" if names and not nearest else None,
        nearest=nearest,
        key=kind if kind.isidentifier() else "",
    )
