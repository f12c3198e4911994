"""Mannered phrases and dense pages, tested on text with them and on similar text without."""

from __future__ import annotations

from pathlib import Path

import pytest

from figgen.prose.density import in_captions, in_text
from figgen.prose.idiom import INSTEAD, mannered, spoken
from figgen.prose.rules import lint, lint_folder


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("MFU goes from 36% over 40% to 45%.", "from 36% over 40% to"),
        ("Nothing speaks against sending it.", "Nothing speaks against"),
        ("Ranks of 1B parameters shall see it.", "shall"),
        ("One forward, one backward, in turns.", "in turns"),
        ("What is it in time?", "What is it in time"),
        ("It took 0.94 times theirs.", "times theirs"),
        ("GPUs and their likes elsewhere.", "their likes"),
        ("The products reach the peak.", "The products"),
        ("A matrix product is split.", "matrix product"),
        ("It is held against a link.", "held against"),
        ("It stands in the table.", "stands in"),
        ("It sends 5 tokens a second.", "tokens a second"),
        ("It sends 5 bytes per GPU and step.", "per GPU and step"),
        ("The journey plays one step.", "journey plays"),
        ("MFU is a utilisation.", "utilisation"),
        ("The line bends upwards.", "upwards"),
        ("Then one can see it.", "one can"),
        ("Weights beside gradients.", "beside"),
        ("Whoever waits least is to blame.", "Whoever"),
        ("NCCL is told of a ring.", "is told of"),
    ],
)
def test_a_phrase_that_reads_as_translated_is_found(text: str, got: str) -> None:
    found = list(mannered(text))
    assert [said for said, _ in found] == [got]
    assert all(instead for _, instead in found)


@pytest.mark.parametrize(
    "text",
    [
        "MFU rises from 36% to 40% to 45%.",
        "The column stands in for the others.",
        "Each one needs a copy, and the last one wants two.",
        "The product of the sizes is the number of GPUs.",
        "Besides, it fits: 5 tokens per second, and once a step.",
        "Bandwidth is per direction and per rank; failures are per GPU and for a job.",
        "The mesh of marshalled ranks takes a long time.",
    ],
)
def test_plain_english_passes(text: str) -> None:
    assert list(mannered(text)) == []


def test_every_phrase_has_something_to_write_instead() -> None:
    assert len({said for said, _ in INSTEAD}) == len(INSTEAD) > 40
    assert all(instead.strip() for _, instead in INSTEAD)


def test_captions_and_alternative_texts_are_read_too() -> None:
    figure = (
        "See [](#fig-misprint-factors).\n\n```figure\nfigure: misprint-factors\n"
        'caption: "One beside the other."\nalt: "Nothing."\n```\n'
    )
    found = [f for f in lint("page.md", figure, {}) if f.what == "a mannered phrase"]
    assert [(f.line, f.got) for f in found] == [(5, "beside")]


def test_a_script_speaks_in_its_strings_and_not_in_its_comments_or_names() -> None:
    source = (
        '// beside the page\nconst beside = "beside";\nnote(`a ${beside} beside b`, "no phrase");\n'
    )
    assert list(spoken(source)) == [(3, "a   beside b"), (3, "no phrase")]


def test_tools_and_glossary_are_read_with_the_pages(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    tools = docs / "assets" / "javascripts" / "tools"
    tools.mkdir(parents=True)
    (tools / "a.js").write_text('\nnote("one beside the other");\n', encoding="utf-8")
    (docs / "glossary.toml").write_text(
        '["HBM"]\nmeans = "Stacks beside a die."\nhover = false\n', encoding="utf-8"
    )
    found = [(f.page, f.line, f.got) for f in lint_folder(docs)]
    assert found == [
        ("docs/glossary.toml", 1, "beside"),
        ("docs/assets/javascripts/tools/a.js", 2, "beside"),
    ]


FOLDED = """# A title with 7

On page 3 rank 5 has TP 8 and an H100: {{ a(b=1) }} of 12 words here.

??? note "The arithmetic of 5"

    All of {{ c(d=2) }} and 99.
"""


def test_numbers_are_counted_in_running_text_without_names_and_folds() -> None:
    # Each name counts as one word, so there are eleven; the fold and the title do not count.
    assert in_text(FOLDED) == pytest.approx(100 * 2 / 11)
    caption = '```figure\nfigure: x\ncaption: "Half of {{ a:d }}."\nalt: "3 4 5"\n```\n'
    assert in_captions(caption) == pytest.approx(100 / 2)
    assert in_text("") == in_captions("") == 0.0


def test_a_page_of_the_journey_has_few_numbers_and_others_may_have_more() -> None:
    text = "# A\n\nIt has {{ bubble_fraction(stages=4, microbatches=8):.1%}} here.\n"
    (found,) = lint("docs/journey/a.md", text, {})
    assert (found.what, found.expected) == ("numbers in 100 words of text", "at most 2.5")
    assert lint("docs/appendix/a.md", text, {}) == []
