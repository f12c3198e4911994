"""Files beside the pages, of which a server writes only what does not stand there already."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from figgen.serving.memory import Memory


def write_changed(files: Collection[Any], assets: set[str], site: Path, memory: Memory) -> None:
    """Let the host copy no file that stands as its last build wrote it; pages are not meant.

    What neither `files` nor the `assets` of pages have any more is taken out of the folder `site`.
    """
    for path in memory.stale(assets | {file.dest_uri for file in files}):
        (site / path).unlink(missing_ok=True)
    for file in files:
        if not file.is_documentation_page() and _stands(file, memory):
            file.copy_file = lambda dirty=False: None


def _stands(file: Any, memory: Memory) -> bool:
    content = file._content
    if content is None:
        about = Path(file.abs_src_path).stat()
        key = f"{about.st_mtime_ns} {about.st_size}"
    else:
        key = str(hash(content))
    # A page's name has no slash in front.
    return memory.is_shown(f"/{file.dest_uri}", key) and Path(file.abs_dest_path).exists()
