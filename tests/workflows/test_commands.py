"""The commands of the workflows exist and have the given options."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from figgen.__main__ import parser_of

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def run_lines(path: Path) -> list[str]:
    """Return every line of every `run:` of a workflow."""
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"] if "run" in step]
    return [line.strip() for step in steps for line in step["run"].splitlines()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_are_there_and_take_their_options(path: Path) -> None:
    """`make -n` prints what a target runs, and figgen's parser checks its part."""
    printed = []
    for line in run_lines(path):
        if found := re.match(r"(?:[A-Z]+=\S+ )*make (.+?)(?: \||$)", line):
            made = subprocess.run(
                ["make", "--dry-run", *shlex.split(found[1])],
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            assert made.returncode == 0, made.stderr
            printed += made.stdout.splitlines()
        else:
            printed.append(line)
    for line in printed:
        if found := re.search(r"-m figgen ([a-z-]+ .+)", line):
            words = shlex.split(found[1].replace("$BASE", "main"))
            parser_of(words).parse_args(words)
