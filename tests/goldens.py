"""Expected text under tests/golden/, so that every change of it shows as a diff."""

from __future__ import annotations

import difflib
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
REMEDY = "if the change is meant, run `make golden` and review the diff"


def difference(path: Path, text: str) -> str:
    """Return the difference between `text` and the golden at `path` as a message; empty
    if equal."""
    if not path.exists():
        return f"{path.name} has never been written; {REMEDY}"
    lines = difflib.unified_diff(
        path.read_text(encoding="utf-8").splitlines(),
        text.splitlines(),
        fromfile=f"tests/golden/{path.name}",
        tofile="printed now",
        lineterm="",
    )
    changes = "\n".join(lines)
    return f"{REMEDY}\n{changes}" if changes else ""


def write(path: Path, text: str) -> None:
    """Write `text` as the golden at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
