"""figgen profile: three recorded jobs compared with a count by hand, and kernels of a GPU."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from figgen.__main__ import main
from figgen.models.profiles.profile import RankProfile, profiles
from figgen.models.profiles.profile_beside import (
    PAGES,
    beside,
    bus_bandwidth_bytes_per_s,
    common_calls,
    waiting,
)
from figgen.models.profiles.profile_findings import OVERLAPPED, savings_of
from figgen.models.profiles.profile_words import profile_answer
from figgen.models.profiles.trace_kinds import TYPE_BYTES, Group, axis_of, bytes_of, collective_of
from figgen.models.profiles.trace_reader import trace_events
from figgen.scenarios.options.resolve import training_step
from figgen.units import format_quantity

# Recorded by record_profiles.py beside them: torch 2.13 on a CPU, two ranks over gloo, two steps.
RECORDED = Path(__file__).parent / "oracles" / "profiles"
JOBS = ("data-parallel", "sharded", "pipelined")
EXAMPLES = Path(__file__).parents[1] / "docs" / "assets" / "examples"  # on the site too
FILES = [
    (EXAMPLES if job == JOBS[0] else RECORDED) / f"{job}-rank{rank}.json.gz"
    for job in JOBS
    for rank in (0, 1)
]


def read(path: Path) -> RankProfile:
    (found,) = profiles(trace_events(str(path)), path.name)
    return found


@pytest.fixture(scope="module")
def recorded() -> dict[str, RankProfile]:
    return {path.name: read(path) for path in FILES}


WORK = ("aten::", "fsdp::", "torch.distributed.ddp.reducer::", "torch::distributed::reducer::")
"""Operators of the three jobs that compute or copy, from a list of all that they ran."""


def counted_by_hand(path: Path) -> dict[str, float]:
    """Return seconds of the same parts, from every start and end in turn and what runs
    in between."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    moments: list[tuple[float, int, str, int]] = []
    steps = [e for e in events if str(e["name"]).startswith("ProfilerStep#")]
    first, last = min(e["ts"] for e in steps), max(e["ts"] + e["dur"] for e in steps)
    for event in events:
        kind = event["name"].partition(":")[0]
        kind = "work" if event["name"].startswith(WORK) else kind
        if event["ph"] == "X" and kind in ("work", "gloo", "c10d"):
            begin, end = max(event["ts"], first), min(event["ts"] + event["dur"], last)
            moments += [(begin, 1, kind, event["tid"]), (end, -1, kind, event["tid"])]
    moments += [(first, 0, "", 0), (last, 0, "", 0)]
    running: Counter[tuple[str, int]] = Counter()
    found: dict[str, float] = defaultdict(float)
    before = first
    for now, change, kind, thread in sorted(moments):
        threads = {t for (_, t), number in running.items() if number}
        works = any(
            running["work", t] and not running["gloo", t] and not running["c10d", t]
            for t in threads
        )
        talks = any(running["gloo", t] for t in threads)
        part = {(True, True): "hidden_s", (True, False): "alone_s", (False, True): "exposed_s"}
        found[part.get((works, talks), "idle_s")] += (now - before) / 1e6
        running[kind, thread] += change
        before = now
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_recorded_jobs_are_divided_as_by_hand(path: Path, recorded: dict[str, RankProfile]) -> None:
    found, by_hand = recorded[path.name], counted_by_hand(path)
    assert found.exposed_s == pytest.approx(by_hand["exposed_s"], abs=1e-8)
    assert found.hidden_s == pytest.approx(by_hand["hidden_s"], abs=1e-8)
    assert found.idle_s == pytest.approx(by_hand["idle_s"], abs=1e-8)
    computing = by_hand["alone_s"] + by_hand["hidden_s"]
    assert found.computing_s == pytest.approx(computing, abs=1e-8)
    assert found.wall_s == pytest.approx(sum(by_hand.values()), abs=1e-8)
    assert found.steps == 2
    assert found.launch_s == found.copies_s == 0


# Two layers of 512 → 1,024 → 512 with biases: what record_profiles.py trains.
LAYER = 512 * 1024 + 1024 + 1024 * 512 + 512


