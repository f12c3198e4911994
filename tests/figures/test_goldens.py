"""The text of every figure, as written under tests/golden/."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from figgen.charts import Diagram
from figgen.registry import all_figures, build
from figgen.renderers import text
from tests import goldens
from tests.figures.reading import DRAWN
from tests.renderers.overflows import overflows
from tests.renderers.samples import SAMPLES

OF_EVERY_RUN = {"memory-validation", "validation-scatter"}
"""Each new run changes these figures; test_validation_figures.py recomputes what they show."""
TIGHT = {"journey-one-step"}
"""Words without an outline, and a box that its word fills to within 3 pixels, are as meant here."""
OURS = {name for name, one in all_figures().items() if one.function.__module__[:7] == "figgen."}
DEFAULT = sorted(OURS - OF_EVERY_RUN - {case.partition(".")[0] for case in DRAWN})
CASES = DRAWN | {name: {} for name in DEFAULT}


@pytest.mark.parametrize("case", CASES)
def test_a_figure_prints_as_before_and_its_words_fit(
    case: str, golden: Callable[[str, str], None]
) -> None:
    chart = build(case.partition(".")[0], CASES[case])
    golden(case, text.render(chart))
    if isinstance(chart, Diagram) and case not in TIGHT:
        assert overflows(chart) == ()


def test_no_text_is_left_of_a_figure_that_is_gone() -> None:
    kept = {path.stem for path in goldens.FOLDER.glob("*.txt")}
    assert kept == {*CASES, *(f"text-{kind}" for kind in SAMPLES)}
