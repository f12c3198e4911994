"""serve-tools: offer the ten functions of `figgen` as tools for an agent, or write a skill file."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from figgen.commands import Answer, Verbs, add_verb

SKILL = Path(__file__).parent / "stubs" / "agents" / "skill.txt"


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


def _serve(options: argparse.Namespace) -> Answer:
    if options.skill:
        text = SKILL.read_text(encoding="utf-8")
        return Answer({"skill": text}, text.rstrip("\n"))
    # In a separate process, because the functions call this command line themselves.
    done = subprocess.run([sys.executable, "-m", "figgen.agents"])
    return Answer({}, "", done.returncode)