def test_calls_and_bytes_are_those_of_the_recorded_jobs(recorded: dict[str, RankProfile]) -> None:
    def calls(job: str, rank: int) -> dict[str, tuple[int, float]]:
        found = recorded[f"{job}-rank{rank}.json.gz"].calls
        return {c.group.collective: (len(c.each_s), c.bytes) for c in found}

    # DDP: both layers' gradients, one bucket each, in each of two steps; FP32.
    assert calls("data-parallel", 0) == {"all-reduce": (4, 2 * 2 * LAYER * 4)}
    # FSDP: weights gathered before forward and before backward. gloo has no reduce-scatter of
    # its own: it reduces the whole gradient everywhere, which the trace shows.
    assert calls("sharded", 0) == {
        "all-gather": (8, 2 * 2 * 2 * LAYER * 4),
        "all-reduce": (4, 2 * 2 * LAYER * 4),
    }
    # 1F1B: four microbatches of 16 × 512 on, and as many gradients back.
    boundary = (8, 2 * 4 * 16 * 512 * 4)
    assert calls("pipelined", 0) == {"send": boundary, "recv": boundary}


def test_who_waits_is_told_from_calls_in_common(recorded: dict[str, RankProfile]) -> None:
    ranks = [recorded[f"data-parallel-rank{rank}.json.gz"] for rank in (0, 1)]
    times = [rank.calls[0].each_s for rank in ranks]
    found = waiting(common_calls(ranks))
    for row, mine, other in zip(found, times, reversed(times), strict=True):
        pairs = list(zip(mine, other, strict=True))
        assert row.last == sum(a < b for a, b in pairs)
        assert row.calls == 4
    assert [row.waited_s for row in found] == pytest.approx(waited_by_hand(ranks), abs=1e-6)


def waited_by_hand(ranks: list[RankProfile]) -> list[float]:
    """Return how long each of two ranks waits, counted in microseconds of its clock."""
    found = []
    for mine, other in (ranks, ranks[::-1]):
        waits: set[int] = set()
        for here, there in zip(mine.calls, other.calls, strict=True):
            for start, a, b in zip(here.starts_s, here.each_s, there.each_s, strict=True):
                waits |= set(range(round(start * 1e6), round((start + max(0.0, a - b)) * 1e6)))
        found.append(len(waits) / 1e6)
    return found


def test_the_first_sentence_tells_waiting_from_sending(recorded: dict[str, RankProfile]) -> None:
    ranks = [recorded[f"data-parallel-rank{rank}.json.gz"] for rank in (0, 1)]
    (_, waited), rank = waited_by_hand(ranks), ranks[1]
    answer = profile_answer(rank, 2, waiting(common_calls(ranks)), format_quantity).text
    assert f"up to {waited / rank.exposed_s:.0%} of it waiting for other ranks" in answer
    rest = (rank.exposed_s - waited) / rank.wall_s
    assert answer.endswith(
        f"first why ranks come late; overlapping the rest saves up to "
        f"{format_quantity((rank.exposed_s - waited) / 2, 's', 'time')}, {rest:.1%}."
    )
    (saving,) = savings_of(rank, waiting(common_calls(ranks)))
    assert saving.change == OVERLAPPED
    assert saving.share == pytest.approx(rest, abs=1e-4)  # by hand: whole microseconds
    alone = profile_answer(rank, 1, [], format_quantity).text
    assert "waiting" not in alone
    assert "The change that saves most is overlapped communication" in alone


