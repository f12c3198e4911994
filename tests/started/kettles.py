"""What tests do with the site of kettles that `figgen start` writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    settings = {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


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
