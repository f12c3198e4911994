"""What the profile reader goes by, printed for its script: names in traces and in snapshots."""

from __future__ import annotations

import json

from figgen.models.memory import allocator_snapshot
from figgen.models.profiles import trace_kinds
from figgen.models.profiles.profile import PARTS
from figgen.models.profiles.profile_beside import PAGES
from figgen.models.step.step_traffic import PASSES


def profile_tables_module() -> str:
    """The tables of `trace_kinds`, `allocator_snapshot` and `profile` as a module."""
    kinds, snapshot = trace_kinds, allocator_snapshot
    tables = {
        "type_bytes": kinds.TYPE_BYTES,
        "kernels": kinds.KERNELS,
        "copies": kinds.COPIES,
        "launches": kinds.LAUNCHES,
        "ours": kinds.OURS,
        "made_by": kinds.MADE_BY,
        "step": kinds.STEP,
        "collectives": kinds.COLLECTIVES,
        "one_sided": kinds.ONE_SIDED,
        "passes": PASSES,
        "axes": kinds.AXES,
        "parts": PARTS,
        "tensors": snapshot.KINDS,
        "other": snapshot.OTHER,
        "before": snapshot.BEFORE,
        "used": snapshot.USED,
        "waiting": snapshot.WAITING,
        "free": snapshot.FREE,
        "states": snapshot.OLDER_STATES,
        "said": snapshot.SAID,
    }
    return f"export const tables = {json.dumps(tables, ensure_ascii=False)};\n"


TITLES = {
    "guide/efficiency": "Efficiency",
    "guide/tensor-parallelism": "Tensor parallelism",
    "guide/experts": "Mixture of experts",
    "guide/context-parallelism": "Context parallelism",
    "guide/zero-fsdp": "ZeRO and FSDP",
    "guide/pipeline-schedules": "Pipeline schedules",
    "guide/reading-a-profile": "Reading a profile",
}
"""What the pages about parts of a step are called."""

EXAMPLES = ("data-parallel-rank0.json.gz", "data-parallel-rank1.json.gz")
"""Recorded traces that the site publishes."""


def profile_json() -> str:
    """What the profile reader begins with: the page about each part of a step, and an example."""
    pages = {part: {"page": page, "title": TITLES[page]} for part, page in PAGES.items()}
    return json.dumps({"pages": pages, "examples": EXAMPLES}) + "\n"
