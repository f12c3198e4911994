"""start: a small working site of your own, which you then change into yours."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from figgen.commands import Answer, add_verb
from figgen.errors import InputError

if TYPE_CHECKING:
    from figgen.commands import Verbs

FILES = Path(__file__).parent / "stubs" / "start"


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    start = add_verb(
        verbs, "start", _start, "write a small site of your own, ready to build", "my-site"
    )
    start.add_argument("folder", type=Path, help="a folder that is new or empty")


def _start(options: argparse.Namespace) -> Answer:
    folder: Path = options.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("folder", expected="one that is new or empty", got=str(folder))
    name = re.sub(r"[^a-z0-9]+", "-", folder.absolute().name.lower()).strip("-") or "site"
    words = {
        "name": name,
        "title": name.replace("-", " ").capitalize(),
        "month": f"{datetime.now(UTC):%Y-%m}",
    }
    written = []
    try:
        for source in sorted(FILES.rglob("*.txt")):
            name = source.relative_to(FILES).with_suffix("").as_posix()
            path = re.sub(r"\bdot-", ".", name)  # a wheel leaves out what begins with a dot
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            text = Template(source.read_text(encoding="utf-8")).safe_substitute(words)
            target.write_text(text, encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise InputError(f"{folder} cannot be written", got=str(error)) from None
    lines = [f"wrote {len(written)} files: {', '.join(written)}", "next:", f"  cd {folder}"]
    after = ("mkdocs serve", "python -m pytest", "mkdocs build --strict")
    return Answer({"wrote": written}, "\n".join([*lines, *(f"  {command}" for command in after)]))
