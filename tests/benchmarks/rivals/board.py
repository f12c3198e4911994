"""Run every rival on the leaderboard's frozen split and write `figgen/catalog/leaderboard.json`.

The constants are those of `rivals.json`: the documented one, and the one with the least error on
the runs that calibrate this project's model, for each kind of run. The split is the one in the
file; without a file it is made of the publishers that only test.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from figgen.catalog.leaderboard import FILE, frozen_split
from figgen.catalog.rivals import rivals
from figgen.scenarios.evidence.publishers import published_runs
from figgen.scenarios.evidence.rivals import kind_of
from figgen.scenarios.evidence.split import PUBLISHER_SIDES, TEST
from figgen.scenarios.runs.described import DescribedRun
from tests.benchmarks.rivals import with_calculon, with_llm_analysis, with_mlsysim
from tests.benchmarks.rivals.refusal import Refusal

MODULES = {"llm-analysis": with_llm_analysis, "mlsysim": with_mlsysim, "calculon": with_calculon}
PATH = Path(__file__).parents[3] / "figgen" / "catalog" / FILE


def write() -> None:
    """Write the file."""
    known = {
        one.run.name: one
        for one in published_runs()
        if not one.fitted and not one.doubt and PUBLISHER_SIDES[one.publisher] == TEST
    }
    date, split = datetime.now(UTC).strftime("%Y-%m-%d"), dict[str, dict[str, float]]()
    if PATH.is_file():
        date, split = (
            frozen_split().date,
            {k: dict(v) for k, v in frozen_split().publishers.items()},
        )
    else:
        for name, one in sorted(known.items()):
            split.setdefault(one.publisher, {})[name] = one.measured_s
    runs = [known[name].run for each in split.values() for name in each]
    entrants = {}
    for name, rival in rivals().items():
        for words, constant_of in (
            (f"{name}, documented constant", lambda run, rival=rival: rival.documented),
            (f"{name}, fitted constants", lambda run, rival=rival: rival.fitted[kind_of(run)]),
        ):
            seconds = {
                run.name: found
                for run in runs
                if (found := _seconds(MODULES[name], run, constant_of(run))) is not None
            }
            entrants[words] = {"version": rival.version, "source": rival.source, "seconds": seconds}
    PATH.write_text(_text(date, split, entrants), encoding="utf-8")


def _seconds(module: ModuleType, run: DescribedRun, constant: float) -> float | None:
    """Return seconds to four digits; None if the tool has no answer or no constant."""
    if not constant:
        return None
    try:
        found = float(f"{module.seconds(run, constant):.4g}")
    except (Refusal, KeyError):
        return None
    return found if math.isfinite(found) and found > 0 else None


def _text(
    date: str,
    split: Mapping[str, Mapping[str, float]],
    entrants: Mapping[str, Mapping[str, object]],
) -> str:
    about = (
        "Measured seconds of a step by publisher and run, frozen on the date: publishers on the "
        "test side of figgen/scenarios/evidence/split.py, no doubtful runs. Entrants' seconds."
    )
    made = {"about": about, "date": date, "runs": split, "entrants": entrants}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write()
