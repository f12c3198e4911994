"""A recomputed figure has the ticks, labels and values of Python's, also in a unit asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from figgen.charts import Axis
from figgen.renderers.scale import scale, value_text
from tests.translation.run import imported, ran

PROGRAM = """
import fs from "node:fs";
import { Axis } from "./assets/javascripts/charts.js";
import { scale } from "./assets/javascripts/renderers/scale.js";
import { value_text } from "./assets/javascripts/renderers/ticks.js";
const cases = JSON.parse(fs.readFileSync("data.json", "utf8"));
console.log(JSON.stringify(cases.map(([given, data]) => {
  const axis = new Axis(...Object.values(given));
  const { label, ticks, minor } = scale(axis, data);
  return [label, ticks, minor, data.map((value) => value_text(axis, value))];
})));
"""
AXES = (
    Axis(label="time", unit="s", spec="in min"),
    Axis(label="time", unit="s", spec="in.2 h", scale="log10"),
    Axis(label="rate", unit="B/s", spec="in Gb/s", low=0),
    Axis(label="size", unit="B", spec="in GiB", scale="log2"),
    Axis(label="size", unit="B", scale="log2"),
    Axis(label="work", unit="FLOP"),
)
DATA = ((1.0, 5.5e3), (7.3e8, 2e12))


def test_an_axis_is_scaled_and_labeled_as_in_python(tmp_path: Path) -> None:
    cases = [(axis, data) for axis in AXES for data in DATA]
    given = [(dataclasses.asdict(axis), data) for axis, data in cases]
    printed = ran(tmp_path, PROGRAM, imported(PROGRAM), given)
    for (axis, data), (label, ticks, minor, texts) in zip(cases, printed, strict=True):
        found = scale(axis, data)
        assert label == found.label
        assert [tuple(tick) for tick in ticks] == list(found.ticks)
        assert tuple(minor) == found.minor
        assert texts == [value_text(axis, value) for value in data]
