"""Swap a finished site into place: `place begin PLACE PID`, then `place end NEW PLACE`.

`begin` prints a folder next to the place to build into, so that one system call exchanges the two
and no reader sees half a site or none. A symbolic link stays a link, and its target is exchanged.
Where folders can't be exchanged (a mounted place, as in a container), files are copied one by one,
each of them whole. Published files are readable by everybody, no matter which user built them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sys
from pathlib import Path

TAKEN = (errno.ENOTEMPTY, errno.EEXIST)
ELSEWHERE = (errno.EXDEV, errno.EBUSY, errno.EACCES, errno.EPERM)
"""Errors of a place that can't be renamed: on another file system, mounted, or not ours."""
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)

_AT_FDCWD, _RENAME_EXCHANGE, _RENAME_SWAP = -100, 2, 2
_FILE, _FOLDER = 0o644, 0o755


def begin(place: Path, pid: int) -> Path:
    """Return the folder for process `pid` to build into; raises OSError if it couldn't be swapped.

    Removes what killed builds left behind, and restores a site that a killed build had set aside.
    """
    real = place.resolve()
    if real.exists() and not real.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "the site's place is a file", str(place))
    near = real.parent if os.access(real.parent, os.W_OK) else Path(".cache").resolve()
    near.mkdir(exist_ok=True)
    for left in sorted(near.glob(f".{real.name}-*-*")):
        _, kind, number = left.name.rsplit("-", 2)
        if number.isdigit() and kind in ("new", "old") and not _runs(int(number)):
            if kind == "old" and not real.exists():
                left.rename(real)
            else:
                shutil.rmtree(left, ignore_errors=True)
    if not os.access(real if real.exists() else real.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "the site's place cannot be written", str(place))
    return near / f".{real.name}-new-{pid}"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def put(new: Path, place: Path) -> None:
    """Put the folder `new` in place of `place`, and remove the old one.

    If several builds finish at once, the last one stays.
    """
    readable(new)
    real = place.resolve()
    old = new.with_name(
        new.name.replace("-new-", "-old-") if "-new-" in new.name else f"{new.name}.old"
    )
    while True:
        try:
            if real.exists():
                _exchange(new, real, old)
            else:
                new.rename(real)
        except FileNotFoundError:
            if not (new.exists() and real.parent.exists()):
                raise
            continue  # another took away what was there
        except OSError as error:
            if error.errno in TAKEN:
                continue  # another came between
            if error.errno not in ELSEWHERE:
                raise
            copy(new, real)
        break
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)


def _exchange(new: Path, place: Path, old: Path) -> None:
    """Exchange two folders in one call, or in two where the system has none; else OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = os.fsencode(new), os.fsencode(place)
    if sys.platform == "linux" and hasattr(libc, "renameat2"):
        failed = libc.renameat2(_AT_FDCWD, words[0], _AT_FDCWD, words[1], _RENAME_EXCHANGE)
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*words, _RENAME_SWAP)
    else:
        failed = -1
        ctypes.set_errno(errno.ENOSYS)
    if not failed:
        return
    number = ctypes.get_errno()
    if number not in NO_EXCHANGE:
        raise OSError(number, os.strerror(number), str(place))
    place.rename(old)
    try:
        new.rename(place)
    except OSError:
        with contextlib.suppress(OSError):
            old.rename(place)
        raise


def readable(folder: Path) -> None:
    """Make all files readable by everybody and writable by their owner, whatever the umask."""
    for path, _, files in os.walk(folder):
        os.chmod(path, _FOLDER)
        for name in files:
            os.chmod(os.path.join(path, name), _FILE)


def copy(new: Path, place: Path) -> None:
    """Copy `new` over `place` file by file, each of them whole, and remove files not in `new`."""
    place.mkdir(exist_ok=True)
    for path, folders, files in os.walk(new):
        there = place / Path(path).relative_to(new)
        for name in folders:
            if (there / name).is_symlink() or (there / name).is_file():
                (there / name).unlink()
            (there / name).mkdir(exist_ok=True)
            (there / name).chmod(_FOLDER)
        for name in files:
            if (there / name).is_dir() and not (there / name).is_symlink():
                shutil.rmtree(there / name)
            part = there / f".{name}.part"
            shutil.copyfile(Path(path, name), part)
            part.chmod(_FILE)
            part.replace(there / name)
    for path, folders, files in os.walk(place, topdown=False):
        here = new / Path(path).relative_to(place)
        for name in (name for name in files if not (here / name).exists()):
            Path(path, name).unlink()
        for name in (name for name in folders if not (here / name).exists()):
            left = Path(path, name)
            left.unlink() if left.is_symlink() else left.rmdir()


def main(words: list[str]) -> int:
    """Run a command; if the system refuses, print one line and return status 1."""
    try:
        match words:
            case ["begin", place, pid]:
                print(begin(Path(place), int(pid)))
            case ["end", new, place]:
                put(Path(new), Path(place))
            case _:
                print("usage: place begin PLACE PID | place end NEW PLACE", file=sys.stderr)
                return 2
    except OSError as error:
        print(f"the site is not put in its place: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
