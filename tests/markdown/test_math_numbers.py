"""Numbers in math are displayed correctly, with decimal points, thousands and powers, on every
page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from figgen.markdown import math
from figgen.markdown.math import mathml

NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"


def literals(tex: str) -> Counter[str]:
    """Return every number of the source; a thousands separator is part of it."""
    return Counter(re.findall(NUMBER, tex.replace("{,}", ",")))


def shown(markup: str) -> Counter[str]:
    """Return every number that one element of the markup shows in full."""
    elements = re.findall(r"<m(?:n|text)\b[^>]*>([^<]*)</m(?:n|text)>", markup)
    return Counter(found for text in elements for found in re.findall(NUMBER, unescape(text)))


@pytest.mark.parametrize(
    "tex",
    [
        "2.5 x",
        "0.001",
        r"x^{0.5}",
        r"\frac{1.25}{10}",
        r"\sqrt{2.25}",
        r"x_{12}^{3.5}",
        r"\text{1,979}\,\text{TFLOP/s}",
        r"3.35\,\text{TB/s}",
        r"1.5 \times 10^{9}",
        r"2^{30}",
        r"\lfloor 75/8 \rfloor",
        "27.3\\%",
    ],
)
def test_a_literal_stands_in_one_element(tex: str) -> None:
    assert not literals(tex) - shown(mathml(tex))


@pytest.mark.parametrize("tex", [r"\text{rank } 2,048", "1{,}024"])
def test_thousands_outside_of_text_are_torn_apart_and_noticed(tex: str) -> None:
    assert literals(tex) - shown(mathml(tex))


def test_numbers_that_were_torn_apart_are_noticed() -> None:
    assert literals("2.5") - shown("<mn>2</mn><mo>.</mo><mn>5</mn>") == Counter(["2.5"])
    assert literals("2.5") - shown("<mn>2</mn><mo>.</mo><mn>55</mn>") == Counter(["2.5"])
    assert not literals("2.5") - shown("<mn>2.5</mn>")


def test_every_number_in_math_of_the_built_site_is_whole(site_folder: Path) -> None:
    math.recall(site_folder.with_name("cache"))
    sources = {markup: key.partition(" ")[2] for key, markup in math._converted.items()}
    seen = 0
    for path in site_folder.rglob("*.html"):
        for markup in re.findall(r"<math\b.*?</math>", path.read_text("utf-8"), re.S):
            assert markup in sources, f"{path}: not what the build converted: {markup[:200]}"
            lost = literals(sources[markup]) - shown(markup)
            assert not lost, f"{path}: {dict(lost)} of {sources[markup]}"
            seen += 1
    assert seen > 1000


@pytest.mark.parametrize("text", ["$a < b$", "$$a < b$$", "before\n\n$$\na < b\n$$\n\nafter"])
def test_less_than_is_a_sign_in_a_line_and_in_a_block(text: str, convert: Callable) -> None:
    found = convert(text).html
    assert "<mo>&lt;</mo>" in found
    assert "<mi>l</mi><mi>t</mi>" not in found
    assert "&amp;" not in found
