"""Text in a formula is displayed as text, whatever it looks like: no element, link or style."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

MATHML = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", "mtable", "mtr", "mtd",
    "mpadded", "mphantom", "mover", "munder", "msup", "msub", "mfrac", "msqrt",
}  # fmt: skip
TEXTS = [
    "a<b", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a & b", "&lt;", "&#x3c;b>",
    "<!--", "]]>", '"a"', "a<b>c</b>",
]  # fmt: skip
WAYS = [
    r"\text{%s}", r"\mbox{%s}", r"\textbf{%s}", r"\textit{%s}", r"\texttt{%s}", r"\tag{%s}",
    r"\mathrm{%s}", r"\operatorname{%s}", r"\color{%s}{x}", r"\hspace{%s}", r"\big%s", "%s",
]  # fmt: skip
CAPTION = """```figure
figure: pipeline-timeline
schedule: 1f1b
caption: '{text}'
alt: Four lanes.
```"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", TEXTS)
def test_what_stands_in_math_is_text_and_never_an_element(
    way: str, text: str, convert: Callable
) -> None:
    """Any text in math becomes a tree of math elements only, in a page and in a caption."""
    formula = f"${way % text}$"
    quoted = formula.replace("'", "''")
    for page in (formula, f"x\n\n$${formula.strip('$')}$$", CAPTION.format(text=quoted)):
        found = convert(page)
        for markup in re.findall(r"<math\b.*?</math>", found.html, re.S):
            tags = {element.tag for element in ElementTree.fromstring(markup).iter()}
            assert tags <= MATHML, tags - MATHML
        outside = re.sub(r"<math\b.*?</math>", "", found.html, flags=re.S)
        assert not re.search(r"<(script|img|b)\b", outside) or found.problems, outside


def test_less_than_in_the_text_of_a_formula_is_escaped(convert: Callable) -> None:
    assert "<mtext>a&lt;b</mtext>" in convert(r"$\text{a<b}$").html
    assert "<mtext>a&lt;b</mtext>" in convert(CAPTION.format(text=r"$\text{a<b}$")).html


@pytest.mark.parametrize(
    "tex", [r"\href{javascript:alert(1)}{x}", r"\style{color:red}{x}", r"\class{a}{x}"]
)
def test_math_has_no_links_classes_or_styles(tex: str, convert: Callable) -> None:
    found = convert(f"${tex}$")
    assert "<math" not in found.html
    assert "math: " in found.problems[0].message
