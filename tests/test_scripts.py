"""Published scripts are short; the tests in the browser run them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from figgen.formulas import FORMULAS
from figgen.scripts import imported_names, minified, sources

DOCS = Path(__file__).parents[1] / "docs"


def test_a_published_script_is_short_and_keeps_every_text() -> None:
    source = """/** Adds one. */
export function next(value) {
  // Why.
  const url = "https://example.org";
  return `  // not a comment
    ${url + `  ${value + 1}`}`;
}
"""
    assert minified(source) == (
        'export function next(e){const t="https://example.org";'
        "return`  // not a comment\n    ${t+`  ${e+1}`}`}"
    )


def test_a_slip_in_a_script_names_its_place() -> None:
    with pytest.raises(ValueError, match="on line 1 and column 10"):
        minified("let a = (;")


def test_the_scripts_shrink_by_three_tenths() -> None:
    def size(content: str) -> int:
        return len(gzip.compress(content.encode()))

    scripts = sources(DOCS).values()
    assert sum(size(minified(script)) for script in scripts) < 0.7 * sum(map(size, scripts))


def test_names_are_found_in_imports_of_one_line_or_several(tmp_path: Path) -> None:
    folder = tmp_path / "assets" / "javascripts"
    (folder / "engine").mkdir(parents=True)
    (folder / "engine" / "a.js").write_text(
        'import { one } from "../x.js";\nimport {\n  two,\n  three as four,\n} from "../x.js";\n'
    )
    (folder / "b.js").write_text('import { five } from "./x.js";\nimport { six } from "./y.js";\n')
    assert imported_names(tmp_path, "x.js") == ("five", "one", "three", "two")


def test_the_formulas_that_the_tools_start_with_are_few_and_exist() -> None:
    used = imported_names(DOCS, "step-formulas.js")
    assert {"ridge_point", "exposed_communication_time"} < set(used) < set(FORMULAS)
    assert len(used) < 20
