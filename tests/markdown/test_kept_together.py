"""A line never ends between a number and its unit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        ("8.65", "GB"),
        ("42.4", "s"),
        ("3", "GB/s"),
        ("1", "PFLOP/s"),
        ("16", "GiB"),
        ("7", "µs"),
        ("700", "W"),
        ("2", "h"),
    ],
)
def test_a_number_keeps_its_unit(convert: Callable[..., Any], number: str, unit: str) -> None:
    html = convert(f"It takes **about {number} {unit}**, or {number} {unit}.").html
    assert html.count(f"{number}{NBSP}{unit}") == 2


def test_a_computed_number_keeps_the_unit_behind_it(convert: Callable[..., Any]) -> None:
    html = convert("A bubble of {{ bubble_fraction(stages=4, microbatches=4):.2f }} s.").html
    kept = re.search('<span class="fig-keep">.*?</span>', html)
    assert kept  # a line may break behind a button in spite of the space
    assert re.sub("<[^>]*>", "", kept[0]) == f"0.43{NBSP}s."


@pytest.mark.parametrize(
    "text",
    [
        "on 8 GPUs",
        "page 7 shows",
        "in 2024 Bandwidth grew",
        "`sleep 3 s`",
        "GPU 0 sends",
        "1 s-curve",
    ],
)
def test_other_spaces_may_break(convert: Callable[..., Any], text: str) -> None:
    assert NBSP not in convert(text).html
