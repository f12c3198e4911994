"""Runs read from files: every way in which sources write them, and one line for what is missing."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.catalog import load
from figgen.catalog.runs import Run
from figgen.errors import InputError
from figgen.models.step.compute import training_flops_per_token
from figgen.scenarios.evidence.measured import completed_record, measured_runs, shown_runs
from figgen.scenarios.evidence.split import CALIBRATION, TEST, side_of_key
from figgen.scenarios.options.resolve import resolve, training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.runs.described import domain_width
from figgen.scenarios.runs.job import run_job, stages_of
from figgen.scenarios.runs.names import (
    accelerator_of,
    format_of,
    named_chip,
    network_of,
    recompute_of,
)
from figgen.scenarios.runs.own_hardware import named_accelerator, named_link
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.published_record import record_of
from figgen.scenarios.runs.published_time import published_step_s
from figgen.scenarios.runs.record import described_run, read_run_file
from figgen.scenarios.runs.setup import run_setup
from figgen.scenarios.runs.usual import usual_chunks
from tests.models.plain_step import plain_layers

RUN: dict[str, Any] = {
    "id": "a", "hardware": "H100 (DGX)", "num_accelerators": 64, "tp": 8, "pp": 2, "vpp": 5,
    "global_batch_sequences": 64, "seq_length": 4096, "model_shape_ref": "llama3-70b",
    "precision": "FP8", "step_time_s": 5.0, "whatever": "ignored",
}  # fmt: skip

PRESET_RUNS = [
    preset.run
    for preset in catalog.PRESETS.values()
    if isinstance(preset, catalog.TrainingPreset) and preset.run.name != "opt-175b"
]
"""Runs of presets except OPT, whose batch is given only in microbatches, unlike any run file."""


def test_a_run_says_little_and_the_rest_has_defaults() -> None:
    run = described_run(RUN)
    assert (run.dp, run.cp, run.ep, run.microbatch, run.microbatches) == (4, 1, 1, 1, 16)
    assert (run.shape.layers, run.shape.sequence, run.dtype) == (80, 4096, "fp8")
    assert run.tokens_per_s_per_gpu == pytest.approx(64 * 4096 / 5.0 / 64)


@pytest.mark.parametrize(
    ("said", "tokens_per_s"),
    [
        ({"tokens_per_s_per_gpu": 819.2}, 819.2),
        ({"tokens_per_s_total": 52_428.8}, 819.2),
        ({"step_time_s": 10, "tokens_per_s_total": 1}, 64 * 4096 / 10 / 64),
    ],
)
def test_a_rate_in_tokens_is_a_time_too(said: dict[str, Any], tokens_per_s: float) -> None:
    run = described_run(RUN | {"step_time_s": None} | said)
    assert run.tokens_per_s_per_gpu == pytest.approx(tokens_per_s)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tp": None}, "tp: expected a whole number from 1 on, got 'missing'"),
        ({"hardware": "abacus"}, "unknown hardware 'abacus'"),
        ({"dispatcher": "pigeons"}, "unknown dispatcher 'pigeons'"),
        ({"num_accelerators": 60}, r"num_accelerators: expected a multiple of tp·cp·pp = 16"),
        ({"precision": "FP8", "hardware": "A100"}, "precision: a100-sxm-80gb has no dense fp8"),
        ({"model_shape_ref": "gpt-9"}, "model_shape_ref"),
        ({"seq_length": 4096.5}, "seq_length: expected a whole number from 1 on, got 4096.5"),
        ({"model_shape_ref": "own", "shape": {"layers": 2}}, "shape: expected a field hidden_size"),
        ({"shape": {"num_layers": "eighty"}}, "num_layers: expected a whole number"),
        ({"shape": {"vocab_size": float("inf")}}, "vocab_size: expected a whole number"),
        ({"layers_per_stage": 20}, "layers_per_stage: expected a list of whole numbers, got 20"),
        ({"layers_per_stage": [20]}, "layers_per_stage: expected 10 counts, together 80"),
        ({"vpp": 1e99}, "vpp: expected a whole number"),
        ({"vpp": 1000}, "vpp: expected at most 82 virtual stages for 80 layers, got 2000"),
        ({"step_time_s": "fast"}, "step_time_s: expected a number from 0 on, got 'fast'"),
        ({"peak_memory_gib": [40]}, "peak_memory_gib: expected a number from 0 on"),
        ({"offloaded_optimizer": "half"}, "offloaded_optimizer: expected a number from 0 on"),
    ],
)
def test_what_is_missing_or_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        described_run(RUN | change)


def test_chips_formats_and_networks_are_known_by_what_tables_write() -> None:
    words = {
        "NVIDIA Blackwell GPU (GB200)": "gb200-nvl72",
        "H100 96GB HBM2e 2.4 TB/s, 500 W cap": "h100-hbm2e-96gb",
        "A100 SXM 40GB (1600 Gb/s RoCE per node)": "a100-sxm-40gb",
        "H100 SXM 80GB, 8/node, AWS EFA (HF cluster)": "h100-sxm-80gb",
    }
    assert {said: accelerator_of(said).name for said in words} == words
    efa = network_of("H100 SXM 80GB, 8/node, AWS EFA (HF cluster)", accelerator_of("H100"))
    assert efa.name == "efa-v2-p5"
    said = ("FP8", "float8 rowwise", "FP8-CS", "MXFP8", "NVFP4 (config inferred)", "amp_bf16")
    assert [format_of(word) for word in said] == [
        "fp8", "fp8-rowwise", "fp8-current", "mxfp8", "nvfp4", "bf16",
    ]  # fmt: skip


HARDWARE = {
    "A100 SXM 40GB": "a100-sxm-40gb", "A100 SXM 80GB": "a100-sxm-80gb",
    "A800 SXM 80GB": "a800-sxm-80gb", "B200 SXM": "b200-sxm-hgx", "GB200 NVL72": "gb200-nvl72",
    "GB300 NVL72": "gb300-nvl72", "H100 96GB HBM2e": "h100-hbm2e-96gb",
    "H100 SXM 80GB": "h100-sxm-80gb", "H20 SXM 96GB": "h20-sxm-96gb",
    "H200 SXM 141GB": "h200-sxm-141gb", "H800 SXM 80GB": "h800-sxm-80gb", "MI300X": "mi300x",
    "MI350X": "mi350x", "RTX 4090 24GB": "rtx-4090", "RTX A6000 48GB": "rtx-a6000",
    "TPU v6e": "tpu-v6e", "Trainium1 (trn1.32xlarge, NeuronCore-v2)": "trainium1",
    "V100 SXM2 32GB": "v100-sxm2-32gb",
}  # fmt: skip
"""What 25 publishers of measured runs write about their hardware (collected 2026-11-26)."""

NAMES = {
    "RTX 4090": "rtx-4090", "rtx4090": "rtx-4090", "NVIDIA GeForce RTX 3090": "rtx-3090",
    "RTX 5090": "rtx-5090", "A100-PCIe-40GB": "a100-pcie-40gb", "NVIDIA A100 80GB PCIe":
    "a100-pcie-80gb", "A800": "a800-sxm-80gb", "H20": "h20-sxm-96gb", "H800": "h800-sxm-80gb",
    "A10": "a10", "L4": "l4", "l40s": "l40s", "RTX A5000": "rtx-a5000", "a6000": "rtx-a6000",
    "RTX 6000 Ada": "rtx-6000-ada", "RTX PRO 6000 Blackwell": "rtx-pro-6000",
    "Tesla V100-SXM2-16GB": "v100-sxm2-16gb", "Gaudi 1": "gaudi1", "Gaudi2": "gaudi2",
    "Trainium1": "trainium1", "trn1": "trainium1", "Ascend 910B": "ascend-910b",
    "NVIDIA GH200 480GB": "gh200-96gb", "NVIDIA GB10": "gb10", "DGX Spark": "gb10",
    "MI250": "mi250", "AMD Instinct MI250X": "mi250x", "B300": "b300-sxm-hgx",
    "MI350X": "mi350x", "Vera Rubin": "vera-rubin-nvl72", "MI455X": "mi455x",
    "H100 NVL": "h100-nvl-94gb", "NVIDIA H100 80GB HBM3": "h100-sxm-80gb", "H100 PCIe":
    "h100-pcie-80gb", "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb", "TPU v5p": "tpu-v5p",
}  # fmt: skip


def test_no_publisher_is_refused_for_its_hardware() -> None:
    assert {said: accelerator_of(said).name for said in HARDWARE} == HARDWARE


def test_chips_are_found_by_the_names_that_people_write() -> None:
    assert {said: named_chip(said) for said in NAMES} == NAMES
    for said, name in NAMES.items():
        assert named_accelerator(said).name == name
    found = training_step(
        model="llama-3-8b", nodes=1, gpus_per_node=1, accelerator="RTX 4090", nic="10 GB/s per GPU"
    )
    assert found.accelerator.name == "rtx-4090"
    assert found.nic.bandwidth_bytes_per_s == 10e9


@pytest.mark.parametrize("words", ["banana H100", "h10", "h100-sxm-80g", "4090 Ti Super", "X1"])
def test_words_that_say_more_than_a_chip_name_none(words: str) -> None:
    assert named_chip(words) is None
    with pytest.raises(InputError):
        named_accelerator(words)


def test_announced_chips_say_so() -> None:
    written = tomllib.loads(
        (Path(catalog.__file__).parent / "accelerators-announced.toml").read_text("utf-8")
    )
    names = {name for name, entry in written.items() if "title" in entry}
    assert {"vera-rubin-nvl72", "mi455x"} <= names
    said = {c.name for c in catalog.ACCELERATORS.values() if c.title.endswith(", announced")}
    assert said == names


@pytest.mark.parametrize(
    ("words", "per_gpu_of_8"),
    [
        ("4x100Gb RoCE", 6.25e9),
        ("RoCE 8x400 Gb/s", 50e9),
        ("EFA 3.2 Tb/s per node", 50e9),
        ("GPUDirect-TCPXO 8x200 Gb/s", 25e9),
        ("InfiniBand 800 Gb/s per node (config)", 12.5e9),
        ("NDR 400 Gb/s per GPU", 50e9),
        ("Omni-Path 4x100 Gb/s per node of 4 GPUs", 12.5e9),
        ("InfiniBand NDR", 50e9),
    ],
)
def test_a_network_has_the_rate_that_its_source_prints(words: str, per_gpu_of_8: float) -> None:
    link = network_of(words, accelerator_of("A100"))
    shared = 8 if link.per == "node" else 1
    assert link.bandwidth_bytes_per_s / shared == per_gpu_of_8


def test_a_rate_says_whether_it_is_of_a_gpu_or_of_a_node() -> None:
    per_gpu, per_node = named_link("400 Gb/s per GPU"), named_link("400 GB/s per node")
    assert (per_gpu.bandwidth_bytes_per_s, per_gpu.per) == (50e9, "GPU")
    assert (per_node.bandwidth_bytes_per_s, per_node.per) == (400e9, "node")
    with pytest.raises(InputError, match="50 GB/s per GPU, or 50 GB/s per node"):
        named_link("50 GB/s")


def test_a_shape_may_be_given_in_either_spelling() -> None:
    short = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "kv_heads": 2}
    long = {
        "num_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "ffn_hidden_size": 2048,
        "vocab_size": 1000, "num_kv_heads": 2,
    }  # fmt: skip
    own = RUN | {"model_shape_ref": "own", "vpp": 1}
    assert described_run(own | {"shape": short}).shape == described_run(own | {"shape": long}).shape


def test_one_run_gives_one_answer_and_many_a_list_with_the_refused_one_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(RUN))
    assert main(("step", "--run", str(file), "--json")) == 0
    one = json.loads(capsys.readouterr().out)
    assert {"step_time_s", "tokens_per_s_per_gpu", "memory_bytes", "fits"} <= set(one)
    file.write_text(json.dumps({"runs": [RUN, {"id": "b"}, 3]}))
    assert main(("step", "--run", str(file), "--json")) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0] == one
    assert [set(row) for row in rows[1:]] == [{"id", "error"}] * 2


def test_a_layout_that_cannot_be_placed_has_a_time_and_no_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A printed EP may exceed the GPUs of a stage, and heads may not divide."""
    file = tmp_path / "run.json"
    wide = RUN | {"model_shape_ref": "deepseek-v3", "tp": 1, "pp": 8, "ep": 64, "vpp": None}
    odd = RUN | {"model_shape_ref": "own", "shape": {
        "layers": 8, "hidden": 768, "heads": 12, "ffn": 3072, "vocab": 1000,
    }}  # fmt: skip
    file.write_text(json.dumps({"runs": [wide, odd]}))
    assert main(("step", "--run", str(file), "--json")) == 0
    wide_row, odd_row = json.loads(capsys.readouterr().out)
    assert wide_row["memory_bytes"] > 0
    assert odd_row["step_time_s"] > 0
    assert odd_row["memory_bytes"] is odd_row["fits"] is None
    assert "heads" in odd_row["memory_error"]


