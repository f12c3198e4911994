"""A pickle of plain data, read without running anything and without more memory than it has data.

The operations of the file are looked through before any of them is carried out.  Refused are those
that name a class or a function, lengths beyond the file's end, and places of the memo beyond all
that the file could fill: nine bytes made CPython reserve gigabytes.  The tools refuse and accept
the same files in the same words: `tools/profile_pickle.js` takes the words from here.
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
LONGEST = 1 << 26  # bytes of a value: the longest that torch writes are names of files
PROTOCOLS = 5
FRAME = 9
"""Bytes of the operation that says how much may be read ahead."""
NAMED = 100
"""Bytes of a name that a message repeats."""

_LENGTHS = {0x8A: 1, 0x8B: 4, 0x8C: 1, 0x58: 4, 0x8D: 8, 0x43: 1, 0x42: 4, 0x8E: 8}
"""Operations with a length before what they push, and the bytes of that length."""

MOST_ALIKE = 100_000
"""Dicts that are looked for again: beyond are no frames of a program."""
_FEW = b"|".join(b"\\x%02x.{%d}" % (size, size) for size in range(9))
_STEP = (
    rb"[(01N\x88\x89\])}aestu\x85\x86\x87\x93\x94]|[Kh].|M..|[Jj]....|G.{8}|\x8a(?:" + _FEW + rb")"
)
_PUT = rb"q.|r...."
_PLAIN = re.compile(rb"(?:" + _STEP + rb"|" + _PUT + rb")*+", re.DOTALL)
_DICT = rb"}\x94\((?:h.|j....|K.|M..|J....|[N\x88\x89]){2,16}+u(?=[}e])"
_ALIKE = re.compile(
    rb"((?:(?!" + _DICT + rb")(?:" + _STEP + rb"))*+)(?:(" + _DICT + rb")|(" + _PUT + rb"|\Z))",
    re.DOTALL,
)
"""Operations, and then a dict of references and numbers, memoized in order and in a list."""

_TEXTS = {0x8C, 0x58, 0x8D}

REFUSED_OPERATIONS = {
    0x82: "a name of the extension registry",
    0x83: "a name of the extension registry", 0x84: "a name of the extension registry",
    0x50: "a persistent name", 0x51: "a persistent name",
}  # fmt: skip
"""Operations that name what is none of the file's data."""


ENDED = "the end of the file"
NO_TEXT = "text that is no UTF-8"
UNFIT = "operations that do not fit each other"


def broken(why: str) -> InputError:
    """The error for a file that no pickler wrote."""
    return InputError("snapshot", expected="a pickle of torch", got=why)


def refused(what: str) -> InputError:
    """The error for an operation that is no plain data."""
    return InputError("snapshot", expected="plain data", got=what)


class _PlainUnpickler(pickle.Unpickler):
    """Reads lists, dicts, texts and numbers; what names anything else is refused once more."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.known: list[Any] = []

    def persistent_load(self, pid: Any) -> Any:
        """A dict that `_Shared` has marked: keep the first of its kind, or give it again."""
        if type(pid) is int:
            return self.known[pid]
        self.known.append(pid)
        return pid

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse what would run code. Raises InputError always."""
        raise refused(f"{module[:NAMED]}.{name[:NAMED]}")


def plain_pickle(file: BinaryIO, tell: Callable[[int], None] = lambda read: None) -> Any:
    """What a file holds; `tell` is called with the bytes that were read, in two passes.

    Dicts of references and numbers that are written alike, as the frames of stacks are, become one
    dict: a snapshot has millions of them.  Raises InputError for what is broken, too much, or no
    plain data.
    """
    window = _Window(file, tell)
    try:
        _look_through(window)
    except InputError as error:
        # Errors before that place are reported first, as by a reader in one pass.
        with contextlib.suppress(EOFError):
            _loaded(_shared(file, window.place, tell))
        raise error from None
    return _loaded(_shared(file, window.before + window.at, tell))


def _shared(file: BinaryIO, end: int, tell: Callable[[int], None]) -> BinaryIO:
    """The operations up to `end`, which were looked through, as `_Shared` writes them."""
    file.seek(0)
    return io.BufferedReader(_Shared(_Window(file, tell), end), PIECE >> 8)


def _loaded(file: BinaryIO) -> Any:
    """What operations that were looked through make. Raises EOFError where they do not end."""
    collecting = gc.isenabled()
    gc.disable()  # millions of objects are made and none of them is garbage
    try:
        return _PlainUnpickler(file).load()
    except (EOFError, InputError):
        raise
    except UnicodeDecodeError:
        raise broken(NO_TEXT) from None
    except MemoryError:
        raise broken("more than fits into memory") from None
    except Exception as error:  # whatever operations lead to that do not fit
        if re.search("truncated|frame", str(error), re.IGNORECASE):
            raise EOFError from None
        raise broken(UNFIT) from None
    finally:
        if collecting:
            gc.enable()


