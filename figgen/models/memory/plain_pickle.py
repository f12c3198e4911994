"""A pickle of plain data, read without running anything and without more memory than it has data.

The operations of the file are looked through before any of them is carried out.  Refused are those
that name a class or a function, lengths beyond the file's end, and places of the memo beyond all
that the file could fill: nine bytes made CPython reserve gigabytes.  The tools refuse and accept
the same files in the same words (`engine/pickle.js`).
Source: CPython, Lib/pickletools.py, opcodes of protocols 2 to 5.
"""

from __future__ import annotations

import contextlib
import gc
import io
import pickle
import re
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

from figgen.errors import InputError

PIECE = 1 << 24
PROTOCOLS = 5
FRAME = 9
"""Bytes of the operation that says how much may be read ahead."""
_NAMED = 100
"""Bytes of a name that a message repeats."""

_LENGTHS = {0x8A: 1, 0x8B: 4, 0x8C: 1, 0x58: 4, 0x8D: 8, 0x43: 1, 0x42: 4, 0x8E: 8}
"""Operations with a length before what they push, and the bytes of that length."""

_TEXTS = {0x8C, 0x58, 0x8D}

_REFUSED = {
    0x82: "a name of the extension registry",
    0x83: "a name of the extension registry", 0x84: "a name of the extension registry",
    0x50: "a persistent name", 0x51: "a persistent name",
}  # fmt: skip


ENDED = "the end of the file"
NO_TEXT = "text that is no UTF-8"
UNFIT = "operations that do not fit each other"


def _broken(why: str) -> InputError:
    return InputError("snapshot", expected="a pickle of torch", got=why)


def _refused(what: str) -> InputError:
    return InputError("snapshot", expected="plain data", got=what)


class _PlainUnpickler(pickle.Unpickler):
    """Reads lists, dicts, texts and numbers; what names anything else is refused once more."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse what would run code. Raises InputError always."""
        raise _refused(f"{module[:_NAMED]}.{name[:_NAMED]}")


def plain_pickle(file: BinaryIO, tell: Callable[[int], None] = lambda read: None) -> Any:
    """What a file holds; `tell` is called with the bytes that were looked through.

    Raises InputError for what is broken, too much, or no plain data.
    """
    window = _Window(file, tell)
    try:
        _look_through(window)
    except InputError as error:
        # What is wrong before that place is told first, as by who reads only once.
        with contextlib.suppress(EOFError):
            _loaded(_without_frames(window, window.place))
        raise error from None
    file.seek(0)
    try:
        return _loaded(file)
    except EOFError:  # of a frame, which says nothing about the data
        return _loaded(_without_frames(window, window.before + window.at))


def _without_frames(window: _Window, end: int) -> BinaryIO:
    """What was looked through up to `end`, without the lengths by which a reader may read ahead."""
    window.file.seek(0)
    content = window.file.read(end)
    ends = [0, *(place + FRAME for place in window.frames)]
    parts = zip(ends, [*window.frames, len(content)], strict=True)
    return io.BytesIO(b"".join(content[start:end] for start, end in parts))


def _loaded(file: BinaryIO) -> Any:
    """What operations that were looked through make. Raises EOFError where they do not end."""
    collecting = gc.isenabled()
    gc.disable()  # millions of objects are made and none of them is garbage
    try:
        return _PlainUnpickler(file).load()
    except (EOFError, InputError):
        raise
    except UnicodeDecodeError:
        raise _broken(NO_TEXT) from None
    except MemoryError:
        raise _broken("more than fits into memory") from None
    except Exception as error:  # whatever operations lead to that do not fit
        if re.search("truncated|frame", str(error), re.IGNORECASE):
            raise EOFError from None
        raise _broken(UNFIT) from None
    finally:
        if collecting:
            gc.enable()


class _Window:
    """A piece of the file, moved on as operations are looked at."""

    def __init__(self, file: BinaryIO, tell: Callable[[int], None]) -> None:
        self.file, self.tell = file, tell
        self.piece, self.at, self.before = b"", 0, 0
        self.place = 0  # of the operation that is looked at
        self.frames: list[int] = []

    def more(self) -> bool:
        """Read on behind what is left; False at the end of the file."""
        found = self.file.read(PIECE)
        self.before += self.at
        self.piece, self.at = self.piece[self.at :] + found, 0
        self.tell(self.before)
        return bool(found)

    def take(self, count: int) -> bytes:
        """The next bytes. Raises InputError where the file has fewer."""
        while self.at + count > len(self.piece):
            if not self.more():
                raise _broken(ENDED)
        self.at += count
        return self.piece[self.at - count : self.at]

    def skip(self, count: int) -> None:
        """Go on behind so many bytes, which need not be held together."""
        while self.at + count > len(self.piece):
            count -= len(self.piece) - self.at
            self.at = len(self.piece)
            if not self.more():
                raise _broken(ENDED)
        self.at += count

    def line(self) -> str:
        """The next line, as far as a message repeats it."""
        found = bytearray()
        while (one := self.take(1)) != b"\n":
            if len(found) < _NAMED:
                found += one
        return found.decode("latin-1")


def _plain_operations(places: int) -> re.Pattern[bytes]:
    """As many operations as follow each other that push or build plain data of a known length.

    Of the memo's places those below `places`, rounded up to 64 KiB, are let through.
    """
    high, low = places >> 24, min(places >> 16, 0xFF)
    memo = b"r..[\\x00-\\x%02x]\\x00" % low
    if high:
        memo += b"|r..[\\x00-\\xff][\\x00-\\x%02x]" % high
    longs = b"|".join(b"\\x%02x.{%d}" % (size, size) for size in range(9))
    return re.compile(
        rb"(?:[(01N\x88\x89\])}aestu\x85\x86\x87\x93\x94]|[Khq].|M..|[Jj]....|G.{8}"
        rb"|\x8a(?:" + longs + rb")|" + memo + rb")*+",
        re.DOTALL,
    )


def _check_text(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise _broken(NO_TEXT) from None


def _look_through(window: _Window) -> None:
    """Raise InputError unless every operation up to the end is one of plain data."""
    places, plain = 0, _plain_operations(0)
    while True:
        window.at = plain.match(window.piece, window.at).end()  # type: ignore[union-attr]
        if len(window.piece) - window.at < 9 and window.more():
            # A memo has at most as many places as the file has had bytes.
            if window.before + len(window.piece) > places:
                places = window.before + len(window.piece)
                plain = _plain_operations(places)
            continue
        window.place = window.before + window.at
        code = window.take(1)[0]
        if code == 0x2E:
            return
        if code in _LENGTHS:
            size = int.from_bytes(window.take(_LENGTHS[code]), "little")
            _check_text(window.take(size)) if code in _TEXTS else window.skip(size)
        elif code == 0x95:
            window.take(FRAME - 1)
            window.frames.append(window.place)
        elif code == 0x80:
            if window.take(1)[0] > PROTOCOLS:
                raise _broken("another protocol")
        elif code in b"ci":
            raise _refused(f"{window.line()}.{window.line()}")
        elif code in _REFUSED:
            raise _refused(_REFUSED[code])
        elif code == 0x72:
            window.take(4)  # one that was not let through
            raise _broken("a memo of too many values")
        elif plain.match(bytes([code]) + bytes(8)).end():  # type: ignore[union-attr]
            raise _broken(ENDED)
        else:
            raise _broken(f"operation 0x{code:02x} of no plain data of protocols 2 to 5")
