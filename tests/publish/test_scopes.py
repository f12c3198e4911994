"""Shortened names still refer to the same things."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.publish.joined import joined
from figgen.publish.scopes import module_of
from figgen.publish.scripts import lean
from figgen.publish.syntax import Symbol
from tests.publish.test_joined import address, printed
from tests.publish.test_scripts import PROGRAM

SCOPES = Path(__file__).with_name("scopes.js").read_text(encoding="utf-8")


def test_names_in_scopes_of_every_kind_mean_the_same() -> None:
    text = joined({"entry.js": SCOPES}, "entry.js")["entry.js"]
    assert printed(text) == printed(SCOPES) != ""
    assert not re.search(r"\b(together|counting|nested|named)\b", text)


def test_programs_that_other_minifiers_break_are_kept() -> None:
    text = joined({"entry.js": PROGRAM}, "entry.js")["entry.js"]
    assert printed(text) == printed(PROGRAM) != ""


def test_names_from_outside_are_never_taken() -> None:
    """One-letter names of the page are kept, and everything else gets different names."""
    drawn = random.Random(5)
    outside = drawn.sample("etnaoirsclpdmuhfg", 8)
    given = ";".join(f"globalThis.{name}={at}" for at, name in enumerate(outside))
    script = (
        "const one = (first, second) => { const third = first + second; return third "
        f"+ [{','.join(outside)}].join(); }};\nconsole.log(one(1, 2));\n"
    )
    text = joined({"entry.js": script}, "entry.js")["entry.js"]
    assert printed(f"{given};await import({address(text)!r})") == "30,1,2,3,4,5,6,7"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("var a = 1;", "var a"),
        ("for (var a of b);", "var a"),
        ("with (a) b;", "with"),
        ("import(a + b);", "import(a + b)"),
        ("import(`${a}.js`);", "import("),
        ("f(;", "a missing )"),
        ("f(]);", "a syntax error: "),
        ("export default 1;", "default"),
        ("export default function a() {}", "default"),
        ("export * from './b.js';", "export"),
        ("import './b.js';", "import statement"),
        ("import a from './b.js';", "import a"),
        ("import a from './b.json' with { type: 'json' };", "import a"),
        ("@a class B {}", "@a"),
        ("a = <b>c</b>;", "<b>"),
        ("let \\u0061 = 1;", "identifier"),
        ("for (const a.b of c);", ".b"),
        ('let a = "b;', "b;"),
    ],
)
def test_syntax_that_is_not_understood_is_refused(script: str, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)) as raised:
        module_of(f"f('ä');\n{script}", "a.js")
    assert str(raised.value).startswith("a.js:2: ")


def test_an_export_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"are declared, got '?missing"):
        module_of("export { missing };", "a.js")


def test_a_script_that_nothing_minified_is_read_too() -> None:
    """Statements may end at line ends, and there may be comments and letters of any kind."""
    source = (
        "// a\nexport const /* b */ a = 'ä',\n  b = (one, /* c */ two) => {\n"
        "    const three = one // d\n    return [a, two, three]\n  }\n/* e */\nlet c = b\nc(b)\n"
    )
    module = module_of(source, "a.js")
    told = [
        (item.word, "".join(p if isinstance(p, str) else p.name for p in item.pieces))
        for item in module.items
        if all(isinstance(piece, str | Symbol) for piece in item.pieces)
    ]
    assert told == [
        ("const", "a = 'ä'"),
        ("const", source[source.index("b = (") : source.index("\n/* e")]),
        ("let", "c = b"),
        ("", "c(b)"),
    ]
    assert (list(module.exports), module.slots, module.outside) == (["a", "b"], [2, 2, 2], set())


def test_a_long_sum_is_read() -> None:
    (item,) = module_of(f"const a = {'+'.join(['b'] * 5000)};", "a.js").items
    assert item.idle


def test_an_item_tells_whether_it_does_anything_by_itself() -> None:
    source = lean(
        "export const a = () => f(), b = new Map(), c = f(), d = class { e = f(); };"
        "export class G { static h = f(); }\nexport let i = `${a}`, j = k`x`, l = m = 1;"
        "export class N { static { f(); } } export const o = class { static { f(); } };"
    )
    idle = {one.name: item.idle for item in module_of(source, "a").items for one in item.declared}
    assert [name for name, does_nothing in idle.items() if does_nothing] == ["a", "b", "d", "i"]
    (item,) = module_of("class P { static\n q = f(); }", "a").items
    assert not item.idle
