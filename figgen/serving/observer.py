"""A file watcher that reports changes to a server."""

from __future__ import annotations

from typing import Any

from watchdog import events
from watchdog.observers import Observer

EVENTS = ("Created", "Modified", "Moved", "Deleted")


class Told(Observer):  # type: ignore[misc,valid-type]
    """A watchdog observer that reports changes but not reads, without polling."""

    def schedule(self, *args: Any, **options: Any) -> Any:
        kinds = [getattr(events, f"File{kind}Event") for kind in EVENTS]
        return super().schedule(*args, event_filter=kinds, **options)
