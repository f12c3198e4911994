"""Logs are read as their programs print them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.scenarios.taking.logs import CollectiveLog, OutOfMemory, StepLog, read_log

NCCL = """# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5
# Using devices
#  Rank  0 Group  0 Pid  100 on  node1 device  0 [0x18] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  100 on  node1 device  1 [0x2a] NVIDIA H100 80GB HBM3
# all_reduce_perf
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    22.10    0.00    0.00      0    21.93    0.00    0.00      0
     1048576        262144     float     sum      -1    60.55   17.32   30.31      0    60.20   17.42   30.48    N/A
  8589934592    2147483648     float     sum      -1    31234  275.02  481.28      0    31222  275.12  481.47      0
# Out of bounds values : 0 OK
"""  # noqa: E501

MEGATRON = "\n".join(
    f" [2026-01-01 00:00:0{at}] iteration        {at}/     100 | consumed samples:   {512 * at} | "
    f"elapsed time per iteration (ms): {time} | throughput per GPU (TFLOP/s/GPU): {flops} | "
    "learning rate: 1.0E-05 | global batch size:   512 | lm loss: 1.1E+01 |"
    for at, time, flops in ((1, 9000.5, 100.0), (2, 4000.0, 400.5), (3, 4100.0, 390.5))
)
TITAN = "\n".join(
    f"[rank0]:step: {at:2}  loss: 12.2  grad_norm:  4.0  memory:  {used}GiB(79.1%)  tps: {rate}  "
    "tflops: 330.12  mfu: 33.38%"
    for at, used, rate in ((1, 47.6, 101), (10, 58.25, "5,800"), (20, 58.25, "5,900"))
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 79.11 GiB of which 512.00 MiB is free. Process 1 has 78.60 GiB memory in use. Of "
    "the allocated memory 70.25 GiB is allocated by PyTorch, and 6.50 GiB is reserved by PyTorch "
    "but unallocated. If reserved but unallocated memory is large try setting …"
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total "
    "capacity; 14.00 GiB already allocated; 10.50 MiB free; 14.50 GiB reserved in total by PyTorch)"
)


def test_a_table_of_nccl_tests_gives_its_curve_and_its_line() -> None:
    log = read_log(NCCL)
    assert isinstance(log, CollectiveLog)
    assert (log.collective, log.ranks, len(log.rows)) == ("all-reduce", 2, 3)
    largest = log.rows[-1]
    assert largest.time_s == pytest.approx(31.234e-3)
    # The program's own rates follow from size and time.
    assert largest.algorithm_bandwidth == pytest.approx(
        largest.message_bytes / largest.time_s, rel=1e-3
    )
    alpha, rate = log.fit
    assert alpha == pytest.approx(22.1e-6)
    assert alpha + largest.message_bytes / rate == pytest.approx(largest.time_s)


def test_step_lines_give_medians_without_the_first() -> None:
    log = read_log(MEGATRON)
    assert isinstance(log, StepLog)
    assert (log.framework, log.steps, log.global_batch) == ("megatron-lm", 3, 512)
    assert log.step_time_s == pytest.approx(4.05)
    assert log.flops_per_s_per_gpu == pytest.approx(395.5e12)
    titan = read_log(TITAN)
    assert isinstance(titan, StepLog)
    assert titan.tokens_per_s_per_gpu == 5850
    assert titan.memory_bytes == 58.25 * 2**30
    assert titan.utilisation == pytest.approx(0.3338)


def test_pytorchs_out_of_memory_is_read_in_both_wordings() -> None:
    log = read_log(OOM)
    assert log == OutOfMemory(
        asked_bytes=2 * 2**30,
        capacity_bytes=79.11 * 2**30,
        free_bytes=512 * 2**20,
        allocated_bytes=70.25 * 2**30,
        reserved_unallocated_bytes=6.5 * 2**30,
    )
    old = read_log(OLD)
    assert isinstance(old, OutOfMemory)
    assert (old.asked_bytes, old.free_bytes) == (20 * 2**20, 10.5 * 2**20)
    assert old.allocated_bytes == 14 * 2**30


def test_other_texts_are_no_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_log("torchrun --nnodes 2 train.py") is None
    file = tmp_path / "nccl.log"
    file.write_text(NCCL, encoding="utf-8")
    assert main(["take", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["format"] == "nccl-tests"
    assert shown["alpha_s"] == pytest.approx(22.1e-6)
    assert [row["message_bytes"] for row in shown["rows"]] == [8, 2**20, 2**33]
    file.write_text(OOM, encoding="utf-8")
    assert main(["take", str(file)]) == 0
    assert "asked bytes: 2,147,483,648.0" in capsys.readouterr().out
