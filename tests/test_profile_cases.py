"""figgen profile on what public traces contain: ROCm, old releases, libraries other than NCCL.

The cases were written for this project after public files on which the reader failed; the recorded
job is a Llama of 1.1B parameters under autocast on one H100.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.profiles.kernel_kinds import kind_of_kernel
from figgen.models.profiles.profile import RankProfile, profiles
from figgen.models.profiles.profile_beside import idle_page
from figgen.models.profiles.profile_findings import remarks_of, savings_of
from figgen.models.profiles.profile_words import against_answer, profile_answer
from figgen.models.profiles.trace_kinds import axis_of, collective_of_kernel
from figgen.models.profiles.trace_reader import trace_events
from figgen.units import format_quantity

CASES = Path(__file__).parent / "oracles" / "profiles" / "cases"
RECORDED = CASES.parent / "tinyllama-amp-eager.json.gz"


def read(path: Path) -> RankProfile:
    (found,) = profiles(trace_events(str(path)), path.name)
    return found


def made(events: list[dict[str, Any]], header: Mapping[str, Any] | None = None) -> RankProfile:
    (found,) = profiles(((header or {}, event) for event in events), "made")
    return found


def event(category: str, name: str, start: float, took: float, **args: Any) -> dict[str, Any]:
    thread = 7 if category in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation") else 1
    return {
        "ph": "X", "cat": category, "name": name, "ts": start, "dur": took, "pid": 0,
        "tid": thread, "args": args,
    }  # fmt: skip


@pytest.fixture(scope="module")
def recorded() -> RankProfile:
    return read(RECORDED)


def test_steps_of_rocm_lie_between_their_markers() -> None:
    found = read(CASES / "rocm_markers.json")
    assert (found.steps, found.wall_s) == (1, pytest.approx(10e-3))
    assert found.computing_s == pytest.approx(9e-3)


def test_a_single_marker_of_rocm_ends_the_steps_of_the_host() -> None:
    found = made(
        [
            event("user_annotation", "ProfilerStep#3", 0, 9000),
            event("kernel", "Cijk_gemm", 500, 9000),
            event("gpu_user_annotation", "ProfilerStep#3", 9600, 18),
        ]
    )
    assert (found.steps, found.wall_s) == (1, pytest.approx(9.618e-3))


def test_communication_of_other_libraries_is_no_computing() -> None:
    found = read(CASES / "other_comm_kernels.json")
    assert found.computing_s == pytest.approx(4e-3)
    assert found.exposed_s == pytest.approx(6e-3)
    assert {calls.group.collective: len(calls.each_s) for calls in found.calls} == {
        "all-reduce": 2, "all-to-all": 2, "reduce-scatter": 1, "other": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16>", "all-reduce"),
        ("void aiter::cross_device_reduce_1stage<x>", "all-reduce"),
        ("void deep_ep::internode_ll::dispatch<true>", "all-to-all"),
        ("userbuffers_fp16_sum_inplace_gpu_rr_ag_oop", "all-gather"),
        ("ncclSymkDevKernel_ReduceScatter_LL_sum(x)", "reduce-scatter"),
        ("ncclKernel_SendRecv_RING_SIMPLE(x)", "send and recv"),
        ("Memcpy PtoP (Device -> Device)", "copy between GPUs"),
        ("nvshmemi_transfer_kernel", ""),
    ],
)
def test_collectives_of_other_libraries_are_known(name: str, collective: str) -> None:
    assert collective_of_kernel(name) == collective


def test_a_gpus_job_without_kernels_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(CASES / "cuda_without_kernels.json")]) == 2
    assert "launches, but no kernels" in capsys.readouterr().err


def test_a_device_whose_records_are_not_known_is_no_cpu() -> None:
    """Meta's MTIA, as in HolisticTraceAnalysis' tests, where operators are those of the host."""
    with pytest.raises(InputError, match="1 launches, but no kernels"):
        made([event("cpu_op", "aten::mm", 0, 9), event("mtia_runtime", "runFunction - job", 1, 2)])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("et.json", '{"schema": "1.0.3", "nodes": []}', "this is an execution trace"),
        ("r.json", '{"rocprofiler-sdk-tool": []}', "this is rocprofv3's own JSON"),
        ("t.tar", "trace.json" + "\0" * 500 + '{"traceEvents": []}', "not an archive"),
        ("x.xplane.pb", "\x0a\xa1", "the .trace.json.gz that JAX's profiler writes"),
        ("t.zip", "PK\x03\x04\x96", "a zip archive: unpack it"),
        ("t.json.xz", "\xfd7zXZ\0\0", "xz: unpack it"),
        ("t.json.zst", "\x28\xb5\x2f\xfd$", "zstd: unpack it"),
        ("utf-16.json", "\xff\xfe{\0", "UTF-16: save it as UTF-8"),
        ("lfs.json", "version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        ("page.json", "<!doctype html>", "a web page"),
        ("none.json", "", "an empty file"),
    ],
)
def test_files_of_other_tools_are_named(name: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=re.escape(said)):
        list(trace_events(str(path)))


def test_a_trace_packed_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(gzip.compress(b'{"traceEvents": []}')))
    with pytest.raises(InputError, match="gzip inside gzip"):
        list(trace_events(str(path)))


def test_names_in_any_encoding_are_read(tmp_path: Path) -> None:
    """PyTorch writes a function's name byte for byte; Windows begins a file with a mark."""
    path = tmp_path / "t.json"
    path.write_bytes(b'\xef\xbb\xbf{"traceEvents": [{"ph": "X", "name": "caf\xe9"}]}')
    [(_, found)] = trace_events(str(path))
    assert found["name"] == "caf\ufffd"


