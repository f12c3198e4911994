"""Exports of Nsight Systems and traces of JAX are read like those of PyTorch's profiler."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.models.profiles.profile import RankProfile, profiles
from figgen.models.profiles.trace_reader import trace_events

# Columns as in NVIDIA's "SQLite Schema Reference"; globalPid and globalTid have the process above
# 24 bits.
SCHEMA = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
    shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
    textId INTEGER, globalTid INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3'), (1, 'NVIDIA H100 80GB HBM3');
INSERT INTO StringIds VALUES (1, 'void cutlass::Kernel2<gemm>'), (2, 'cudaLaunchKernel_v7000'),
    (3, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)'), (4, 'step 12'), (5, 'forward');
"""
PROCESS, OTHER = 7 << 24, 9 << 24


def report(folder: Path, kernels: list[tuple[Any, ...]], more: str = "") -> str:
    path = folder / "report.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA + more)
    connection.executemany(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?)", kernels
    )
    connection.commit()
    connection.close()
    return str(path)


def read(path: str) -> dict[str, RankProfile]:
    return {rank.name: rank for rank in profiles(trace_events(path), "report")}


def test_a_report_of_nsight_is_divided_as_a_trace(tmp_path: Path) -> None:
    """Microseconds: | gemm 10-20 | all-reduce 15-30 | copy 30-35 | late gemm 50-60 |."""
    kernels = [
        (10_000, 20_000, 0, 7, 1, PROCESS, 1, 1),
        (15_000, 30_000, 0, 8, 2, PROCESS, 3, 3),
        (50_000, 60_000, 0, 7, 3, PROCESS, 1, 1),
    ]
    thread = PROCESS + 42
    more = f"""
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (30000, 35000, 0, 7, 4, {PROCESS}, 64, 1);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 2000, {thread}, 1, 2),
        (2000, 3000, {thread}, 2, 2), (3000, 4000, {thread}, 4, 2), (40000, 45000, {thread}, 3, 2);
    INSERT INTO NVTX_EVENTS VALUES (0, 58000, 59, NULL, 4, {thread}),
        (500, 900, 59, 'forward', NULL, {thread}), (1, 2, 59, 'ProfilerStepping', NULL, {thread});
    """
    (found,) = read(report(tmp_path, kernels, more)).values()
    assert (found.device, found.steps) == ("NVIDIA H100 80GB HBM3", 1)
    assert found.wall_s == pytest.approx(60e-6), "from the step's beginning to its last kernel"
    assert found.computing_s == pytest.approx(20e-6)
    assert found.exposed_s == pytest.approx(10e-6)
    assert found.copies_s == pytest.approx(5e-6)
    assert found.launch_s == pytest.approx(10e-6 + 2e-6), "until 2 and from 35 to 45"
    assert [calls.group.collective for calls in found.calls] == ["all-reduce"]


def test_gpus_and_processes_of_a_report_are_told_apart(tmp_path: Path) -> None:
    kernels = [
        (0, 10_000, 0, 7, 1, PROCESS, 1, 1),
        (0, 30_000, 1, 7, 1, OTHER, 1, 1),
    ]
    more = f"""
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (-9000, -8000, {PROCESS + 1}, 1, 2),
        (-5000, -4000, {OTHER + 1}, 1, 2);
    INSERT INTO NVTX_EVENTS VALUES (-9500, 10000, 59, 'iteration 3', NULL, {PROCESS + 1});
    """
    found = read(report(tmp_path, kernels, more))
    assert {name: rank.computing_s for name, rank in found.items()} == pytest.approx(
        {"GPU 0": 10e-6, "GPU 1": 30e-6}
    )


def test_a_report_without_kernels_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE NVTX_EVENTS (start INTEGER)")
    connection.commit()
    connection.close()
    assert main(["profile", str(path)]) == 2
    assert "CUPTI_ACTIVITY_KIND_KERNEL" in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:64])
    assert main(["profile", str(path)]) == 2
    assert "a readable SQLite export" in capsys.readouterr().err


def name(kind: str, process: int, text: str, thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": text}}


def span(
    process: int, thread: int, text: str, start: float, took: float, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X", "pid": process, "tid": thread, "name": text, "ts": start, "dur": took,
        "args": args,
    }  # fmt: skip


def written(folder: Path, events: list[dict[str, Any]]) -> str:
    path = folder / "host.trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))
    return str(path)


def test_a_trace_of_jax_has_its_streams_read_and_nothing_twice(tmp_path: Path) -> None:
    """Microseconds: | fusion 10-20 | gemm 20-50 | all-gather 45-60 |, and derived lines."""
    events = [
        name("process_name", 1, "/device:GPU:0 NVIDIA A100"),
        name("process_name", 701, "/host:CPU"),
        name("thread_name", 1, "Stream #13(Compute)", 13),
        name("thread_name", 1, "XLA Ops", 3),
        name("thread_name", 1, "XLA Modules", 2),
        name("thread_name", 1, "Steps", 1),
        name("thread_name", 1, "Stream #14(Kernel)", 14),
        name("thread_name", 701, "python", 5),
        span(1, 13, "loop_add_fusion", 10, 10, correlation_id=3, hlo_op="fusion.1"),
        span(1, 13, "ampere_bf16_s16816gemm_bf16_128x128", 20, 30, correlation_id="4"),
        span(1, 14, "ncclDevKernel_AllGather_RING_LL(x)", 45, 15),
        span(1, 3, "fusion.1", 10, 10),
        span(1, 2, "jit_step(77)", 10, 50),
        span(1, 1, "5", 0, 60),
        span(701, 5, "cuLaunchKernel", 2, 3, correlation_id=3),
        span(701, 5, "PjitFunction(step)", 0, 9),
    ]
    (found,) = read(written(tmp_path, events)).values()
    assert (found.steps, found.wall_s) == (1, pytest.approx(60e-6))
    assert found.computing_s == pytest.approx(40e-6)
    assert found.exposed_s == pytest.approx(10e-6)
    assert {one.kind: one.kernels for one in found.kinds} == {
        "fused": 1, "product": 1, "communication": 1,
    }  # fmt: skip


def test_a_tpu_is_read_from_its_line_of_operations(tmp_path: Path) -> None:
    events = [
        name("process_name", 3, "/device:TPU:0"),
        name("process_name", 4, "/device:TPU:1"),
        name("thread_name", 3, "XLA Ops", 3),
        name("thread_name", 3, "XLA Modules", 2),
        name("thread_name", 4, "XLA Ops", 3),
        name("thread_name", 3, "Async XLA Ops", 9),
        span(3, 2, "jit_step(77)", 0, 50),
        span(3, 9, "copy-start", 0, 50),
        span(3, 3, "fusion.7", 0, 30, hlo_category="convolution fusion"),
        span(3, 3, "all-reduce.3", 30, 10, hlo_category="all-reduce"),
        span(4, 3, "fusion.8", 0, 20, hlo_category="loop fusion"),
    ]
    found = read(written(tmp_path, events))
    assert {rank: one.computing_s for rank, one in found.items()} == pytest.approx(
        {"GPU 0": 30e-6, "GPU 1": 20e-6}
    )
    assert [one.kind for one in found["GPU 0"].kinds] == ["product", "communication"]
    assert found["GPU 0"].calls[0].group.collective == "all-reduce"
