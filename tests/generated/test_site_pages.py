"""Generated pages that a site excludes are not computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from figgen.generated.site_pages import site_pages
from figgen.subject import nowhere

REFERENCE = {"api_page", "catalog_pages", "formula_coverage", "formulas", "glossary", "presets"}


@pytest.mark.parametrize(
    ("excluded", "left"),
    [
        (nowhere, set[str]()),
        (lambda path: path.startswith("validation/"), {"validation"}),
        (lambda path: path == "reference/presets/", {"presets"}),
        (lambda path: path.startswith("reference/"), REFERENCE),
    ],
)
def test_pages_that_are_excluded_are_not_asked_for(
    excluded: Callable[[str], bool], left: set[str]
) -> None:
    asked = set()

    def keep(what: str, module: str, make: Callable[[], Any]) -> Any:
        asked.add(module.rpartition(".")[2])
        return "" if what.startswith(("coverage", "notation", "page of", "index")) else {}

    site_pages(None, {}, keep, excluded)
    assert REFERENCE | {"validation"} == asked | left
    assert not asked & left