@pytest.mark.parametrize(
    "times", [{"ts": 10**400}, {"dur": 10**400}, {"dur": 1e300}, {"dur": -1}, {"dur": "2"}]
)
def test_times_that_cannot_be_are_refused(times: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="a finite ts and a dur from 0 to 3 years"):
        made([event("kernel", "gemm", 0, 9), event("kernel", "gemm", 20, 9) | times])


def test_kernels_without_durations_are_refused() -> None:
    """They would count as a step that computes nothing."""
    with pytest.raises(InputError, match="kernels with a dur"):
        made([event("kernel", "gemm", at, 0) for at in (0, 20)])


def test_categories_of_old_releases_are_read() -> None:
    found = made(
        [
            event("Operator", "aten::mm", 0, 9),
            event("Kernel", "volta_sgemm_128x64_nn", 20, 30) | {"tid": 7},
            event("Memcpy", "Memcpy HtoD (Pinned -> Device)", 50, 10) | {"tid": 7},
        ]
    )
    assert [(one.kind, one.seconds) for one in found.kinds] == [
        ("product", pytest.approx(30e-6)),
        ("copy", pytest.approx(10e-6)),
    ]


def test_sends_of_a_host_that_asks_for_all_to_alls_only_are_those() -> None:
    """As in traces of recommendation models of 2022, whose kernels name no call of the host."""
    kernel = event("kernel", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 5, 90)
    asked = event("user_annotation", "nccl:all_to_all", 0, 3, **{"External id": 293})
    (calls,) = made([asked, kernel]).calls
    assert calls.group.collective == "all-to-all"
    asked = event("user_annotation", "nccl:send", 0, 3, **{"External id": 294})
    (calls,) = made([asked, kernel]).calls
    assert calls.group.collective == "send and recv"


def gapped(long_us: float) -> RankProfile:
    """Return two kernels, the second launched `long_us` after the first ended, with no
    step marked."""
    return made(
        [
            event("cuda_runtime", "cudaLaunchKernel", 0, 5, correlation=1),
            event("kernel", "gemm", 10, 100, correlation=1),
            event("cuda_runtime", "cudaLaunchKernel", 105 + long_us, 5, correlation=2),
            event("kernel", "softmax", 110 + long_us, 100, correlation=2),
        ]
    )


