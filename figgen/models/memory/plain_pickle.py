"""A pickle of plain data, read without running code and in no more memory than its data needs.

All operations of the file are checked before any of them runs. The check refuses operations that
name a class or a function, lengths beyond the end of the file, and memo indices beyond what the
file could fill: nine bytes made CPython reserve gigabytes. The tools refuse and accept the same
files in the same words: `tools/profile_pickle.js` takes the words from here.
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
LONGEST = 1 << 26  # bytes of a value; the longest that torch writes are file names
PROTOCOLS = 5
FRAME = 9
"""Bytes of the FRAME operation, which gives the number of bytes to read ahead."""
NAMED = 100
"""Bytes of a name that a message quotes."""

_LENGTHS = {0x8A: 1, 0x8B: 4, 0x8C: 1, 0x58: 4, 0x8D: 8, 0x43: 1, 0x42: 4, 0x8E: 8}
"""Operations that push a value after its length, with the bytes of that length."""

MOST_ALIKE = 100_000
"""Most distinct dicts that are remembered; the stacks of a program have fewer frames."""
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
"""Operations followed by a dict of references and numbers, memoized in order and in a list."""

_TEXTS = {0x8C, 0x58, 0x8D}

REFUSED_OPERATIONS = {
    0x82: "a name of the extension registry",
    0x83: "a name of the extension registry", 0x84: "a name of the extension registry",
    0x50: "a persistent name", 0x51: "a persistent name",
}  # fmt: skip
"""Operations that refer to something outside the file's data."""


ENDED = "the end of the file"
NO_TEXT = "text that is not UTF-8"
UNFIT = "operations that do not fit each other"


def broken(why: str) -> InputError:
    """Return the error for a file that no pickler wrote."""
    return InputError("snapshot", expected="a pickle written by torch", got=why)


def refused(what: str) -> InputError:
    """Return the error for an operation that is not plain data."""
    return InputError("snapshot", expected="plain data", got=what)


class _PlainUnpickler(pickle.Unpickler):
    """Reads lists, dicts, texts and numbers, and refuses any name a second time."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.known: list[Any] = []

    def persistent_load(self, pid: Any) -> Any:
        """Keep a dict that `_Shared` marked as first of its kind, or return it by its number."""
        if type(pid) is int:
            return self.known[pid]
        self.known.append(pid)
        return pid

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse a name, which could run code. Always raises InputError."""
        raise refused(f"{module[:NAMED]}.{name[:NAMED]}")


def plain_pickle(file: BinaryIO, tell: Callable[[int], None] = lambda read: None) -> Any:
    """Return the contents of a file; two passes call `tell` with the number of bytes read.

    Equal dicts of references and numbers, such as the frames of stacks, become one shared dict,
    because a snapshot has millions of them. Raises InputError for a file that is broken, too large,
    or not plain data.
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
    """Return the checked operations up to `end`, as `_Shared` writes them."""
    file.seek(0)
    return io.BufferedReader(_Shared(_Window(file, tell), end), PIECE >> 8)


def _loaded(file: BinaryIO) -> Any:
    """Return what checked operations build. Raises EOFError where they have no end."""
    collecting = gc.isenabled()
    gc.disable()  # loading creates millions of objects, none of them garbage
    try:
        return _PlainUnpickler(file).load()
    except (EOFError, InputError):
        raise
    except UnicodeDecodeError:
        raise broken(NO_TEXT) from None
    except MemoryError:
        raise broken("more data than fits into memory") from None
    except Exception as error:  # operations that do not fit each other may raise anything
        if re.search("truncated|frame", str(error), re.IGNORECASE):
            raise EOFError from None
        raise broken(UNFIT) from None
    finally:
        if collecting:
            gc.enable()


class _Shared(io.RawIOBase):
    """Operations without the lengths that let a reader read ahead, and with equal dicts only once.

    After the first dict of a kind, an operation calls `persistent_load`, which keeps the dict; each
    later one is replaced by its number. No file can contain such a call itself.
    """

    def __init__(self, window: _Window, end: int) -> None:
        self.window, self.end = window, end
        self.numbers: dict[bytes, int] = {}
        self.sharing = True
        self.ready = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, into: Any) -> int:
        """Fill `into` with the next bytes and return their number, 0 at the end."""
        while not self.ready:
            if self.window.before + self.window.at >= self.end:
                return 0
            self.ready = memoryview(self._next())
        count = min(len(into), len(self.ready))
        into[:count] = self.ready[:count]
        self.ready = self.ready[count:]
        return count

    def _next(self) -> bytes:
        """Return the next operations, or the next operation with its text."""
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
        """Return the bytes that replace a dict, after the operations before it."""
        before, alike, put = found.groups()
        # An explicit memo index may occur twice.
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
    """A piece of the file, which moves forward as operations are checked."""

    def __init__(self, file: BinaryIO, tell: Callable[[int], None]) -> None:
        self.file, self.tell = file, tell
        self.piece, self.at, self.before = b"", 0, 0
        self.place = 0  # of the current operation

    def more(self) -> bool:
        """Read the next piece after the unread bytes; return False at the end of the file."""
        found = self.file.read(PIECE)
        self.before += self.at
        self.piece, self.at = self.piece[self.at :] + found, 0
        self.tell(self.before)
        return bool(found)

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes. Raises InputError where the file has fewer."""
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
        """Skip `count` bytes in pieces. Raises InputError where the file has fewer."""
        while self.at + count > len(self.piece):
            count -= len(self.piece) - self.at
            self.at = len(self.piece)
            if not self.more():
                raise broken(ENDED)
        self.at += count

    def line(self) -> str:
        """Return the next line, cut to the length that a message quotes."""
        found = bytearray()
        while (one := self.take(1)) != b"\n":
            if len(found) < NAMED:
                found += one
        return found.decode("latin-1")


def _plain_operations(places: int) -> re.Pattern[bytes]:
    """Return a pattern for runs of operations that push or build plain data of known length.

    It accepts memo indices below `places`, rounded up to a multiple of 65,536.
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
            # A memo has at most as many indices as bytes have been read.
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
                raise broken(f"a protocol above {PROTOCOLS}")
        elif code in b"ci":
            raise refused(f"{window.line()}.{window.line()}")
        elif code in REFUSED_OPERATIONS:
            raise refused(REFUSED_OPERATIONS[code])
        elif code == 0x72:
            window.take(4)  # an index that the pattern did not accept
            raise broken("a memo index beyond what the file can fill")
        elif plain.match(bytes([code]) + bytes(8)).end():  # type: ignore[union-attr]
            raise broken(ENDED)
        else:
            raise broken(f"operation 0x{code:02x}, which is not plain data of protocols 2 to 5")
