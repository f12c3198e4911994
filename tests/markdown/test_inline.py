"""Inline values: numbers that know their source."""

from __future__ import annotations

import pytest

VALUE = "{{ bubble_fraction(stages=4, microbatches=8):.1%}}"


def test_a_value_becomes_data_that_opens_its_derivation(convert):
    html, problems, _, _ = convert(f"Idle time is {VALUE}.")

    assert problems == []
    assert '<data value="0.2727272727272727">27.3%</data></button>' in html
    key = html.split('popovertarget="')[1].split('"')[0]
    assert f'<div popover id="{key}"' in html
    assert "<math" in html
    assert "Source: " in html


def test_equal_values_share_one_derivation(convert):
    html = convert(f"{VALUE} and {VALUE}").html

    assert html.count("popovertarget") == 2
    assert html.count("<div popover") == 1


def test_a_value_in_a_heading_gets_no_button(convert):
    html = convert(f"## Idle {VALUE}\n").html

    assert "<button" not in html
    assert "<data" in html


@pytest.mark.parametrize("text", ["`{{ x }}`", "```\n{{ x }}\n```", "    {{ x }}"])
def test_code_is_left_alone(convert, text):
    html, problems, _, _ = convert(text)

    assert problems == []
    assert "{{ x }}" in html


@pytest.mark.parametrize("place", ["| a | b |\n|---|---|\n| 1 | {} |\n", '!!! note "T"\n    {}\n'])
def test_values_work_in_tables_and_admonitions(convert, place):
    html, problems, _, _ = convert(place.format(VALUE), ("tables", "admonition"))

    assert problems == []
    assert "<data" in html


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ bubble(stages=4) }}", "unknown formula 'bubble'"),
        ("{{ bubble_fractoin(stages=4, microbatches=8) }}", "did you mean bubble_fraction"),
        ("{{ bubble_fraction(stages=4) }}", "bubble_fraction needs microbatches"),
        ("{{ bubble_fraction(stages=0, microbatches=8) }}", "bubble_fraction is not defined there"),
        ("{{ bubble_fraction(stages=4, microbatches=8):.1q}}", "format"),
        ("{{ __import__('os').system('x') }}", "cannot read"),
        ("{{ open('x') }}", "unknown formula 'open'"),
        ("{{ (lambda: 1)() }}", "cannot read"),
        ("{{ 1 + 1 }}", "cannot read"),
        ("{{ }}", "cannot read"),
        ('{{ model("llama-3-40b").parameters }}', "llama-3"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_shown(convert, text, message):
    html, problems, _, _ = convert(f"First line.\n\nThen {text} here.\n")

    assert [problem.line for problem in problems] == [3]
    assert message in problems[0].message
    assert "figgen-error" in html


def test_arguments_may_be_quantities_and_other_values(convert):
    text = '{{ point_to_point_time(message_bytes="1 GB", latency_s="1 µs", '
    text += 'bandwidth_bytes_per_s="450 GB/s"):time}}'
    html, problems, _, _ = convert(text)

    assert problems == []
    assert "2.22\N{NO-BREAK SPACE}ms" in html


def test_an_unknown_citation_is_reported_and_a_known_one_listed(convert):
    entry = {"label": "A 2020", "authors": "A. Author", "title": "T <b>", "year": "2020"}
    html, problems, _, _ = convert("See [@a2020, §2] and [@b].", references={"a2020": entry})

    assert '<a class="fig-cite" href="#ref-a2020">[A 2020, §2]</a>' in html
    assert '<li id="ref-a2020">A. Author. T &lt;b&gt;. 2020.</li>' in html
    assert [str(p) for p in problems] == [
        "guide/page.md:1: unknown reference 'b': expected in docs/references.toml, "
        '[b] with authors = "…" and title = "…"'
    ]


def test_math_becomes_mathml_and_unknown_commands_are_errors(convert):
    html, problems, _, _ = convert("A $\\frac{P-1}{M}$ and\n\n$$x = 0.25$$\n\nand $\\foo$.")

    assert html.count("<math") == 2
    assert "<mn>0.25</mn>" in html
    assert [(p.line, "\\foo is not understood" in p.message) for p in problems] == [(5, True)]
