"""What tells a server that files changed."""

from __future__ import annotations

from typing import Any

from watchdog import events
from watchdog.observers import Observer

EVENTS = ("Created", "Modified", "Moved", "Deleted")


class Told(Observer):  # type: ignore[misc,valid-type]
    """Is told of changes, and not of reading, instead of looking twice a second."""

    def schedule(self, *args: Any, **options: Any) -> Any:
        kinds = [getattr(events, f"File{kind}Event") for kind in EVENTS]
        return super().schedule(*args, event_filter=kinds, **options)
