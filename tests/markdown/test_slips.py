"""Slips that Markdown ignores are reported with their line."""

from __future__ import annotations

import re
from collections.abc import Callable
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
        (
            "```python\nx = 1\n\n```figure\nfigure: x\n```\n",
            1,
            "a fence is never closed: expected ``` before the next fence",
        ),
        ("It takes {{ f(x=1):.1% of it.\n", 1, "a value is not closed"),
        ("It takes f(x=1) }} of it.\n", 1, "a value is not closed"),
        ("a\n\n![](x.png)\n", 3, "an image without alternative text"),
        ("![ ](x.png)\n", 1, "an image without alternative text"),
        ("a\n\nHere $a + b is math.\n", 3, "math is not closed: expected $…$ in one line"),
        ("$x$ costs $2.\n", 1, "or \\$ for a dollar"),
        ("a\n\n$$a + b\n\nmore $c$\n", 3, "math is not closed: expected $$"),
        ("$$\na + b\n", 1, "math is not closed: expected $$"),
        ("$$\nx {{ f(a=1\n$$\n", 2, "a value is not closed"),
        ("$$x$$ and $$\n![](x.png)\n$$\n", 2, "an image without alternative text"),
        ("a\n\nSaid [@].\n", 3, "a citation: expected [@key] or [@key, place], got '[@]'"),
        ("Said [@a; @b].\n", 1, "got '[@a; @b]'"),
        ("Said [@a, @b].\n", 1, "got '[@a, @b]'"),
        ("Said [@a\n", 1, "got '[@a'"),
        ("a\n\nA note[^1].\n", 3, "unknown footnote [^1]"),
        ("A note[^on].\n\n[^one]: text\n", 1, "unknown footnote [^on] (did you mean one?)"),
        ("[x](javascript:alert(1))\n", 1, "a link: expected a path, or one of http"),
        ("a\n\n[x]: JavaScript:alert(1)\n", 3, "got 'JavaScript:'"),
        ("<javascript:alert(1)>\n", 1, "got 'javascript:'"),
        ("![x](data:text/html,x)\n", 1, "got 'data:'"),
        ("[x](java&#115;cript:alert(1))\n", 1, "got 'javascript:'"),
        ('<a href="vbscript:x">a</a>\n', 1, "got 'vbscript:'"),
        ("[x](java\tscript:alert(1))\n", 1, "a link"),
        ("# H { onclick=alert(1) }\n", 1, "an attribute: expected no event handler"),
        ("[x](y.md){: #y onfocusin=alert(1) }\n", 1, "got 'onfocusin'"),
        ("a\n\n<img src=x OnError=alert(1)>\n", 3, "got 'OnError'"),
        ("<svg/onload=alert(1)>\n", 1, "got 'onload'"),
        ("a\n\nIt has <stages> stages.\n", 3, "an element: expected an element that is displayed"),
        ("a <<script>alert(1)</script>>\n", 1, "got '<script>'"),
        ("<iframe src=x></iframe>\n", 1, "got '<iframe>'"),
        ("# H {#lambda: 0}\n", 1, "an attribute list: expected #id, .class or key=value"),
        ("[x](y.md){ .button onclik }\n", 1, "got 'onclik'"),
        ("---\ntitle: [x\n---\n# A\n", 3, "front matter: expected lines of 'key: value'"),
        ("---\ntitle: x\ntitle: y\n---\n# A\n", 3, "duplicate key 'title'"),
        ("---\ntitle: x\nsize: 010\n---\n# A\n", 3, "size: expected a number without a leading 0"),
        ("---\n- x\n---\n# A\n", 1, "front matter: expected lines of 'key: value'"),
        ("---\ntitle: x\n\n# A\n", 1, "front matter is never closed"),
        ("Note: this sentence would be lost.\n\n# A\n", 1, "a page begins with metadata"),
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
        "---\ntitle: x\nalso: [a, b]\n---\n\n# A\n",
        "[a](b.md#c:d) <https://x.y> [c](http://x) [d](mailto:a@b.c) <b>x: y</b>\n",
        "A note[^1], `[^2]` and `[@]`.\n\n[^1]: Text.\n\n```\n[^3] [@] [x](javascript:y)\n```\n",
        "Said [@key], [@a.b-c:d, §3] and $a[@b]$.\n",
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
    assert str(page.problems[0]).startswith("page.md:3: an image without alternative text")


