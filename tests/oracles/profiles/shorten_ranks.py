"""Writes the site's excerpt of two ranks of a job that wait for each other.

python -m tests.oracles.profiles.shorten_ranks > figgen/catalog/recorded-ranks.json

`record_profiles.py` recorded the traces `docs/assets/examples/data-parallel-rank*.json.gz` on one
machine, so their clocks agree. `tests/catalog/test_recorded.py` compares excerpt and files.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[3] / "docs" / "assets" / "examples"
RANKS = 2

Event = dict[str, Any]


def _events(rank: int) -> list[Event]:
    with gzip.open(EXAMPLES / f"data-parallel-rank{rank}.json.gz", "rt", encoding="utf-8") as read:
        return [event for event in json.load(read)["traceEvents"] if "dur" in event]


def _joined(spans: list[tuple[float, float]]) -> list[list[float]]:
    """Return spans as starts and ends, with touching or overlapping ones merged."""
    found: list[list[float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return found


def excerpt() -> list[dict[str, Any]]:
    """Return each rank's steps, operators and all-reduces: [start, end] in µs from the
    first step."""
    ranks = [_events(rank) for rank in range(RANKS)]
    steps = [e["ts"] for events in ranks for e in events if e["name"].startswith("ProfilerStep#")]
    origin = min(steps)

    def spans(events: list[Event]) -> list[list[float]]:
        ends = [(e["ts"] - origin, e["ts"] + e["dur"] - origin) for e in events]
        return [[round(start, 1), round(end, 1)] for start, end in _joined(ends)]

    return [
        {
            "steps": [
                [round(e["ts"] - origin, 1), round(e["ts"] + e["dur"] - origin, 1)]
                for e in events
                if e["name"].startswith("ProfilerStep#")
            ],
            "operators": spans(
                [e for e in events if e.get("cat") == "cpu_op" and e["name"].startswith("aten::")]
            ),
            "calls": sorted(
                [round(e["ts"] - origin, 1), round(e["ts"] + e["dur"] - origin, 1)]
                for e in events
                if e["name"] == "gloo:all_reduce"
            ),
        }
        for events in ranks
    ]


if __name__ == "__main__":
    json.dump(excerpt(), sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")