def test_a_long_gap_is_no_launch_that_cuda_graphs_would_save() -> None:
    found = gapped(5000)
    assert (found.launch_s, found.stall_s) == (pytest.approx(5e-3), pytest.approx(5e-3))
    assert savings_of(found, []) == ()
    assert [remark.topic for remark in remarks_of(found)] == ["steps", "stalls"]
    assert "is before softmax" in remarks_of(found)[1].text
    answer = profile_answer(found, 1, [], format_quantity).text
    assert "The largest loss is gaps in which the host did something else" in answer
    short = gapped(500)
    assert short.stall_s == 0
    assert savings_of(short, [])[0].change.startswith("CUDA graphs")


def test_a_recording_without_marks_is_no_step() -> None:
    assert not gapped(500).marked
    answer = profile_answer(gapped(500), 1, [], format_quantity).text
    assert answer.startswith("The recording takes")


def test_two_recordings_are_compared_in_one_sentence() -> None:
    text = against_answer(gapped(500), gapped(900), format_quantity)
    assert text == (
        "A step is 400\u00a0µs shorter than the one compared with: 700\u00a0µs against 1.1\u00a0ms."
        " What differs most is kernels launched late: −400\u00a0µs a step."
    )
    same = against_answer(gapped(500), gapped(500), format_quantity)
    assert same == "A step takes as long as the one compared with: 700\u00a0µs."


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu", "product"),
        ("cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1", "convolution"),
        ("igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16", "convolution"),
        ("void split_embedding_codegen_forward_kernel<fbgemm_gpu::Half>(x)", "indexing"),
        ("void fbgemm_gpu::_compute_FP8_quantize_cuda_kernel<float>(x)", "quantization"),
        ("SubTensorOpWithScalar1d", "elementwise"),
        ("void at::native::max_pool_forward_nchw<float, float>(x)", "reduction"),
        ("void store_kvcache<2048l, 4, false, long>(x)", "copy"),
        ("sage_fwd", "attention"),
        ("sage_quant_kernel", "quantization"),
    ],
)
def test_kinds_of_kernels_in_traces_of_meta_and_amd(name: str, kind: str) -> None:
    """By hand, from tests of HolisticTraceAnalysis and TraceLens: vision,
    recommendation, serving."""
    assert kind_of_kernel(name) == kind


def test_a_job_of_a_cpu_needs_no_kernels() -> None:
    found = made([event("cpu_op", "aten::mm", 0, 10), event("cpu_op", "aten::mm", 10, 10)])
    assert found.computing_s == pytest.approx(20e-6)
    assert found.kinds == ()


@pytest.mark.parametrize("asks", ["annotation", "operator", "launch"])
def test_the_host_names_the_collective_that_a_kernel_does_not(asks: str) -> None:
    """It does so by the number of the annotation or operator, on the kernel or on what
    launched it."""
    number = {} if asks == "launch" else {"External id": 5}
    found = made(
        [
            event("kernel", "gemm", 0, 4000),
            event("kernel", "ncclKernel_SendRecv_RING(x)", 4000, 2000, correlation=9, **number),
            event("cuda_runtime", "cudaLaunchKernel", 3910, 5, correlation=9, **{"External id": 5}),
            event(
                "cpu_op",
                "record_param_comms",
                3900,
                50,
                **{
                    "External id": 5,
                    "Collective name": "all_to_allv",
                    "Process Group Description": "ep",
                },
            )
            if asks == "operator"
            else event("user_annotation", "nccl:all_to_all", 3900, 50, **{"External id": 5}),
        ]
    )
    (calls,) = found.calls
    assert calls.group.collective == "all-to-all"
    assert axis_of(calls.group) == ("ep" if asks == "operator" else "other")


def test_an_old_all_to_all_is_no_message_of_a_pipeline() -> None:
    (calls,) = read(CASES / "old_all_to_all.json").calls
    assert (calls.group.collective, axis_of(calls.group)) == ("all-to-all", "other")


