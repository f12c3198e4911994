"""Figures of steps timed on one GPU show the numbers of the records and no others."""

from __future__ import annotations

import json

import pytest

from figgen.catalog import load
from figgen.charts import Bars
from figgen.registry import build

H200 = {run["id"]: run for run in json.loads(load.content("steps-h200.json"))["runs"]}
H100 = {run["id"]: run for run in json.loads(load.content("steps-h100.json"))["runs"]}


def test_bars_of_measured_steps_are_as_long_as_the_steps() -> None:
    chart = build("step-measured", {})
    assert isinstance(chart, Bars)
    totals = [sum(part.lengths[bar] for part in chart.segments) for bar in range(4)]
    for bar, way in ((0, "eager"), (2, "compile")):
        assert totals[bar] == pytest.approx(H100[f"llama1b-amp-{way}"]["step_time_s"])


def test_lora_took_longer_than_training_everything() -> None:
    values = build("adapters-measured", {}).values
    whole, lora = H200["h200-llama8b-bf16-eager"], H200["h200-llama8b-bf16-lora"]
    assert values["lora"].value == lora["step_time_s"] > whole["step_time_s"]
    assert lora["kernel_seconds"]["other"] == pytest.approx(
        2 * whole["kernel_seconds"]["other"], rel=0.02
    )
    assert lora["peak_allocated_bytes"] < whole["peak_allocated_bytes"]


def test_the_ratio_of_two_cards_is_that_of_their_rows() -> None:
    files = [json.loads(load.content(f"measured-{name}.json")) for name in ("h100", "h200")]
    strided = [next(row for row in file["kernels"] if row["kernel"] == "strided") for file in files]
    ratio = build("measured-machines", {}).values["strided"].value
    assert ratio == pytest.approx(strided[0]["seconds"] / strided[1]["seconds"])
