"""Logs are read as their programs print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.scenarios.taking.log_words import (
    log_sentences,
    logged_step_s,
    step_beside,
)
from figgen.scenarios.taking.logs import OutOfMemory, StepLog, read_log
from figgen.scenarios.taking.timeouts import TimedOut

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


def test_a_limit_of_a_process_is_its_capacity() -> None:
    """https://github.com/ROCm/TheRock/issues/2118: a test allows itself 1.05 of 255.98 GiB."""
    log = read_log(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total "
        "capacity of 255.98 GiB of which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated "
        "memory 1017.01 MiB is allocated by PyTorch, with 17.00 MiB allocated in private pools "
        "(e.g., HIP Graphs), and 54.99 MiB is reserved by PyTorch but unallocated."
    )
    assert isinstance(log, OutOfMemory)
    assert log.capacity_bytes == 1.05 * 2**30
    assert log.free_bytes == pytest.approx((1.05 * 1024 - 1017.01 - 54.99) * 2**20)


def test_steps_of_nanogpt_are_read() -> None:
    """https://github.com/karpathy/nanoGPT/issues/110, and its later lines with an MFU."""
    plain = "iter 1631: loss 4.0863, time 561.94ms\niter 1632: loss 3.7441, time 563.15ms\n"
    log = read_log("$ torchrun --standalone --nproc_per_node=8 train.py\n...\n" + plain)
    assert isinstance(log, StepLog)
    assert (log.framework, log.steps, log.step_time_s) == ("nanogpt", 2, pytest.approx(0.56315))
    log = read_log("iter 10: loss 8.2, time 250.10ms, mfu 37.21%\n")
    assert isinstance(log, StepLog)
    assert (log.step_time_s, log.utilisation) == (pytest.approx(0.2501), pytest.approx(0.3721))


def test_a_utilisation_above_the_peak_is_doubted() -> None:
    """https://github.com/verl-project/verl/issues/1208 prints 1.018."""
    log = read_log("(TaskRunner pid=16292) step:2 - perf/mfu/actor:1.018 - timing_s/step:96.551")
    assert log is not None
    assert "MFU 101.8%, which no chip reaches" in log_sentences(log, None)[0][1]


def test_a_log_stands_beside_the_configuration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "log"
    job = ["--model", "llama-3-8b", "--nodes", "1", "--gpus-per-node", "8", "--zero", "3"]
    # 70.25 GiB of tensors and the 2 GiB that it asked for; 58.25 GiB at most in the other log.
    for text, shown in ((OOM, "at least 77.6\u00a0GB"), (TITAN, "at most 62.5\u00a0GB")):
        path.write_text(text)
        assert main(["memory", *job, "--log", str(path)]) == 0
        assert f"the log shows {shown}" in capsys.readouterr().out
    titan, megatron = read_log(TITAN), read_log(MEGATRON)
    assert isinstance(titan, StepLog)
    assert isinstance(megatron, StepLog)
    # 5,850 tokens a second on each of 8 GPUs are a million tokens in 22.4 s.
    assert logged_step_s(titan, 2**20, 8, 128) == pytest.approx(22.4, rel=1e-3)
    assert logged_step_s(megatron, 2**20, 8, 128) == pytest.approx(4.05)
    assert step_beside(megatron, 4.05, 2.7, 512)[1].startswith("A step took 4.05\u00a0s, 1.50 ×")
    assert (
        "global batch is 512, and this configuration's 24"
        in (step_beside(megatron, 4.05, 2.7, 24)[1])
    )


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