def kernel(name: str, start: float, took: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": took, "args": args}


def device_trace(events: Iterable[dict[str, Any]]) -> RankProfile:
    header = {"distributedInfo": {"rank": 3}}
    (found,) = profiles(((header, event) for event in events), "made")
    return found


NCCL = {
    "Collective name": "_reduce_scatter_base", "In msg nelems": 8000, "Out msg nelems": 1000,
    "Group size": 8, "dtype": "BFloat16", "Process Group Name": "2",
    "Process Group Description": "DATA_PARALLEL_GROUP_WITH_CP", "Process Group Ranks": "[0, 1]",
}  # fmt: skip


TP = NCCL | {"Collective name": "_allgather_base", "Process Group Description": "TP"}


def test_kernels_copies_and_late_launches_of_a_gpu_are_told_apart() -> None:
    """Microseconds: | gemm 0-10 | NCCL 5-20 | copy 18-25 | nothing 25-40 | gemm 40-50 |."""
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 30.0, "dur": 2.0}
    found = device_trace(
        [
            kernel("gemm", 40.0, 10.0, correlation=7),
            kernel("gemm", 0.0, 10.0),
            launch | {"args": {"correlation": 7}},
            kernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", 5.0, 15.0, **NCCL),
            kernel("Memcpy HtoD", 18.0, 7.0) | {"cat": "gpu_memcpy"},
        ]
    )
    assert found.name == "rank 3"
    assert found.wall_s == pytest.approx(50e-6)
    assert found.computing_s == pytest.approx(20e-6)
    assert found.hidden_s == pytest.approx(5e-6)
    assert found.exposed_s == pytest.approx(10e-6)
    assert found.copies_s == pytest.approx(5e-6)
    assert found.launch_s == pytest.approx(7e-6), "from 25 until the launch was done at 32"
    assert found.idle_s == pytest.approx(8e-6)
    (calls,) = found.calls
    assert (calls.group.collective, calls.group.size, calls.bytes) == ("reduce-scatter", 8, 16000)
    assert axis_of(calls.group) == "dp"
    assert dict(found.exposed_by_axis) == pytest.approx({"dp": 10e-6})


def test_bytes_of_a_call_are_those_of_the_shapes_that_can_be_read() -> None:
    two_by_three = {"Input Dims": [[2, 3]], "Input type": ["c10::BFloat16"]}
    said = {"Input Dims": [[2, 3], "4", [], [1.5], [5]], "Input type": ["float"] * 4}
    gathered, reduced = (
        Group(name="x", collective=kind, size=4, ranks="") for kind in ("all-gather", "all-reduce")
    )
    for args, group, size in (
        (two_by_three, reduced, 12), (two_by_three, gathered, 48), (said, reduced, 24),
        (said | {"Input Dims": "?"}, reduced, 0), ({"Input Dims": [[2]]}, reduced, 0),
        ({"dtype": "Float", "In msg nelems": 3, "Out msg nelems": 9}, reduced, 36),
        ({"dtype": "Float", "In msg nelems": None}, reduced, 0), (None, reduced, 0),
        ({"buffer bytes": 10, "calls": 3}, reduced, 30), ({"buffer bytes": 10}, reduced, 10),
    ):  # fmt: skip
        assert bytes_of({"args": args}, group) == size, args


def test_calls_are_common_where_two_ranks_recorded_as_many() -> None:
    def recorded(name: str, *starts: float) -> RankProfile:
        calls = [kernel("ncclDevKernel_ReduceScatter_x", at, 5.0, **NCCL) for at in starts]
        return replace(device_trace(calls), name=name)

    one, other, fewer = recorded("a", 0, 10), recorded("b", 1, 12), recorded("c", 3)
    assert common_calls([one]) == common_calls([one, fewer]) == {}
    [calls] = common_calls([one, other]).values()
    assert calls.names == ("a", "b")
    assert calls.times == pytest.approx(np.full((2, 2), 5e-6))


def test_types_are_as_wide_as_in_c_or_as_their_names_say() -> None:
    in_c = {"float": "f4", "double": "f8", "half": "f2", "short": "i2", "byte": "i1", "char": "i1",
            "unsigned char": "u1", "bool": "?", "int": "i4", "long": "i8",
            "long int": "i8"}  # fmt: skip
    for name, width in TYPE_BYTES.items():
        plain = name.removeprefix("c10::").removeprefix("b" if "bfloat" in name else "")
        bits = re.match(r"(?:float|int)(\d+)", plain)
        expected = int(bits[1]) / 8 if bits else np.dtype(in_c[plain]).itemsize
        assert width == expected, name