@pytest.mark.parametrize(
    ("sizes", "expert_sizes"),
    [
        ({"tp": 1, "pp": 8, "ep": 64}, (8, 1)),  # a stage has no more than eight
        ({"tp": 2, "pp": 4, "ep": 8}, (8, 2)),
        ({"tp": 2, "pp": 4, "ep": 8, "etp": 1}, (8, 1)),
        ({"tp": 2, "pp": 4, "ep": 1}, (1, 1)),
    ],
)
def test_experts_are_divided_within_a_stage(
    sizes: dict[str, int], expert_sizes: tuple[int, int]
) -> None:
    run = described_run(RUN | {"model_shape_ref": "deepseek-v3", "vpp": None} | sizes)
    job = run_job(run)
    assert (job.ep, job.etp) == expert_sizes


@pytest.mark.parametrize(
    ("name", "etp", "recompute"),
    [
        ("dgxc-v25.05-deepseek-v3-gb200-bf16-g128-b1024", 1, "selective"),
        ("dgxc-v25.05-deepseek-v3-gb200-bf16-g512-b4096", 1, "selective"),
        ("dgxc-v25.05-grok1-314b-gb200-bf16-g128-b256", 4, ""),
        ("dgxc-v25.08-deepseek-v3-example-g1024-b8192", 1, "mla_up_proj,mlp,moe"),
    ],
)
def test_a_benchmark_s_experts_are_divided_and_repeated_as_its_table_says(
    name: str, etp: int, recompute: str
) -> None:
    """NVIDIA/dgxc-benchmarking 68eaf7e (v25.05) and d4b7ec0 (v25.08): columns ETP, RecomputeModule
    and launch.sh, where `core_attn` is what others call selective."""
    run = next(run for run in measured_runs() if run.name == name)
    assert (run_job(run).etp, run.recompute) == (etp, recompute)