@pytest.mark.parametrize(
    ("text", "framework", "steps", "step_time_s", "tflops"),
    [
        (
            " iteration        2/  100000 | elapsed time per iteration (s): 12.53 | global batch "
            "size:   256 | samples per second: 20.43 | TFLOPs: 128.53 |\n iteration        3/  "
            "100000 | elapsed time per iteration (s): 12.51 | TFLOPs: 128.61 |",
            "megatron-deepspeed",
            2,
            12.51,
            128.61,
        ),
        (
            "Training epoch 0, iteration 19/99 | lr: 1.5e-06 | global_batch_size: 512 | "
            "train_step_timing in s: 6.131\nTraining epoch 0, iteration 20/99 | "
            "train_step_timing in s: 6.128 | consumed_samples: 10752",
            "nemo",
            2,
            6.128,
            None,
        ),
        (
            "[INFO|DP=0|PP=0|TP=0|node-1]: iteration: 10 / 100 | consumed_tokens: 41.9M | "
            "elapsed_time_per_iteration_ms: 4.25K | tokens_per_sec: 987K | "
            "tokens_per_sec_per_gpu: 15.4K | global_batch_size: 1.02K | "
            "model_tflops_per_gpu: 402 | hardware_tflops_per_gpu: 402",
            "nanotron",
            1,
            4.25,
            402.0,
        ),
        (
            "completed step: 10, seconds: 3.411, TFLOP/s/device: 441.2, Tokens/s/device: 9605.1, "
            "loss: 8.2\ncompleted step: 11, seconds: 3.409, TFLOP/s/device: 441.5, "
            "Tokens/s/device: 9611.2, loss: 8.1",
            "maxtext",
            2,
            3.409,
            441.5,
        ),
        (
            "Epoch 1 | iter 96 step 24 | loss train: 3.114, val: n/a | iter time: 210.00 ms (step) "
            "remaining time: 1:02:03\nEpoch 1 | iter 100 step 25 | loss train: 3.101, val: n/a | "
            "iter time: 205.50 ms (step) remaining time: 1:02:02",
            "litgpt",
            2,
            0.822,
            None,
        ),
        (
            "Epoch 0/9   0/1000 0:00:00 • -:--:-- 0.00it/s\n"
            "Epoch 0/9 ━━━╸  100/1000 0:01:40 • 0:15:00 1.25it/s v_num: 0",
            "a progress bar",
            1,
            0.8,
            None,
        ),
        (
            "{'loss': 0.75, 'memory(GiB)': 63.9, 'train_speed(iter/s)': 0.125, 'epoch': 0.5}",
            "ms-swift",
            1,
            8.0,
            None,
        ),
        (
            "  1%|#| 10/99 [01:23<2:15:00,  8.18s/it]\r  2%|#| 20/99 [02:45<2:14:00, 8.20s/it]",
            "a progress bar",
            2,
            8.2,
            None,
        ),
        ("Epoch 0:  12%|#| 120/999 [04:00<29:20,  0.50it/s, loss=2.1]", "a progress bar", 1, 2, 0),
        (
            "{'train_runtime': 3600.5, 'train_samples_per_second': 12.2, "
            "'train_steps_per_second': 0.095, 'train_loss': 1.2, 'epoch': 1.0}",
            "transformers",
            342,
            10.52777778,
            None,
        ),
    ],
)
def test_step_lines_of_other_frameworks_are_read(
    text: str, framework: str, steps: int, step_time_s: float, tflops: float | None
) -> None:
    log = read_log(text)
    assert isinstance(log, StepLog)
    assert (log.framework, log.steps) == (framework, steps)
    assert log.step_time_s == pytest.approx(step_time_s)
    assert (log.flops_per_s_per_gpu or 0) == pytest.approx((tflops or 0) * 1e12)


def test_an_old_misspelling_of_pytorch_and_another_device_are_read() -> None:
    for text in (OOM.replace("capacity", "capacty"), OOM.replace("CUDA out", "HIP out")):
        assert read_log(text) == read_log(OOM)


def test_pytorchs_out_of_memory_is_read_in_both_wordings() -> None:
    log = read_log(OOM)
    assert log == OutOfMemory(
        asked_bytes=2 * 2**30,
        capacity_bytes=79.11 * 2**30,
        free_bytes=512 * 2**20,
        allocated_bytes=70.25 * 2**30,
        reserved_unallocated_bytes=6.5 * 2**30,
    )
    first = read_log(OOM + "\n" + OLD)  # two ranks
    assert first == log
    mixed = read_log(OOM[: OOM.index(" is free") + 8] + "\n" + OLD)
    assert isinstance(mixed, OutOfMemory)
    assert mixed.allocated_bytes is None  # the message of another rank says it
    old = read_log(OLD)
    assert isinstance(old, OutOfMemory)
    assert (old.asked_bytes, old.free_bytes) == (20 * 2**20, 10.5 * 2**20)
    assert old.allocated_bytes == 14 * 2**30
    text = "Tried to allocate 384.00 MiB (GPU 0; 23.65 GiB total capacity; 21.12 GiB already "
    text += "allocated; 210.56 MiB free; 22.02 GiB reserved in total by PyTorch)"
    reserved = read_log("CUDA out of memory. " + text)
    assert isinstance(reserved, OutOfMemory)
    assert reserved.reserved_unallocated_bytes == pytest.approx(0.9 * 2**30)


