"""What a server keeps between builds: modules whose code did not change, and what they computed.

`code` knows which files changed and what depends on them, `memory` what was computed from what,
`templates` when a page need not be written; `publish.kept_pages` when it need not be converted.
A build without a server keeps `answers`: what it made, pages too, for builds by the same code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from figgen.serving.memory import Memory

_current: list[Memory] = []


def start() -> Memory:
    """The memory of this process, which is a server; begun by the first call."""
    from figgen.serving.memory import Memory

    if not _current:
        _current.append(Memory())
    return _current[0]


def current() -> Memory | None:
    """The server's memory, None in a build that nothing follows."""
    return _current[0] if _current else None
