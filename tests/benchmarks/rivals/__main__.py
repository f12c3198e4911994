"""Run every rival on every run of the catalog and write `figgen/catalog/rivals.json`.

Each rival has one constant, which takes two values: the documented one, and the one with the least
error on the runs that also calibrate this project's model, separately for each kind of run. No user
of the rival does the latter, and it can only help. Nothing is chosen on a test run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import numpy as np

from figgen.catalog.rivals import FILE
from figgen.scenarios.evidence.rivals import RUN_GROUPS, kind_of
from figgen.scenarios.evidence.validation import JudgedRun, judged_runs
from tests.benchmarks.rivals import with_calculon, with_llm_analysis, with_mlsysim
from tests.benchmarks.rivals.refusal import Refusal

COARSE, FINE = 0.1, 0.02
"""Step sizes of the search for constants: coarse over the whole range, then fine around
the best."""

TOOLS: Mapping[str, tuple[ModuleType, dict[str, object]]] = {
    "llm-analysis": (
        with_llm_analysis,
        {
            "version": version("llm-analysis"),
            "source": "https://github.com/cli99/llm-analysis",
            "constant": "flops_efficiency",
            "documented": 0.5,
            "largest": 1.0,
        },
    ),
    "mlsysim": (
        with_mlsysim,
        {
            "version": version("mlsysim"),
            "source": "https://mlsysbook.ai/mlsysim",
            "constant": "efficiency",
            "documented": 0.5,
            "largest": 1.0,
        },
    ),
    "calculon": (
        with_calculon,
        {
            "version": f"{version('calculon')} ({os.environ['COMMIT'][:7]})",
            "source": "https://github.com/calculon-ai/calculon",
            "constant": "factor on the rate of products in its system files",
            "documented": 1.0,
            "largest": 2.0,
        },
    ),
}


def main() -> None:
    """Write the file."""
    judged = judged_runs()
    tools, answers = {}, {}
    for name, (module, facts) in TOOLS.items():
        print(f"{name} on {len(judged)} runs", flush=True)
        largest = float(str(facts["largest"]))
        fitted = {kind: _best(module, judged, kind, largest) for kind in RUN_GROUPS}
        found = {one.run.name: _answers(module, facts, fitted, one) for one in judged}
        tools[name] = facts | {"fitted": fitted}
        answers[name] = found
    rows = {
        one.run.name: [answers[name][one.run.name] for name in TOOLS]
        for one in sorted(judged, key=lambda one: one.run.name)
    }
    path = Path(__file__).parents[3] / "figgen" / "catalog" / FILE
    path.write_text(_text(tools, rows), encoding="utf-8")


def _seconds(module: ModuleType, one: JudgedRun, constant: float) -> float | str:
    """Return seconds, or why the tool has no answer."""
    try:
        return float(f"{module.seconds(one.run, constant):.4g}")
    except Refusal as reason:
        return str(reason)


def _best(module: ModuleType, judged: tuple[JudgedRun, ...], kind: str, largest: float) -> float:
    """Return the constant with the least mean absolute error on the calibration runs; 0 without
    runs."""
    chosen = [one for one in judged if not one.tested and kind_of(one.run) == kind]
    chosen = [one for one in chosen if isinstance(_seconds(module, one, 0.5), float)]
    if not chosen:
        return 0.0

    def error(constant: float) -> float:
        errors = [abs(module.seconds(one.run, constant) / one.measured_s - 1) for one in chosen]
        return float(np.mean(errors))

    coarse = min(_steps(2 * COARSE, largest, COARSE), key=error)
    around = _steps(coarse - COARSE + FINE, min(coarse + COARSE - FINE, largest), FINE)
    return min(around, key=error)


def _steps(first: float, last: float, step: float) -> list[float]:
    return [round(float(value), 2) for value in np.arange(first, last + step / 2, step)]


def _answers(
    module: ModuleType, facts: dict[str, object], fitted: dict[str, float], one: JudgedRun
) -> list[float] | str:
    """Return seconds with the documented constant and with the fitted one, or why there
    are none."""
    documented = _seconds(module, one, float(str(facts["documented"])))
    constant = fitted[kind_of(one.run)]
    if isinstance(documented, str):
        return documented
    return [documented, float(str(_seconds(module, one, constant))) if constant else documented]


def _text(tools: dict[str, dict[str, object]], rows: dict[str, list[object]]) -> str:
    """Return JSON with one line per run."""
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    head = json.dumps(
        {
            "about": "Seconds of a step by other models: [documented, fitted] constant, or what "
            "of the run the tool has no word for. From `make rivals`.",
            "date": day,
            "tools": tools,
        },
        indent=1,
    )
    lines = [
        f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items()
    ]
    return head[:-2] + ',\n "runs": {\n' + ",\n".join(lines) + "\n }\n}\n"


main()
