"""The text of a trace, taken apart into events as it arrives: printed for pages.

How a whole JSON value is read is the reader's own: Python has a decoder that begins anywhere in a
text, a browser has none.
Source: "Trace Event Format" of Chromium's catapult, sections "JSON Array Format" and "JSON Object
Format".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from figgen.errors import InputError

LARGEST_VALUE = 1 << 26
"""Characters of one event or header; no profiler writes such a one."""
DEEPEST = 200
TOO_DEEP = f"at most {DEEPEST} lists and objects in each other"
NOT_WHOLE = "a whole JSON value"
BLANKS = " \t\r\n"
EVENTS = "traceEvents"

START, KEY, COLON, VALUE, COMMA = "start", "key", "colon", "value", "comma"
OPEN, EVENT, NEXT = "open", "event", "next"
"""What comes next in a file: in its object, and in its list of events."""

Header = dict[str, Any]


class TraceText:
    """A window on the text of the trace `name`, moved on as values are taken.

    `take` takes whole values at `at` and moves it on: several where `many` may be taken. It returns
    None where the text ends too early and goes on, and raises InputError for what is no value.
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
        """Put a piece behind what is left; an empty one is the end of the file."""
        self.before += self.at
        self.text = self.text[self.at :] + piece
        self.at = 0
        self.ended = not piece
        if len(self.text) > self.largest:
            raise self.wrong(f"a value of at most {self.largest:,} characters")

    def wrong(self, expected: str) -> InputError:
        """The error at this place."""
        got = self.text[self.at : self.at + 40] or "the end of the file"
        what = f"trace {self.name}, character {self.before + self.at:,}"
        return InputError(what, expected=expected, got=got)

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the events that the text has whole, until it needs more or is `done`.

        What stands before an event is in `header`. Raises InputError for what is no trace.
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
        """The bracket that may stand in the place of a value."""
        if self.state == KEY:
            return "}"
        return "]" if self.state == EVENT else ""

    def accepted(self, values: list[Any]) -> list[dict[str, Any]]:
        """The events among values that were taken; a key or what it stands for is kept."""
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
        """Go on behind a bracket, colon or comma."""
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
                raise InputError(f"trace {self.name}", expected="a list traceEvents", got=got)
        else:
            self.expect(",", first)
            self.state = EVENT if self.state == NEXT else KEY

    def expect(self, wanted: str, first: str) -> None:
        """Take the character that must stand here."""
        if first != wanted:
            raise self.wrong(f"one of {wanted}")
        self.at += 1