@pytest.mark.parametrize("tex", [r"\frac{1}{2", r"a}", r"\text{x"])
def test_braces_that_do_not_match_are_refused(tex: str) -> None:
    with pytest.raises(InputError, match=r"expected as many \{ as \}"):
        mathml(tex)


def test_a_bug_in_a_figure_names_its_line_of_code() -> None:
    try:
        units.parse_quantity(None)  # type: ignore[arg-type]
    except Exception as error:
        place = place_of(error)
    assert re.fullmatch(r" \(figgen/quantity_text\.py:\d+\)", place)
    assert place_of(ValueError("raised nowhere")) == ""


CAPTION = "Four lanes; {{ bubble_fraction:.1%}} is idle."
FENCE = """# A

```figure
figure: pipeline-timeline
schedule: 1f1b
caption: '{caption}'
alt: '{alt}'
{more}
```
"""


@pytest.mark.parametrize(
    ("given", "line", "said"),
    [
        ({"caption": "Unclosed {{ bubble_fraction:.1% and x."}, 6, "a value is not closed"),
        ({"caption": "Half of $x is idle."}, 6, "math is not closed"),
        ({"caption": "As in [@]."}, 6, "a citation"),
        ({"caption": "[x](javascript:alert(1))"}, 6, "a link: expected a path"),
        ({"alt": "Unclosed {{ bubble_fraction:.1% and x."}, 7, "a value is not closed"),
        ({"alt": "Lanes as in [@nope]."}, 7, "an alternative text: expected plain words"),
        ({"alt": "Lanes with $x$."}, 7, "an alternative text: expected plain words"),
        ({"alt": "Lanes, [see](x.md)."}, 7, "an alternative text: expected plain words"),
        ({"more": "stages: 010"}, 8, "stages: expected a number without a leading 0 or a colon"),
        ({"more": "microbatches: 1:30"}, 8, "got '1:30'"),
    ],
)
def test_a_slip_in_a_figure_is_told_with_the_line_of_its_key(
    given: dict[str, str], line: int, said: str, convert: Callable
) -> None:
    texts = {"caption": CAPTION, "alt": CAPTION, "more": "stages: 4"}
    (problem,) = convert(FENCE.format(**texts | given)).problems
    assert problem.line == line
    assert said in problem.message


ENDLESS = {
    "brackets": "[" * 50_000,
    "images": "![" * 20_000,
    "links": "[a](" * 20_000,
    "citations": "x [@a " * 5_000,
    "tags": "<a " * 20_000,
    "paragraphs": "<p " * 20_000,
    "addresses": "<http://a" * 20_000,
    "code": "`#!a " * 20_000,
    "definitions": "a\n:   " * 20_000,
    "lists": "\n".join("    " * depth + "- a" for depth in range(1_000)),
    "numbers": "\n".join("  " * depth + "1. a" for depth in range(1_000)),
    "fences": "```\n" * 20_000,
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_page_that_would_take_hours_is_given_up_with_a_message(
    kind: str, convert: Callable
) -> None:
    """50,000 brackets, or 1,000 nested lists, used to block a build without a message."""
    extensions = ("admonition", "attr_list", "def_list", "footnotes", "tables")
    page = f"# A\n\nA sentence.\n\n{ENDLESS[kind]}\n"
    found = convert(page, extensions)
    told = [problem for problem in found.problems if "too long to convert" in problem.message]
    assert told, found.problems
    assert len(found.html) < 1_000


def test_a_caption_has_the_same_limit(convert: Callable) -> None:
    found = convert(FENCE.format(caption="[" * 15_000, alt="Lanes.", more="stages: 4"))
    assert any("too long to convert" in problem.message for problem in found.problems)
