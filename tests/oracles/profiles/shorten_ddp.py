"""Writes the site's excerpt of a step of DDP that Meta recorded on one of two A100.

    python -m tests.oracles.profiles.shorten_ddp > figgen/catalog/recorded-ddp.json

`ddp-resnet50.json.gz` is `tests/data/nccl_parser_config/nccl_data.json.gz` of
facebookresearch/HolisticTraceAnalysis at f4d0062c (MIT License, Copyright (c) Meta Platforms, Inc.
and affiliates). `tests/catalog/test_recorded.py` compares excerpt and file.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

TRACE = Path(__file__).parent / "ddp-resnet50.json.gz"
STEP = "ProfilerStep#5"
PHASES = {"forward": "## forward ##", "backward": "## backward ##", "update": "## optimizer ##"}

Event = dict[str, Any]


def excerpt() -> dict[str, Any]:
    """Return the step in short; times are microseconds from its beginning on the CPU."""
    with gzip.open(TRACE, "rt", encoding="utf-8") as opened:
        events: list[Event] = json.load(opened)["traceEvents"]
    (step,) = [e for e in events if e.get("name") == STEP and e["cat"] == "user_annotation"]
    start, end = step["ts"], step["ts"] + step["dur"]

    def within(event: Event) -> bool:
        return bool(start <= event["ts"] < end)

    def span(event: Event) -> list[float]:
        return [round(event["ts"] - start, 1), round(event["dur"], 1)]

    launched = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") == "cuda_runtime" and within(e) and "correlation" in e["args"]
    }
    on_gpu = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    ours = sorted(
        (e for e in on_gpu if e["args"]["correlation"] in launched), key=lambda e: e["ts"]
    )
    host = {
        phase: next(
            span(e)
            for e in events
            if e.get("name") == name and within(e) and e["pid"] == step["pid"]
        )
        for phase, name in PHASES.items()
    }
    return {
        "step": round(step["dur"], 1),
        "host": host,
        "kernels": [span(e) for e in ours if "nccl" not in e["name"]],
        "calls": [
            [e["args"]["Collective name"], *span(e), e["args"]["In msg nelems"]]
            for e in ours
            if "nccl" in e["name"]
        ],
    }


if __name__ == "__main__":
    json.dump(excerpt(), sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")
