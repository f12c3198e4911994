"""serve-tools: offer the ten functions of `figgen` as tools for an agent, or write a skill file."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from figgen.commands import Answer, Verbs, add_verb
from figgen.project import in_another_site

AGENTS = Path(__file__).parent / "stubs" / "agents"


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    serve = add_verb(
        verbs,
        "serve-tools",
        _serve,
        "answer an agent by MCP on standard input and output",
        "--skill",
    )
    serve.add_argument("--skill", action="store_true", help="print a skill file (SKILL.md)")


def skill() -> str:
    """Return the skill file: the guide's, or for another site one about its own numbers."""
    name = "other-skill.txt" if in_another_site() else "skill.txt"
    return (AGENTS / name).read_text(encoding="utf-8")


def _serve(options: argparse.Namespace) -> Answer:
    if options.skill:
        text = skill()
        return Answer({"skill": text}, text.rstrip("\n"))
    # In a separate process, because the functions call this command line themselves.
    done = subprocess.run([sys.executable, "-m", "figgen.agents"])
    return Answer({}, "", done.returncode)
