"""What a server keeps between builds: unchanged modules, and what they computed.

`code` tracks which files changed and what depends on them, `memory` records what each result was
computed from, and `templates` skips the rendering of pages that would come out the same;
`publish.kept_pages` skips their conversion. A build without a server keeps `answers` on disk:
figures and pages for later builds by the same code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from figgen.serving.memory import Memory

_current: list[Memory] = []


def start() -> Memory:
    """Return the memory of this server process; the first call creates it."""
    from figgen.serving.memory import Memory

    if not _current:
        _current.append(Memory())
    return _current[0]


def current() -> Memory | None:
    """Return the server's memory, or None in a one-off build."""
    return _current[0] if _current else None