def test_what_is_no_run_file_is_refused() -> None:
    with pytest.raises(InputError, match="expected JSON"):
        read_run_file("{")
    with pytest.raises(InputError, match="a run, a list, or"):
        read_run_file("1")


def test_the_split_is_by_key_and_about_half() -> None:
    found = [side_of_key(f"key {number}") for number in range(1000)]
    assert set(found) == {CALIBRATION, TEST}
    assert 450 < found.count(TEST) < 550
    digits = [sha256(f"key {number}".encode()).hexdigest()[0] for number in range(1000)]
    assert found == [CALIBRATION if digit in "01234567" else TEST for digit in digits]


def test_a_published_run_has_one_network_however_it_is_asked_about() -> None:
    """It is the same in a record predicted next to measurements and in the step of its own page."""
    compared = 0
    for run in shown_runs():
        try:
            step = training_step(run=run.name)
        except InputError:  # its layout is not published
            continue
        assert run.network.bandwidth_bytes_per_s == step.nic.bandwidth_bytes_per_s, run.name
        compared += 1
    assert compared > 50


@pytest.mark.parametrize(
    ("named", "ffn_hidden", "gated"),
    [
        ("own", 4096, False),  # GPT's two matrices of h × 4h
        ("own", 2816, True),
        ("own", 5120, True),
        ("llama3-8b", 4096, True),  # what the named model has is known
        ("bloom-176b", 2816, False),
    ],
)
def test_a_block_has_a_gate_as_its_model_has_it_or_as_its_width_says(
    named: str, ffn_hidden: int, gated: bool
) -> None:
    shape = {"num_layers": 10, "hidden_size": 1024, "heads": 16, "vocab": 32000}
    given = shape | {"ffn": ffn_hidden}
    found = described_run(RUN | {"model_shape_ref": named, "shape": given}).shape
    assert (found.ffn == "swiglu") == (found.norm == "rmsnorm") == gated


