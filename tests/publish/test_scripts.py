"""Published scripts are shorter and do the same as before."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.formulas import FORMULAS
from figgen.publish.scripts import FOLDER, OWN, imported_names, lean, plain, plain_scripts
from tests.publish.test_joined import NODE

DOCS = Path(__file__).parents[2] / "docs"


def source_of(name: str) -> str:
    """Return a script as written, from the pages' folder or the package's."""
    file = DOCS / name
    return (file if file.is_file() else OWN / name).read_text(encoding="utf-8")


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
    assert plain(SOURCE) == PUBLISHED


def test_an_edited_script_is_read_again(tmp_path: Path) -> None:
    script = tmp_path / FOLDER / "a.js"
    script.parent.mkdir(parents=True)
    for source in ("one();\n", "another();\n", "one();\n"):
        script.write_text(source)
        assert plain_scripts(tmp_path)[f"{FOLDER}/a.js"] == source


def test_plain_is_final() -> None:
    for source in plain_scripts(DOCS).values():
        assert plain(source) == source


def test_every_script_keeps_all_of_its_code() -> None:
    """Removed lines are empty or look like comments; all others remain in order."""
    scripts = plain_scripts(DOCS)
    assert len(scripts) > 20
    for name, published in scripts.items():
        source = source_of(name)
        written = [line.strip() for line in source.splitlines()]
        code = [line for line in written if line and not re.match(r"//|/?\*", line)]
        left = [line.strip() for line in published.splitlines()]
        for before, after in zip(code, left, strict=True):
            assert before.startswith(after), name
            assert re.fullmatch(r"( +// [^\"'`]*)?", before[len(after) :]), name


PROGRAM = r"""
const f = () => ({ d: { e: 1 } });
const told = [];
function later() {
  const { a = b.c } = f();
  return a;
}
const b = { c: "a  b" };
const again = later()
const list = [1, 2, 3]
;[...list].forEach((one) => told.push(one))
let value = 3;
if (value > - -1) told.push(value++ + ++value, value-- - --value);
told.push(again, /[/ ]+ "/g.test('x / "') ? `in ${ `b,  c ${value}` }  out` : 0, "</" + "p>");
label: for (const one of list) {
  for (;;) { if (one === 2) break label; break; }
  told.push(one / 2 / 1);
}
class Kept { static #own = 1_000; get own() { return Kept.#own; } }
const why = () => { try { throw { why: 1 } } catch ({ why }) { return why } };
told.push(new Kept().own, null ?? 0.10, why());
console.log(JSON.stringify(told));
"""


def run(program: str) -> str:
    command = [str(NODE), "--input-type=module", "-e", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_what_is_published_does_what_was_written() -> None:
    """Nested strings, regular expressions, statements without semicolons, names declared later."""
    assert run(lean(PROGRAM)) == run(PROGRAM) != ""
    assert len(lean(PROGRAM)) < 0.8 * len(PROGRAM)


def test_a_text_that_would_end_a_script_is_refused() -> None:
    with pytest.raises(InputError, match="no </script in it"):
        lean('const text = "</script>";\n')


def test_every_published_script_is_a_program_and_keeps_its_names(tmp_path: Path) -> None:
    scripts = {name: lean(text) for name, text in plain_scripts(DOCS).items()}
    assert len(scripts) > 20
    for name, published in scripts.items():
        exported = r"^export (?:async )?(?:function\*?|const|let|class) (\w+)"
        for known in re.findall(exported, source_of(name), re.M):
            assert re.search(rf"\b{known}\b", published), (name, known)
    (tmp_path / "scripts.json").write_text(json.dumps(scripts), encoding="utf-8")
    program = """
      const [vm, fs] = [require("vm"), require("fs")];
      const scripts = JSON.parse(fs.readFileSync("scripts.json", "utf8"));
      const read = ([identifier, text]) => new vm.SourceTextModule(text, { identifier });
      console.log(Object.entries(scripts).map(read).length);
    """
    found = subprocess.run(
        [str(NODE), "--experimental-vm-modules", "--no-warnings", "-e", program],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert (found.stderr, found.stdout.strip()) == ("", str(len(scripts)))


def test_the_engine_shrinks_by_a_quarter() -> None:
    def size(content: str) -> int:
        return len(gzip.compress(content.encode()))

    engine = {name: text for name, text in plain_scripts(DOCS).items() if "/engine/" in name}
    before = sum(size((DOCS / name).read_text(encoding="utf-8")) for name in engine)
    assert sum(size(lean(text)) for text in engine.values()) < 0.75 * before


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
    assert {"kv_ring_buffer_bytes", "microbatches_for_efficiency"} <= set(used) < set(FORMULAS)
    assert len(used) < 25
