"""Figures of a training step, compared with hand-computed traffic, papers' formulas, and sums."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from figgen import catalog
from figgen.catalog import TrainingPreset
from figgen.catalog.rates import constants
from figgen.charts import Bars, Table
from figgen.errors import InputError
from figgen.figures.training.step import in_words
from figgen.registry import build
from figgen.scenarios.evidence.published import computed_mfu, how_published, published_step_s
from figgen.scenarios.options.assumptions import known_of
from figgen.scenarios.options.resolve import cluster_of, training_step
from figgen.scenarios.options.written import written_step
from tests.figures.reading import DRAWN

PRESETS = [name for name, found in catalog.PRESETS.items() if isinstance(found, TrainingPreset)]
SMALL = {"model": "llama-3-8b", "sizes": "nodes=1 gpus_per_node=8 tp=2 pp=2"}


@pytest.mark.parametrize("preset", PRESETS)
def test_parts_of_every_preset_add_up_to_its_step(preset: str) -> None:
    chart = build("step-breakdown", {"preset": preset})
    assert isinstance(chart, Bars)
    shown = math.fsum(segment.lengths[0] for segment in chart.segments)
    values = {name: named.value for name, named in chart.values.items()}
    assert shown == pytest.approx(values["step_time"])
    assert values["compute_share"] + values["bubble_share"] + values["exposed_share"] == (
        pytest.approx(1)
    )
    table = build("step-communication", {"preset": preset})
    assert isinstance(table, Table)
    assert math.fsum(row[9] for row in table.rows) == pytest.approx(values["exposed"])
    assert math.fsum(row[8] for row in table.rows) >= values["hidden"]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_a_memory_chart_with_its_fullest_rank_and_both_ends(preset: str) -> None:
    chart = build("memory-by-stage", {"preset": preset})
    assert isinstance(chart, Bars)
    totals = [
        math.fsum(lengths) for lengths in zip(*(s.lengths for s in chart.segments), strict=True)
    ]
    values = {name: named.value for name, named in chart.values.items()}
    assert max(totals) == pytest.approx(values["fullest"])
    assert len(totals) <= 8
    assert chart.labels[0].split("\u00a0")[1].startswith("0")
    assert chart.labels[-1].endswith(str(values["stages"] - 1))
    assert values["verdict"] == (
        "fits" if values["fullest"] <= values["capacity"] else "does not fit"
    )


def test_mt_nlg_sends_what_six_all_reduces_of_its_activations_take() -> None:
    """Two in forward, two more in recomputation, two in backward; 105 layers, 35 stages."""
    table = build("step-communication", {"preset": "mt-nlg-530b"})
    layers = next(row for row in table.rows if row[:2] == ("TP", "layers"))
    buffer = 2048 * 20480 * 2
    assert layers[4] == 6 * 3 * 240
    assert layers[5] == buffer
    assert layers[6] == pytest.approx(6 * 3 * 240 * 2 * 7 / 8 * buffer)
    assert layers[7] == "inside a node"
    assert layers[8] >= layers[6] / 300e9


def test_a_published_rate_gives_the_step_time_of_the_papers_formula() -> None:
    """Narayanan et al. 2021, eq. (3): F = 96 B s l h² (1 + s/6h + V/16lh)."""
    run = catalog.run("narayanan21-1t")
    batch, s, layers, h, vocab = 3072, 2048, 128, 25600, 51200
    flops = 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h))
    assert published_step_s(run) == pytest.approx(flops / (163e12 * 3072), rel=2e-3)
    assert how_published(run) == "from the printed FLOP rate"
    # Section 5.1 of the paper: 84 days for 450 billion tokens.
    assert published_step_s(run) == pytest.approx(84 * 86400 / (450e9 / (batch * s)), rel=0.02)


def test_published_times_are_those_printed_and_none_where_nothing_is() -> None:
    assert published_step_s(catalog.run("bloom-176b")) == 104.5
    assert how_published(catalog.run("bloom-176b")) == "as printed"
    assert published_step_s(catalog.run("opt-175b")) is None
    assert how_published(catalog.run("opt-175b")) == "not published"
    # 16,384 GPUs at 400 TFLOP/s: 2048 sequences of 8192 tokens of 405B take 6.7 s.
    flops = (6 * 405e9 + 12 * 126 * 16384 * 8192) * 2048 * 8192
    found = published_step_s(catalog.run("llama-3-405b-8k-16384"))
    assert found == pytest.approx(flops / (400e12 * 16384), rel=0.01)


def test_a_difference_of_less_than_half_a_percent_is_told_in_tenths() -> None:
    told = {0.126: "13% longer", -0.004: "0.4% shorter", 0.0049: "0.5% longer"}
    told |= {0.005: "0.5% longer", -0.0051: "1% shorter", 0.0004: "less than 0.1% longer"}
    assert {difference: in_words(difference) for difference in told} == told


def test_the_fullest_rank_of_mt_nlg_holds_three_layers_in_twenty_bytes_without_shards() -> None:
    values = build("memory-by-stage", {"preset": "mt-nlg-530b"}).values
    state = sum(values[part].value for part in ("weights", "gradients", "optimizer"))
    layers = 3 * 12 * 20480**2 / 8
    # The paper's 20 bytes: 18 of bf16 training, and the fresh 16-bit gradients of its framework.
    # The first stage holds the embedding as well.
    assert state == pytest.approx(20 * (layers + 51200 * 20480 / 8), rel=0.02)


def test_work_over_bytes_stands_beside_the_ridge_of_the_link() -> None:
    table = build("setup-roofline", SMALL)
    efficiency = build("step-breakdown", SMALL).values["compute_efficiency"].value
    peak = 989.4e12
    for row in table.rows:
        assert row[4] == pytest.approx(efficiency * peak / 450e9)
        assert row[5] == pytest.approx(row[3] / row[4])
    assert [row[5] for row in table.rows] == sorted(row[5] for row in table.rows)


@pytest.mark.parametrize("schedule", ["1f1b", "zbv", "dualpipe", "dualpipev"])
def test_chunks_of_a_setup_are_those_of_the_table_of_schedules(schedule: str) -> None:
    small = SMALL | {"options": f"schedule={schedule} microbatches=16"}
    said = {row[0]: str(row[1]) for row in build("setup-summary", small).rows}["schedule"]
    table = build("schedule-table", {"stages": 4, "microbatches": 16})
    chunks = {str(row[0]).lower(): row[1] for row in table.rows}[schedule]
    assert (f", {chunks} chunks" in said) is (chunks > 1)
    assert ("2 copies of the model" in said) is (schedule == "dualpipe")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_multiplies_at_the_peak_of_what_it_multiplies_in(preset: str) -> None:
    found = training_step(preset=preset)
    assert found.run
    assert found.dtype == found.run.dtype
    assert found.cluster.peak_flops_per_s == found.accelerator.peak_flops_per_s(found.run.dtype)
    low = any(name in found.run.precision.lower() for name in ("fp8", "float8"))
    assert low is (found.run.dtype == "fp8")
    said = {row[0]: str(row[1]) for row in build("setup-summary", {"preset": preset}).rows}
    assert said["multiplied in"].startswith(f"{found.run.dtype.upper()}, ")
    if found.run.mfu:
        assert said["its printed MFU is of"].startswith(f"{found.run.mfu_dtype.upper()}, ")


def test_deepseek_v3_multiplies_in_fp8_and_is_held_against_the_peak_in_bf16() -> None:
    """DeepSeek-V3 report, section 3.3: all three matmuls of linear layers are in FP8."""
    run = catalog.run("deepseek-v3")
    assert (run.dtype, run.mfu_dtype) == ("fp8", "bf16")
    others = [run for run in catalog.RUNS.values() if run.mfu_dtype != run.dtype]
    assert others == [run]
    found = training_step(preset="deepseek-v3")
    assert found.cluster.peak_flops_per_s == 1978.9e12
    # In the printed 19.926 s the same work is the printed 38.94% (Zhao et al., Table 4).
    assert computed_mfu(found) * found.estimate.step_time_s / 19.926 == pytest.approx(
        0.3894, abs=0.001
    )


def test_another_reading_of_a_run_is_a_row_of_its_own() -> None:
    name = "llama-3-405b-8k-16384"
    table = build("published-and-computed", {"runs": [name, f"{name} recompute=full", "opt-175b"]})
    assert ["full" in str(row[0]) for row in table.rows] == [False, True, False]
    assert [row[4] for row in table.rows[1:]] == ["from FLOP/s", "–"]
    values = table.values
    assert (values["runs"].value, values["compared"].value, values["derived"].value) == (2, 2, 2)
    again = training_step(preset=name, recompute="full").estimate.step_time_s
    assert table.rows[1][2] == again > table.rows[0][2]
    assert values["llama_3_405b_8k_16384_recompute_full_difference"].value == table.rows[1][5]


def test_a_run_that_names_no_network_gets_the_ports_that_its_nodes_ship_with() -> None:
    """DGX A100: HDR; DGX H100, H200, B200 and GB200: ConnectX-7 at 400 Gb/s; B300: ConnectX-8."""
    shipped = {
        preset.accelerator.name: preset.nic.name
        for preset in catalog.PRESETS.values()
        if isinstance(preset, catalog.HardwarePreset) and preset.nic.name.startswith("ib-")
    }
    ports = {"a100": "ib-hdr", "h100": "ib-ndr", "b200": "ib-ndr", "gb200": "ib-ndr",
             "b300": "ib-xdr"}  # fmt: skip
    for chip, port in ports.items():
        assert {nic for name, nic in shipped.items() if name.startswith(f"{chip}-")} == {port}
    for run in catalog.RUNS.values():
        if run.accelerator.name in shipped and not run.name.startswith("llama-3"):
            assert known_of(run)[0].get("nic", "ib-ndr") == shipped[run.accelerator.name]


def test_a_summary_names_what_is_assumed_and_an_explicit_setup_has_nothing_to_name() -> None:
    alone = build("setup-summary", {"preset": "opt-175b"})
    assert "schedule" not in [row[0] for row in alone.rows], "of one stage, whatever is published"
    assert alone.values["schedule"].value == "none"
    table = build("setup-summary", {"preset": "bloom-176b"})
    known = {row[0]: row[2] for row in table.rows}
    assert known["ZeRO stage"] == known["microbatches"] == known["recomputation"] == "published"
    assert known["network per GPU"] == "assumed"
    assert known["computing reaches"] == "predicted"
    assert table.values["assumed"].value == list(known.values()).count("assumed")
    assert len(build("setup-summary", SMALL).columns) == 2
    mine = build("setup-summary", {"preset": "bloom-176b", "options": "nic=ib-ndr"})
    assert {row[0]: row[2] for row in mine.rows}["network per GPU"] == "given"


def test_changes_of_a_setup_are_steps_of_their_own() -> None:
    """1F1B idles for (P − 1) microbatches, however many there are."""
    about = {"model": "llama-3-8b", "sizes": "nodes=1 gpus_per_node=8 tp=2 pp=4"}
    given = {**about, "options": "microbatches=8"}
    table = build("setup-changes", {**given, "changes": ["microbatches=16", "tp=1", "nic=ib-xdr"]})
    plain, more, narrower, faster = table.rows
    assert more[4] * more[3] == pytest.approx(plain[4] * plain[3], rel=0.02)
    other = build("step-breakdown", {**about, "options": "microbatches=16"})
    assert more[3] == other.values["step_time"].value
    assert narrower[7] == 2 * plain[7], "half the tensor parallelism leaves twice the replicas"
    assert faster[2] == 0.0, "nothing leaves a single node"
    assert table.values["best"].value == max(row[2] for row in table.rows[1:])
    for changes in ([], ["tp=3"], ["microbatchs=2"]):
        with pytest.raises(InputError):
            build("setup-changes", {**given, "changes": changes})


def test_loads_of_links_are_the_bytes_sent_over_the_time_of_computing() -> None:
    loads = build("link-loads", SMALL)
    step = build("step-breakdown", SMALL).values
    rows = build("step-communication", SMALL).rows
    assert [row[0] for row in loads.rows] == ["inside a node"]
    assert loads.rows[0][1] == pytest.approx(sum(row[6] for row in rows))
    computing = step["compute"].value + step.get("recompute", step["compute"]).value
    assert loads.rows[0][3] == pytest.approx(loads.rows[0][1] / computing)
    assert loads.rows[0][5] == pytest.approx(step["compute_efficiency"].value * 989.4e12 / 450e9)


def test_choices_of_a_setup_hold_what_is_chosen() -> None:
    rows = {row[0]: row[1:] for row in build("setup-choices", SMALL).rows}
    assert "Llama 3.1 8B" in rows["model"][1].split(", ")
    for setting in ("schedule", "ZeRO stage", "recomputation", "flash attention"):
        value, choices = rows[setting]
        assert value in choices.split(", "), setting


def test_options_change_a_run_and_sizes_its_layout() -> None:
    plain = training_step(preset="bloom-176b")
    slower = training_step(preset="bloom-176b", nic="roce-100g", compute_efficiency=0.4)
    assert slower.estimate.step_time_s > plain.estimate.step_time_s
    wider = training_step(preset="bloom-176b", tp=8)
    assert (wider.setup.parallel.tp, wider.setup.parallel.dp) == (8, 4)
    assert wider.setup.global_batch == plain.setup.global_batch == 2048


def test_a_rack_of_72_counts_as_64_where_the_run_fills_no_rack() -> None:
    assert cluster_of(catalog.run(catalog.preset("qwen-3-235b-a22b").run.name)) == (4, 64)
    assert cluster_of(catalog.run("bloom-176b")) == (48, 8)
    rack = catalog.run(catalog.preset("qwen-3-235b-a22b").run.name)
    found = {gpus: cluster_of(replace(rack, gpus=gpus)) for gpus in (144, 128, 64, 8)}
    assert found == {144: (2, 72), 128: (2, 64), 64: (1, 64), 8: (1, 8)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "one of preset, run or model"),
        ({"preset": "map-8"}, "model: expected a value"),
        ({"preset": "bloom-176b", "run": "bloom-176b"}, "one of preset, run or model"),
        ({"preset": "bloom-176b", "options": "shedule=gpipe"}, "did you mean schedule"),
        ({"preset": "bloom-176b", "options": "chunks=two"}, "chunks: expected a whole number"),
        ({"preset": "bloom-176b", "options": "dropout=yes"}, "dropout: expected on or off"),
        ({"preset": "bloom-176b", "options": "schedule=gpip"}, "did you mean gpipe"),
        ({"preset": "bloom-176b", "options": "microbatch_size=5"}, "global_batch: expected"),
        ({"run": "opt-175b", "options": "nic="}, "nic: expected text"),
        ({"run": "gpt-3-175b"}, "a published layout"),
        ({"model": "llama-3-8b", "sizes": "nodes=1 gpus_per_node=16"}, "at most 8"),
        ({"model": "llama-3-8b"}, "nodes: expected a value"),
    ],
)
def test_a_step_that_cannot_be_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("step-breakdown", arguments)


def test_a_profile_of_the_model_shows_the_shares_of_its_step() -> None:
    """One side is computed from events by interval arithmetic, the other from the sums
    of the step."""
    table = build("profile-signatures", DRAWN["profile-signatures"])
    for row, sizes in zip(table.rows[1:], ("tp=8", "tp=2 pp=2"), strict=True):
        model, machine = "llama-3-8b", "nodes=2 gpus_per_node=8"
        found = written_step(model=model, sizes=f"{machine} {sizes}", options="microbatches=4")
        step = found.estimate
        shares = dict(zip([column.label for column in table.columns], row, strict=True))
        assert shares["step"] == pytest.approx(step.step_time_s, rel=1e-6)
        # With stages, the simulated pipeline idles a little more than the closed form says.
        near = 1e-4 if found.setup.parallel.pp == 1 else 0.03
        assert shares["computing"] == pytest.approx(step.compute_s / step.step_time_s, rel=near)
        exposed = dict(step.exposed)["tp"] / step.step_time_s
        assert shares["exposed TP"] == pytest.approx(exposed, rel=near)


def test_the_bars_show_the_messages_that_the_predicted_time_holds() -> None:
    """Nemotron-4 340B, by hand: two blocks with a gather and a scatter each, 2.5 times with
    backward.

    96 layers on 12 stages, TP 8 over 0.8 of NVLink with seven latencies; the exposed share is the
    fit's.
    """
    values = build("step-breakdown", {"preset": "nemotron-4-340b"}).values
    setup = training_step(preset="nemotron-4-340b").setup
    call_s = 4096 * 18432 * 2 * 7 / 8 / (0.8 * 450e9) + 7 * 3.9e-6
    seen = constants()["exposed_tensor.megatron"].value
    held = seen * setup.microbatches * 96 / 12 * 4 * 2.5 * call_s
    assert values["exposed_tp"].value == pytest.approx(held, rel=0.01)


def test_a_profile_of_every_layout_sends_what_is_counted_by_hand() -> None:
    layouts = ["| zero_stage=3", "tp=8"]
    options = "sequence=8192 global_batch=64 recompute=full"
    given = {"model": "llama-3-70b", "machine": "nodes=8 gpus_per_node=8", "options": options}
    values = build("profile-signatures", {**given, "layouts": layouts}).values
    # Weights gathered in 16 bits forward and backward, gradients scattered in 32 bits.
    assert values["zero_stage_3_sent"].value == pytest.approx(63 / 64 * 70.55e9 * 8, rel=1e-3)
    # Of 80 layers and 8 microbatches: two gathers and two scatters forward, again and backward,
    # and two gathers more backward; then embedding and head, and gradients and weights of 8.
    half = 7 / 8 * 8192 * 8192 * 2
    once = 7 / 8 * 70.55e9 / 8 * 6
    assert values["tp_8_sent"].value == pytest.approx(80 * 8 * 14 * half + once, rel=5e-3)


def test_the_shares_of_a_profile_are_the_whole_step() -> None:
    bars = build("profile-shares", DRAWN["profile-shares"])
    table = build("profile-signatures", DRAWN["profile-signatures"])
    columns = [column.label for column in table.columns]
    for at, row in enumerate(table.rows):
        lengths = {each.name: each.lengths[at] for each in bars.segments}
        assert sum(lengths.values()) == pytest.approx(1)
        shares = dict(zip(columns, row, strict=True))
        assert lengths["computing"] == shares["computing"]
        assert lengths["idle"] == shares["idle"]
        # Calls at the same moment count in both columns and have a part each in the bars.
        assert all(lengths[axis] <= shares[f"exposed {axis}"] + 1e-9 for axis in ("DP", "TP"))


def test_computed_mfu_counts_attention_as_the_run_does() -> None:
    """DeepSeek-V3's 38.9% exclude the masked half (Zhao et al. 2025, table 4)."""
    found = training_step(preset="deepseek-v3")
    assert found.run
    assert found.run.mfu
    published, printed = published_step_s(found.run), found.run.mfu.value
    assert published
    assert computed_mfu(found) * found.estimate.step_time_s == pytest.approx(
        printed * published, rel=0.005
    )
