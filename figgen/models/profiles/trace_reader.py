"""Events of a trace file one by one, without holding the file: PyTorch's, JAX's, or Nsight's.

PyTorch's profiler writes one JSON object whose `traceEvents` is a list of up to millions of
events; Chrome's format also allows that list alone. The text is decoded as it arrives, so that
memory holds one piece of it.
Source: "Trace Event Format" of Chromium's catapult, sections "JSON Array Format" and "JSON Object
Format".
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from figgen.errors import InputError
from figgen.models.profiles.jax_trace import with_jax
from figgen.models.profiles.nsight import MAGIC, nsight_events
from figgen.models.profiles.unpacked import UNLIMITED, Limits, opened

PIECE = 1 << 20
LARGEST_VALUE = 1 << 26
"""Characters of one event or header; no profiler writes such a one."""
_BLANKS = re.compile(r"[ \t\r\n]*")
# How one event ends and the next begins: written by line, with a blank, and packed.
_EVENT_ENDS = ("},\n", "}, {", "},{")
DEEPEST = 200
TOO_DEEP = f"at most {DEEPEST} lists and objects in each other"

Header = dict[str, Any]


def trace_events(
    path: str, limits: Limits = UNLIMITED
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each event of the file with what stood before the events (`distributedInfo` and the like).

    Raises InputError for a file that cannot be read, is cut off, or is no trace.
    """
    try:
        if _is_report(Path(path)):
            yield from nsight_events(path)
            return
        with opened(Path(path), limits) as file:
            yield from with_jax(_events(_Text(file, path)))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError("trace", expected="a readable file", got=f"{path}: {error}") from None


def _is_report(path: Path) -> bool:
    """Whether a file is an export of Nsight Systems, which is a database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class _Text:
    """A window on the text, moved on as values are taken."""

    def __init__(self, file: TextIO, path: str) -> None:
        self.file, self.path = file, path
        self.text, self.at, self.before = "", 0, 0
        self.single_until = 0
        self.decoder = json.JSONDecoder()

    def more(self) -> bool:
        """Read another piece behind what is left; False at the end of the file."""
        piece = self.file.read(PIECE)
        self.before += self.at
        self.text, self.at, self.single_until = self.text[self.at :] + piece, 0, 0
        if len(self.text) > LARGEST_VALUE:
            raise self.wrong(f"a value of at most {LARGEST_VALUE:,} characters")
        return bool(piece)

    def next(self) -> str:
        """The next character that is no white space, not taken; empty at the end."""
        while True:
            self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def take(self, wanted: str) -> str:
        """Take the next character, which is one of `wanted`."""
        found = self.next()
        if not found or found not in wanted:
            raise self.wrong(f"one of {' '.join(wanted)}")
        self.at += 1
        return found

    def value(self) -> Any:
        """Take the next value, reading on until it is whole."""
        self.next()
        ended = False
        while True:
            try:
                found, end = self.decoder.raw_decode(self.text, self.at)
                self.check_depth(end)
                # A number at the end of a piece may go on in the next.
                if ended or end < len(self.text):
                    self.at = end
                    return found
            except RecursionError:
                raise self.wrong(TOO_DEEP) from None
            except json.JSONDecodeError:
                if ended:
                    raise self.wrong("a whole JSON value") from None
            ended = not self.more()

    def check_depth(self, end: int) -> None:
        """Raise InputError where the value up to `end` has too many lists in each other."""
        text, at = self.text, self.at
        if text.count("[", at, end) + text.count("{", at, end) <= DEEPEST:
            return
        depth = 0
        for bracket in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text[at:end]):
            depth += (bracket in "[{") - (bracket in "]}")
            if depth > DEEPEST:
                raise self.wrong(TOO_DEEP)

    def many(self) -> list[Any]:
        """Take all events of a list that the window holds as a whole, or the next value alone.

        What looks like the end of an event may stand within one, and an event may be too deep:
        then the window's values are taken one at a time, which takes longer.
        """
        if self.at >= self.single_until:
            end = max(self.text.rfind(ending, self.at) for ending in _EVENT_ENDS)
            try:
                events: list[Any] = json.loads(f"[{self.text[self.at : end + 1]}]")
            except (json.JSONDecodeError, RecursionError):
                events = []
            if events and all(_is_shallow(event) for event in events):
                self.at = end + 1
                return events
            # Looking for an end again before each value would read the window once for each.
            self.single_until = end + 1 if end > self.at else len(self.text)
        return [self.value()]

    def wrong(self, expected: str) -> InputError:
        """The error at this place."""
        got = self.text[self.at : self.at + 40] or "the end of the file"
        return InputError(
            f"trace {self.path}, character {self.before + self.at:,}", expected=expected, got=got
        )


def _events(text: _Text) -> Iterator[tuple[Header, dict[str, Any]]]:
    header: Header = {}
    if text.next() == "[":
        yield from _list(text, header)
        return
    text.take("{")
    found = False
    while text.next() != "}":
        key = text.value()
        text.take(":")
        if key == "traceEvents":
            found = True
            yield from _list(text, header)
        else:
            header[str(key)] = text.value()
        if text.next() != "}":
            text.take(",")
    if not found:
        raise InputError(f"trace {text.path}", expected="a list traceEvents", got=list(header)[:8])


def _list(text: _Text, header: Header) -> Iterator[tuple[Header, dict[str, Any]]]:
    text.take("[")
    while text.next() != "]":
        for event in text.many():
            if not isinstance(event, dict):
                raise text.wrong("events that are objects")
            yield header, event
        if text.next() != "]":
            text.take(",")
    text.take("]")


def _is_shallow(event: Any) -> bool:
    """Whether an event has nothing deeper than lists of lists in its arguments."""
    if not isinstance(event, dict):
        return False
    for value in event.values():
        inner = value.values() if isinstance(value, dict) else value
        if isinstance(inner, str | int | float) or inner is None:
            continue
        for one in inner:
            if isinstance(one, dict) or (isinstance(one, list) and any(map(_has_parts, one))):
                return False
    return True


def _has_parts(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_is_list, value)))


def _is_list(value: Any) -> bool:
    return isinstance(value, list | dict)
