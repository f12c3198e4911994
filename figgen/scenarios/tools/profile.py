"""The data of the profile reader: pages about parts of a step, and an example."""

from __future__ import annotations

import json

from figgen.models.profiles.profile_beside import PAGES

TITLES = {
    "guide/efficiency": "Efficiency",
    "guide/tensor-parallelism": "Tensor parallelism",
    "guide/experts": "Mixture of experts",
    "guide/context-parallelism": "Context parallelism",
    "guide/zero-fsdp": "ZeRO and FSDP",
    "guide/pipeline-schedules": "Pipeline schedules",
    "guide/reading-a-profile": "Reading a profile",
}
"""Titles of pages about parts of a step."""

EXAMPLES = ("data-parallel-rank0.json.gz", "data-parallel-rank1.json.gz")
"""Recorded traces that the site publishes."""


def profile_json() -> str:
    """Return the profile reader's data: the page about each part of a step, and an example."""
    pages = {part: {"page": page, "title": TITLES[page]} for part, page in PAGES.items()}
    return json.dumps({"pages": pages, "examples": EXAMPLES}) + "\n"