@pytest.mark.parametrize(("vpp", "pp", "chunks"), [(5, 2, 5), (5, 1, None), (1, 2, None)])
def test_a_run_is_interleaved_where_it_has_a_pipeline_and_several_chunks(
    vpp: int, pp: int, chunks: int | None
) -> None:
    setup = run_setup(described_run(RUN | {"vpp": vpp, "pp": pp}))
    assert setup.schedule == ("interleaved-1f1b" if chunks else "1f1b")
    assert setup.chunks == chunks


def test_a_record_has_the_chunks_of_its_run_and_the_memory_in_gibibytes() -> None:
    for run in catalog.RUNS.values():
        assert (record_of(run)["vpp"] or 1) == run.virtual_stages
        printed = record_of(run)["peak_memory_gib"]
        assert (printed is None) == (run.peak_memory is None)
        if run.peak_memory is not None:
            assert printed * 1024**3 == pytest.approx(run.peak_memory.value)


@pytest.mark.parametrize("gpus", [8, 48, 64, 72, 96, 100, 128, 144, 2432])
def test_a_node_is_the_rack_or_the_widest_power_of_two_in_it_that_divides(gpus: int) -> None:
    widths = (72, 64, 32, 16, 8, 4, 2, 1)
    expected = gpus if gpus < 72 else next(width for width in widths if gpus % width == 0)
    assert domain_width(catalog.accelerator("gb200-nvl72"), gpus) == expected


