"""One threshold, one value: the number of tokens above which data parallelism hides its
messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from figgen.registry import build
from figgen.values import compute
from tests.figures.reading import value

DOCS = Path(__file__).parents[1] / "docs"
INLINE = re.compile(r"\{\{(.*?)\}\}")
PORT, NODE = 989.4e12 / 50e9, 989.4e12 / 400e9


def calls(name: str) -> list[tuple[str, str]]:
    """Return (page and line, inline text) of every value that this formula gives a page."""
    found = []
    for page in sorted(DOCS.rglob("*.md")):
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            found += [
                (f"{page.name}:{number}: {line}", text)
                for text in INLINE.findall(line)
                if text.strip().startswith(f"{name}(")
            ]
    return found


def test_every_rule_for_the_reference_machine_gives_one_of_two_numbers() -> None:
    """12,368, 12,986 and 13,179 used to stand on three pages, for groups of unstated sizes."""
    ours = [
        (where, compute(text)[0].value)
        for where, text in calls("critical_tokens")
        if "h100" in text or "989.4 TFLOP/s" in text
    ]
    assert len({where.partition(":")[0] for where, _ in ours}) >= 5
    for where, tokens in ours:
        assert any(tokens == pytest.approx(one) for one in (PORT, NODE)) or "fp8" in where, where


def test_a_threshold_of_one_group_says_how_large_it_is() -> None:
    found = calls("critical_tokens_of_group")
    assert found
    said = set()
    for where, text in found:
        size = re.search(r"dp=(\d+)", text)
        assert size
        page, _, line = where.partition(" ")
        if f"{size[1]} ranks" in line:
            said.add((page.partition(":")[0], size[1]))
        assert (page.partition(":")[0], size[1]) in said, where


def test_figures_say_the_same_threshold() -> None:
    limits, curve = build("strategy-limits", {}), build("zero3-tokens", {"utilization": 1})
    homes = build("state-homes", {"utilization": 1})
    for found in (limits.values["alone"].value, value(curve, "h100_ib_ndr")):
        assert found == pytest.approx(PORT)
    assert value(homes, "nodes_tokens") == pytest.approx(PORT)
    assert limits.values["tokens"].value == pytest.approx(NODE)
    assert value(curve, "h100_8_ib_ndr") == pytest.approx(NODE)
    assert build("strong-scaling", {}).values["limit"].value == int(1 + 4_194_304 / NODE)
