"""Printed code computes what Python computes, and unsupported code is refused with its line."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.translation import modules, sources
from figgen.translation.modules import module_of, printed, script_of
from figgen.translation.sources import Place
from tests.translation import sample
from tests.translation.run import ran


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of tests are printed too."""
    monkeypatch.setattr(sources, "PRINTED", (*sources.PRINTED, "tests.translation", "drawn"))


def test_every_construct_gives_what_python_gives(rooms: None, tmp_path: Path) -> None:
    names = [case.__name__ for case in sample.CASES]
    scripts = printed([Place("tests.translation.sample", name) for name in names])
    path = script_of("tests.translation.sample")
    program = (
        f'import * as sample from "./{path}";\n'
        f"const names = {json.dumps(names)};\n"
        "console.log(JSON.stringify(names.map((name) => sample[name]())));"
    )
    found = ran(tmp_path, program, scripts)
    for case, got in zip(sample.CASES, found, strict=True):
        wanted = json.loads(json.dumps(case()))
        differing = [(at, *pair) for at, pair in enumerate(zip(wanted, got, strict=True))
                     if pair[0] != pair[1]]  # fmt: skip
        assert differing == [], case.__name__


def test_a_list_of_any_length_is_as_good_as_a_short_one(rooms: None, tmp_path: Path) -> None:
    """A call with 150,000 arguments exceeds V8's stack."""
    program = (
        f'import {{ long_lists }} from "./{script_of("tests.translation.sample")}";\n'
        "console.log(JSON.stringify(long_lists(200_000)));"
    )
    found = ran(tmp_path, program, printed([Place("tests.translation.sample", "long_lists")]))
    assert found == json.loads(json.dumps(sample.long_lists(200_000)))


REFUSED = {
    "with open('x') as file:\n        return 1": "With",
    "return sum(n for n in value)": "",
    "for one in (1, 2):\n        pass\n    else:\n        pass\n    return 1": "else of a loop",
    "return value.nothing": "attribute",
    "return value & 3": "a bitwise operation on numbers",
    "return print(value)": "a call of print",
    "return 2**60": "2**53",
    "return len(value)": "len of a value",
    "return [1] + value": "a sum of a list",
    "import os\n    return os.getpid()": "Import",
    "try:\n        return 1\n    except KeyError:\n        return 2": "a handler",
    "return f'{value:>8}'": "",
    "return missing": "a name that no module defines",
    "return (lambda **words: 1)(value)": "",
    "return '%s' % value": "this operation",
    "match value:\n        case 1:\n            return 2\n    return 3": "Match",
    "return value[0]": "an element",
    "return {value} < {1, 2}": "this comparison of sets",
    "return re.compile('a').sub('', 'a')": "the method sub of a pattern",
    "held: dict[str, Any] = {}\n    held['a']['b'] = 1\n    return held": "an assignment to",
    "return re.findall('(a)(b)', 'ab')": "several groups",
    "held = '(a)(b)'\n    return re.findall(held, 'ab')": "a pattern from elsewhere",
    "return re.compile('a').findall('a')": "the method findall of a pattern",
    "return 'a b c'.split(maxsplit=1)": "a keyword of a method",
    "return 'abab'.rfind('a', 0, value)": "a method with 3 arguments",
    "return [many]": "a function of any number of arguments as a value",
    "return divmod(*[value, 2])": "a call with a list of unknown length as its arguments",
    "def one(value: int = value) -> int:\n        return 1\n    return one()": "like its own",
}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Makes a module from a text and returns its name."""

    def made(text: str) -> str:
        folder = tmp_path / "figgen" / "drawn"
        folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / "figgen" / "drawn" / "__init__.py").write_text("", encoding="utf-8")
        (folder / "one.py").write_text(text, encoding="utf-8")
        modules.forget()
        return "drawn.one"

    monkeypatch.syspath_prepend(tmp_path / "figgen")
    for name in [name for name in sys.modules if name.split(".")[0] == "drawn"]:
        monkeypatch.delitem(sys.modules, name)
    return made


@pytest.mark.parametrize("body", [body for body, why in REFUSED.items() if why])
def test_what_is_not_understood_is_refused_with_its_line(
    rooms: None, module: Callable[[str], str], body: str
) -> None:
    name = module(
        "from __future__ import annotations\nimport re\nfrom typing import Any\n\n\n"
        "def many(*all: int) -> int:\n    return 1\n\n\n"
        f"def wrong(value: int) -> object:\n    {body}\n"
    )
    importlib.invalidate_caches()
    with pytest.raises(InputError) as caught:
        printed([Place(name, "wrong")])
    assert REFUSED[body] in str(caught.value)
    assert "figgen/drawn/one.py:" in str(caught.value)
    assert int(str(caught.value).split(":")[1]) >= 5


def test_what_no_entry_needs_is_left_out(rooms: None) -> None:
    scripts = printed([Place("tests.translation.sample", "area")])
    assert list(scripts) == [script_of("tests.translation.sample")]
    (text,) = scripts.values()
    assert "function area" in text
    assert "class" not in text


def test_paths_and_modules_answer_to_each_other() -> None:
    path = script_of("figgen.models.step.step")
    assert path == "assets/javascripts/models/step/step.js"
    assert module_of(path) == "figgen.models.step.step"
    assert module_of("assets/javascripts/engine/errors.js") is None
