"""The finished page: its security policy and the repairs of the theme."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import re
from pathlib import Path

import pytest

from figgen.policy import inline_scripts, with_security_policy
from figgen.publish.html import (
    THEME_REPAIRS,
    expected_repairs,
    repaired,
    unscripted,
)
from figgen.publish.styles import lighter

ROOT = Path(__file__).parents[2]
HEAD = '<!doctype html><html><head><meta charset="utf-8"><title>T</title></head><body>'


def script_sources(html: str) -> str:
    policy = html.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    return policy.split("script-src ")[1].split(";")[0]


def test_the_policy_allows_what_the_templates_have_and_nothing_that_a_page_has():
    ours, theirs = "var a = 1 < 2", "steal()"
    html = with_security_policy(f"{HEAD}<script>{ours}</script><script>{theirs}</script>", [ours])
    expected = base64.b64encode(hashlib.sha256(ours.encode()).digest()).decode()

    assert script_sources(html) == f"'self' 'sha256-{expected}'"
    assert script_sources(with_security_policy(html)) == "'self'"


def test_inline_scripts_are_those_of_the_templates_and_the_same_on_every_page(tmp_path):
    assert len(inline_scripts(ROOT / "docs" / "overrides")) == 2
    (tmp_path / "a.html").write_text("<script>a()</script><script src='b.js'></script>")
    assert inline_scripts(tmp_path) == ("a()",)
    (tmp_path / "a.html").write_text("<script>a({{ page.title }})</script>")
    with pytest.raises(ValueError, match="filled in"):
        inline_scripts(tmp_path)


def test_a_page_without_a_charset_is_left_as_it_is():
    assert with_security_policy("<p>fragment</p>") == "<p>fragment</p>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '<input class="md-toggle" type="checkbox" id="__drawer" autocomplete="off">',
            '<input class="md-toggle" type="checkbox" id="__drawer">',
        ),
        ("<pre><span></span><code>x", '<pre tabindex="0"><span></span><code>x'),
        (
            '<nav class="md-nav" aria-label="Cost">',
            '<nav class="md-nav" aria-label="On this page: Cost">',
        ),
        (
            '<label class="md-nav__link" for="a" tabindex="">',
            '<label class="md-nav__link" for="a">',
        ),
        ("<tr><th></th><th>a</th></tr>", "<tr><td></td><th>a</th></tr>"),
        ("<pre>plain</pre>", "<pre>plain</pre>"),
        (
            "<table>\n<tr><td>a</td></tr>\n</table><table class='x'></table>",
            '<div class="md-typeset__scrollwrap"><div class="md-typeset__table">'
            '<table class="plain">\n<tr><td>a</td></tr>\n</table></div></div>'
            "<table class='x'></table>",
        ),
        ('<label for="__toc">Contents', "<label>Contents"),
        ('<label for="__toc"><input id="__toc">', '<label for="__toc"><input id="__toc">'),
    ],
)
def test_the_themes_faults_are_mended(before, after):
    assert repaired(before, set()) == after


def test_the_theme_still_writes_what_is_mended_in_nested_navigation():
    folder = Path(str(importlib.util.find_spec("material").origin)).parent / "templates/partials"
    item, contents = ((folder / f"{name}.html").read_text() for name in ("nav-item", "toc-item"))
    assert re.search(r'<label class="md-nav__link[^>]* tabindex="', item)
    assert '<nav class="md-nav" aria-label="' in contents


def test_a_repair_that_finds_nothing_is_left_over_to_be_told():
    unmet = expected_repairs()
    repaired('<input class="md-toggle" autocomplete="off"><th></th>', unmet)
    assert unmet == expected_repairs() - {THEME_REPAIRS[0][0]}
    lighter("a{color:red}", unmet)
    assert unmet == expected_repairs() - {THEME_REPAIRS[0][0]}


def test_what_stands_between_two_marks_is_for_readers_without_scripts():
    begin, end = '<div class="tool-static"></div>', '<div class="tool-static-end"></div>'
    html = f"<p>all</p>{begin}<p>some</p>\n<p>more</p>{end}<p>all</p>{begin}<p>last</p>{end}"
    assert unscripted(html) == (
        '<p>all</p><noscript class="tool-static"><p>some</p>\n<p>more</p></noscript><p>all</p>'
        '<noscript class="tool-static"><p>last</p></noscript>'
    )
    assert unscripted("<p>all</p>") == "<p>all</p>"
    folded = "<details><summary>Data</summary></details>"
    assert unscripted(f"{folded}{begin}{folded}{end}").count("<details open>") == 1


def test_no_line_breaks_within_an_option_of_a_command():
    page = "<p><code>figgen plan --tp 2 --per-rank</code>, <code>a--b</code></p><pre>--x-y</pre>"
    kept = '<span class="fig-keep">{}</span>'.format
    assert repaired(page, set()) == (
        f"<p><code>figgen plan {kept('--tp')} 2 {kept('--per-rank')}</code>, <code>a--b</code></p>"
        "<pre>--x-y</pre>"
    )