def test_names_of_collectives_are_understood() -> None:
    said = {
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "all-gather",
        "ncclKernel_AllReduce_TREE_LL_Sum_float(ncclWorkElem)": "all-reduce",
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "send and recv",
        "_allgather_base": "all-gather", "reduce_scatter_tensor_coalesced": "reduce-scatter",
        "all_to_allv": "all-to-all", "gloo:all_reduce": "all-reduce", "broadcast": "broadcast",
        "ncclDevKernel_Reduce_Sum_f32_RING_LL": "reduce", "gemm": "",
    }  # fmt: skip
    assert {name: collective_of(name) for name in said} == said


SIZES = (
    "--model", "llama-3-8b", "--nodes", "2", "--gpus-per-node", "8", "--tp", "2", "--pp", "2",
)  # fmt: skip


def test_the_modelled_step_reads_as_modelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """profile reads back what trace-export writes: an equally long step with equally scaled parts.

    The closed form of the pipeline idles a little less than the simulated one, whose head is on the
    last stage, so that everything else is shorter by that.
    """
    file = str(tmp_path / "step.json")
    assert main(["trace-export", file, *SIZES]) == 0
    capsys.readouterr()
    assert main(["profile", file, *SIZES, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    parts = {row["part"]: row for row in data["model"]}
    for part in ("computing", "exposed tp"):
        assert parts[part]["recorded_s"] == pytest.approx(parts[part]["modelled_s"], rel=0.01)
    recorded = sum(row["recorded_s"] for row in data["model"])
    assert recorded == pytest.approx(sum(row["modelled_s"] for row in data["model"]), rel=1e-6)
    gaps = [abs(row["recorded_s"] - row["modelled_s"]) for row in data["model"]]
    assert gaps == sorted(gaps, reverse=True)


def test_a_part_stands_beside_the_model_only_where_one_of_both_has_it() -> None:
    """Two steps of 50 µs: gemm 0-40, a scatter 40-70 and a gather 60-70, nothing, gemm 90-100."""
    estimate = training_step(model="llama-3-8b", nodes=1, gpus_per_node=8).estimate
    step = {"ph": "X", "cat": "gpu_user_annotation", "dur": 50.0}
    kernels = [
        kernel("gemm", 0.0, 40.0),
        kernel("gemm", 90.0, 10.0),
        kernel("ncclDevKernel_AllGather_x", 60.0, 10.0, **TP),
        kernel("ncclDevKernel_ReduceScatter_x", 40.0, 30.0, **NCCL),
    ]
    steps = [step | {"name": f"ProfilerStep#{n}", "ts": 50.0 * n} for n in range(2)]
    instant = {"ph": "X", "cat": "cpu_op", "name": "a mark", "ts": 5.0}
    rank = device_trace([*steps, instant, *kernels])
    assert [calls.group.collective for calls in rank.calls] == ["reduce-scatter", "all-gather"]
    found = beside(rank, estimate)
    assert {row.part: (row.recorded_s * 2e6, row.modelled_s) for row in found} == {
        "computing": (pytest.approx(50), estimate.compute_s),
        "exposed dp": (pytest.approx(30), pytest.approx(dict(estimate.exposed)["dp"])),
        "exposed tp": (pytest.approx(10), 0.0),
        "idle": (pytest.approx(20), 0.0),
        "exposed calls that overlap": (pytest.approx(-10), 0.0),
    }
    # What is left of sums in another order is nothing that a call exposes.
    apart = [
        kernel("ncclDevKernel_AllGather_x", 0.1, 0.1, **TP),
        kernel("ncclDevKernel_ReduceScatter_x", 0.3, 0.3, **NCCL),
    ]
    parts = [row.part for row in beside(device_trace(apart), estimate)]
    assert "exposed calls that overlap" not in parts


def test_a_kernel_that_waited_for_others_was_not_launched_late() -> None:
    """Gaps of 10 µs begin at 10, 30 and 50; the kernels that end them were launched by 5, 35 and
    59."""
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel"}
    begun = {1: (20.0, 5.0), 2: (40.0, 35.0), 3: (60.0, 59.0)}
    found = device_trace(
        [
            kernel("gemm", 0.0, 10.0),
            *(kernel("gemm", at, 10.0, correlation=number) for number, (at, _) in begun.items()),
            *(
                launch | {"ts": at - 1, "dur": 1.0, "args": {"correlation": number}}
                for number, (_, at) in reversed(begun.items())
            ),
        ]
    )
    assert found.launch_s == pytest.approx((0 + 5 + 9) * 1e-6)
    assert found.idle_s == pytest.approx((10 + 5 + 1) * 1e-6)
    # Numbers that no launch has, as profilers write for none.
    for none in (-1, 2**63, "7", None):
        late = launch | {"ts": 15.0, "dur": 1.0, "args": {"correlation": none}}
        kernels = [kernel("gemm", 0.0, 10.0), kernel("gemm", 20.0, 10.0, correlation=none)]
        assert device_trace([*kernels, late]).launch_s == 0


def test_bus_bandwidth_is_over_the_time_of_whoever_came_last() -> None:
    """Two calls of 16,000 bytes over eight ranks take 5 and 9 µs on one rank, 7 and 5 µs on the
    other."""

    def recorded(name: str, *took: float) -> RankProfile:
        calls = [
            kernel("ncclDevKernel_ReduceScatter_x", 20.0 * i, each, **NCCL)
            for i, each in enumerate(took)
        ]
        return replace(device_trace(calls), name=name)

    ranks = [recorded("here", 5.0, 9.0), recorded("there", 7.0, 5.0)]
    (calls,) = ranks[0].calls
    sent = 7 / 8 * 2 * 16_000
    assert bus_bandwidth_bytes_per_s(calls, {}) == pytest.approx(sent / 14e-6)
    assert bus_bandwidth_bytes_per_s(calls, common_calls(ranks)) == pytest.approx(sent / 10e-6)


def test_a_recorded_job_is_told_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *(str(path) for path in FILES[:2])]) == 0
    said = capsys.readouterr().out
    for part in ("rank 0", "rank 1", "all-reduce", "busbw", "came last"):
        assert part in said


