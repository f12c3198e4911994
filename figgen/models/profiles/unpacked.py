"""Reads a file that may be gzipped, up to a limit, and reports progress while it reads.

A megabyte of gzip can unpack to a gigabyte of zeros, which would take minutes to read.
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
"""The first bytes of a gzip file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most bytes that a file may unpack to, and the callback for bytes read."""

    most_bytes: int | None = None
    tell: Callable[[int], None] = lambda read: None


UNLIMITED = Limits()


def opened(path: Path, limits: Limits = UNLIMITED) -> TextIO:
    """Return the unpacked text of a file, with bytes that are not UTF-8 replaced.

    PyTorch writes names of Python functions byte for byte, in whatever encoding their file has.
    Raises OSError as `open` does, and InputError if reading it exceeds the limit.
    """
    file = path.open("rb")
    packed = file.read(len(PACKED)) == PACKED
    file.seek(0)
    counted = cast(BinaryIO, _Counted(file, path, packed, limits))
    buffered = io.BufferedReader(counted, 1 << 20)  # type: ignore[type-var]
    return io.TextIOWrapper(buffered, encoding="utf-8-sig", errors="replace")


class _Counted(io.RawIOBase):
    """A binary file whose bytes are counted after unpacking."""

    def __init__(self, file: BinaryIO, path: Path, packed: bool, limits: Limits) -> None:
        self.file, self.path, self.limits = file, path, limits
        self.content = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
        self.read_bytes = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer with as many bytes as there are."""
        found = self.content.read(len(buffer))
        buffer[: len(found)] = found
        self.read_bytes += len(found)
        most = self.limits.most_bytes
        if most is not None and self.read_bytes > most:
            raise InputError(f"trace {self.path}", expected=f"at most {most:,} bytes, unpacked")
        self.limits.tell(self.file.tell())
        return len(found)

    def close(self) -> None:
        """Close the underlying file too."""
        self.file.close()
        super().close()
