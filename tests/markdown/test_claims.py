"""Claims: sentences of a page that are true if their condition holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from figgen.errors import InputError
from figgen.markdown.claims import CLAIM, holds, stated

ROOMY = 'model("llama-3-8b").parameters'
HOLDS = 'model("llama-3-8b").parameters < 2 * model("llama-3-8b").parameters'
JOURNEY = Path(__file__).parents[2] / "docs/journey"


def test_a_claim_shows_its_first_wording_with_its_condition_and_the_other_beside_it(
    convert: Callable[..., Any],
) -> None:
    html, problems, *_ = convert(
        f'It has {{? {HOLDS} :: *more*: {{{{ model("llama-3-8b").layers }}}} :: less ?}}.'
    )
    assert not problems
    assert re.search(r'<span class="fig-claim" data-holds="[^"]+"><em>more</em>: ', html)
    assert "<template>less</template></span>." in html
    assert '<data value="32"' in html


def test_a_claim_that_does_not_hold_is_refused_with_its_line(convert: Callable[..., Any]) -> None:
    html, problems, *_ = convert("One.\n\n{? 2 < 1 + 0.5 :: Two. :: Three. ?}")
    assert [problem.line for problem in problems] == [3]
    assert "condition that holds" in problems[0].message
    assert "Two." not in html


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("1 < 2", True),
        ("2 <= 1", False),
        ("1 < 2 < 3 and 4 > 2 * 2", False),
        ("0.5 * 4 + 1 >= 3", True),
        ("1e3 > 999", True),
        ("3 / 2 < 2 and 8 / 2 / 2 >= 2", True),
        ("1 / 0 > 2", False),
        (f"{ROOMY} / {ROOMY} < 1.01 * 1", True),
    ],
)
def test_conditions_compare_sums_products_and_quotients(condition: str, truth: bool) -> None:
    assert holds(condition) is truth


@pytest.mark.parametrize(
    "condition",
    [
        "1",
        "1 == 1",
        "a < 2",
        "1 < 2 or 2 < 1",
        "not 1 < 2",
        "1 <",
        "1 < 'a'",
        "1 - 2 < 3",
        'model("llama-3-8b").title < 2',
        "(lambda: 1)() < 2",
    ],
)
def test_a_condition_of_any_other_form_is_refused(condition: str) -> None:
    with pytest.raises(InputError):
        holds(condition)


def test_readers_of_the_source_and_linters_see_what_holds() -> None:
    assert stated("a {? 1 < 2 :: b :: c ?} d\n{? 1 < 2 :: e :: ?}") == "a b d\ne"


def test_every_claim_of_the_journey_is_read_whole() -> None:
    for path in JOURNEY.glob("*.md"):
        assert "{?" not in re.sub(CLAIM, "", path.read_text("utf-8")), path.name
