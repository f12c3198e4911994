"""The kernels in the trace of a predicted step, as our own reader of profiles counts them."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.models.profiles.profile import RankProfile, profiles
from figgen.models.profiles.trace_reader import trace_events
from figgen.scenarios.options.resolve import TrainingStep, training_step

SMALL = {"model": "llama-3-8b", "nodes": 2, "gpus_per_node": 8, "microbatches": 4}
CASES: dict[str, dict[str, Any]] = {
    "data parallel": SMALL,
    "recomputed": SMALL | {"recompute": "full"},
    "pipeline": SMALL | {"tp": 2, "pp": 4},
    "zero bubble": SMALL | {"pp": 4, "schedule": "zb1p"},
    "routed": SMALL | {"model": "mixtral-8x7b", "ep": 8},
    "multi-token prediction": {
        "model": "deepseek-v3",
        "nodes": 16,
        "gpus_per_node": 8,
        "pp": 8,
        "ep": 16,
        "microbatches": 16,
        "mtp_layers": 1,
    },
}
MEMORY = ("fused", "elementwise", "indexing", "quantization")


def written(chosen: dict[str, Any], folder: Path, *how: str) -> tuple[Path, TrainingStep]:
    """Return the trace that the command line writes, and the step."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in chosen.items()]
    file = folder / "step.json"
    assert main(["trace-export", str(file), *words, *how]) == 0
    return file, training_step(**chosen)


def read(file: Path, asked: TrainingStep) -> RankProfile:
    """Return the profile of the rank that works longest."""
    return profiles(trace_events(str(file)), "step")[asked.estimate.bottleneck]


@pytest.mark.parametrize("how", [(), ("--together",)], ids=["apart", "together"])
@pytest.mark.parametrize("name", CASES)
def test_a_trace_has_the_seconds_of_each_kind_that_the_model_predicts(
    name: str, how: tuple[str, ...], tmp_path: Path
) -> None:
    file, asked = written(CASES[name], tmp_path, *how)
    rank, predicted = read(file, asked), dict(asked.estimate.kinds)
    found = {one.kind: one.seconds for one in rank.kinds}
    assert rank.wall_s == pytest.approx(asked.estimate.step_time_s, rel=1e-6)
    assert found["optimizer"] == pytest.approx(predicted["update"], rel=1e-4)
    computing = sum(predicted[one] for one in ("matmuls", "attention", "elementwise"))
    computing += predicted["head and loss"]
    computing += predicted["recomputation"]
    # The head's seconds include what the layer of a module of multi-token prediction waits.
    step, job = asked.predicted.parts, asked.predicted.job
    module_s = float(step.expert.total_s - step.expert.kernels_s) * job.mtp_layers
    computing -= job.microbatches * module_s
    products = found["product"] + found.get("softmax", 0.0)
    moved = sum(found.get(kind, 0.0) for kind in MEMORY)
    kernels = products + found["attention"] + moved
    # DeepSeek-V3's three dense layers are all on the first stage; the prediction takes the mean.
    assert kernels == pytest.approx(computing, rel=5e-3 if job.mtp_layers else 2e-3)
    if not predicted["recomputation"] and not job.mtp_layers:
        matmuls = predicted["matmuls"] + predicted["head and loss"]
        assert products == pytest.approx(matmuls, rel=2e-3)
        assert found["attention"] == pytest.approx(predicted["attention"], rel=2e-3)
        assert moved == pytest.approx(predicted["elementwise"], rel=2e-3)


@pytest.mark.parametrize("schedule", ["1f1b", "zb1p", "dualpipe"])
def test_kernels_lie_one_after_the_other_within_the_passes_of_their_microbatch(
    schedule: str, tmp_path: Path
) -> None:
    chosen = SMALL | {"tp": 2, "pp": 4, "schedule": schedule, "microbatches": 8}
    file, _ = written(chosen, tmp_path)
    passes, kernels = defaultdict[Any, list[Any]](list), defaultdict[Any, list[Any]](list)
    for event in json.loads(file.read_text("utf-8"))["traceEvents"]:
        if event.get("cat") in ("computing", "operation"):
            lanes = passes if event["cat"] == "computing" else kernels
            lanes[event["pid"], event["tid"]].append(event)
    assert passes.keys() == kernels.keys()
    near = 2e-3  # two nanoseconds, as times are written to one
    for lane, events in kernels.items():
        events.sort(key=lambda event: event["ts"])
        for before, event in pairwise(events):
            assert before["ts"] + before["dur"] <= event["ts"] + near
        starts = [one["ts"] for one in passes[lane]]
        assert starts == sorted(starts)
        for event in events:
            around = passes[lane][bisect_right(starts, event["ts"] + near) - 1]
            assert event["ts"] + event["dur"] <= around["ts"] + around["dur"] + near
            assert around["args"].get("microbatch") == event["args"].get("microbatch")


def test_a_pass_has_the_kernels_of_its_layers_in_order(tmp_path: Path) -> None:
    file, _ = written(CASES["zero bubble"], tmp_path)
    events = [
        one for one in json.loads(file.read_text("utf-8"))["traceEvents"] if one.get("pid") == 0
    ]
    # No message pauses a pass, which is one event.
    first = next(one for one in events if one.get("cat") == "computing")
    ends = first["ts"] + first["dur"]
    inside = [one["name"] for one in events if one.get("cat") == "operation" and one["ts"] < ends]
    layer = [
        "norm before attention",
        "query, key and value",
        "rotation",
        "attention core",
        "output",
        "residual sum after attention",
        "norm before feed-forward",
        "gate and up",
        "activation",
        "down",
        "residual sum after feed-forward",
    ]
    assert inside == layer * 8


def test_the_update_is_the_end_of_every_rank(tmp_path: Path) -> None:
    file, asked = written(CASES["pipeline"], tmp_path)
    events = json.loads(file.read_text("utf-8"))["traceEvents"]
    updates = [one for one in events if one["name"] == "update"]
    assert [one["pid"] for one in updates] == [0, 1, 2, 3]
    for one in updates:
        assert one["ts"] + one["dur"] == pytest.approx(asked.estimate.step_time_s * 1e6)
    names = [one["name"] for one in events if one.get("cat") == "operation" and one["pid"] == 0][
        -4:
    ]
    assert names == ["gradient norm", "Adam", "weights to 16 bits", "clear gradients"]
    assert math.isclose(updates[0]["dur"], dict(asked.estimate.kinds)["update"] * 1e6, rel_tol=1e-3)
