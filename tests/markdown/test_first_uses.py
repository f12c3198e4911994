"""The first use of TP and similar terms in a chapter links to the glossary, unless it is spelled
out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from figgen.markdown.conversion import Short

TERMS = tomllib.loads(
    (Path(__file__).parents[2] / "docs" / "glossary.toml").read_text(encoding="utf-8")
)
SHORTS = {
    "TP": Short("tensor parallelism", "Matrices are cut.", "reference/glossary.md#tensor"),
    "PP": Short("pipeline parallelism", "Stages.", "reference/glossary.md#pipeline"),
}
LINK = re.compile(r'<a [^>]*class="first-use"[^>]*>(\w+)</a>')


@pytest.fixture
def linked(convert: Callable[..., Any]) -> Callable[[str], str]:
    return lambda text: str(convert(text, ("tables",), shorts=SHORTS).html)


def test_only_the_first_use_leads_to_the_glossary(linked: Callable[[str], str]) -> None:
    html = linked("With TP 8 and PP 2 it is *so*, and TP is near, PP far.\n\nTP again, and PP.")
    assert LINK.findall(html) == ["TP", "PP"]
    assert re.sub(r"</?a\b[^>]*>", "", html) == (
        "<p>With TP 8 and PP 2 it is <em>so</em>, and TP is near, PP far.</p>\n"
        "<p>TP again, and PP.</p>"
    )
    assert 'href="../reference/glossary.md#tensor"' in html
    assert 'title="tensor parallelism: Matrices are cut."' in html


@pytest.mark.parametrize(
    "text",
    [
        "With tensor parallelism (TP) of 8.\n\nTP is near.",
        "Cut by tensor (TP) and pipeline parallelism (PP).\n\nTP and PP.",
        "# TP\n\n`TP` and [what TP is](x.md) and HTTP and TP-2.",
    ],
)
def test_what_is_written_out_or_no_running_text_leads_nowhere(
    linked: Callable[[str], str], text: str
) -> None:
    assert LINK.findall(linked(text)) == []


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("# TP\n\n- a\n- b *TP* c", "<em>"),
        ("| axis |\n|---|\n| TP |", "<td>"),
        ("*x* TP", "</em> "),
        ("**x** y *z* TP", "</em> "),
    ],
)
def test_the_first_use_may_stand_in_lists_tables_and_behind_other_elements(
    linked: Callable[[str], str], text: str, element: str
) -> None:
    assert f"{element}<a " in linked(text)
    assert LINK.findall(linked(text)) == ["TP"]


def test_every_axis_has_its_short_name_in_the_glossary() -> None:
    found = {entry["short"]: term for term, entry in TERMS.items() if "short" in entry}
    assert found == {
        "TP": "tensor parallelism", "PP": "pipeline parallelism", "DP": "data parallelism",
        "CP": "context parallelism", "EP": "expert parallelism",
    }  # fmt: skip
