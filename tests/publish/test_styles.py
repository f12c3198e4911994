"""The theme's stylesheet without the rules that no page uses."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from figgen.publish.styles import STYLE_REPAIRS, UNUSED_CLASSES, lighter


def left_out(name: str) -> bool:
    """Return whether the styles of a class are removed."""
    return lighter(f".{name}{{a:b}}", set()) == ""


@pytest.fixture(scope="module")
def theme() -> str:
    package = importlib.util.find_spec("material")
    folder = Path(str(package.origin)).parent / "templates/assets/stylesheets"
    return "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.min.css")))


def test_every_repair_finds_what_it_mends(theme):
    assert [p for p, _ in STYLE_REPAIRS if not re.search(p, theme)] == []
    light = lighter(theme, set())
    assert light.count("{") == light.count("}")
    # Of these, every element below one whose class or attribute changes would be styled again.
    selectors = re.findall(r"[^{},]+(?=[,{])", light)
    assert [s for s in selectors if re.search(r"\[class\]\)? |-switching\] (?!:is)", s)] == []


def test_a_third_is_left_out_and_none_of_what_is_used(theme):
    light = lighter(theme, set())
    assert len(light) < 0.65 * len(theme)
    for name in UNUSED_CLASSES:
        assert left_out(name)
        assert left_out(f"{name}__part") or name.count("-") > 5
    kept = ("md-header", "md-header__title", "md-nav__link--active", "admonition", "md-typeset")
    for name in kept:
        assert f".{name}" in light
        assert not left_out(name)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (".md-tag{a:b}.x{c:d}", ".x{c:d}"),
        (".md-tag,.x{c:d}", ".x{c:d}"),
        (".x:is(.a,.b),.md-select__list{c:d}", ".x:is(.a,.b){c:d}"),
        ("@media print{.md-tag{a:b}}.x{c:d}", ".x{c:d}"),
        ("@media print{.md-tag{a:b}.x{c:d}}", "@media print{.x{c:d}}"),
        ("@font-face{a:b}@import 'x';.x{c:d}", "@font-face{a:b}@import 'x';.x{c:d}"),
        ('.x{c:"}.md-tag{"}', '.x{c:"}.md-tag{"}'),
        (".md-tagged{c:d}.md-tag--a{c:d}", ".md-tagged{c:d}"),
        ("body:not(.md-tag) p{c:d}", "body:not(.md-tag) p{c:d}"),
        ("[data-md-color-accent=red] a{c:d}", ""),
        (
            ':root{--md-a:url("x");--md-b:url("y")}.x{c:var(--md-b)}',
            ':root{--md-b:url("y")}.x{c:var(--md-b)}',
        ),
    ],
)
def test_rules_are_dropped_one_selector_at_a_time(before, after):
    assert lighter(before, set()) == after
