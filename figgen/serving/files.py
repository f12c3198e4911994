"""Files beside the pages: a server writes what does not stand there already, a build all.

A build does so in another process, while the first one puts pages into the theme.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from figgen.serving.memory import Memory
from figgen.serving.others import beside


def write_changed(files: Collection[Any], assets: set[str], site: Path, memory: Memory) -> None:
    """Let the host copy no file that stands as its last build wrote it; pages are not meant.

    What neither `files` nor the `assets` of pages have any more is taken out of the folder `site`.
    """
    for path in memory.stale(assets | {file.dest_uri for file in files}):
        (site / path).unlink(missing_ok=True)
    for file in files:
        if not file.is_documentation_page() and _stands(file, memory):
            file.copy_file = _nothing


def copy_beside(files: Iterable[Any]) -> Callable[[], object]:
    """Begin to copy in place of the host what it publishes beside pages; what is returned waits."""
    others = [
        file for file in files if file.inclusion.is_included() and not file.is_documentation_page()
    ]
    copies = [file.copy_file for file in others]

    def copy() -> bool:
        for make in copies:
            make()
        return True

    copied = beside(copy)
    for file in others:
        file.copy_file = _nothing
    return copied


def _nothing(dirty: bool = False) -> None:
    """What there is left to copy."""


def _stands(file: Any, memory: Memory) -> bool:
    if file.abs_src_path is None:  # it has its content in memory
        key = str(hash(file.content_bytes))
    else:
        about = Path(file.abs_src_path).stat()
        key = f"{about.st_mtime_ns} {about.st_size}"
    # A page's name has no slash in front.
    return memory.is_shown(f"/{file.dest_uri}", key) and Path(file.abs_dest_path).exists()
