"""The reference of formulas: all of them, each with a tested example and its uses."""

from __future__ import annotations

import re
import shlex
from functools import cache

import pytest
import yaml

from figgen.formulas import FORMULAS, TOPICS, evaluate
from figgen.generated.formulas import (
    Known,
    formula_link,
    formula_pages,
    formula_title,
    frozen_points,
)
from figgen.generated.uses import formulas_of_figure, pages_of_formulas

POINTS = frozen_points()
SOURCES = {
    "guide/a.md": "# A\n\n{{ bubble_fraction(stages=4, microbatches=8):.1% }} of the time.\n",
    "guide/b.md": "# B\n\n```figure\nfigure: bubble-table\nstages: [4]\n```\n",
    "guide/c.md": "# C\n\nText `bubble_fraction(4)`, and {{ f(g(dense_rank(x=1))) }}.\n",
}


@cache
def pages() -> dict[str, str]:
    return formula_pages(
        Known(
            points=POINTS, uses=pages_of_formulas(SOURCES), titles={"guide/a.md": "The first page"}
        )
    )


def test_every_topic_has_a_page_and_every_formula_its_place_on_it() -> None:
    assert len(pages()) == len(TOPICS) + 1
    for name in FORMULAS:
        path, _, anchor = formula_link(name).partition("#")
        assert f"## {formula_title(name)} {{ #{anchor} }}" in pages()[f"reference/{path}"]


def test_titles_spell_words_as_the_guide_does() -> None:
    shown = {name: formula_title(name) for name in FORMULAS}
    assert shown["ring_all_reduce_time"] == "Ring all-reduce time"
    assert shown["nccl_ring_latency"] == "NCCL ring latency"
    assert shown["one_f_one_b_in_flight"] == "1F1B in flight"
    assert len(set(shown.values())) == len(shown)


def test_the_index_links_every_formula_and_keeps_the_anchors_of_the_single_page() -> None:
    index = pages()["reference/formulas.md"]
    linked = re.findall(r"\]\((formulas/[\w-]+\.md#\w+)\)\{ #(\w+) \}", index)
    assert {name: link for link, name in linked} == {n: formula_link(n) for n in FORMULAS}


def test_every_formula_has_an_example_whose_command_gives_its_point() -> None:
    commands = re.findall(r"^`figgen eval (\w+) ([^`]*)`$", "\n".join(pages().values()), re.M)
    assert {name for name, _ in commands} == set(FORMULAS)
    for name, arguments in commands:
        given = dict(pair.split("=", 1) for pair in shlex.split(arguments))
        read = {key: yaml.safe_load(value) for key, value in given.items()}
        assert not any(isinstance(value, str) for value in read.values())
        found = evaluate(name, **read)
        assert found.value == pytest.approx(evaluate(name, **POINTS[name]).value, rel=1e-12)


def test_uses_are_numbers_in_text_and_formulas_behind_figures_but_not_code() -> None:
    uses = pages_of_formulas(SOURCES)
    assert uses["bubble_fraction"] == ("guide/a.md",)
    assert uses["interleaved_bubble_fraction"] == ("guide/b.md",)
    assert uses["dense_rank"] == ("guide/c.md",)
    assert uses["ring_all_reduce_time"] == ()
    page = pages()["reference/formulas/pipeline.md"]
    assert "Used on: [The first page](../../guide/a.md)." in page


def test_a_formula_is_found_behind_the_functions_that_a_figure_calls() -> None:
    assert "ridge_point" in formulas_of_figure("strategies-roofline")
    assert "fsdp_ccr" in formulas_of_figure("strategies-roofline")
    assert formulas_of_figure("no-such-figure") == frozenset()
    assert "bubble_fraction" not in formulas_of_figure("rank-grid")


def test_without_points_and_pages_a_topic_still_stands() -> None:
    bare = formula_pages(Known(points={}, uses={}, titles={}))["reference/formulas/pipeline.md"]
    assert "For example" not in bare
    assert "Used on" not in bare