def test_a_printed_rate_takes_the_tokens_of_a_step_in_its_time() -> None:
    rated = [run for run in catalog.RUNS.values() if run.tokens_per_s_per_gpu and run.gpus]
    timed = [run for run in rated if run.step_time is None and run.tokens_per_step]
    assert timed
    for run in timed:
        seconds = published_step_s(run)
        assert seconds * run.tokens_per_s_per_gpu * run.gpus == pytest.approx(run.tokens_per_step)


def test_a_rate_says_something_only_where_it_is_known_what_it_counts() -> None:
    run = catalog.RUNS["llama-3-405b-8k-8192"]
    work = run.tokens_per_step * training_flops_per_token(run.model.shape, "6nd+attention")
    for known in (run, replace(run, mfu=None)):
        assert published_step_s(known) == pytest.approx(work / 430e12 / 8192, rel=1e-3)
    assert published_step_s(replace(run, mfu=None, flops_kind="unstated")) is None
    assert published_step_s(replace(run, gpus=None)) is None
    # Megatron's formula with recomputation counts four forwards for three.
    again = published_step_s(replace(run, flops_kind="hardware"))
    assert again is None or again > work / 430e12 / 8192


def test_a_step_takes_the_same_whether_seconds_tokens_or_flops_were_printed() -> None:
    """64 · 4096 tokens in 5 s on 64 GPUs are 819.2 tokens per second each, which gives
    the FLOPs."""
    run = described_run(RUN)
    silent = {key: value for key, value in RUN.items() if key != "step_time_s"}
    tflops = 819.2 * training_flops_per_token(run.shape, sequence=4096) / 1e12
    for said in (
        {"tokens_per_s_per_accelerator": 819.2},
        {"derived_tokens_per_s_per_accelerator": 819.2},
        {"reported_tflops_per_accelerator": tflops},
    ):
        assert described_run(silent | said).step_time_s == pytest.approx(5.0)


@pytest.mark.parametrize("layers", [4, 7, 8, 15, 96, 126])
def test_usual_chunks_leave_every_chunk_a_layer(layers: int) -> None:
    shape = replace(catalog.model("llama-3-405b").shape, layers=layers)
    for pp in (1, 2, 4, 8):
        counts = [count for count in range(1, 7) if pp > 1 and count * pp <= layers]
        assert usual_chunks("nemo", shape, pp) == max(counts, default=1)
        assert usual_chunks("nanotron", shape, pp) == 1
    assert usual_chunks("nemo", catalog.model("mixtral-8x7b").shape, 4) == 1


@pytest.mark.parametrize(
    ("framework", "order"),
    [("nanotron", "nanotron"), ("torchtitan", "torchtitan"), ("megatron-lm", "megatron")],
)
def test_ranks_are_laid_out_as_the_framework_does_without_experts(
    framework: str, order: str
) -> None:
    dense = {"framework": framework, "vpp": None, "precision": "BF16"}
    assert run_setup(described_run(RUN | dense)).parallel.order == order
    mixture = {"model_shape_ref": "mixtral-8x7b", "ep": 4, "etp": 1, "tp": 2}
    assert run_setup(described_run(RUN | dense | mixture)).parallel.order == "megatron"


@pytest.mark.parametrize(("layers", "pp", "chunks"), [(9, 2, 3), (11, 2, 1), (14, 4, 3), (7, 1, 1)])
def test_the_fullest_rank_has_what_dealing_leaves_it(layers: int, pp: int, chunks: int) -> None:
    run = described_run(RUN | {"pp": pp, "vpp": chunks})
    run = replace(run, shape=replace(run.shape, layers=layers))
    dealt = plain_layers(run.shape, pp * chunks)
    ranks = [sum(dealt[stage] for stage in range(rank, pp * chunks, pp)) for rank in range(pp)]
    assert stages_of(run) == (max(ranks), layers / pp)


