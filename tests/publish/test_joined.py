"""Scripts joined into one file do the same as before."""

from __future__ import annotations

import posixpath
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import playwright
import pytest

from figgen.errors import InputError
from figgen.guide.tool_scripts import JOINED, printed_models
from figgen.publish.joined import _joined, joined, reached
from figgen.publish.scripts import plain_scripts

DOCS = Path(__file__).parents[2] / "docs"
NODE = Path(playwright.__file__).parent / "driver" / "node"
MAP = "assets/javascripts/tools/rank-map.js"

SCRIPTS = {
    "a/entry.js": 'import { one, two as second } from "./b.js";\nimport * as all from "../c.js";\n'
    "const three = all.three();\nglobalThis.told = [one, second(), three, all.one];\n",
    "a/b.js": 'import {\n  three,\n} from "../c.js";\nexport const one = 1;\n'
    "export function two() {\nreturn three() - one;\n}\nconst $m1 = 0;\n",
    "c.js": 'export { four as three, one };\nconst one = "c";\nfunction four() {\nreturn 3;\n}\n',
}


def printed(program: str) -> str:
    """Return what a module prints under the Node that comes with Playwright."""
    command = [str(NODE), "--input-type=module", "-e", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def one_file(scripts: dict[str, str], entry: str) -> str:
    return joined(scripts, entry)[entry]


def address(script: str) -> str:
    return f"data:text/javascript,{quote(script)}"


SHOWN = "export function f() {{ console.log({}); }}\n"


def test_joined_program_does_what_its_modules_do() -> None:
    """Three modules declare `one` or `$m1`, and one of them is used as a whole."""
    text = one_file(SCRIPTS, "a/entry.js")
    assert not re.search(r"\b(import|export)\b", text)
    assert printed(f"{text}console.log(JSON.stringify(told));") == '[1,2,3,"c"]'


def test_declarations_that_nobody_uses_are_left_out_and_what_acts_stays() -> None:
    scripts = {
        "entry.js": 'import { used } from "./b.js";\nglobalThis.told.push(used());\n',
        "b.js": 'globalThis.told = [];\nconst acts = told.push("acts");\n'
        "export const used = () => deep(2);\n"
        "function deep(n) {\n  return n ? deep(n - 1) : 'end';\n}\n"
        'export function unused() {\n  return "never one";\n}\n'
        'export class Idle {\n  a = "never two";\n}\n'
        'export const map = new Map([["never three", () => unused()]]);\n',
    }
    text = one_file(scripts, "entry.js")
    assert "never" not in text
    assert printed(f"{text}console.log(JSON.stringify(told));") == '["acts","end"]'


def test_a_printed_module_does_nothing_until_it_is_used() -> None:
    """Its records register their fields, and its constants may be calls."""
    scripts = {
        "entry.js": 'import { Used, one } from "./b.js";\n'
        "globalThis.told = [one, new Used().told()];\n",
        "b.js": "const made = (value) => (globalThis.last = value);\nexport const one = made(1);\n"
        "export class Used {\n  told() { return this.own; }\n"
        '  static {\n    Object.assign(this.prototype, { own: "own" });\n  }\n}\n'
        'export const other = made("never one");\n'
        'export class Unused {\n  static {\n    made("never two");\n  }\n}\n',
    }
    text = joined(scripts, "entry.js", idle=["b.js"])["entry.js"]
    assert "never" not in text
    assert printed(f"{text}console.log(JSON.stringify(told));") == '[1,"own"]'
    assert one_file(scripts, "entry.js").count("never") == 2


def test_what_is_passed_on_is_found() -> None:
    scripts = {
        "entry.js": 'import { x } from "./b.js";\nx();\n',
        "b.js": 'export { y as x } from "./c.js";\n',
        "c.js": "export const y = () => 1;\n",
    }
    scripts["entry.js"] += "globalThis.told = x();\n"
    assert printed(f"{one_file(scripts, 'entry.js')}console.log(told);") == "1"


def test_what_a_declaration_takes_apart_is_exported_name_by_name() -> None:
    scripts = {
        "entry.js": 'import { a, b, d } from "./b.js";\nimport { e } from "./c.js";\n'
        "globalThis.sum = [a, b, d, e];\n",
        "b.js": "export const [a, b] = [1, 2];\nexport let { c: d } = { c: 3 };\n",
        "c.js": "export const {\n  e,\n} = { e: 4 };\n",
    }
    assert printed(f"{one_file(scripts, 'entry.js')}console.log(sum.join());") == "1,2,3,4"


def test_an_entry_may_pass_on_what_others_export() -> None:
    scripts = {
        "entry.js": 'export { y as x, y } from "./c.js";\nexport const own = 2;\n',
        "c.js": "export const y = () => 1;\n",
    }
    text = one_file(scripts, "entry.js")
    program = f"const m = await import({address(text)!r});console.log(m.x() + m.y() + m.own)"
    assert printed(program) == "4"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"c.js": 'import { one } from "./a/b.js";\nexport const three = 1;\n'}, "circular import"),
        ({"c.js": "export default 1;\n"}, "c.js:1"),
        ({"c.js": 'export * from "./d.js";\n'}, "c.js:1"),
        ({"c.js": "export const three = import.meta.url;\n"}, "import.meta"),
        ({"a/b.js": 'import { x } from "./missing.js";\n'}, "a/missing.js"),
    ],
)
def test_what_is_not_understood_is_refused(change: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        joined(SCRIPTS | change, "a/entry.js")


def test_what_is_loaded_later_comes_along_and_what_is_unknown_stays_apart() -> None:
    later = SCRIPTS | {
        "c.js": 'export const three = () => import("./d.js");\n'
        'export const one = () => import("./e.js");\n',
        "d.js": "export const four = 4;\n",
    }
    later["a/entry.js"] = (
        'import { one, three } from "../c.js";\n'
        "const { four } = await three();\nconsole.log(four, String(one));\n"
    )
    text = one_file(later, "a/entry.js")
    assert printed(text) == "4 ()=>import(`./e.js`)"


def test_a_later_part_takes_what_the_first_has_from_there() -> None:
    """It is the same object; what only one part needs is in that part, what two need is in the
    first."""
    scripts = {
        "entry.js": 'import { kept } from "./b.js";\nexport const mine = () => kept;\n',
        "b.js": "export const kept = { count: 0 };\n"
        "export const tale = () => 'told ' + kept.count;\n"
        "export const both = { times: 0 };\n",
        "how.js": 'import { both, kept, tale } from "./b.js";\nimport { own } from "./d.js";\n'
        "export const how = () => [++kept.count, tale(), own, ++both.times];\n",
        "d.js": "export const own = 'alone';\n",
        "why.js": 'import { both } from "./b.js";\nexport const why = () => ++both.times;\n',
    }
    made = joined(scripts, "entry.js", ["how.js", "why.js"])
    assert made.keys() == {"entry.js", "how.js", "why.js"}
    for text in ("alone", "told"):
        assert text in made["how.js"]
        assert text not in made["entry.js"] + made["why.js"]
    parts = [
        address(made[name].replace("./entry.js", address(made["entry.js"])))
        for name in ("how.js", "why.js")
    ]
    program = f"""
      const first = await import({address(made["entry.js"])!r});
      const [part, other] = [await import({parts[0]!r}), await import({parts[1]!r})];
      console.log(JSON.stringify([...part.how(), other.why(), first.mine().count]));
    """
    assert printed(program) == '[1,"told 1","alone",1,2,1]'


def test_rank_map_is_one_file_but_for_what_it_loads_later() -> None:
    shared = ("address_read", "typed", "back")  # files of their own, which several tools load
    names = (*JOINED["rank-map"], *shared)
    later = {f"{posixpath.dirname(MAP)}/{name}.js" for name in names}
    every = {path: text for path, text in plain_scripts(DOCS).items() if path not in later}
    own = {path: every[path] for path in reached(every, [MAP])}
    text = one_file({**every, **printed_models(own)}, MAP)
    assert not re.search(r'\bimport\b[^("]+"', text), "one request, and everything is there"
    asked = set(re.findall(r"\bimport\([\"`]\./([\w.]+)[\"`]\)", text))
    assert asked == {posixpath.basename(path) for path in later}


def test_a_part_that_is_loaded_later_is_of_one_tool() -> None:
    """It imports shared code from its tool's file, and would load that tool on a different tool's
    page."""
    parts = [part for tool in JOINED.values() for part in tool]
    assert len(parts) == len({*parts})


def test_a_server_joins_again_only_what_changed() -> None:
    scripts = {"a/tool.js": 'import { f } from "./b.js";\nf();\n', "a/b.js": SHOWN.format(1)}
    before = joined(scripts, "a/tool.js")
    known = _joined.cache_info()
    assert joined(dict(scripts), "a/tool.js") == before
    assert _joined.cache_info().hits == known.hits + 1
    changed = joined({**scripts, "a/b.js": SHOWN.format(2)}, "a/tool.js")
    assert changed != before
    assert _joined.cache_info().misses == known.misses + 1
