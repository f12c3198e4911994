"""What the planner's script has besides its own: tables of the search, formulas of failures."""

from __future__ import annotations

import json

from figgen import catalog
from figgen.catalog.interruptions import interruptions
from figgen.equations.javascript import functions_module
from figgen.formulas import FORMULAS
from figgen.scenarios.planning.plan_rows import TERMS
from figgen.scenarios.planning.saving import (
    CONFIDENCE,
    COPY_BYTES_PER_S,
    NODE_BYTES_PER_S,
    QUICK_RESTART_S,
    REPAIR_S,
    RESTART_S,
    STORAGE_BYTES_PER_S,
    WAYS,
)
from figgen.scenarios.runs.timed_kinds import timed_kinds

GOODPUT = ("checkpoint_size", "checkpoint_write_time", "goodput", "job_mtbf", "nodes_in_repair")
"""Formulas of the panel of failures."""


def _timed() -> dict[str, list[list[int]]]:
    """Kinds of layouts that somebody has timed, by accelerator: without experts, and with them."""
    known = timed_kinds()
    chips = sorted({chip for chip, _ in known})
    return {chip: [sorted(known.get((chip, one), ())) for one in (False, True)] for chip in chips}


def plan_module() -> str:
    """The tables of the planner and the formulas of its panel of failures as an ES module."""
    tables = {
        "terms": TERMS,
        "failures": {name: [one.title, one.gpu_mtbf_s] for name, one in interruptions().items()},
        "timed": _timed(),
        "power": {name: chip.tdp.value for name, chip in catalog.ACCELERATORS.items() if chip.tdp},
        "saving": {
            "ways": dict(WAYS),
            "copy": COPY_BYTES_PER_S,
            "node": NODE_BYTES_PER_S,
            "storage": STORAGE_BYTES_PER_S,
            "restart_s": RESTART_S,
            "quick_restart_s": QUICK_RESTART_S,
            "repair_s": REPAIR_S,
            "confidence": CONFIDENCE,
        },
    }
    # Here and not among what all tools import by name: no other computes with them.
    printed = functions_module(FORMULAS[name] for name in GOODPUT)
    return f"{printed}export const TABLES = {json.dumps(tables, separators=(',', ':'))};\n"
