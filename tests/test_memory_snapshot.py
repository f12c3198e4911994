"""figgen memory-snapshot: snapshots as torch writes them, replayed by hand, and hostile files."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.commands import snapshot
from figgen.models.memory import plain_pickle
from figgen.models.memory.allocation_kinds import kind_of, path_in_package
from figgen.models.memory.allocator_snapshot import BEFORE, history_of, peak_of, state_of
from figgen.models.memory.snapshot_summary import REMEDIES

# The structure is that of pytorch/pytorch@0044eb67, torch/cuda/_memory_viz.py and
# docs/source/torch_cuda_memory.md: a dict of segments with blocks, and a trace per device.
FRAMES = {
    "optimizer": [{"filename": "torch/optim/adamw.py", "line": 1, "name": "_init_group"}],
    "weights": [{"filename": "torch/nn/modules/linear.py", "line": 9, "name": "__init__"}],
    "gradients": [
        {"filename": "torch/autograd/graph.py", "line": 8, "name": "_engine_run_backward"}
    ],
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
        segment(
            0,
            [
                block(8 * MIB, "active_allocated", "weights", asked=7 * MIB),
                block(4 * MIB, "inactive"),
                block(2 * MIB, "active_awaiting_free"),
                block(6 * MIB, "active_allocated", "optimizer"),
            ],
        ),
        segment(100 * MIB, [block(20 * MIB, "inactive")]),
        segment(0, [block(64 * MIB, "active_allocated", "activations")], device=1),
    ],
    "device_traces": [[], []],
}


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
        event("free_requested", 1, 7),
        event("free_completed", 1, 7),
        event("alloc", 1, 10, "activations"),
        event("alloc", 2, 20, "loss"),
        event("free_completed", 1, 10),
        event("alloc", 1, 4, "gradients"),
    ]
    end = [block(1, "inactive"), block(4, "active_allocated", "gradients")]
    kept = segment(500, [block(5, "active_allocated", "weights")])
    loss = segment(2, [block(20, "active_allocated", "loss")])
    held = {"segments": [segment(0, end), loss, kept], "device_traces": [trace]}
    peak = peak_of(history_of(held, 0))
    assert peak is not None
    assert (peak.bytes, peak.event) == (5 + 10 + 20, 4)
    assert dict(peak.kinds) == {"loss": 20, "activations": 10, "weights": 5}
    assert peak_of(history_of(SNAPSHOT, 0)) is None


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
    """Return events from a random moment on, bytes in use after each, and the final contents."""
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
    peak = peak_of(history_of({"segments": segments, "device_traces": [events[first:]]}, 0))
    assert peak is not None
    assert peak.bytes == max(sums[first:])
    assert sum(peak.kinds.values()) == peak.bytes
    assert set(peak.kinds) <= {"activations", BEFORE, "other"}


def test_what_a_trace_did_not_see_allocated_was_there_before() -> None:
    """Snapshots of a course's exercises are recorded after the model is built: 13.6 GB of it."""
    weights = {**block(900, "active_allocated"), "frames": []}
    kept = segment(1, [weights, block(100, "active_allocated", "activations")])
    trace = [event("alloc", 901, 100, "activations")]
    snapshot = {"segments": [kept], "device_traces": [trace]}
    assert state_of(snapshot, 0).kinds == {BEFORE: 900, "activations": 100}
    peak = peak_of(history_of(snapshot, 0))
    assert peak is not None
    assert peak.kinds == {BEFORE: 900, "activations": 100}
    # Without a recording, nobody knows.
    assert set(state_of({"segments": [kept]}, 0).kinds) == {"other", "activations"}


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
    assert peak_of(history_of(recorded, 0)) is not None
    freed = recorded | {"device_traces": [[alloc | {"action": "free_completed"}]]}
    for empty, device in ((recorded, 1), ({"segments": []}, 0), (freed, 0)):
        assert history_of(empty, device) == ()
    assert peak_of(()) is None


