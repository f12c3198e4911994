"""Slips that Markdown passes over in silence are told with their line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown import Markdown

from figgen import units
from figgen.errors import InputError
from figgen.markdown.conversion import Page
from figgen.markdown.errors import place_of
from figgen.markdown.math import mathml
from figgen.markdown.slips import slips

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("# A\n\n```figurre\nfigure: x\n```\n", 3, "got 'figurre' (did you mean figure?)"),
        (
            "text\n\n```figure\nfigure: x\n\nmore\n",
            3,
            "a fence is never closed: expected a line of ```",
        ),
        ("It takes {{ f(x=1):.1% of it.\n", 1, "a value is not closed"),
        ("It takes f(x=1) }} of it.\n", 1, "a value is not closed"),
        ("a\n\n![](x.png)\n", 3, "an image without a text"),
        ("![ ](x.png)\n", 1, "an image without a text"),
        ("a\n\nHere $a + b is math.\n", 3, "math is not closed: expected $…$ in one line"),
        ("$x$ costs $2.\n", 1, "or \\$ for a dollar"),
        ("a\n\n$$a + b\n\nmore $c$\n", 3, "math is not closed: expected $$"),
        ("$$\na + b\n", 1, "math is not closed: expected $$"),
        ("$$\nx {{ f(a=1\n$$\n", 2, "a value is not closed"),
        ("$$x$$ and $$\n![](x.png)\n$$\n", 2, "an image without a text"),
    ],
)
def test_a_slip_is_found_on_its_line(source: str, line: int, said: str) -> None:
    ((found, error),) = slips(source)
    assert found == line
    assert said in str(error)


@pytest.mark.parametrize(
    "source",
    [
        '{{ f(x=1):.1%}} and {{ g(y="a }} b") }}\n',
        "In code, `{{ x` and ``{{ y`` stay.\n",
        "```python\nx = {{1: 2}}\n![](y)\n```\n",
        "~~~~\n```figurre\n~~~~\n",
        "    ```figure\n    figure: x\n    ```\n",
        "$$\\frac{1}{\\text{a}_{b}}$$\n",
        "![a picture](x.png)\n",
        "$x$ and $$y$$ for \\$2, `$z` and $\\$3$\n",
        "$$\na + $b\n$$\n\n$c$\n",
    ],
)
def test_what_is_no_slip_is_left_alone(source: str) -> None:
    assert list(slips(source)) == []


def test_the_guide_has_none() -> None:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    assert len(pages) > 25
    assert [(page.name, *found) for page in pages for found in slips(page.read_text("utf-8"))] == []


def test_slips_of_a_page_are_its_problems() -> None:
    page = Page(path="page.md")
    Markdown(extensions=["figgen"], extension_configs={"figgen": {"page": page}}).convert("![](x)")
    # Without a host the text is the page's source.
    assert [str(problem) for problem in page.problems] == []
    page.begin("# A\n\n![](x)\n")
    Markdown(extensions=["figgen"], extension_configs={"figgen": {"page": page}}).convert("![](x)")
    assert str(page.problems[0]).startswith("page.md:3: an image without a text")


@pytest.mark.parametrize("tex", [r"\frac{1}{2", r"a}", r"\text{x"])
def test_braces_that_do_not_match_are_refused(tex: str) -> None:
    with pytest.raises(InputError, match=r"expected as many \{ as \}"):
        mathml(tex)


def test_a_bug_in_a_figure_names_its_line_of_code() -> None:
    try:
        units.parse_quantity(None)  # type: ignore[arg-type]
    except Exception as error:
        place = place_of(error)
    assert re.fullmatch(r" \(figgen/units\.py:\d+\)", place)
    assert place_of(ValueError("raised nowhere")) == ""
