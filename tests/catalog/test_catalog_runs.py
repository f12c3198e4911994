"""Published runs: their numbers compared with their source's tables, and with each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import figgen.catalog as catalog
from figgen.catalog import Run
from figgen.errors import InputError
from figgen.models.shape.transformer import flops_per_token, keys_met, part_weights
from figgen.models.step.compute import training_flops_per_token
from figgen.scenarios.evidence.measured import measured_runs
from tests.models.bloom_sweep import SWEEP, SweepRow

TABLES = json.loads((Path(__file__).parents[1] / "oracles/published_tables.json").read_text())
RUNS = list(catalog.RUNS.values())
WITH_MFU = [run for run in RUNS if run.mfu is not None]
# Printed percentages are rounded, and so are the step times that they come from.
MFU_TOLERANCE = 0.003


def name_of(run: Run) -> str:
    return run.name


@pytest.mark.parametrize("run", [run for run in WITH_MFU if not run.mfu_unchecked], ids=name_of)
def test_printed_mfu_follows_from_throughput_and_shape(run: Run) -> None:
    assert run.mfu is not None
    assert run.model_flops_utilisation() == pytest.approx(run.mfu.value, abs=MFU_TOLERANCE)


@pytest.mark.parametrize("run", [run for run in RUNS if run.mfu_unchecked], ids=name_of)
def test_a_run_is_left_unchecked_only_where_it_cannot_be_checked(run: Run) -> None:
    assert run.mfu is not None
    if run.tokens_per_s_per_gpu is None:
        with pytest.raises(InputError, match="prints no throughput"):
            run.model_flops_utilisation()
    else:
        assert abs(run.model_flops_utilisation() - run.mfu.value) > MFU_TOLERANCE


def test_twenty_printed_mfus_are_reproduced() -> None:
    assert len([run for run in WITH_MFU if not run.mfu_unchecked]) == 20


def test_deepseek_v3_prints_both_conventions_of_attention() -> None:
    run = catalog.run("deepseek-v3")
    assert run.mfu is not None
    assert run.mfu_full_attention is not None
    assert run.model_flops_utilisation(causal=True) == pytest.approx(0.3894, abs=0.001)
    assert run.model_flops_utilisation(causal=False) == pytest.approx(0.4373, abs=0.001)
    assert (run.mfu.value, run.mfu_full_attention.value) == (0.3894, 0.4373)


@pytest.mark.parametrize("row", TABLES["megatron_2104.04473_table1"]["rows"])
def test_megatron_2021_rows_are_those_of_the_paper(row: list[float]) -> None:
    billions, heads, hidden, layers, tp, pp, gpus, batch, tflops, percent, petaflops = row
    run = catalog.run("narayanan21-1t" if billions > 1000 else f"narayanan21-{billions:g}b")
    shape = run.model.shape
    assert (shape.heads, shape.hidden, shape.layers) == (heads, hidden, layers)
    assert (run.tp, run.pp, run.gpus, run.global_batch) == (tp, pp, gpus, batch)
    assert run.flops_rate is not None
    assert run.hfu is not None
    assert run.flops_rate.value == tflops * 1e12
    assert run.hfu.value == pytest.approx(percent / 100)
    # Percents are whole; the aggregate is of rates before rounding.
    assert run.flops_rate.value / run.mfu_peak_flops_per_s == pytest.approx(
        percent / 100, abs=0.006
    )
    assert run.flops_rate.value * gpus == pytest.approx(petaflops * 1e15, rel=0.02)


@pytest.mark.parametrize(
    ("row", "shape"),
    list(
        zip(
            TABLES["megatron_readme_h100"]["rows"],
            TABLES["megatron_readme_h100"]["shapes"]["rows"],
            strict=True,
        )
    ),
)
def test_megatron_2024_rows_are_those_of_the_table(row: list, shape: list) -> None:
    size, tflops, tp, pp, dp, gpus, percent, petaflops = row
    run = catalog.run(f"mcore24-{size.lower()}")
    model = run.model
    assert [size, model.heads, model.hidden, model.layers, run.global_batch] == shape
    assert (run.tp, run.pp, run.dp, run.gpus) == (tp, pp, dp, gpus)
    assert run.flops_rate is not None
    assert run.flops_rate.value == pytest.approx(tflops * 1e12)
    assert run.flops_rate.value / run.mfu_peak_flops_per_s == pytest.approx(
        percent / 100, abs=0.006
    )
    assert run.flops_rate.value * gpus == pytest.approx(petaflops * 1e15, rel=0.005)


@pytest.mark.parametrize("index", range(4))
def test_korthikanti_rows_are_those_of_the_paper(index: int) -> None:
    tables = TABLES["korthikanti_2205.05198"]
    size, config = list(tables["configs"].items())[index]
    selective = catalog.run(f"korthikanti22-{size.lower()}-seqsel")
    full = catalog.run(f"korthikanti22-{size.lower()}-full")
    times = [run.step_time.value for run in (selective, full) if run.step_time is not None]
    assert times == [tables["table5"]["present_s"][index], tables["table5"]["full_s"][index]]
    for run in (selective, full):
        shape = run.model.shape
        assert (shape.heads, shape.hidden, shape.layers) == (config["a"], config["h"], config["L"])
        layout = (run.tp, run.pp, run.virtual_stages, run.microbatch, run.global_batch, run.gpus)
        assert layout == tuple(config[key] for key in ("t", "p", "interleave_m", "b", "B", "gpus"))


@pytest.mark.parametrize(
    ("row", "name"),
    list(
        zip(
            TABLES["llama3_2407.21783_table4"]["rows"],
            ("llama-3-405b-8k-8192", "llama-3-405b-8k-16384", "llama-3-405b-131k"),
            strict=True,
        )
    ),
)
def test_llama_3_rows_are_those_of_the_paper(row: list[int], name: str) -> None:
    gpus, tp, cp, pp, dp, sequence, batch_per_dp, _, tflops, percent = row
    run = catalog.run(name)
    assert (run.gpus, run.tp, run.cp, run.pp, run.dp) == (gpus, tp, cp, pp, dp)
    assert (run.sequence, run.global_batch) == (sequence, batch_per_dp * dp)
    assert run.tokens_per_step == 16_777_216
    assert run.flops_rate is not None
    assert run.flops_rate.value == tflops * 1e12
    # 400/989 is 40.4 %, printed as 41.
    assert run.flops_rate.value / run.mfu_peak_flops_per_s == pytest.approx(
        percent / 100, abs=0.007
    )


def test_mt_nlg_runs_are_those_of_the_paper() -> None:
    table = TABLES["mtnlg_2201.11990"]
    for nodes, seconds, tflops in zip(
        table["dgx"], table["iter_s"], table["tflops_per_gpu"], strict=True
    ):
        run = catalog.run(f"mt-nlg-530b-{8 * nodes}")
        assert run.step_time is not None
        assert run.flops_rate is not None
        assert (run.step_time.value, run.flops_rate.value) == (seconds, tflops * 1e12)


def test_mlperf_strong_scaling_loses_a_ninth_from_512_to_8192_gpus() -> None:
    rates = [
        catalog.run(f"mlperf-v5.0-llama-3-405b-h100-{gpus}").tokens_per_s_per_gpu
        for gpus in (512, 2432, 8192)
    ]
    assert [round(rate) for rate in rates if rate is not None] == [334, 322, 297]


BRIDGE = [run for run in RUNS if run.family == "megatron-bridge"]


def bridge_flops(run: Run) -> float:
    """Return FLOPs per token by Megatron's count: causal, including modules that predict one more
    token."""
    shape = run.model.shape
    parts = part_weights(shape)
    met = sum(parts[part] for part in ("attention", "routed", "shared", "projections"))
    module = 6 * (met + shape.vocab * shape.hidden) + 6 * shape.attention_width * run.sequence
    counted = float(flops_per_token(shape, sequence=run.sequence, causal=True))
    if shape.window and "-26.04.01-" in run.name:
        # Until 26.04.01 Megatron-Bridge took gpt-oss for a model without gates and windows.
        assert shape.experts is not None
        met = shape.layers * shape.experts.top_k * shape.hidden * shape.experts.ffn_hidden
        whole = shape.layers * run.sequence - keys_met(shape, run.sequence)
        counted += 6 * shape.attention_width * whole - 6 * met
    return counted + run.mtp_layers * module


@pytest.mark.parametrize("run", BRIDGE, ids=name_of)
def test_megatron_bridge_prints_the_flops_of_the_model_that_the_catalog_has(run: Run) -> None:
    """Only this column of its tables distinguishes DeepSeek-V3 with its module from DeepSeek-V3
    without."""
    assert run.flops_rate is not None
    assert run.tokens_per_s is not None
    printed = run.flops_rate.value / run.tokens_per_s.value
    # Of 26.04.01, tokens per second are printed to two or three digits.
    rounded = 0.025 if "-26.04.01-" in run.name else 0.006
    assert bridge_flops(run) == pytest.approx(printed, rel=rounded)


DEEPSEEK_STEPS = {
    # PFLOP/s of all GPUs and seconds, printed: NVIDIA/dgxc-benchmarking 68eaf7e (v25.05),
    # d4b7ec0 (v25.08) and 8e77d60 (v25.10), deepseek_v3, README.md.
    "dgxc-v25.05-deepseek-v3-gb200-bf16-g128-b1024": (128 * 249.3e-3, 34.168),
    "dgxc-v25.05-deepseek-v3-gb200-bf16-g512-b4096": (512 * 248.53e-3, 34.274),
    "dgxc-v25.08-deepseek-v3-example-g1024-b8192": (1024 * 235.43e-3, 36.189),
    "dgxc-v25.10-deepseek-v3-example-g256-b2048": (256 * 769.5e-3, 11.07148),
    # NVIDIA-NeMo/Megatron-Bridge 067f987, performance-summary-archive.md, lines 610, 580, 568,
    # 555, 556, 507, 422 and 325: FLOPs over tokens, a second and GPU.
    "mbridge-25.09-deepseek-v3-gb200-mxfp8-g256-b2048-tokendrop": (738, 2835),
    "mbridge-25.11-deepseek-v3-b200-mxfp8-g256-b2048-w-mtp": (557, 2139),
    "mbridge-25.11-deepseek-v3-gb200-bf16-g256-b4096-w-o-mtp": (782, 3139),
    "mbridge-25.11-deepseek-v3-gb300-bf16-g256-b4096-w-o-mtp": (961, 3848),
    "mbridge-25.11-deepseek-v3-gb300-mxfp8-g256-b4096-w-o-mtp": (1088, 4357),
    "mbridge-26.02-deepseek-v3-gb300-mxfp8-g256-b4096": (1199, 4612),
    "mbridge-26.02.01-deepseek-v3-gb300-mxfp8-g256-b4096": (1219, 4691),
    "mbridge-26.04-deepseek-v3-gb300-mxfp8-g256-b4096": (1290, 4965),
    # The same commit, performance-summary.md, lines 45 and 46.
    "mbridge-26.08-deepseek-v3-gb300-mxfp8-g256-b4096": (1635, 6288),
    "mbridge-26.08-deepseek-v3-gb200-mxfp8-g256-b4096": (1276, 4912),
}


def test_measured_steps_of_deepseek_v3_have_the_module_that_their_printed_flops_count() -> None:
    found = {run.name: run for run in measured_runs() if "deepseek-v3" in run.name}
    assert found.keys() == DEEPSEEK_STEPS.keys()
    shape = catalog.model("deepseek-v3").shape
    alone = flops_per_token(shape, sequence=4096, causal=True)
    for name, (work, over) in DEEPSEEK_STEPS.items():
        run = found[name]
        tokens = (
            over / 1e12 if name.startswith("mbridge") else run.global_batch * 4096 / over / 1e15
        )
        assert work / tokens / alone == pytest.approx(1.038 if run.mtp_layers else 0.996, abs=0.004)


def test_narayanan_training_time_follows_from_8_flops_a_parameter() -> None:
    for row in TABLES["megatron_2104.04473_table2"]["rows"]:
        scheme, billions, gpus, tflops, days = row
        if scheme != "PTD-P" or billions != 174.6:
            continue
        run = catalog.run(f"narayanan21-175b-{gpus}")
        assert run.flops_rate is not None
        assert run.time_to_train is not None
        assert run.flops_rate.value == tflops * 1e12
        assert run.time_to_train.value == days * 86400
        seconds = 8 * 300e9 * run.model.parameters / (gpus * run.flops_rate.value)
        assert seconds == pytest.approx(run.time_to_train.value, rel=0.04)


def sweep_flops_per_s(row: SweepRow, seconds: float) -> float:
    """Return Narayanan's hardware FLOP rate per GPU with full recomputation, for BLOOM's
    vocabulary."""
    assert row.hidden is not None
    assert row.layers is not None
    sequence, vocab, h, layers = 2048, 250_880, row.hidden, row.layers
    corrections = 1 + sequence / (6 * h) + vocab / (16 * layers * h)
    flops = 96 * row.global_batch * sequence * layers * h**2 * corrections
    return flops / seconds / row.gpus


# The log's estimator was corrected at line 590; before it, and without layers, nothing to check.
TIMED = [row for row in SWEEP if row.line > 590 and row.layers and row.step_time_s]


def test_sweep_rates_follow_from_step_times_except_where_marked() -> None:
    checked = 0
    for row in TIMED:
        assert row.step_time_s is not None
        assert row.printed_flops_per_s is not None
        ratio = sweep_flops_per_s(row, row.step_time_s) / row.printed_flops_per_s
        if row.slip:
            continue
        assert ratio == pytest.approx(1, abs=0.02), row.line
        checked += 1
    assert checked == 98


def test_the_three_slips_of_one_node_fit_a_quarter_of_their_batch() -> None:
    for row in TIMED:
        if row.line in (658, 659, 660):
            assert row.slip
            assert row.step_time_s is not None
            assert row.printed_flops_per_s is not None
            rate = sweep_flops_per_s(row, row.step_time_s) / 4
            assert rate == pytest.approx(row.printed_flops_per_s, rel=0.01)


def test_bloom_was_trained_with_a_layout_of_its_sweep() -> None:
    run = catalog.run("bloom-176b")
    row = next(row for row in SWEEP if row.line == 948)
    assert (run.tp, run.pp, run.dp, run.microbatch) == (row.tp, row.pp, row.dp, row.microbatch)
    assert (run.model.hidden, run.model.layers, run.model.heads) == (
        row.hidden,
        row.layers,
        row.heads,
    )
    assert run.step_time is not None
    assert run.step_time.value == row.step_time_s


def test_training_presets_are_published_runs_with_their_layout() -> None:
    presets = [p for p in catalog.PRESETS.values() if isinstance(p, catalog.TrainingPreset)]
    assert len(presets) == 18
    for preset in presets:
        assert preset.run is catalog.run(preset.run.name)
        assert None not in (preset.run.tp, preset.run.pp, preset.run.dp, preset.run.gpus)
        assert preset.source == preset.run.source


def test_full_recomputation_of_glm_makes_hardware_flops_four_thirds_of_the_models() -> None:
    run = catalog.run("glm-130b")
    assert run.mfu is not None
    assert run.hfu is not None
    assert run.recompute == "full"
    assert run.mfu.value / run.hfu.value == pytest.approx(3 / 4, abs=0.002)  # printed to 0.1
    assert run.gpus == 96 * 8


def test_deepseek_v2_needs_172_8_thousand_gpu_hours_a_trillion_tokens() -> None:
    run = catalog.run("deepseek-v2")
    assert run.tokens_per_s is not None
    assert 1e12 / run.tokens_per_s.value / 3600 == pytest.approx(172_800, rel=1e-4)
    # "A relatively high MFU", says the report; it prints none.
    assert 0.2 < run.model_flops_utilisation(causal=True) < 0.4


def test_opt_was_trained_on_the_tokens_that_its_log_reckons_the_work_of() -> None:
    """It completed "on 300B tokens" with "~4.30E+23 FLOPs of compute": final_update.md."""
    model = catalog.model("opt-175b")
    assert model.tokens is not None
    work = model.tokens.value * training_flops_per_token(model.shape, "megatron", sequence=2048)
    assert work == pytest.approx(4.30e23, rel=1e-3)


def test_a_rate_of_which_nobody_says_what_it_counts_is_no_utilisation() -> None:
    """OPT's report prints up to 147 TFLOP/s. Over the peak that is 47.1%, but of which FLOPs?"""
    unsaid = [run for run in RUNS if run.flops_rate is not None and run.flops_kind == "unstated"]
    assert [run.name for run in unsaid] == ["opt-175b"]
    assert not any(run.mfu or run.hfu for run in unsaid)
