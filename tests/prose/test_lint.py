"""Every rule for prose, tested on text that violates it and on similar text that does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.prose import caption_names
from figgen.prose.lines import prose_lines
from figgen.prose.premises import is_premise, premises
from figgen.prose.rules import Finding, lint, lint_changelog, sentences
from figgen.prose.unparsed import unparsed

TERMS = {"microbatch": {"means": "…", "never": ["micro-batch", "micro batch"]}}


def found(text: str) -> list[str]:
    return [f"{f.line} {f.what}: {f.got}" for f in lint("page.md", text, TERMS)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("It idles 27.3% of the time.", "a percentage is typed: 27.3%"),
        ("It idles 27 % of the time.", "a percentage is typed: 27 %"),
        ("It is 2.5× as fast.", "a multiple is typed: 2.5×"),
        ("It is 2x as fast.", "a multiple is typed: 2x"),
        ("It takes three times as long.", "a multiple is typed: three times as"),
        ("The link carries 450 GB/s.", "a quantity is typed: 450 GB/s"),
        ("The link carries 450\u00a0GB/s.", "a quantity is typed: 450\u00a0GB/s"),
        ("A buffer of 25 MiB waits.", "a quantity is typed: 25 MiB"),
        ("It takes 14 µs.", "a quantity is typed: 14 µs"),
        ("It takes 3 days.", "a quantity is typed: 3 days"),
        ("The peak is 312 TFLOP/s.", "a quantity is typed: 312 TFLOP/s"),
        ("It has 175 billion parameters.", "a quantity is typed: 175 billion"),
        ("It ran on 16,384 GPUs.", "a large count is typed: 16,384 GPUs"),
        ("| H100 | 3.35 TB/s |", "a quantity is typed: 3.35 TB/s"),
        ("- A bullet of 80 GB.", "a quantity is typed: 80 GB"),
        ('!!! note "It needs 80 GB"', "a quantity is typed: 80 GB"),
        ("    It needs 18 bytes for each.", "a quantity is typed: 18 bytes"),
    ],
)
def test_a_typed_quantity_is_found(text: str, what: str) -> None:
    assert found(text) == [f"1 {what}"]


@pytest.mark.parametrize(
    "text",
    [
        "It idles {{ bubble_fraction(stages=4, microbatches=8):.1%}} of the time.",
        "It was 41% in the paper [@llama2024, Table 4].",
        "It was 41% in [the paper](https://example.org/1).",
        "## MegaScale on 12,288 GPUs",
        "Set `timeout=30 s` and wait.",
        "It is $2.5$ of $450\\,\\text{GB/s}$ or so.",
        "GPT-3 175B on an A100 80GB with TP 8, step 3, rank 75, 1F1B in FP8 on 128 GPUs.",
        "Take 8 stages and 32 microbatches, twice.",
        "A 400 Gb/s port, 16-bit weights, and 8 × H100.",
        'A slide said "it takes 0.41 s", which is wrong.',
        "1 GB is $10^9$ bytes.",
        "In 2021, section 3.2 of [a paper](https://example.org/80%20GB) said so.",
        "It ran three times.",
        "<!-- 80 GB --> Nothing.",
    ],
)
def test_what_is_computed_cited_code_math_a_name_or_a_small_count_passes(text: str) -> None:
    assert found(text) == []


FIGURE = """See [](#fig-bucket-tradeoff).

```figure
figure: bucket-tradeoff
ranks: 2048
caption: {caption}
alt: {alt}
```
"""


@pytest.mark.parametrize(
    ("caption", "what"),
    [
        ('"It takes 80 GB."', "6 a quantity is typed: 80 GB"),
        ("It takes 3% of {{ most_total_s:time}}.", "6 a percentage is typed: 3%"),
        ("It is 2.5× as much.", "6 a multiple is typed: 2.5×"),
        ("A job of 4,096 ranks.", "6 a large count is typed: 4,096 ranks"),
        ("It goes on.\n  Here it takes 3 days.", "6 a quantity is typed: 3 days"),
    ],
)
def test_a_quantity_that_is_typed_in_a_caption_is_found(caption: str, what: str) -> None:
    assert found(FIGURE.format(caption=caption, alt="A curve.")) == [what]
    assert found(FIGURE.format(caption="A curve.", alt=caption)) == [f"7{what[1:]}"]


def test_a_caption_may_type_what_its_figure_is_drawn_with() -> None:
    """It may do so in the form written, by default, by name, and in the name of a value that it
    quotes."""
    said = "2,048 ranks, 8,192 tokens, 25 MiB and 40% of the peak, 1,600 messages at least in {{ cap_1600_buckets }}."  # noqa: E501
    assert found(FIGURE.format(caption=said, alt=said)) == []
    assert found(FIGURE.format(caption="A job of 1,600 messages.", alt="A curve.")) != []
    by_name = FIGURE.replace("bucket-tradeoff", "zero-memory").replace("ranks: 2048\n", "")
    assert found(by_name.format(caption="80 GB at 12 bytes each.", alt="Bars.")) == []


def test_the_changelog_has_no_links_within_the_site() -> None:
    text = "# Changes\n\n- [One](https://example.org/).\n- A [page](../guide/memory.md).\n"
    (finding,) = lint_changelog("CHANGELOG.md", text)
    assert str(finding) == (
        "CHANGELOG.md:4: a link: expected the page's name, got '[page](../guide/memory.md)'"
    )
    for link in ("[](#fig-a)", "[@llama2024]", "[a]: guide/a.md", "![](a.png)"):
        assert len(lint_changelog("CHANGELOG.md", link)) == 1
    assert lint_changelog("CHANGELOG.md", (DOCS.parent / "CHANGELOG.md").read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("text", "got", "expected"),
    [
        ("A {{ 1024:,d}} B.", "{{ 1024:,d}}", "1,024, typed as it is"),
        ("{? 1 < 2 :: a :: {{ 7:q}} ?}", "{{ 7:q}}", "7, typed as it is"),
        (
            "It is {{ bubble_fracton:.0%}}.",
            "{{ bubble_fracton:.0%}}",
            "{{ bubble_fraction(…):.0% }}",
        ),
        ("{{ modell.layers }}", "{{ modell.layers }}", "{{ model(…).layers }}"),
        (
            "{{ 2 * bubble_fraction(stages=4, microbatches=8):.0%}}",
            "{{ 2 * bubble_fraction(stages=4, microbatches=8):.0%}}",
            "one call, such as {{ bubble_fraction(stages=4, microbatches=8):.0% }}",
        ),
        ("It is {{ f(a=4):d} of b.", "{{ f(a=4):d} of b.", "{{ …:… }}, both braces closed"),
    ],
)
def test_an_inline_value_that_cannot_be_parsed_is_found_with_the_nearest_form(
    text: str, got: str, expected: str
) -> None:
    (one,) = lint("page.md", f"First.\n\n{text}", TERMS)
    assert (one.line, one.what, one.got, one.expected) == (3, "an inline value", got, expected)


@pytest.mark.parametrize(
    "condition",
    ["1 - 2 < 3", "1 == 1", "bubble_fraction < 1", "f(a=1) < 2 or 1 < 2", "f(a=1) / (f(a=2) < 1"],
)
def test_a_claim_whose_condition_cannot_be_parsed_is_found(condition: str) -> None:
    page = f"First.\n\nIt is {{? {condition} :: so :: not so ?}}."
    (one,) = lint("page.md", page, TERMS)
    assert (one.line, one.what, one.got) == (3, "an inline value", condition)
    assert lint("page.md", page.replace(condition, "f(a=1) / f(a=2) < 3"), TERMS) == []


def test_a_name_in_a_caption_that_its_figure_has_no_value_of_is_found() -> None:
    figure = """First, as in [](#fig-pipeline-timeline).

```figure
figure: pipeline-timeline
schedule: 1f1b
stages: 4
microbatches: 8
caption: "It is {{ bubble_fraction:.1%}}."
alt: "It is {{ bubble_fractoin:.1%}}."
```
"""
    (one,) = lint("page.md", figure, TERMS)
    assert str(one) == (
        "page.md:9: a value in a caption: expected bubble_fraction, got "
        "\"unknown value of pipeline-timeline 'bubble_fractoin'\""
    )
    assert lint("page.md", figure.replace("fractoin", "fraction"), TERMS) == []


def test_a_figure_whose_code_can_form_the_names_in_its_caption_is_not_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(caption_names, "build")
    figure = """First, as in [](#fig-gradient-all-reduce).

```figure
figure: gradient-all-reduce
caption: "It takes {{ llama_3_70b_port_s:time}}."
alt: "A table."
```
"""
    assert lint("page.md", figure, TERMS) == []


def test_a_value_of_a_figure_may_go_by_its_name_and_code_is_no_value() -> None:
    figure = "```figure\nfigure: a\ncaption: '{{ most:.0%}} {{ 3:d}}'\n```\n`{{ 1 }}` {{ most }}"
    assert [(line, got) for line, _, got in unparsed(figure)] == [
        (3, "{{ 3:d}}"),
        (5, "{{ most }}"),
    ]


def test_a_tool_opens_with_its_question() -> None:
    for text, count in (("**Does it fit?**", 0), ("Does it fit?", 1)):
        assert len(lint("docs/tools/page.md", f"# A tool\n\n{text}", TERMS)) == count


def test_a_citation_counts_for_its_own_sentence_only() -> None:
    text = "It was 41% there [@llama2024]. Here it is 52%."
    assert "1 a percentage is typed: 52%" in found(text)
    assert "1 a percentage is typed: 41%" not in found(text)


def test_code_math_figures_and_front_matter_are_not_prose() -> None:
    text = """---
description: About 80 GB.
---

```python
wait("80 GB")
```

$$
80 \\text{ GB}
$$

See [](#fig-two-times).

```figure
figure: two-times
caption: "It idles."
alt: A table.
```
"""
    assert found(text) == []
    assert [line.number for line in prose_lines(text)] == [13]


def test_a_premise_is_what_its_section_computes_with_and_nothing_else() -> None:
    problem = (
        "## One\n\nReduce 1 GB at 50% of 450 GB/s with 16 bytes each.\n"
        '{{ f(message_bytes="1 GB", efficiency=0.5, bytes_per_param=16) }}.\n\n'
        '{{ g(bandwidth_bytes_per_s="450 GB/s") }}.\n\n## Two\n\nAnother 1 GB.\n'
    )
    assert found(problem) == ["10 a quantity is typed: 1 GB"]
    changed = problem.replace('message_bytes="1 GB"', 'message_bytes="2 GB"')
    assert "3 a quantity is typed: 1 GB" in found(changed)


def test_a_premise_has_the_unit_of_its_argument() -> None:
    given = premises("{{ f(message_bytes=1e6, dp=16, bytes_per_param=18) }}")[1]
    assert is_premise("1 MB", given)
    assert is_premise("18 bytes", given)
    assert is_premise("16 ranks", given)
    assert not is_premise("16 bytes", given)
    assert not is_premise("1,000,000 GPUs", given)
    figure = premises("```figure\nfigure: x\nlayers: [8, 4096]\nsize: 25 MiB\n```")[2]
    assert is_premise("4,096 tokens", figure)
    assert is_premise("25 MiB", figure)


def test_a_multiple_is_a_premise_only_beside_its_argument() -> None:
    assert found("It takes nine times the ridge, {{ f(ccr=9) }}.") == []
    assert found("It takes nine times the ridge.\nThat is {{ f(ccr=9) }}.") == [
        "1 a multiple is typed: nine times the"
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One sentence. Another one.", 2),
        ("Is it? It is.", 2),
        ("See e.g. Table 2 of Smith et al. The rest follows.", 1),
        ("It takes 2.5 s, cf. Fig. 3.", 1),
        ("**A lead-in.** And its sentence.", 1),
        ("**A lead-in.** And its sentence. And another.", 2),
        ("It ends (here.) [There](x.md) it goes on.", 2),
    ],
)
def test_sentences_are_counted(text: str, count: int) -> None:
    assert len(sentences(text)) == count


def test_two_sentences_on_a_line_and_one_on_two_lines_are_found() -> None:
    assert found("First one. Second one.\n") == ["1 sentences on a line: Second one."]
    assert found("This goes\non here.\n") == ["1 a sentence on two lines: This goes"]
    assert found("This is whole.\nSo is this:\n\n- an item\n- another\n") == []
    assert found("| A cell. Two sentences. |\n") == []


def test_a_heading_may_stand_once() -> None:
    assert found("# A\n\n## Cost\n\n## Cost { #other }\n") == ["5 a duplicate heading: Cost"]
    assert found("# A\n\n## Cost\n\n## Gain\n") == []


def test_a_symbol_has_one_meaning_on_a_page() -> None:
    ranks = "{{ tp_index_of_rank(rank=3, tp=2) }}"
    matrix = "{{ power_sgd_ratio(rows=8, columns=8, low_rank=2) }}"
    assert found(f"{ranks}\n\n{matrix}\n") == ["3 two meanings of r: rank of the approximation"]
    assert found(f"{ranks}\n\n`{{{{ no_formula(r=1) }}}}`\n") == []
    # A stage is a rank of the pipeline axis.
    assert (
        found(
            "{{ data_parallel_size(world_size=8, tp=1, cp=1, pp=2) }} "
            "{{ bubble_fraction(stages=2, microbatches=2) }}\n"
        )
        == []
    )


def test_a_term_has_one_spelling_outside_of_code() -> None:
    assert found("A micro-batch passes.") == ["1 a spelling: micro-batch"]
    assert found("A `micro-batch` and a microbatch pass.") == []
    assert lint("page.md", "A micro batch passes.", TERMS)[0].expected == "microbatch"


def test_a_figure_has_to_be_mentioned() -> None:
    fence = "```figure\nfigure: two-times\nid: mine\ncaption: It idles.\nalt: A table.\n```\n"
    assert found(fence) == ["1 a figure that no text refers to: mine"]
    assert found(f"See [](#fig-mine).\n\n{fence}") == []


def test_a_figure_that_would_end_a_build_is_found_and_ends_the_look_at_its_page() -> None:
    broken = 'caption: "It is {{ job("x").time }}."'
    fence = f"```figure\nfigure: bubble-table\nid: mine\n{broken}\n```\n"
    (told,) = found(f"See [](#fig-mine).\n\n{fence}\nIt has 80 GB.\n")
    assert told.startswith("6 a figure: malformed YAML in line 3 of the figure")


def test_a_finding_says_where_what_and_what_was_expected() -> None:
    finding = Finding(
        page="docs/a.md", line=3, what="a spelling", expected="microbatch", got="micro-batch"
    )
    assert str(finding) == "docs/a.md:3: a spelling: expected microbatch, got 'micro-batch'"


def test_the_command_line_fails_with_findings_and_not_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# A\n\nFine.\n", encoding="utf-8")
    assert main(["lint", str(docs)]) == 0
    (docs / "a.md").write_text("# A\n\nIt has 80 GB.\n", encoding="utf-8")
    assert main(["lint", str(docs)]) == 1
    assert "docs/a.md:3: a quantity is typed" in capsys.readouterr().out
    assert main(["lint", str(docs / "none")]) == 2


DOCS = Path(__file__).parents[2] / "docs"
PROGRAMS = {
    name: body
    for page in sorted(DOCS.rglob("*.md"))
    for name, body in re.findall(
        r'^```python title="(.+?)"\n(.*?)^```', page.read_text(encoding="utf-8"), re.M | re.S
    )
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_guide_is_python_that_joins_a_job_once(name: str) -> None:
    compile(PROGRAMS[name], name, "exec")
    alone = "torch.distributed" not in PROGRAMS[name]
    assert PROGRAMS[name].count("init_process_group(") == (0 if alone else 1)
    assert max(map(len, PROGRAMS[name].splitlines())) <= 80


CHAPTER = (
    "# Rings\n\n**How long?**\n\nYou need a time.\n\nIn one sentence: twice around.\n\n"
    "## Why\n\nRule of thumb: $2S$.\n[](#fig-ring-diagram) goes round.\n\n"
    "```figure\nfigure: ring-diagram\ncaption: Round.\nalt: A ring.\n```\n"
)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("**How long?**\n\n", "", "3 an opening: You need a time."),
        ("You need a time.\n\n", "", "5 an opening: In one sentence: twice around."),
        ("In one sentence: twice", "Twice", "7 an opening: Twice around."),
        ("twice around", "$2S$ of bytes", "7 an opening: In one sentence: ⟪ of bytes."),
        ("around.\n", "around.\nRule of thumb: $2S$.\n", "8 a rule of thumb: Rule of thumb: ⟪."),
        ("## Why\n", "## Why\n\n| a |\n|---|\n| b |\n", "11 a first picture: | a |"),
        ("## Why\n", "## Why\n\n```python\nx\n```\n", "11 a first picture: ```python"),
        (
            "figure: ring-diagram",
            "figure: fabrics-compared\nid: ring-diagram",
            "14 a first picture: fabrics-compared",
        ),
        (CHAPTER[CHAPTER.index("```") :], "", "1 a first picture: # Rings"),
    ],
)
def test_a_chapter_opens_with_question_and_answer_and_has_its_rules_later(
    old: str, new: str, what: str
) -> None:
    def chapter(text: str) -> list[str]:
        return [f"{f.line} {f.what}: {f.got}" for f in lint("docs/guide/rings.md", text, TERMS)]

    assert chapter(CHAPTER) == []
    assert what in chapter(CHAPTER.replace(old, new, 1))
    assert found(CHAPTER.replace(old, new, 1)) == []