@pytest.mark.parametrize("run", load.runs().values(), ids=lambda run: run.name)
def test_a_published_run_takes_as_long_by_its_record_as_on_its_page(run: Run) -> None:
    """The number is the same where a run is shown, calibrates, and appears on a preset page."""
    try:
        described, page = described_run(completed_record(run)), resolve(scenario(run=run.name))
    except InputError:
        assert run not in PRESET_RUNS
        return
    assert predicted_step(described).step_time_s == pytest.approx(page.predicted.step_time_s)
    assert described.recompute in ("", page.setup.recompute)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", ""),
        ("none", "none"),
        ("Full (every layer)", "full"),
        ("selective (per op)", "selective"),
        ("uniform:2", "uniform:2"),
        ("mlp,core_attn", "mlp,core_attn"),
        ("mlp, layernorm", "mlp,layernorm"),
        # DeepSeek-V3, arXiv:2412.19437, section 3.2.3; Kimi K2, arXiv:2507.20534, 2.4.3.
        ("RMSNorm, MLA up-projection, SwiGLU", "layernorm,latent_norm,mla_up_proj,moe_act"),
        ("LayerNorm, SwiGLU, MLA up-projection", "layernorm,latent_norm,mla_up_proj,moe_act"),
        ("a portion of the operators", "selective"),
    ],
)
def test_what_reports_recompute_is_read_as_modules(words: str, found: str) -> None:
    assert recompute_of(words) == found


def test_recomputing_named_modules_costs_their_products_and_no_attention_core() -> None:
    """DeepSeek-V3's up-projections of queries, keys and values: 72.4M of a layer's weights."""
    one = {
        "hardware": "h800-sxm-80gb", "model_shape_ref": "deepseek-v3", "tp": 1, "pp": 16, "ep": 64,
        "num_accelerators": 2048, "global_batch_sequences": 15360, "seq_length": 4096, "vpp": None,
        "recompute": "RMSNorm, MLA up-projection, SwiGLU",
    }  # fmt: skip
    job = run_job(described_run(RUN | one))
    up = 1536 * 128 * 192 + 512 * 128 * 256
    rest = 7168 * (1536 + 512 + 64) + 128 * 128 * 7168
    experts = 9 * 3 * 7168 * 2048 + 7168 * 256
    core = 4096 / 2 * 2 * 128 * (192 + 128) / 2  # weights' worth of half a square
    met = up + rest + experts + core
    assert job.repeats_layer == pytest.approx(up / met, rel=1e-6)
    assert job.repeats_core == 0


def test_torchtitan_cuts_a_batch_into_as_many_microbatches_as_stages() -> None:
    """Its 405B on 512 GPUs: 32 sequences per replica in 8 microbatches of 4, not in 32 of 1."""
    run = described_run(completed_record(catalog.run("torchtitan-405b-fsdp8-tp8-pp8-1f1b")))
    assert (run.microbatch, run.microbatches) == (4, 8)
    assert predicted_step(run).step_time_s == pytest.approx(run.step_time_s, rel=0.05)
    record = {
        "framework": "torchtitan", "tp": 8, "pp": 8, "num_accelerators": 512,
        "global_batch_sequences": 256, "vpp": None, "seq_length": 8192,
    }  # fmt: skip
    assert described_run(RUN | record).microbatch == 4


def test_interleaving_is_read_from_the_note_of_a_torchtitan_run() -> None:
    """Its Interleaved1F1B has two chunks per rank, as its docs/performance.md says in words."""
    record = {
        "id": "titan", "framework": "torchtitan", "model": "llama-3-405b", "num_accelerators": 512,
        "hardware": "H100 SXM 80GB", "tp": 8, "pp": 8, "global_batch_sequences": 256,
        "seq_length": 8192,
    }  # fmt: skip
    plain, said = described_run(record), described_run({**record, "note": "Interleaved 1F1B"})
    assert (plain.virtual_stages, said.virtual_stages) == (1, 2)
    assert predicted_step(said).step_time_s < predicted_step(plain).step_time_s
    assert described_run({**record, "note": "interleaved", "vpp": 4}).virtual_stages == 4
