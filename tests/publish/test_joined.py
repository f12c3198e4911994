"""Scripts joined into one file are the same programs."""

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
from figgen.publish.joined import joined, reached
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
    """What a module prints, run by the Node that comes with Playwright."""
    command = [str(NODE), "--input-type=module", "-e", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_names_of_different_modules_stay_apart() -> None:
    text = joined(SCRIPTS, "a/entry.js")
    assert text.count("const one = ") == 2
    assert not re.search(r"^(import|export)\b(?! \{ \$m)", text, re.M)
    assert text.index("function four") < text.index("function two") < text.index("globalThis")


def test_joined_program_does_what_its_modules_do() -> None:
    program = f"{joined(SCRIPTS, 'a/entry.js')}console.log(JSON.stringify(told));"
    assert printed(program) == '[1,2,3,"c"]'


def test_what_is_passed_on_is_found() -> None:
    scripts = {
        "entry.js": 'import { x } from "./b.js";\nx();\n',
        "b.js": 'export { y as x } from "./c.js";\n',
        "c.js": "export const y = () => 1;\n",
    }
    text = joined(scripts, "entry.js")
    assert "x: $m0.y" in text
    assert "const { x } = $m1;" in text


def test_what_a_declaration_takes_apart_is_exported_name_by_name() -> None:
    scripts = {
        "entry.js": 'import { a, b, d } from "./b.js";\nimport { e } from "./c.js";\n'
        "globalThis.sum = [a, b, d, e];\n",
        "b.js": "export const [a, b] = [1, 2];\nexport let { c: d } = { c: 3 };\n",
        "c.js": "export const {\n  e,\n} = { e: 4 };\n",
    }
    assert printed(f"{joined(scripts, 'entry.js')}console.log(sum.join());") == "1,2,3,4"


def test_an_entry_may_pass_on_what_others_export() -> None:
    """`export { $m0.y as x }` would be no JavaScript: a member has no name of its own."""
    scripts = {
        "entry.js": 'export { y as x, y } from "./c.js";\nexport const own = 2;\n',
        "c.js": "export const y = () => 1;\n",
    }
    text = joined(scripts, "entry.js")
    last = text.rstrip().splitlines()[-1]
    named = [pair.split(" as ")[0] for pair in last[len("export { ") : -len(" };")].split(", ")]
    assert all(name.replace("$", "").isidentifier() for name in named), last
    assert re.findall(r" as (\w+)", last) == ["x", "y"]
    address = f"data:text/javascript,{quote(text)}"
    program = f"const m = await import({address!r});console.log(m.x() + m.y() + m.own)"
    assert printed(program) == "4"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"c.js": 'import { one } from "./a/b.js";\nexport const three = 1;\n'}, "each other"),
        ({"c.js": "export default 1;\n"}, "can be joined"),
        ({"c.js": 'export * from "./d.js";\n'}, "can be joined"),
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
    text = joined(later, "a/entry.js")
    assert "const three = () => Promise.resolve($m0);" in text
    assert 'const one = () => import("./e.js");' in text


def test_a_later_part_takes_what_the_first_has_from_there() -> None:
    scripts = SCRIPTS | {"a/how.js": 'import { one } from "./b.js";\nexport const how = one;\n'}
    first = joined(SCRIPTS, "a/entry.js")
    assert first.endswith("export { $m0, $m1 };\n")
    assert joined(scripts, "a/how.js", beside="a/entry.js") == (
        'import { $m0, $m1 } from "./entry.js";\nconst { one } = $m1;\nconst how = one;\n'
        "export { how };\n"
    )


def test_rank_map_is_one_file_but_for_what_it_loads_later() -> None:
    later = {f"{posixpath.dirname(MAP)}/{name}.js" for name in JOINED["rank-map"]}
    every = {path: text for path, text in plain_scripts(DOCS).items() if path not in later}
    own = {path: every[path] for path in reached(every, [MAP])}
    text = joined({**every, **printed_models(own)}, MAP)
    assert not re.search(r"^import ", text, re.M), "one request, and everything is there"
    asked = set(re.findall(r'\bimport\("\./([\w.]+)"\)', text))
    assert asked == {posixpath.basename(path) for path in later}


def test_a_part_that_is_loaded_later_is_of_one_tool() -> None:
    """It takes what both have from its tool's file, and would bring one tool to another's page."""
    parts = [part for tool in JOINED.values() for part in tool]
    assert len(parts) == len({*parts})
