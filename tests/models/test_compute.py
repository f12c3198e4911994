"""FLOPs and utilization by convention, compared with printed MFUs and HFUs and Megatron's own
count.

The catalog's tests check that a run's printed MFU follows from its throughput. Here the conventions
must agree, and those with recomputation must give the printed HFUs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.catalog import Run
from figgen.errors import InputError
from figgen.formulas.compute_and_roofline import attention_core_flops, layer_forward_flops
from figgen.models.step.compute import (
    CONVENTIONS,
    training_flops_per_token,
    utilisation,
    utilisation_of_step,
)

ORACLES = Path(__file__).parents[1] / "oracles"
TABLES = json.loads((ORACLES / "published_tables.json").read_text())
MEGATRON = json.loads((ORACLES / "megatron_memory_and_flops.json").read_text())["flops"]

RUNS = [run for run in catalog.RUNS.values() if run.mfu is not None and run.tokens_per_s_per_gpu]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_conventions_give_the_utilisation_that_the_catalog_checks_with(run: Run) -> None:
    rate = run.tokens_per_s_per_gpu
    assert rate is not None
    for convention, causal in (("6nd+attention", False), ("causal", True)):
        found = utilisation(
            run.model.shape,
            convention,
            tokens_per_s_per_gpu=rate,
            peak_flops_per_s=run.mfu_peak_flops_per_s,
            sequence=run.sequence,
        )
        assert found == run.model_flops_utilisation(causal=causal)


@pytest.mark.parametrize("case", MEGATRON, ids=lambda case: case["model"])
def test_causal_is_what_megatron_logs(case: dict[str, Any]) -> None:
    shape, sequence = catalog.model(case["model"]).shape, case["sequence"]
    found = training_flops_per_token(shape, "causal", sequence=sequence)
    logged = case["flops"] / (case["batch"] * sequence)
    # Megatron leaves out the router, a quarter of a percent where there are 256 experts.
    assert found == pytest.approx(logged, rel=0.003 if shape.experts else 1e-12)


def test_palm_prints_45_7_percent_without_attention_and_46_2_with() -> None:
    palm, run = TABLES["palm_2204.02311"], catalog.run("palm-540b")

    def percent(convention: str) -> float:
        return 100 * utilisation(
            run.model.shape,
            convention,
            tokens_per_s_per_gpu=palm["tok_s"] / palm["chips"],
            peak_flops_per_s=palm["peak_TF"] * 1e12,
        )

    assert percent("6nd") == pytest.approx(palm["mfu_pct_no_attention"], abs=0.05)
    assert percent("6nd+attention") == pytest.approx(palm["mfu_pct"], abs=0.05)


@pytest.mark.parametrize("index", range(4))
def test_korthikantis_table_5_in_both_conventions(index: int) -> None:
    tables = TABLES["korthikanti_2205.05198"]
    size, config = list(tables["configs"].items())[index]
    run = catalog.run(f"korthikanti22-{size.lower()}-seqsel")

    def percent(convention: str) -> float:
        return 100 * utilisation_of_step(
            run.model.shape,
            convention,
            step_time_s=tables["table5"]["present_s"][index],
            tokens_per_step=config["B"] * 2048,
            gpus=config["gpus"],
            peak_flops_per_s=312e12,
        )

    # Step times are printed to 0.01 s, for 22B one part in 110, and the percentages rounded.
    slack = 0.25 if size == "22B" else 0.1
    assert percent("6nd+attention") == pytest.approx(tables["table5"]["mfu_pct"][index], abs=slack)
    printed = tables["table5"]["hfu_pct"][index]
    assert percent("hfu-selective-korthikanti") == pytest.approx(printed, abs=slack)
    # One more forward of the core is a third of what the paper adds.
    model = percent("6nd+attention")
    added = percent("hfu-selective") - model
    assert added == pytest.approx((percent("hfu-selective-korthikanti") - model) / 3)


@pytest.mark.parametrize(
    "name", ["mt-nlg-530b-2240", "mt-nlg-530b-2800", "mt-nlg-530b-3360", "bloom-176b"]
)
@pytest.mark.parametrize("convention", ["megatron", "hfu-full"])
def test_rates_printed_with_full_recomputation_are_hardware_flops(
    name: str, convention: str
) -> None:
    run = catalog.run(name)
    assert run.tokens_per_s_per_gpu is not None
    assert run.flops_rate is not None
    per_token = training_flops_per_token(run.model.shape, convention, sequence=run.sequence)
    rate = run.tokens_per_s_per_gpu * per_token
    # BLOOM prints five digits, MT-NLG three from step times to 0.1 s.
    tolerance = 0.001 if name == "bloom-176b" else 0.006
    assert rate == pytest.approx(run.flops_rate.value, rel=tolerance)


@pytest.mark.parametrize("row", TABLES["megatron_2104.04473_table1"]["rows"], ids=lambda r: r[0])
def test_full_recomputation_of_a_gpt_is_narayanans_closed_form(row: list[float]) -> None:
    billions = row[0]
    name = "1t" if billions > 1000 else f"{billions:g}b"
    shape = catalog.model(f"megatron21-{name}").shape
    closed_form = training_flops_per_token(shape, "megatron")
    assert training_flops_per_token(shape, "hfu-full") == pytest.approx(closed_form, rel=1e-12)
    layers = 4 * shape.layers * layer_forward_flops(1, shape.sequence, shape.hidden)
    head = 6 * shape.vocab * shape.hidden
    assert closed_form == pytest.approx(layers / shape.sequence + head, rel=1e-12)


def test_recomputing_adds_a_forward_of_what_is_recomputed() -> None:
    shape = catalog.model("gpt-3-175b").shape
    model = training_flops_per_token(shape, "6nd+attention")
    core = shape.layers * attention_core_flops(1, 2048, shape.hidden) / 2048
    assert training_flops_per_token(shape, "hfu-selective") == model + core
    head = 6 * shape.vocab * shape.hidden
    assert training_flops_per_token(shape, "hfu-full") == pytest.approx(
        (model - head) * 4 / 3 + head
    )
    assert training_flops_per_token(shape, "causal") == model - 3 * core / 2


@pytest.mark.parametrize("name", list(catalog.MODELS))
def test_every_convention_keeps_its_order_on_every_model(name: str) -> None:
    shape = catalog.model(name).shape
    counts = [
        training_flops_per_token(shape, convention)
        for convention in (
            "causal",
            "6nd+attention",
            "hfu-selective",
            "hfu-selective-korthikanti",
        )
    ]
    assert counts == sorted(counts)
    assert counts[1] < training_flops_per_token(shape, "hfu-full") < 4 / 3 * counts[1]


def test_only_conventions_with_recomputation_count_hardware_flops() -> None:
    hardware = {name for name, convention in CONVENTIONS.items() if convention.hardware}
    assert hardware == {"hfu-full", "hfu-selective", "hfu-selective-korthikanti", "megatron"}


@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b", "deepseek-v3", "llama-1-7b"])
def test_megatrons_closed_form_refuses_other_shapes(name: str) -> None:
    with pytest.raises(InputError, match="convention 'megatron'"):
        training_flops_per_token(catalog.model(name).shape, "megatron")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"convention": "6n"}, "unknown FLOPs convention '6n'"),
        ({"step_time_s": 0}, "step_time_s: expected > 0, got 0"),
        ({"gpus": 0}, "gpus: expected >= 1, got 0"),
        ({"peak_flops_per_s": 0}, "peak_flops_per_s: expected > 0"),
        ({"tokens_per_step": -1}, "tokens_per_s_per_gpu: expected >= 0"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    given = {"step_time_s": 1, "tokens_per_step": 1, "gpus": 1, "peak_flops_per_s": 1} | change
    with pytest.raises(InputError, match=message):
        utilisation_of_step(catalog.model("llama-3-8b").shape, **given)


def test_a_token_in_two_seconds_is_half_a_token_a_second() -> None:
    shape = catalog.model("llama-3-8b").shape
    given = {"tokens_per_step": 1, "gpus": 1, "peak_flops_per_s": 1e12}
    found = utilisation_of_step(shape, "6nd", step_time_s=2.0, **given)
    assert found == pytest.approx(training_flops_per_token(shape, "6nd") / 2 / 1e12)


def test_ways_of_counting_llama_2_7b_differ_as_the_page_says() -> None:
    """Touvron et al. 2023: 32 layers of 4,096, sequences of 4,096, so that s / 6h is a sixth."""
    shape = catalog.model("llama-2-7b").shape
    plain, whole, causal, twice = (
        training_flops_per_token(shape, each, sequence=4096)
        for each in ("6nd", "6nd+attention", "causal", "hfu-full")
    )
    looked_up = 6 * 32_000 * 4_096  # a table that no convention with attention counts
    assert (whole + looked_up) / plain - 1 == pytest.approx(1 / 6, rel=0.05)
    assert (causal + looked_up) / plain - 1 == pytest.approx(1 / 12, rel=0.05)
    assert twice / whole - 1 == pytest.approx(1 / 3, rel=0.02)