# Written for this project after public files on which the reader went wrong; each stands for a
# kind of fault. The last is a recorded job: Llama 1B under autocast on one H100.
CASES = Path(__file__).parent / "oracles" / "profiles" / "cases"
RECORDED = CASES.parent / "llama1b-amp-eager.pickle.gz"
MODEL = ("--model", "llama-3-8b", "--nodes", "1", "--gpus-per-node", "8")


def test_the_page_prints_what_the_command_says(said: Said) -> None:
    text = (Path(__file__).parents[1] / "docs/guide/memory.md").read_text("utf-8")
    assert f"$ figgen memory-snapshot {RECORDED.name}\n" in text
    assert f"```text\n{said(str(RECORDED))}```\n" in text


def test_forward_frames_of_the_default_recording_are_activations(said: Said) -> None:
    """Every forward operation has a frame of torch::autograd::VariableType."""
    data = json.loads(said(str(CASES / "default_stacks.pickle"), "--json"))
    kinds = data["peak"]["kinds"]
    assert kinds["activations"] == 6 * 2**30
    assert kinds["gradients"] == 2**30


def test_reserve_stands_beside_the_model_at_the_moment_of_the_other_rows(said: Said) -> None:
    data = json.loads(said(str(CASES / "default_stacks.pickle"), "--json", *MODEL))
    rows = {row["part"]: row["snapshot"] for row in data["model"]}
    assert rows["reserve"] == 0
    assert sum(rows.values()) == data["peak"]["reserved"] == 10 * 2**30


def test_a_home_folder_says_nothing_about_a_tensor(said: Said) -> None:
    data = json.loads(said(str(CASES / "path_adam.pickle"), "--json"))
    assert data["peak"]["kinds"] == {"activations": 4 * 2**30}


def test_an_allocation_that_failed_is_told(said: Said) -> None:
    text = said(str(CASES / "at_oom.pickle"))
    assert "at event 3: asked for 2.147 GB with 1.074 GB free on the device" in text
    (oom,) = json.loads(said(str(CASES / "at_oom.pickle"), "--json"))["oom"]
    assert (oom["asked_bytes"], oom["device_free_bytes"], oom["event"]) == (2**31, 2**30, 3)


def test_a_recorded_job_holds_no_gradient_at_its_peak(said: Said) -> None:
    """At the peak the loss has just begun its backward pass; the file is compressed."""
    data = json.loads(said(str(RECORDED), "--json"))
    kinds = data["peak"]["kinds"]
    assert kinds["activations"] == pytest.approx(19.571e9, abs=1e6)
    assert "gradients" not in kinds
    # Three tensors of tokens by vocabulary in 32 bits: log-softmax and its gradient, twice.
    assert kinds["loss"] == pytest.approx(3 * 2 * 4096 * 128_256 * 4, rel=1e-3)
    assert data["summary"]["kind"] == "activations"
    assert data["summary"]["remedy"] == "loss"
    # torch.cuda.max_memory_allocated of the run, which counts blocks rounded up.
    assert data["peak"]["bytes"] == pytest.approx(47_075_773_440, rel=1e-5)


@pytest.mark.parametrize(
    ("file", "name", "kind"),
    [
        ("/home/optimizer/loss/train.py", "main", "other"),
        ("C:\\Users\\adam\\venv\\site-packages\\torch\\optim\\sgd.py", "step", "optimizer"),
        ("/data/muon/model.py", "forward", "activations"),
        ("/home/me/muon.py", "step", "optimizer"),
        ("/home/me/Megatron-LM/megatron/core/optimizer/distrib_optimizer.py", "x", "optimizer"),
        ("/x/megatron/core/distributed/param_and_grad_buffer.py", "__init__", "gradients"),
        ("/x/torch/distributed/tensor/_dispatch.py", "dispatch", "other"),
        ("/x/torch/distributed/tensor/_redistribute.py", "redistribute", "communication"),
        ("/x/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", "f", "communication"),
        ("/x/transformers/loss/loss_utils.py", "ForCausalLMLoss", "loss"),
        ("/home/loss/venv/lib/site-packages/torch/nn/modules/linear.py", "forward", "activations"),
        ("/x/torch/_tensor.py", "backward", "other"),
        ("/x/flash_attn/flash_attn_interface.py", "_flash_attn_backward", "gradients"),
        ("??", "torch::autograd::VariableType::(anonymous namespace)::mm(...)", "other"),
        ("??", "torch::autograd::generated::MulBackward0::apply(...)", "other"),
        ("engine.cpp", "torch::autograd::Engine::evaluate_function(...)", "gradients"),
        ("", "torch::autograd::AccumulateGrad::apply(...)", "gradients"),
        ("reducer.cpp", "c10d::Reducer::initialize_buckets(...)", "gradients"),
        ("??", "c10d::ProcessGroupNCCL::allgather(...)", "communication"),
        ("FusedAdamKernel.cu", "at::native::_fused_adamw_kernel_cuda_(...)", "optimizer"),
    ],
)
def test_a_frame_counts_from_its_package_on(file: str, name: str, kind: str) -> None:
    assert kind_of([{"filename": file, "line": 1, "name": name}]) == kind


