"""Pictures of the reference pages: their counts and multiples must be right."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from figgen.charts import Bars, Diagram
from figgen.errors import InputError
from figgen.formulas import FORMULAS
from figgen.registry import build
from tests.renderers.overflows import overflows

LLAMA, DEEPSEEK = {"preset": "llama-3-405b-8k-16384"}, {"preset": "deepseek-v3"}
COUNTS = {"forms": ["picture", "table"], "as_planned": [3, 1], "changed": [2, 0], "dropped": [0, 1]}
DOCS = Path(__file__).parents[2] / "docs"


def test_words_that_nest_are_terms_of_the_glossary() -> None:
    chart = build("nested-terms", LLAMA)
    assert isinstance(chart, Diagram)
    terms = tomllib.loads((DOCS / "glossary.toml").read_text(encoding="utf-8"))
    assert {box.name for box in chart.boxes} - terms.keys() == {"sequence"}
    assert not overflows(chart)


def test_each_row_of_symbols_multiplies_to_its_end() -> None:
    chart = build("symbols-of-a-step", DEEPSEEK)
    assert isinstance(chart, Diagram)
    assert not overflows(chart)
    for row in ("dense layers", "experts", "a step"):
        shown = [box.lines for box in chart.boxes if box.name.startswith(f"{row} ")]
        *factors, product = [int(value.replace(",", "")) for _, value in shown]
        assert math.prod(factors) == product
        assert shown[-1][0].startswith("= ")


def test_topics_count_every_formula_once() -> None:
    chart = build("formula-topics", {})
    assert isinstance(chart, Bars)
    assert sum(sum(part.lengths) for part in chart.segments) == len(FORMULAS)
    assert chart.values["count"].value == len(FORMULAS)


def test_counts_need_one_number_for_each_form() -> None:
    with pytest.raises(InputError, match="2 each"):
        build("coverage-counts", {**COUNTS, "dropped": [1]})
