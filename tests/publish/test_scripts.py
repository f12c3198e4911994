"""Published scripts are shorter and still the same programs."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.formulas import FORMULAS
from figgen.publish.scripts import imported_names, lean, lean_scripts
from tests.publish.test_joined import NODE

DOCS = Path(__file__).parents[2] / "docs"

SOURCE = """// What this module is for.
import { one, two as second } from "./b.js";

/**
 * Adds one.
 */
export function next(value, { by = 1 } = {}) {
  // Why.
  const url = "https://example.org"; // it's gone
  const text = 'a // b', again = url
  if (value > - -by) return value / 2 / by;
  for (const [at, one] of [[0, 1]]) { second(at); }
  const found = /[/ ]+ "/g.exec(text) ?? value++ + ++by;
  return `  // no comment
    ${ `${value + 1} and { this }` } ${ { a : 1 }.a }
  // nor this`;
}
export const half = (value) => value / 2 /* inside */ + 0;
export { one as first };
"""

PUBLISHED = """import{one,two as second}from"./b.js";
export function next(value,{by=1}={}){const url="https://example.org";const text='a // b',again=url
if(value>- -by)return value/2/by;for(const[at,one]of[[0,1]]){second(at);}
const found=/[/ ]+ "/g.exec(text)??value++ + ++by;return`  // no comment
    ${`${value+1} and { this }`} ${{a:1}.a}
  // nor this`;}
export const half=(value)=>value/2+0;
export{one as first};
"""


def test_comments_and_spaces_go_and_texts_stay() -> None:
    assert lean(SOURCE) == PUBLISHED


def test_a_slash_that_may_be_a_division_or_a_pattern_is_refused() -> None:
    with pytest.raises(InputError, match="no slash behind a brace"):
        lean("const a = {} / 2;\n")


def test_lean_is_final() -> None:
    for source in lean_scripts(DOCS).values():
        assert lean(source) == source


def test_every_script_keeps_all_of_its_code() -> None:
    """What goes is space or looks like a comment; all else is there, in its order."""
    scripts = lean_scripts(DOCS)
    assert len(scripts) > 20
    for name, published in scripts.items():
        source = (DOCS / name).read_text(encoding="utf-8")
        source = re.sub(r"^ *(//|/?\*).*$|(?<=[,;{}()]) +// .*$", "", source, flags=re.M)
        assert "".join(published.split()) == "".join(source.split()), name
        for text in re.findall(r"""(?<=[(,:=] )"\w[^"'`\n]*\"""", source):
            assert text in published, name


def test_every_published_script_is_a_program_that_node_can_read(tmp_path: Path) -> None:
    scripts = lean_scripts(DOCS)
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

    engine = {name: text for name, text in lean_scripts(DOCS).items() if "/engine/" in name}
    before = sum(size((DOCS / name).read_text(encoding="utf-8")) for name in engine)
    assert sum(map(size, engine.values())) < 0.75 * before


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