@pytest.mark.parametrize(
    ("text", "framework", "tokens", "memory"),
    [
        (
            "Step 10 | loss:1.23 lr:2e-05 tokens_per_second_per_gpu:2345.5 "
            "peak_memory_alloc:40.1 peak_memory_reserved:44.25",
            "torchtune",
            2345.5,
            44.25 * 2**30,
        ),
        (
            "throughput/device/tokens_per_sec: 10154.5\n memory/peak_reserved_mem: 61.5",
            "llm-foundry",
            10154.5,
            61.5e9,
        ),
        (
            "  throughput/device/tokens_per_second=4,123.5\n  System/Peak GPU Memory (MB)=61,500",
            "olmo",
            4123.5,
            61.5e9,
        ),
    ],
)
def test_rates_and_memory_of_other_frameworks_are_read(
    text: str, framework: str, tokens: float, memory: float
) -> None:
    log = read_log(text)
    assert isinstance(log, StepLog)
    assert (log.framework, log.tokens_per_s_per_gpu) == (framework, tokens)
    assert log.memory_bytes == memory


def test_other_texts_are_no_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_log("torchrun --nnodes 2 train.py") is None
    file = tmp_path / "job.log"
    file.write_text(OOM, encoding="utf-8")
    assert main(["take", str(file)]) == 0
    assert "it asked for 2.15\u00a0GB with 537\u00a0MB free" in capsys.readouterr().out


def test_steps_in_the_comments_of_a_script_do_not_make_it_a_log() -> None:
    script = "torchrun x.py --micro-batch-size 4\n# elapsed time per iteration (ms): 5861.0 |\n"
    assert read_log(script) is None
    assert read_log(script.replace("# ", "")) is not None


DEEPSPEED = (
    "[2022-12-20 08:26:26,101] [INFO] [timer.py:197:stop] 0/17, RunningAvgSamplesPerSec=158.3, "
    "CurrSamplesPerSec=160.0, MemAllocated=1.75GB, MaxMemAllocated=2.5GB\n"
    "[2022-12-20 08:26:26,325] [INFO] [timer.py:197:stop] 0/18, RunningAvgSamplesPerSec=157.4, "
    "CurrSamplesPerSec=128.0, MemAllocated=1.75GB, MaxMemAllocated=2.5GB\n"
)


def test_samples_a_second_make_a_step_of_the_jobs_batch() -> None:
    log = read_log(DEEPSPEED)
    assert isinstance(log, StepLog)
    assert (log.framework, log.steps, log.samples_per_s) == ("deepspeed", 2, 128.0)
    assert log.memory_bytes == 2.5 * 2**30
    assert logged_step_s(log, 2**20, 8, 256) == 2.0
    older = read_log("0/40, SamplesPerSec=83.5, MemAllocated=0.26GB, MaxMemAllocated=9.02GB")
    assert isinstance(older, StepLog)
    assert older.samples_per_s == 83.5


def test_a_line_of_gpt_neox_has_its_rate_of_flops() -> None:
    log = read_log(
        " samples/sec: 7.799 | iteration       34/   10000 | elapsed time per iteration (ms): "
        "4103.1 | learning rate: 2.111E-06 | approx flops per GPU: 112.9TFLOPS | lm_loss: 1.1E+01"
    )
    assert isinstance(log, StepLog)
    assert (log.framework, log.step_time_s) == ("gpt-neox", pytest.approx(4.1031))
    assert log.flops_per_s_per_gpu == pytest.approx(112.9e12)


