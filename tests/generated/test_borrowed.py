"""Pages of formulas show figures of the guide that belong to their topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.formulas import FORMULAS, TOPICS
from figgen.generated.borrowed import BORROWED, borrowed_figures
from figgen.generated.formulas import slug
from figgen.generated.uses import formulas_of_figure

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def test_every_topic_borrows_a_figure_that_computes_with_one_of_its_formulas() -> None:
    assert BORROWED.keys() == {slug(topic) for topic in TOPICS}
    for topic, (_, name) in BORROWED.items():
        topics = {FORMULAS[used].module for used in formulas_of_figure(name)}
        # The strides of a rank are drawn by the models of meshes.
        if topic != "rank-mapping":
            assert f"figgen.formulas.{topic.replace('-', '_')}" in topics


def test_a_figure_comes_with_the_words_it_has_in_its_chapter() -> None:
    source = (GUIDE / "pipeline-schedules.md").read_text(encoding="utf-8")
    path = "guide/pipeline-schedules.md"
    shown = borrowed_figures({path: source}, {path: "Pipelines"})
    assert shown.keys() == {"pipeline"}
    assert "[Pipelines](../../guide/pipeline-schedules.md)" in shown["pipeline"]
    caption = next(line for line in shown["pipeline"].splitlines() if line.startswith("caption"))
    assert caption in source
    assert "as: plotly" not in shown["pipeline"]


def test_a_chapter_that_lost_its_figure_is_named() -> None:
    with pytest.raises(InputError, match=r"bubble-curves.*guide/pipeline-schedules\.md"):
        borrowed_figures({"guide/pipeline-schedules.md": "# Nothing\n"}, {})
