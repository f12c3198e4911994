"""Writes the site's excerpt of two files that PyTorch recorded of this project's steps on an H100.

    python -m tests.oracles.profiles.shorten_recorded > figgen/catalog/recorded-steps.json

`tinyllama-amp-eager.json.gz` is a step in torch.profiler's trace, `llama1b-amp-eager.pickle.gz` a
step in the allocator's snapshot.  `tests/catalog/test_recorded.py` compares excerpt and files.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from figgen.commands.snapshot import read_snapshot
from figgen.models.memory.allocator_snapshot import history_of
from figgen.models.profiles.kernel_kinds import ATTENTION, OPTIMIZER, PRODUCT, kind_of_kernel

HERE = Path(__file__).parent
TRACE, SNAPSHOT = HERE / "tinyllama-amp-eager.json.gz", HERE / "llama1b-amp-eager.pickle.gz"
STEP, OPTIMIZER_STEP = "ProfilerStep#2", "Optimizer.step#AdamW.step"
LAYER = 9
"""The layer whose forward pass is shown kernel by kernel, counted from 0."""

PASSES = "passes"
KINDS = (PRODUCT, ATTENTION, OPTIMIZER)
"""Kinds of kernels by name; all other kernels are passes over memory."""

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")

Event = dict[str, Any]


def excerpt() -> dict[str, Any]:
    """Return both recordings in short; times are microseconds from the beginning of the step."""
    with gzip.open(TRACE, "rt", encoding="utf-8") as opened:
        events: list[Event] = json.load(opened)["traceEvents"]
    return {"trace": _trace(events), "memory": _memory()}


def _trace(events: list[Event]) -> dict[str, Any]:
    step = next(event for event in events if event.get("name") == STEP)
    calls = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in CALLS and "correlation" in event.get("args", {})
    }
    on_gpu = sorted((e for e in events if e.get("cat") in ON_GPU), key=lambda e: e["ts"])
    launched = [(e, calls.get(e["args"]["correlation"], {"ts": 0})) for e in on_gpu]
    ours = [(e, call) for e, call in launched if call["ts"] >= step["ts"]]
    turn = min(call["ts"] for _, call in ours if call["tid"] != step["tid"])
    rows = [(_phase(call, step, turn), _kind(event), event, call) for event, call in ours]
    before = [event for event, call in launched if call["ts"] < step["ts"]]
    return {
        "step": _span([step], step["ts"]),
        "before": _span(before, step["ts"])[1],
        "phases": {
            phase: {
                "host": _span([call for at, _, _, call in rows if at == phase], step["ts"]),
                "gpu": _span([event for at, _, event, _ in rows if at == phase], step["ts"]),
                "busy": {
                    kind: round(sum(e["dur"] for at, k, e, _ in rows if (at, k) == (phase, kind)))
                    for kind in (*KINDS, PASSES)
                },
            }
            for phase in ("forward", "backward", "update")
        },
        "layer": _layer([(kind, event) for at, kind, event, _ in rows if at == "forward"]),
    }


def _phase(call: Event, step: Event, turn: float) -> str:
    """Return the phase of a launch; the autograd engine's thread launches backward from time
    `turn`.

    What the main thread launches after it clips the gradients is the update of the weights.
    """
    if call["tid"] != step["tid"]:
        return "backward"
    return "forward" if call["ts"] < turn else "update"


def _kind(event: Event) -> str:
    kind = kind_of_kernel(event["name"]) if event["cat"] == "kernel" else PASSES
    return kind if kind in KINDS else PASSES


def _span(events: list[Event], start: float) -> list[int]:
    ends = [event["ts"] + event["dur"] for event in events]
    return [round(min(event["ts"] for event in events) - start), round(max(ends) - start)]


def _layer(forward: list[tuple[str, Event]]) -> list[list[Any]]:
    """Return kind, start and length of each kernel of a layer, from its first norm to its last sum.

    A layer lies between two additions to the residual after the matmuls of attention and MLP: seven
    matmuls and one attention.
    """
    attended = [at for at, (kind, _) in enumerate(forward) if kind == ATTENTION]
    products = [at for at, (kind, _) in enumerate(forward) if kind == PRODUCT]
    here = attended[LAYER]
    before = [at for at in products if at < here][-4]  # the last matmul of the layer below
    last = [at for at in products if at > here][3]  # this layer's own
    shown = forward[before + 2 : last + 2]
    start = shown[0][1]["ts"]
    return [[kind, round(e["ts"] - start, 1), round(e["dur"], 1)] for kind, e in shown]


def _memory() -> dict[str, Any]:
    snapshot = read_snapshot(str(SNAPSHOT))
    trace = snapshot["device_traces"][0]
    start = trace[0]["time_us"]
    marks = {
        f"{mark['stage']} {mark['name']}": mark["time_us"] - start
        for mark in snapshot["external_annotations"]
    }
    moments = [
        [trace[moment.event - 1]["time_us"] - start, moment.bytes, moment.kinds.get("gradients", 0)]
        for moment in history_of(snapshot, 0)
    ]
    loss = max(moments, key=lambda moment: moment[1])
    return {
        "backward": loss[0],
        "update": marks[f"START {OPTIMIZER_STEP}"],
        "moments": moments,
    }


if __name__ == "__main__":
    json.dump(excerpt(), sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")
