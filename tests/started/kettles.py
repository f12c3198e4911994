"""What tests do with the site of kettles that `figgen start` writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.warm import run


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "mkdocs", "build", "--strict")


def put(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def commit(folder: Path) -> None:
    author = ("-c", "user.name=A", "-c", "user.email=a@localhost")
    for words in (("add", "."), (*author, "commit", "-qm", "begin")):
        subprocess.run(["git", *words], cwd=folder, check=True)


def told(site: Path) -> str:
    """Return what a build says of the site's mistakes, without its other lines."""
    lines = built(site).stdout.splitlines()
    return "\n".join(line for line in lines if line.startswith(("WARNING", "ERROR")))


SUBJECT_LINE = "SUBJECT = Subject("
