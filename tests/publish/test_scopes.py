"""Names that are shortened mean what they meant."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.publish.joined import joined
from figgen.publish.scopes import module_of
from figgen.publish.scripts import lean
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
    """One-letter names of the page stay what they are, and everything else gets other names."""
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
        ("with (a) b;", "with"),
        ("a\nb;", "b;"),
        ("class A { static { a(); } }", "static block"),
        ("import(a + b);", "computed"),
        ("let a = {} / 2;", "slash"),
        ("f(;", "bracket"),
        ("f(]);", "bracket"),
        ("export default 1;", "default"),
        ("export * from './b.js';", "export"),
        ('let a = "b;', "b;"),
    ],
)
def test_syntax_that_is_not_understood_is_refused(script: str, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)) as raised:
        module_of(script, "a.js")
    assert str(raised.value).startswith("a.js: ")


def test_an_item_tells_whether_it_does_anything_by_itself() -> None:
    source = lean(
        "export const a = () => f(), b = new Map(), c = f(), d = class { e = f(); };"
        "export class G { static h = f(); }\nexport let i = `${a}`, j = k`x`, l = m = 1;"
    )
    idle = {one.name: item.idle for item in module_of(source, "a").items for one in item.declared}
    assert [name for name, does_nothing in idle.items() if does_nothing] == ["a", "b", "d", "i"]
