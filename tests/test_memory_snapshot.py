"""figgen memory-snapshot: snapshots as torch writes them, replayed by hand, and hostile files."""

from __future__ import annotations

import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.models.memory.allocator_snapshot import BEFORE, kind_of, peak_of, state_of

# The structure is that of pytorch/pytorch@0044eb67, torch/cuda/_memory_viz.py and
# docs/source/torch_cuda_memory.md: a dict of segments with blocks, and a trace per device.
FRAMES = {
    "optimizer": [{"filename": "torch/optim/adamw.py", "line": 1, "name": "_init_group"}],
    "weights": [{"filename": "torch/nn/modules/linear.py", "line": 9, "name": "__init__"}],
    "gradients": [{"filename": "torch/autograd/graph.py", "line": 8, "name": "run_backward"}],
    "loss": [
        {"filename": "torch/nn/functional.py", "line": 3, "name": "cross_entropy"},
        {"filename": "train.py", "line": 3, "name": "step"},
    ],
    "communication": [{"filename": "torch/distributed/c10d.py", "line": 2, "name": "all_reduce"}],
    "activations": [{"filename": "model.py", "line": 5, "name": "forward"}],
    "other": [{"filename": "train.py", "line": 3, "name": "main"}],
}
MIB = 2**20


def block(size: int, state: str, kind: str = "other", asked: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"size": size, "requested_size": asked or size, "state": state}
    return found | ({"frames": FRAMES[kind]} if state == "active_allocated" else {"frames": []})


def segment(address: int, blocks: list[dict[str, Any]], device: int = 0) -> dict[str, Any]:
    total = sum(one["size"] for one in blocks)
    used = sum(one["size"] for one in blocks if one["state"] == "active_allocated")
    return {
        "address": address, "total_size": total, "stream": 0, "segment_type": "large",
        "allocated_size": used, "active_size": used, "device": device, "blocks": blocks,
    }  # fmt: skip


def event(action: str, address: int, size: int, kind: str = "other") -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": FRAMES[kind]}


SNAPSHOT = {
    "segments": [
        segment(0, [
            block(8 * MIB, "active_allocated", "weights", asked=7 * MIB),
            block(4 * MIB, "inactive"),
            block(2 * MIB, "active_awaiting_free"),
            block(6 * MIB, "active_allocated", "optimizer"),
        ]),
        segment(100 * MIB, [block(20 * MIB, "inactive")]),
        segment(0, [block(64 * MIB, "active_allocated", "activations")], device=1),
    ],
    "device_traces": [[], []],
}  # fmt: skip


def written(folder: Path, content: object) -> str:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content))
    return str(path)


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_tell_what_a_tensor_is_for(kind: str) -> None:
    assert kind_of(FRAMES[kind]) == kind


def test_every_byte_of_a_segment_is_counted_once() -> None:
    state = state_of(SNAPSHOT, 0)
    assert state.allocated == 13 * MIB
    assert (state.rounded, state.torn, state.waiting, state.idle) == (
        MIB, 4 * MIB, 2 * MIB, 20 * MIB,
    )  # fmt: skip
    assert state.reserved == sum(s["total_size"] for s in SNAPSHOT["segments"][:2])  # type: ignore[index, misc]
    assert dict(state.kinds) == {"weights": 7 * MIB, "optimizer": 6 * MIB}
    assert state_of(SNAPSHOT, 1).allocated == 64 * MIB
    assert state_of(SNAPSHOT, 7).reserved == 0


def test_blocks_of_older_releases_have_their_frames_in_a_history() -> None:
    old = block(8, "active_allocated")
    del old["frames"], old["requested_size"]
    old["history"] = [{"addr": 0, "real_size": 5, "frames": FRAMES["loss"]}]
    # Where none is told there is one device.
    whole = {name: each for name, each in segment(0, [old]).items() if name != "device"}
    state = state_of({"segments": [whole]}, 0)
    assert (state.allocated, state.rounded, dict(state.kinds)) == (5, 3, {"loss": 5})


def test_a_peak_of_a_trace_that_begins_in_the_middle() -> None:
    # 7 was there before and goes, 5 was there before and stays; 10 and 20 overlap.
    trace = [
        event("free_requested", 1, 7), event("free_completed", 1, 7),
        event("alloc", 1, 10, "activations"), event("alloc", 2, 20, "loss"),
        event("free_completed", 1, 10), event("alloc", 1, 4, "gradients"),
    ]  # fmt: skip
    end = [block(1, "inactive"), block(4, "active_allocated", "gradients")]
    kept = segment(500, [block(5, "active_allocated", "weights")])
    loss = segment(2, [block(20, "active_allocated", "loss")])
    held = {"segments": [segment(0, end), loss, kept], "device_traces": [trace]}
    peak = peak_of(held, 0)
    assert peak is not None
    assert (peak.bytes, peak.event) == (5 + 10 + 20, 4)
    assert dict(peak.kinds) == {"loss": 20, "activations": 10, "weights": 5}
    assert peak_of(SNAPSHOT, 0) is None


