"""Files next to the pages: a server writes only what changed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from figgen.serving.memory import Memory


def write_changed(files: Collection[Any], assets: set[str], site: Path, memory: Memory) -> None:
    """Keep the host from copying files that are unchanged since its last build.

    Pages are exempt. Whatever neither `files` nor the `assets` of pages contain any more is deleted
    from the folder `site`.
    """
    for path in memory.stale(
        {*assets, *(memory.scripts or ()), *(file.dest_uri for file in files)}
    ):
        (site / path).unlink(missing_ok=True)
    for file in files:
        if not file.is_documentation_page() and _stands(file, memory):
            file.copy_file = _nothing


def _nothing(dirty: bool = False) -> None:
    """Return an empty list of files, for a host with nothing left to copy."""


def _stands(file: Any, memory: Memory) -> bool:
    if file.abs_src_path is None:  # it has its content in memory
        key = str(hash(file.content_bytes))
    else:
        about = Path(file.abs_src_path).stat()
        key = f"{about.st_mtime_ns} {about.st_size}"
    # A page's name has no slash in front.
    return memory.is_shown(f"/{file.dest_uri}", key) and Path(file.abs_dest_path).exists()
