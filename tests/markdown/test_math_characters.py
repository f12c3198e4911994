"""The math font contains what the browser draws, and not only the characters of the markup."""

from __future__ import annotations

import pytest

from figgen.markdown.math import characters


@pytest.mark.parametrize(
    ("markup", "needed"),
    [
        ("<math><mi>x</mi></math>", {"x"}),
        ("<math><msqrt><mn>2</mn></msqrt></math>", {"2", "√"}),
        ("<math><mroot><mn>8</mn><mn>3</mn></mroot></math>", {"8", "3", "√"}),
        ("<math><mo>&lt;</mo></math>", {"<"}),
    ],
)
def test_characters_that_a_formula_needs(markup: str, needed: set[str]) -> None:
    assert characters(markup) == needed


@pytest.mark.parametrize(
    ("after", "kept"),
    [(", which", ","), (").", ")."), ("-th of", "-th"), ("-wide", ""), (" and", ""), ("", "")],
)
def test_what_closes_a_formula_stays_on_its_line(convert, after: str, kept: str) -> None:
    html = convert(f"By $n$*so*, and $n${after}").html
    assert "</math></span><em>so</em>" in html
    assert f"</math>{kept}</span>{after[len(kept) :]}" in html
