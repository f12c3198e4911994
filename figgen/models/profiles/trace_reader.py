"""Reads the events of a trace file one by one, without holding the file: PyTorch, JAX, Nsight.

PyTorch's profiler writes one JSON object whose `traceEvents` is a list of up to millions of events;
Chrome's format also allows that list alone. The text is decoded as it arrives, so that memory holds
one piece of it (`figgen.models.profiles.trace_text`).
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
from figgen.models.profiles.trace_text import (
    DEEPEST,
    LARGEST_VALUE,
    NOT_WHOLE,
    TOO_DEEP,
    Header,
    TraceText,
)
from figgen.models.profiles.unpacked import UNLIMITED, Limits, opened

PIECE = 1 << 20
# The text between two events: on separate lines, with a blank, or without.
_EVENT_ENDS = ("},\n", "}, {", "},{")


def trace_events(
    path: str, limits: Limits = UNLIMITED
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each event of the file with the header before it (`distributedInfo` and the like).

    Raises InputError for a file that cannot be read, is cut off, or is not a trace.
    """
    try:
        if _is_report(Path(path)):
            yield from nsight_events(path)
            return
        with opened(Path(path), limits) as file:
            yield from with_jax(_events(file, path))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError("trace", expected="a readable file", got=f"{path}: {error}") from None


def _is_report(path: Path) -> bool:
    """Whether a file is an export of Nsight Systems, which is a database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _events(file: TextIO, path: str) -> Iterator[tuple[Header, dict[str, Any]]]:
    text = TraceText(path, _Values().take, LARGEST_VALUE)
    while not text.done:
        for event in text.read():
            yield text.header, event
        if not text.done:
            text.add(file.read(PIECE))


class _Values:
    """Takes values from a window of text, many events at once if they end within it."""

    def __init__(self) -> None:
        self.decoder = json.JSONDecoder()
        self.single_until = 0  # an offset in the file

    def take(self, text: TraceText, many: bool) -> list[Any] | None:
        """Return the next value or values, or None if the window ends within one.

        The text between events may also occur within an event, and an event may be too deep; the
        window's values are then taken one at a time, which is slower.
        """
        place = text.before + text.at
        if many and place >= self.single_until:
            end = max(text.text.rfind(ending, text.at) for ending in _EVENT_ENDS)
            try:
                events: list[Any] = json.loads(f"[{text.text[text.at : end + 1]}]")
            except (json.JSONDecodeError, RecursionError):
                events = []
            if events and all(_is_shallow(event) for event in events):
                text.at = end + 1
                return events
            # Searching for an end again before each value would scan the window once per value.
            self.single_until = text.before + (end + 1 if end > text.at else len(text.text))
        return self._one(text)

    def _one(self, text: TraceText) -> list[Any] | None:
        try:
            found, end = self.decoder.raw_decode(text.text, text.at)
        except RecursionError:
            raise text.wrong(TOO_DEEP) from None
        except json.JSONDecodeError:
            if text.ended:
                raise text.wrong(NOT_WHOLE) from None
            return None
        _check_depth(text, end)
        # A number at the end of a piece may continue in the next.
        if not text.ended and end == len(text.text):
            return None
        text.at = end
        return [found]


def _check_depth(window: TraceText, end: int) -> None:
    """Raise InputError if the value up to `end` has too many nested lists or objects."""
    text, at = window.text, window.at
    if text.count("[", at, end) + text.count("{", at, end) <= DEEPEST:
        return
    depth = 0
    for bracket in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text[at:end]):
        depth += (bracket in "[{") - (bracket in "]}")
        if depth > DEEPEST:
            raise window.wrong(TOO_DEEP)


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
