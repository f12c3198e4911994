"""Published scripts are shorter and still the same programs."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from figgen.formulas import FORMULAS
from figgen.publish.scripts import imported_names, lean, lean_scripts

DOCS = Path(__file__).parents[2] / "docs"

SOURCE = """// What this module is for.

/**
 * Adds one.
 */
export function next(value) {
  // Why.
  const url = "https://example.org"; // goes
  const text = "a // b"; // it's kept, for a text might end here
  return `  // not a comment
    ${value + 1}
  // nor this`;
}
/** On one line. */
export const one = 1 /* inside */ + 0;
"""

PUBLISHED = """export function next(value) {
const url = "https://example.org";
const text = "a // b"; // it's kept, for a text might end here
return `  // not a comment
    ${value + 1}
  // nor this`;
}
export const one = 1 /* inside */ + 0;
"""


def test_comments_and_indentation_go_and_texts_stay() -> None:
    assert lean(SOURCE) == PUBLISHED


def test_lean_is_final() -> None:
    for source in lean_scripts(DOCS).values():
        assert lean(source) == source


def test_every_script_keeps_all_of_its_code() -> None:
    """What goes is empty or looks like a comment; all else is there, in its order."""
    scripts = lean_scripts(DOCS)
    assert len(scripts) > 20
    for name, published in scripts.items():
        source = (DOCS / name).read_text(encoding="utf-8")
        written = [line.strip() for line in source.splitlines()]
        code = [line for line in written if line and not re.match(r"//|/?\*", line)]
        left = [line.strip() for line in published.splitlines()]
        for before, after in zip(code, left, strict=True):
            assert before.startswith(after), name
            assert re.fullmatch(r"( +// [^\"'`]*)?", before[len(after) :]), name


def test_the_engine_shrinks_by_a_fifth() -> None:
    def size(content: str) -> int:
        return len(gzip.compress(content.encode()))

    engine = {name: text for name, text in lean_scripts(DOCS).items() if "/engine/" in name}
    before = sum(size((DOCS / name).read_text(encoding="utf-8")) for name in engine)
    assert sum(map(size, engine.values())) < 0.8 * before


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