def test_a_path_begins_at_its_package() -> None:
    assert path_in_package("/home/adam/optim/train.py") == "train.py"
    assert path_in_package("/a/site-packages/torch/nn/x.py") == "torch/nn/x.py"
    assert path_in_package("/src/torch/torch/optim/x.py") == "torch/optim/x.py"


def test_reserved_bytes_follow_the_events_of_segments() -> None:
    """512 bytes are reserved and 100 used; another 512 come and go before the snapshot."""
    trace = [
        event("segment_alloc", 0, 512),
        event("alloc", 0, 100, "activations"),
        event("segment_map", 4096, 512),
        event("alloc", 4096, 200, "activations"),
        event("free_completed", 4096, 200),
        event("segment_unmap", 4096, 512),
    ]
    end = segment(0, [block(100, "active_allocated", "activations"), block(412, "inactive")])
    moments = history_of({"segments": [end], "device_traces": [trace]}, 0)
    assert [(m.event, m.bytes, m.reserved) for m in moments] == [
        (1, 0, 512), (2, 100, 512), (3, 100, 1024), (4, 300, 1024), (5, 100, 1024), (6, 100, 512),
    ]  # fmt: skip


def test_a_long_history_keeps_its_peak() -> None:
    events, sums, live = random_trace(random.Random(3))
    segments = [segment(a, [block(size, "active_allocated")]) for a, size in live.items()]
    copies = [
        one | {"addr": one["addr"] + 10**6 * n} for n in range(1, 20) for one in events[: len(sums)]
    ]
    moments = history_of({"segments": segments, "device_traces": [copies]}, 0)
    assert len(moments) <= 200
    assert peak_of(moments) == max(moments, key=lambda moment: moment.bytes)


def test_pages_of_remedies_exist() -> None:
    docs = Path(__file__).parents[1] / "docs"
    assert all((docs / f"{remedy.page}.md").is_file() for remedy in REMEDIES.values())


def test_a_packed_snapshot_is_read_and_a_broken_one_refused(said: Said, tmp_path: Path) -> None:
    packed = tmp_path / "packed.pickle.gz"
    packed.write_bytes(gzip.compress(pickle.dumps(SNAPSHOT)))
    assert said(str(packed)) == said(written(tmp_path, SNAPSHOT))
    packed.write_bytes(packed.read_bytes()[:40])
    assert main(("memory-snapshot", str(packed))) == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("packed", [False, True])
def test_a_terminal_shows_how_much_of_a_snapshot_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    rng = random.Random(1)
    content = pickle.dumps(SNAPSHOT | {"more": [rng.random() for _ in range(50_000)]})
    file = tmp_path / "s.pickle"
    file.write_bytes(gzip.compress(content) if packed else content)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(plain_pickle, "PIECE", 1 << 14)
    snapshot.read_snapshot(str(file))
    shown = [int(found) for found in re.findall(r"(\d+) % read of ", terminal.getvalue())]
    assert len(shown) > 5
    assert shown == sorted(shown)
    assert shown[0] < 50 < shown[-1]
    assert terminal.getvalue().endswith("\r\x1b[2K")