@pytest.mark.parametrize(
    ("text", "capacity", "held", "torn"),
    [
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 11.00 GiB total "
            "capacity; 8.00 GiB already allocated; 512.00 MiB free; 256.00 MiB cached)",
            11.0,
            8.0,
            0.25,
        ),
        (
            "RuntimeError: MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: "
            "384.00 KB, max allowed: 18.00 GB). Tried to allocate 2.00 GB on private pool.",
            18.0,
            17.0,
            None,
        ),
        (
            "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
            "total capacity of 64.00 GiB. Of the allocated memory 61.00 GiB is allocated by "
            "PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated.",
            64.0,
            61.0,
            1.5,
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
            "total capacity of 80.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, "
            "this process has 79.00 GiB memory in use. Of the allocated memory 70.00 GiB is "
            "allocated by PyTorch, with 2.00 GiB allocated in private pools (e.g., CUDA Graphs), "
            "and 6.50 GiB is reserved by PyTorch but unallocated.",
            80.0,
            70.0,
            6.5,
        ),
    ],
    ids=["2019", "Apple", "Intel", "graphs"],
)
def test_out_of_memory_is_read_in_the_words_of_every_release_and_device(
    text: str, capacity: float, held: float, torn: float | None
) -> None:
    log = read_log(text)
    assert isinstance(log, OutOfMemory)
    assert (log.asked_bytes, log.capacity_bytes) == (2 * 2**30, capacity * 2**30)
    assert log.allocated_bytes == held * 2**30
    assert log.reserved_unallocated_bytes == (None if torn is None else torn * 2**30)


VERL = (
    "step:3 - global_seqlen/mean:41230.5 - actor/loss:0.01 - perf/mfu/actor:np.float64(0.38) - "
    "perf/max_memory_allocated_gb:61.25 - timing_s/gen:100.2 - timing_s/update_actor:41.5 - "
    "timing_s/step:190.1 - perf/throughput:1201.5"
)
FAIRSEQ2 = (
    "[Rank 0] fairseq2 - Train Metrics (step 50) - Loss: 2.1 | Elements per Second: 412,345 | "
    "Peak Active Device Memory: 41.5 GiB\n"
    "[Rank 0] fairseq2 - Validation Metrics (step 50) - Loss: 2.0 | Elements per Second: 900,000"
)


def test_a_log_of_verl_has_the_actors_share_and_memory_and_no_step() -> None:
    log = read_log(VERL)
    assert isinstance(log, StepLog)
    assert (log.framework, log.utilisation, log.step_time_s) == ("verl", 0.38, None)
    assert log.memory_bytes == 61.25 * 2**30


def test_elements_of_fairseq2_are_the_tokens_of_all_gpus() -> None:
    log = read_log(FAIRSEQ2)
    assert isinstance(log, StepLog)
    assert (log.framework, log.steps, log.memory_bytes) == ("fairseq2", 1, 41.5 * 2**30)
    assert logged_step_s(log, 412_345 * 2, gpus=8, global_batch=1) == pytest.approx(2)


def waiting(rank: int, number: int, kind: str = "ALLREDUCE", elements: str = "2106881") -> str:
    size = f"NumelIn={elements}, NumelOut={elements}, " if elements else ""
    return (
        f"[rank{rank}]:[E816 01:45:40.18 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={number}, OpType={kind}, {size}"
        "Timeout(ms)=600000) ran for 600026 milliseconds before timing out."
    )


@pytest.mark.parametrize(
    ("lines", "suspect"),
    [
        # NVIDIA/nccl#1409: ranks 7 and 3
        ([waiting(7, 80078, "BROADCAST", "5056"), waiting(3, 80078)], "took different branches"),
        # pytorch/pytorch#118369: an old wording without elements
        ([waiting(0, 96120, elements=""), waiting(7, 64088, elements="")], "Rank 7 is behind"),
        ([waiting(0, 5), waiting(1, 5), waiting(3, 5)], "Rank 2 said nothing"),
        ([waiting(0, 5), waiting(1, 5)], "suspect the network"),
        ([waiting(0, 5), waiting(1, 5, elements="7")], "7 and 2,106,881 elements"),
    ],
)
def test_a_time_out_of_nccl_names_the_rank_to_look_at(
    lines: list[str], suspect: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "job.log"
    file.write_text("step 1\n" + "\n".join(lines), "utf-8")
    assert main(["take", str(file)]) == 0
    said = capsys.readouterr().out
    assert suspect in said
    assert "waited 10\xa0min" in said


def test_time_outs_of_several_groups_are_not_compared() -> None:
    groups = "\n".join(f"[PG ID {group} PG GUID {group} Rank 0] Exception" for group in (1, 2))
    log = read_log(waiting(0, 5) + "\n" + waiting(1, 9) + "\n" + groups)
    assert isinstance(log, TimedOut)
    assert "2 process groups" in log_sentences(log, None)[1][1]
