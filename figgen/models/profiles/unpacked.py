"""The text of a file that gzip may have packed: no more than is allowed, and told while it is read.

A megabyte of gzip unpacks to a gigabyte of nothing, which would be read for minutes.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from figgen.errors import InputError

PACKED = b"\x1f\x8b"
"""How a file begins that gzip has packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes that a file may unpack to, and whom to tell of the bytes that were read of it."""

    most_bytes: int | None = None
    tell: Callable[[int], None] = lambda read: None


UNLIMITED = Limits()


def opened(path: Path, limits: Limits = UNLIMITED) -> TextIO:
    """The file's text, unpacked. Raises OSError as `open` does, and InputError while it is read."""
    file = path.open("rb")
    packed = file.read(len(PACKED)) == PACKED
    file.seek(0)
    counted = cast(BinaryIO, _Counted(file, path, packed, limits))
    return io.TextIOWrapper(io.BufferedReader(counted, 1 << 20), encoding="utf-8")  # type: ignore[type-var]


class _Counted(io.RawIOBase):
    """Bytes of a file, counted after unpacking."""

    def __init__(self, file: BinaryIO, path: Path, packed: bool, limits: Limits) -> None:
        self.file, self.path, self.limits = file, path, limits
        self.content = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
        self.read_bytes = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as there is anything."""
        found = self.content.read(len(buffer))
        buffer[: len(found)] = found
        self.read_bytes += len(found)
        most = self.limits.most_bytes
        if most is not None and self.read_bytes > most:
            raise InputError(f"trace {self.path}", expected=f"at most {most:,} bytes, unpacked")
        self.limits.tell(self.file.tell())
        return len(found)

    def close(self) -> None:
        """Close the file too."""
        self.file.close()
        super().close()
