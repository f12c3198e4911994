"""The tables of the planner's script."""

from __future__ import annotations

import json

from figgen import catalog
from figgen.catalog.interruptions import interruptions
from figgen.scenarios.planning.plan_rows import TERMS
from figgen.scenarios.runs.timed_kinds import timed_kinds


def _timed() -> dict[str, list[list[int]]]:
    """Return the kinds of layouts with measured steps, by accelerator: without and with experts."""
    known = timed_kinds()
    chips = sorted({chip for chip, _ in known})
    return {chip: [sorted(known.get((chip, one), ())) for one in (False, True)] for chip in chips}


def plan_module() -> str:
    """Return the tables of the planner as an ES module."""
    tables = {
        "terms": TERMS,
        "failures": {name: [one.title, one.gpu_mtbf_s] for name, one in interruptions().items()},
        "timed": _timed(),
        "power": {name: chip.tdp.value for name, chip in catalog.ACCELERATORS.items() if chip.tdp},
    }
    return f"export const TABLES = {json.dumps(tables, separators=(',', ':'))};\n"
