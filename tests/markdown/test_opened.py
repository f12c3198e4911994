"""Every shaded number of the journey opens to a formula, a substitution or parts, and a source."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import pytest

from figgen.markdown.inline import PATTERN, popover
from figgen.scenarios.stories import opened as stories
from figgen.scenarios.stories.journey import rung
from figgen.scenarios.stories.opened import FORMULAS, HELD_KINDS, WORDS, substituted
from figgen.values import Computed, compute

JOURNEY = Path(__file__).parents[2] / "docs/journey"
PAGES = sorted(path.stem for path in JOURNEY.glob("*.md"))
STEP = {"step_time_s", "mfu", "tokens_per_second", "tokens_per_second_and_gpu", "trillion_tokens_s",
        "idle_share", "straggling_share", "speed_up"}  # fmt: skip
LOOKED_UP = {"accelerator", "interruption", "link", "model", "preset", "run"}
"""Values that the catalog lists with their source."""

MEMORY = {"total_bytes", *HELD_KINDS}
SENT = {"near_bytes", "far_bytes"}


def shaded(page: str) -> list[Computed]:
    """Return the numbers of a page's text; those of captions belong to their figure's data."""
    text = re.sub(r"```.*?```", "", (JOURNEY / f"{page}.md").read_text("utf-8"), flags=re.DOTALL)
    return [compute(found[1])[0] for found in re.finditer(PATTERN, text)]


@pytest.mark.parametrize("page", PAGES)
def test_every_shaded_number_of_the_journey_opens_to_a_formula_and_a_source(page: str) -> None:
    for number in shaded(page):
        assert number.source, number.call
        name = number.call.partition("(")[0]
        assert number.evaluation or number.opened or name in LOOKED_UP, number.call
        if not number.call.startswith(("rung(", "job(")):
            continue
        assert number.opened is not None
        assert number.opened.formula.strip(), number.call
        html = popover("how", number, "shown", "")
        assert escape(number.opened.formula) in html
        field = number.call.rpartition(".")[2]
        value = float(number.value)
        if field in STEP | MEMORY | SENT and value > 0:
            assert number.opened.parts, number.call
            for part in number.opened.parts:
                assert part.how, number.call
                assert part.source, number.call
        sizes = [part.value for part in number.opened.parts]
        assert sizes == sorted(sizes, reverse=True)
        if field in {"step_time_s", *MEMORY, *SENT}:
            assert sum(sizes) == pytest.approx(value, rel=1e-3), number.call


@pytest.mark.parametrize("page", range(1, 11))
@pytest.mark.parametrize("field", FORMULAS)
def test_the_substitution_of_a_formula_has_the_value_of_its_field(
    page: int, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rung(page)
    monkeypatch.setattr(stories, "written", lambda _, value: repr(float(value)))
    terms = substituted(found, field).replace("×", "*").replace("÷", "/").replace("−", "-")
    assert eval(terms, {}) == pytest.approx(getattr(found, field), rel=1e-6)
    monkeypatch.undo()
    assert found.opened(field).worked == substituted(found, field)
    assert field in WORDS


@pytest.mark.parametrize("page", range(1, 11))
def test_the_parts_of_a_step_add_up_to_it(page: int) -> None:
    found = rung(page)
    whole = sum(part.value for part in found.opened("step_time_s").parts)
    assert whole == pytest.approx(found.step_time_s, rel=1e-9)