class _Shared(io.RawIOBase):
    """Operations without the lengths by which a reader may read ahead, equal dicts only once.

    The first dict of a kind is followed by the operation that asks `persistent_load`, which keeps
    it; in place of later ones stands its number there.  No file can ask so itself.
    """

    def __init__(self, window: _Window, end: int) -> None:
        self.window, self.end = window, end
        self.numbers: dict[bytes, int] = {}
        self.sharing = True
        self.ready = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int:
        """Fill `into` with what comes next; 0 at the end."""
        while not self.ready:
            if self.window.before + self.window.at >= self.end:
                return 0
            self.ready = memoryview(self._next())
        count = min(len(into), len(self.ready))
        into[:count] = self.ready[:count]
        self.ready = self.ready[count:]
        return count

    def _next(self) -> bytes:
        """The next operations, or the next one with its text."""
        window, left = self.window, self.end - self.window.before
        if run := _PLAIN.match(window.piece, window.at, left):
            window.at = run.end()
            if run[0]:
                return _ALIKE.sub(self._alike, run[0]) if self.sharing else run[0]
        if len(window.piece) - window.at < 9 and window.more():
            return b""
        begin = window.take(1)
        code = begin[0]
        if code in _LENGTHS:
            size = window.take(min(_LENGTHS[code], self._left()))
            count = int.from_bytes(size, "little")
            return begin + size + window.take(min(count, self._left()))
        if code == 0x95:
            window.take(min(FRAME - 1, self._left()))
            return b""
        return begin

    def _left(self) -> int:
        return self.end - self.window.before - self.window.at

    def _alike(self, found: re.Match[bytes]) -> bytes:
        """What stands for a dict, with what stands before it."""
        before, alike, put = found.groups()
        # A memo whose places are named may have one place twice.
        self.sharing = self.sharing and not put
        if not self.sharing or alike is None:
            return found[0]
        number = self.numbers.get(alike)
        if number is not None:
            asked: bytes = before + b"J" + number.to_bytes(4, "little") + b"Q\x94"
            return asked
        if len(self.numbers) == MOST_ALIKE:
            return found[0]
        self.numbers[alike] = len(self.numbers)
        return found[0] + b"Q"


class _Window:
    """A piece of the file, moved on as operations are looked at."""

    def __init__(self, file: BinaryIO, tell: Callable[[int], None]) -> None:
        self.file, self.tell = file, tell
        self.piece, self.at, self.before = b"", 0, 0
        self.place = 0  # of the operation that is looked at

    def more(self) -> bool:
        """Read on behind what is left; False at the end of the file."""
        found = self.file.read(PIECE)
        self.before += self.at
        self.piece, self.at = self.piece[self.at :] + found, 0
        self.tell(self.before)
        return bool(found)

    def take(self, count: int) -> bytes:
        """The next bytes. Raises InputError where the file has fewer."""
        taken = self.piece[self.at : self.at + count]
        self.at += len(taken)
        if len(taken) == count:
            return taken
        parts = [taken]
        while count := count - len(parts[-1]):
            if not self.more():
                raise broken(ENDED)
            parts.append(self.piece[:count])
            self.at = len(parts[-1])
        return b"".join(parts)

    def skip(self, count: int) -> None:
        """Go on behind so many bytes, which need not be held together."""
        while self.at + count > len(self.piece):
            count -= len(self.piece) - self.at
            self.at = len(self.piece)
            if not self.more():
                raise broken(ENDED)
        self.at += count

    def line(self) -> str:
        """The next line, as far as a message repeats it."""
        found = bytearray()
        while (one := self.take(1)) != b"\n":
            if len(found) < NAMED:
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
    return re.compile(
        rb"(?:" + _STEP + rb"|q.|" + memo + rb")*+",
        re.DOTALL,
    )


def _check_text(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise broken(NO_TEXT) from None


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
            if size > LONGEST:
                window.skip(size)
                raise broken(f"a value of more than {LONGEST:,} bytes")
            _check_text(window.take(size)) if code in _TEXTS else window.skip(size)
        elif code == 0x95:
            window.take(FRAME - 1)
        elif code == 0x80:
            if window.take(1)[0] > PROTOCOLS:
                raise broken("another protocol")
        elif code in b"ci":
            raise refused(f"{window.line()}.{window.line()}")
        elif code in REFUSED_OPERATIONS:
            raise refused(REFUSED_OPERATIONS[code])
        elif code == 0x72:
            window.take(4)  # one that was not let through
            raise broken("a memo of too many values")
        elif plain.match(bytes([code]) + bytes(8)).end():  # type: ignore[union-attr]
            raise broken(ENDED)
        else:
            raise broken(f"operation 0x{code:02x} of no plain data of protocols 2 to 5")