def page_text() -> str:
    return (EXAMPLES.parents[1] / "guide/reading-a-profile.md").read_text("utf-8")


def test_the_page_prints_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *(str(path) for path in FILES[:2])]) == 0
    assert f"```text\n{capsys.readouterr().out}```\n" in page_text()


def test_the_page_finds_the_late_operators_as_its_program_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(
        r"^```python\n(import gzip\n.*?)^```\n\n```text [^\n]*\n(.*?)^```", page_text(), re.M | re.S
    )
    assert found is not None
    monkeypatch.chdir(EXAMPLES)
    exec(found[1], {})
    assert capsys.readouterr().out == found[2]


def test_the_page_quotes_a_kernel_of_the_recording_and_what_launched_it() -> None:
    data = (RECORDED / "tinyllama-amp-eager.json.gz").read_bytes()
    events = json.loads(gzip.decompress(data))["traceEvents"]
    (kernel,) = (
        one for one in events if one.get("cat") == "kernel" and one["args"]["correlation"] == 108957
    )
    assert (
        f"{kernel['name']}\n             dur {kernel['dur']}, stream {kernel['tid']},"
        in page_text()
    )
    number = kernel["args"]["External id"]
    same = {one["name"] for one in events if one.get("args", {}).get("External id") == number}
    assert {"aten::mm", "cuLaunchKernelEx"} <= same
    assert f"aten::mm, External id {number}" in page_text()


def test_hta_divides_metas_trace_as_this_reader_does() -> None:
    """HTA 0.5.0 printed these shares of tests/oracles/profiles/ddp-resnet50.json.gz."""
    rank = read(RECORDED / "ddp-resnet50.json.gz")
    shares = re.findall(r"`(\w+)_pctg ([\d.]+)`", page_text())
    assert {name for name, _ in shares} == {"idle_time", "compute_time", "non_compute_time"}
    assert sum(float(share) for _, share in shares) == pytest.approx(100, abs=0.02)
    computed = next(float(share) for name, share in shares if name == "compute_time")
    assert 100 * rank.computing_s / rank.wall_s == pytest.approx(computed, abs=0.2)


def test_pages_of_differences_exist() -> None:
    docs = Path(__file__).parents[1] / "docs"
    assert {page for page in PAGES.values() if not (docs / f"{page}.md").is_file()} == set()
