"""A finished folder takes another's place: `python -m figgen.publish.place NEW PLACE`.

No reader finds half of one, and of several that come at once the last one stays, whole.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import sys
from pathlib import Path

TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


def put(new: Path, place: Path) -> None:
    """Rename `new` to `place`, and remove what was there."""
    old = new.with_name(f"{new.name}.old")
    while True:
        with contextlib.suppress(FileNotFoundError):
            place.rename(old)
        try:
            new.rename(place)
        except OSError as error:
            if error.errno not in TAKEN:
                raise
            shutil.rmtree(old, ignore_errors=True)  # another came between
        else:
            break
    shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    put(*map(Path, sys.argv[1:]))
