"""Job descriptions for tests, and a function to read them."""

from __future__ import annotations

import json
from pathlib import Path

from figgen.scenarios.taking.job import TakenJob
from figgen.scenarios.taking.options import job_in

ORACLES = Path(__file__).parent.parent / "oracles"
CASES = json.loads((ORACLES / "taken_jobs.json").read_text("utf-8"))["cases"]
"""Published files, each with the options that a person read off it."""


def take(text: str, **answers: str) -> TakenJob:
    """Read a job from a text, with answers to its open questions."""
    return job_in(text, answers)
