"""Rendered pictures on disk, one file per key.

An entry is a checksum followed by the picture, so a truncated or corrupted file is detected and
rendered again. Files are written under a temporary name and renamed into place, so two simultaneous
builds at worst do the same work twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from pathlib import Path


def digest(text: str) -> str:
    """Return the SHA-256 of `text`, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(folder: Path, key: str) -> str | None:
    """Return the picture stored under `key`, or None if there is no intact one."""
    stored = read_bytes(folder, key)
    # Line ends are part of what was stored: CSV ends its lines with two characters.
    return None if stored is None else stored.decode()


def read_bytes(folder: Path, key: str) -> bytes | None:
    """Return the bytes stored under `key`, or None if there are none or their checksum is wrong."""
    try:
        stored = (folder / key).read_bytes()
    except OSError:
        return None
    checksum, _, content = stored.partition(b"\n")
    return content if checksum == _checksum(content) else None


def write(folder: Path, key: str, content: str | bytes) -> bool:
    """Store `content` under `key`, whole or not at all; return False if writing fails.

    The cache only saves time: a full disk, an unwritable folder, or a folder under the key only
    makes the next build slower.
    """
    content = content.encode() if isinstance(content, str) else content
    try:
        _write(folder, key, content)
    except OSError:
        return False
    return True


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _write(folder: Path, key: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".new-{os.getpid()}-{threading.get_ident()}"
    try:
        temporary.write_bytes(_checksum(content) + b"\n" + content)
        temporary.replace(folder / key)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def prune(folder: Path, keep: set[str], limit: int = 4096) -> int:
    """Delete the oldest entries beyond `limit`, but none in `keep`; return their number."""
    if not folder.is_dir():
        return 0
    entries = sorted((p for p in folder.iterdir() if p.name not in keep), key=_modified)
    surplus = entries[: max(0, len(entries) + len(keep) - limit)]
    for entry in surplus:
        with contextlib.suppress(OSError):
            entry.unlink()
    return len(surplus)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
