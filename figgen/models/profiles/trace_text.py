"""Splits the text of a trace into events as it arrives; printed to JavaScript for pages.

Callers supply how a whole JSON value is read: Python has a decoder that can begin anywhere in a
text, a browser has none.
Source: "Trace Event Format" of Chromium's catapult, sections "JSON Array Format" and "JSON Object
Format".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from figgen.errors import InputError

LARGEST_VALUE = 1 << 26
"""Most characters of one event or header; no profiler writes longer ones."""
DEEPEST = 200
TOO_DEEP = f"at most {DEEPEST} nested lists and objects"
NOT_WHOLE = "a whole JSON value"
BLANKS = " \t\r\n"
EVENTS = "traceEvents"

OTHER_FILES = (
    ("nodes", "an execution trace, which records operators without the times of kernels"),
    ("rocprofiler-sdk-tool", "rocprofv3's own JSON: record with torch.profiler instead"),
)
"""Members of other tools' files, and what these are."""
OTHER_STARTS = (
    ("PK", "a zip archive: unpack it"),
    ("BZh", "bzip2: unpack it"),
    ("\ufffd7zXZ", "xz: unpack it"),
    ("(\ufffd/\ufffd", "zstd: unpack it"),
    ("\x1f\ufffd", "gzip inside gzip: unpack it once"),
    ("\ufffd\ufffd", "UTF-16: save it as UTF-8"),
    ("version https://git-lfs", "a Git LFS pointer: fetch the file with git lfs pull"),
    ("<", "a web page: download the file itself"),
)
"""Beginnings of files that hold no trace, with bytes that are not UTF-8 replaced."""
ARCHIVED = 600
"""Characters at the start of a file in which a tar archive has zeros."""

START, KEY, COLON, VALUE, COMMA = "start", "key", "colon", "value", "comma"
OPEN, EVENT, NEXT = "open", "event", "next"
"""What the parser expects next, in the object and in its list of events."""

Header = dict[str, Any]


class TraceText:
    """A window on the text of the trace `name`, which moves on as values are taken.

    `take` reads whole values at `at` and moves it on, several if `many` may be taken. It returns
    None if the text ends too early and continues, and raises InputError for what is not a value.
    """

    def __init__(
        self, name: str, take: Callable[[TraceText, bool], list[Any] | None], largest: int
    ) -> None:
        self.name, self.take, self.largest = name, take, largest
        self.text, self.at, self.before = "", 0, 0
        self.ended, self.done, self.found = False, False, False
        self.state, self.member = START, ""
        self.alone = False  # events without an object around them
        self.header: Header = {}

    def add(self, piece: str) -> None:
        """Append a piece to the remaining text; an empty piece is the end of the file."""
        self.before += self.at
        self.text = self.text[self.at :] + piece
        self.at = 0
        self.ended = not piece
        if len(self.text) > self.largest:
            raise self.wrong(f"a value of at most {self.largest:,} characters")

    def wrong(self, expected: str) -> InputError:
        """Return the error at this place."""
        got = self.text[self.at : self.at + 40] or "the end of the file"
        what = f"trace {self.name}, character {self.before + self.at:,}"
        return InputError(what, expected=expected, got=got)

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the events that are complete, until more text is needed or the trace is `done`.

        `header` holds what precedes an event. Raises InputError for what is not a trace.
        """
        while not self.done:
            while self.at < len(self.text) and self.text[self.at] in BLANKS:
                self.at += 1
            if self.at == len(self.text) and not self.ended:
                return
            first = self.text[self.at : self.at + 1]
            if self.state in (KEY, VALUE, EVENT) and first != self.closing():
                values = self.take(self, self.state == EVENT)
                if values is None:
                    return
                yield from self.accepted(values)
            else:
                self.step(first)

    def closing(self) -> str:
        """Return the bracket that may occur instead of a value."""
        if self.state == KEY:
            return "}"
        return "]" if self.state == EVENT else ""

    def accepted(self, values: list[Any]) -> list[dict[str, Any]]:
        """Return the events among the values; a key or a header value is stored instead."""
        if self.state == EVENT:
            self.state = NEXT
            if not all(isinstance(one, dict) for one in values):
                raise self.wrong("events that are objects")
            return values
        if self.state == KEY:
            self.member, self.state = str(values[0]), COLON
        else:
            self.header[self.member] = values[0]
            self.state = COMMA
        return []

    def step(self, first: str) -> None:
        """Move past a bracket, colon or comma."""
        if self.state == START:
            self.alone = first == "["
            self.expect("[" if self.alone else "{", first)
            self.state = EVENT if self.alone else KEY
        elif self.state == COLON:
            self.expect(":", first)
            self.found = self.found or self.member == EVENTS
            self.state = OPEN if self.member == EVENTS else VALUE
        elif self.state == OPEN:
            self.expect("[", first)
            self.state = EVENT
        elif first == "]" and self.state in (EVENT, NEXT):
            self.at += 1
            self.done, self.state = self.alone, COMMA
        elif first == "}" and self.state in (KEY, COMMA):
            self.done = True
            if not self.found:
                got = list(self.header)[:8]
                also = [what for key, what in OTHER_FILES if key in self.header]
                expected = f"a list traceEvents{'; this is ' + also[0] if also else ''}"
                raise InputError(f"trace {self.name}", expected=expected, got=got)
        else:
            self.expect(",", first)
            self.state = EVENT if self.state == NEXT else KEY

    def expect(self, wanted: str, first: str) -> None:
        """Move past the character `wanted`. Raises InputError for any other."""
        if first != wanted and self.state == START:
            self.refuse(first)
        if first != wanted and "\0" in self.text[:ARCHIVED]:
            raise InputError(f"trace {self.name}", expected="the trace itself, not an archive")
        if first != wanted:
            raise self.wrong(f"one of {wanted}")
        self.at += 1

    def refuse(self, first: str) -> None:
        """Raise InputError for a file that is known by its beginning to hold no trace."""
        what = f"trace {self.name}"
        if self.name.endswith(".pb"):
            expected = "the .trace.json.gz that JAX's profiler writes beside its .xplane.pb"
            raise InputError(what, expected=expected)
        if not first:
            raise InputError(what, expected="the JSON of a profiler", got="an empty file")
        for start, said in OTHER_STARTS:
            if self.text.startswith(start):
                raise InputError(what, expected="the JSON of a profiler", got=said)