# Of torch.cuda.memory._snapshot, beside alloc and free_completed; a tensor lives on through them.
OTHER_ACTIONS = (
    "free_requested",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "snapshot",
    "oom",
)


def random_trace(rng: random.Random) -> tuple[list[dict[str, Any]], list[int], dict[int, int]]:
    """Events from any moment on, bytes in use after each, and what is there in the end."""
    live: dict[int, int] = {}
    events: list[dict[str, Any]] = []
    sums: list[int] = []
    for step in range(60):
        if live and rng.random() < 0.45:
            address = rng.choice(list(live))
            events.append(event("free_completed", address, live.pop(address)))
        else:
            address, size = step * 1000 + 1, rng.randint(1, 99)
            live[address] = size
            events.append(event("alloc", address, size, "activations"))
        sums.append(sum(live.values()))
        if live and rng.random() < 0.3:
            events.append(event(rng.choice(OTHER_ACTIONS), rng.choice(list(live)), 1000))
            sums.append(sums[-1])
    return events, sums, live


@pytest.mark.parametrize("seed", range(20))
def test_peaks_are_those_of_a_replay_wherever_the_trace_begins(seed: int) -> None:
    rng = random.Random(seed)
    events, sums, live = random_trace(rng)
    first = rng.randint(0, 30)
    segments = [segment(a, [block(size, "active_allocated")]) for a, size in live.items()]
    peak = peak_of({"segments": segments, "device_traces": [events[first:]]}, 0)
    assert peak is not None
    assert peak.bytes == max(sums[first:])
    assert sum(peak.kinds.values()) == peak.bytes
    assert set(peak.kinds) <= {"activations", BEFORE, "other"}


Said = Callable[..., str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> str:
        assert main(("memory-snapshot", *arguments)) == 0
        return capsys.readouterr().out

    return run


def test_text_and_json_say_the_same(said: Said, tmp_path: Path) -> None:
    file = written(tmp_path, SNAPSHOT)
    text = said(file)
    assert "weights 0.007 GB, optimizer 0.006 GB" in text
    data = json.loads(said(file, "--json"))
    assert data["state"]["torn"] == 4 * MIB
    assert data["peak"] is None


def test_beside_the_model_every_part_stands_once(said: Said, tmp_path: Path) -> None:
    model = ("--model", "llama-3-8b", "--nodes", "1", "--gpus-per-node", "8", "--zero", "3")
    data = json.loads(said(written(tmp_path, SNAPSHOT), "--json", *model))
    rows = {row["part"]: row for row in data["model"]}
    assert rows["weights"]["snapshot"] == 7 * MIB
    assert rows["reserve"]["snapshot"] == data["state"]["reserved"] - data["state"]["allocated"]
    assert sum(row["snapshot"] for row in rows.values()) == data["state"]["reserved"]
    assert rows["weights"]["model"] == pytest.approx(2 * 8_030_261_248 / 8)
    assert "difference" in said(written(tmp_path, SNAPSHOT), *model)


class Hostile:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("echo owned > owned",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Hostile(), "expected plain data, got 'posix.system'"),
        ({"segments": [Hostile()]}, "expected plain data"),
        ([1, 2], "expected a dict with segments, got 'list'"),
        ({"traces": []}, "expected a dict with a list of segments"),
        ({"segments": [segment(0, [block(1, "lost")])]}, "state of a block"),
        ({"segments": [], "device_traces": [[{"action": "alloc"}, 3]]}, "an event of the trace"),
    ],
)
def test_a_hostile_or_broken_file_is_refused_and_runs_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: object, message: str
) -> None:
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        assert main(("memory-snapshot", written(tmp_path, content))) == 2
    finally:
        os.chdir(here)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x05K", b"cposix\nsystem\n."])
def test_bytes_that_are_no_snapshot_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "broken.pickle"
    path.write_bytes(content)
    assert main(("memory-snapshot", str(path))) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(("memory-snapshot", str(tmp_path / "none"))) == 2


def test_a_device_without_a_trace_has_no_peak() -> None:
    alloc = {"action": "alloc", "addr": 512, "size": 64}
    recorded = {"segments": [], "device_traces": [[alloc]]}
    known = peak_of(recorded, 0)
    assert known is not None
    assert peak_of(recorded, 1) is None
    assert peak_of({"segments": []}, 0) is None
    assert (
        peak_of(recorded | {"device_traces": [[alloc | {"action": "free_completed"}]]}, 0) is None
    )