def test_a_job_says_its_size_in_the_header() -> None:
    header = {"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 16}}
    kernel = event("kernel", "ncclKernel_AllReduce_RING_LL(x)", 0, 5)
    found = made([event("kernel", "gemm", 0, 5), kernel], header)
    assert (found.name, found.world_size, found.alone) == ("rank 3", 16, False)
    assert found.calls[0].group.size == 16


def test_a_header_may_stand_behind_the_events(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    job = {"distributedInfo": {"rank": 0, "world_size": 1}}
    path.write_text(json.dumps({"traceEvents": [event("kernel", "gemm", 0, 5)]} | job))
    found = read(path)
    assert (found.world_size, found.alone) == (1, True)


def test_one_gpu_is_never_sent_to_pipelines(recorded: RankProfile) -> None:
    assert recorded.alone
    assert idle_page(recorded) == "idle"
    header = {"distributedInfo": {"rank": 0, "world_size": 8}}
    sends = [event("kernel", "gemm", 0, 5), event("kernel", "ncclDevKernel_SendRecv(x)", 5, 5)]
    assert idle_page(made(sends, header)) == "pipeline"


def test_recorded_kernels_are_divided_by_what_they_do(recorded: RankProfile) -> None:
    """The author of the recording counted 32% matmuls, 11% optimizer, 7% attention.

    He counted the small kernels of cuDNN's attention (1.4%) with the rest, which is 49% with them.
    """
    shares = {one.kind: one.share for one in recorded.all_kinds}
    assert shares["product"] == pytest.approx(0.32, abs=0.005)
    assert shares["optimizer"] == pytest.approx(0.11, abs=0.005)
    assert shares["attention"] == pytest.approx(0.07 + 0.014, abs=0.005)
    rest = 1 - shares["product"] - shares["optimizer"] - shares["attention"]
    assert rest == pytest.approx(0.49 - 0.014, abs=0.01)
    assert shares.get("other", 0.0) < 0.05
    assert sum(shares.values()) == pytest.approx(1)


def test_kinds_of_a_step_add_up_to_its_computing(recorded: RankProfile) -> None:
    alone = sum(one.alone_s for one in recorded.kinds)
    assert alone == pytest.approx(recorded.computing_s, rel=1e-6)
    by_hand: dict[str, float] = {}
    for _, one in trace_events(str(RECORDED)):
        if one.get("cat") in ("gpu_memcpy", "gpu_memset"):
            by_hand[str(one["cat"])] = by_hand.get(str(one["cat"]), 0.0) + float(one["dur"]) / 1e6
    seconds = {one.kind: one.seconds for one in recorded.all_kinds}
    assert seconds["memset"] == pytest.approx(by_hand["gpu_memset"], rel=1e-4)


def test_a_step_ends_with_the_last_kernel_that_it_launched(recorded: RankProfile) -> None:
    """The device's annotations exclude what the optimizer's own annotation launched."""
    events = [one for _, one in trace_events(str(RECORDED))]
    launched = {
        one["args"]["correlation"]: one["ts"]
        for one in events
        if one.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in one["args"]
    }
    host = [one for one in events if one.get("cat") == "user_annotation"]
    first = min(one["ts"] for one in host if one["name"].startswith("ProfilerStep#"))
    mine = [
        (one["ts"], one["ts"] + one["dur"])
        for one in events
        if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
        and launched.get(one["args"]["correlation"], 0) >= first
    ]
    span = max(end for _, end in mine) - min(start for start, _ in mine)
    assert recorded.steps == 2
    assert recorded.wall_s == pytest.approx(span / 1e6, rel=1e-3)


def test_what_would_be_saved_of_the_recorded_step(recorded: RankProfile) -> None:
    savings = {one.change: one for one in savings_of(recorded, [])}
    assert next(iter(savings)) == "torch.compile"
    assert savings["torch.compile"].share == pytest.approx(0.295, abs=0.01)
    # Its attention has no mask, and its optimizer is fused.
    assert not {"flash attention without a mask", "a fused optimizer (fused=True)"} & set(savings)


def test_a_masked_attention_and_an_unfused_optimizer_could_be_faster() -> None:
    found = made(
        [
            event("kernel", "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(AttentionKernel)", 0, 40),
            event(
                "kernel", "multi_tensor_apply_kernel<TensorListMetadata<4>, LerpFunctor>", 40, 36
            ),
            event("kernel", "gemm", 76, 24),
        ]
    )
    savings = {one.change: one.seconds for one in savings_of(found, [])}
    assert savings["a fused optimizer (fused=True)"] == pytest.approx(36e-6 * 11 / 18)
    assert savings["flash attention without a mask"] == pytest.approx(40e-6 * 0.68)


def test_what_the_recorder_slowed_is_told(recorded: RankProfile) -> None:
    (remark,) = remarks_of(recorded)
    assert remark.topic == "recorder"
    assert "between 207.6 and 225.5 ms" in remark.text


def test_late_launches_are_told_by_operator(recorded: RankProfile) -> None:
    assert sum(gap.seconds for gap in recorded.gaps) <= recorded.launch_s + 1e-9
    assert sum(gap.seconds for gap in recorded.gaps) > 0.9 * recorded.launch_s
    assert recorded.gaps[0].operator.startswith("aten::")


def test_elementwise_kernels_of_an_optimizers_step_are_the_optimizers() -> None:
    found = made(
        [
            event("user_annotation", "Optimizer.step#SGD.step", 0, 10),
            event("cuda_runtime", "cudaLaunchKernel", 5, 1, correlation=1),
            event("cuda_runtime", "cudaLaunchKernel", 15, 1, correlation=2),
            event("kernel", "vectorized_elementwise_kernel<4>", 20, 5, correlation=1),
            event("kernel", "vectorized_elementwise_kernel<4>", 25, 5, correlation=2),
        ]
    )
    assert {one.kind: one.kernels for one in found.kinds} == {"optimizer": 1, "elementwise": 1}


def test_a_name_that_says_nothing_is_the_operators() -> None:
    found = made(
        [
            event("cpu_op", "aten::mm", 0, 3, **{"External id": 4}),
            event("kernel", "main_kernel", 5, 5, **{"External id": 4}),
            event("kernel", "main_kernel", 10, 1),
        ]
    )
    assert {one.kind: one.seconds for one in found.kinds} == pytest.approx(
        {"product": 5e-6, "other": 1e-6}
    )


def test_kernels_belong_to_the_module_that_launched_them() -> None:
    """In forward it is found by the call around the launch, in backward by the forward operator's
    number."""
    backward = "autograd::engine::evaluate_function: MmBackward0"
    found = made(
        [
            event("python_function", "nn.Module: Block_0", 0, 20),
            event("python_function", "nn.Module: Linear_3", 2, 6),
            event("python_function", "train.py(3): main", 0, 90),
            event("cpu_op", "aten::mm", 3, 3, **{"External id": 1, "Sequence number": 77}),
            event("cuda_runtime", "cudaLaunchKernel", 4, 1, correlation=1),
            event("cuda_runtime", "cudaLaunchKernel", 12, 1, correlation=2),
            event("cpu_op", backward, 40, 9, **{"Sequence number": 77}) | {"tid": 2},
            event("cuda_runtime", "cudaLaunchKernel", 42, 1, correlation=3) | {"tid": 2},
            event("kernel", "gemm", 100, 5, correlation=1),
            event("kernel", "gemm", 110, 3, correlation=2),
            event("kernel", "gemm", 120, 10, correlation=3),
        ]
    )
    assert {one.module: (one.seconds, one.runs) for one in found.modules} == {
        "Linear": (pytest.approx(15e-6), 2),
        "Block": (pytest.approx(3e-6), 1),
    }


def test_a_packed_trace_of_one_line_is_read_as_one_of_many(tmp_path: Path) -> None:
    events = [event("kernel", "gemm, {", 10 * at, 5, grid=[{"a": 1}, {"b": 2}]) for at in range(9)]
    texts = [
        json.dumps(events),
        json.dumps(events, indent=1),
        json.dumps(events, separators=(",", ":")),
    ]
    found = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.json.gz"
        path.write_bytes(gzip.compress(text.encode()))
        found.append(read(path))
    assert [one.computing_s for one in found] == [pytest.approx(45e-6)] * 3


def test_kinds_stand_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(RECORDED), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["kernels"]["product"]["share"] == pytest.approx(0.32, abs=0.005)
    assert data["kernels"]["product"]["bound"] == "compute"
    assert set(data["kernels"]) >= {"product", "attention", "elementwise", "optimizer", "copy"}
