"""A server computes a figure again when a definition changes that it reaches, and only then."""

from __future__ import annotations

import cProfile
import random
import sys
from pathlib import Path
from types import CodeType

import pytest

import figgen
from figgen.markdown import directive
from figgen.markdown.conversion import fences
from figgen.registry import all_figures, build
from figgen.serving.code import SourceCode
from figgen.serving.definitions import definitions
from figgen.subject import subject
from tests.thorough import drawn

ROOT = Path(figgen.__file__).parents[1]
FIGURES = drawn(5, 200)
SOURCES = {
    "figures/a.py": (
        "from figgen.models import b, c as other\n"
        "from figgen.models.shown import told\n"
        "from figgen.registry import figure\n\n"
        "def about(): return b.half(4)\n\n"
        "@figure('a', about=about)\n"
        "def drawn():\n    from figgen.models.late import later\n"
        "    return told(other.LIMIT), later(), Kept()\n\n"
        "def beside(): return other.unused()\n\n"
        "class Kept:\n    def size(self): return SIZE\n\n"
        "SIZE, EDGE = 1, 2\n"
    ),
    "models/__init__.py": "",
    "models/b.py": "def half(x): return x / DIVISOR\n\nDIVISOR: int = 2\nSPARE = 3\n",
    "models/c.py": "LIMIT = max(3, 4)\n\ndef unused(): return 5\n",
    "models/shown/__init__.py": "from figgen.models.shown.words import told\n",
    "models/shown/words.py": "from math import ceil\n\ndef told(x): return ceil(x)\n",
    "models/late.py": (
        "def later(): return open('rates.toml')\n\ndef read(): return \"rates.toml\"\n"
    ),
    "models/rates.toml": "a = 1\n",
    "registry.py": "def figure(name, about): return lambda f: f\n\ndef draw(): return 6\n",
}


def followed(folder: Path) -> SourceCode:
    for name, text in SOURCES.items():
        path = folder / "figgen" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code = SourceCode(root=folder / "figgen")
    code.look()
    return code


@pytest.mark.parametrize(
    ("file", "old", "new", "matters"),
    [
        ("figures/a.py", "told(other", "3 * told(other", True),
        ("figures/a.py", "b.half(4)", "b.half(40)", True),
        ("figures/a.py", "size(self): return SIZE", "size(self): return -SIZE", True),
        ("figures/a.py", "1, 2", "10, 2", True),
        ("figures/a.py", "import b, c as other", "import c as b, c as other", True),
        ("figures/a.py", "other.unused()", "other.unused() + 1", False),
        ("figures/a.py", "def beside", "\n# A remark.\ndef beside", False),
        ("models/b.py", "x / DIVISOR", "x / DIVISOR / 2", True),
        ("models/b.py", "int = 2", "int = 20", True),
        ("models/b.py", "SPARE = 3", "SPARE = 30", False),
        ("models/b.py", "SPARE = 3", "SPARE = 3\nDIVISOR = 4", True),
        ("models/b.py", "SPARE = 3", "SPARE = 3\nfor DIVISOR in range(9): pass", True),
        ("models/c.py", "max(3", "max(30", True),
        ("models/c.py", "return 5", "return 50", False),
        ("models/shown/words.py", "ceil(x)", "ceil(-x)", True),
        ("models/shown/words.py", "import ceil", "import floor as ceil", True),
        ("models/shown/__init__.py", "words import told", "words import ceil as told", True),
        ("models/late.py", "def later(): return", "def later(): return not", True),
        ("models/late.py", "def read(): return", "def read(): return not", False),
        ("models/rates.toml", "1", "10", False),
        ("registry.py", "return 6", "return 60", True),  # a module of the press is one thing
    ],
)
def test_an_edit_matters_to_a_figure_if_it_reaches_what_changed(
    tmp_path: Path, file: str, old: str, new: str, matters: bool
) -> None:
    code = followed(tmp_path)
    before = code.fingerprint("figgen.figures.a:drawn")
    path = tmp_path / "figgen" / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    assert code.look()
    assert (code.fingerprint("figgen.figures.a:drawn") != before) == matters


def test_a_data_file_belongs_to_the_definition_that_names_it(tmp_path: Path) -> None:
    code = followed(tmp_path)
    before = [code.fingerprint(f"figgen.models.late:{name}") for name in ("read", "later")]
    (tmp_path / "figgen/models/rates.toml").write_text("a = 10\n")
    code.look()
    after = [code.fingerprint(f"figgen.models.late:{name}") for name in ("read", "later")]
    assert [a != b for a, b in zip(after, before, strict=True)] == [True, False]


@pytest.mark.parametrize(
    "source",
    [
        "a = 1\nregister(a)\n",
        "TABLE = {}\nTABLE['a'] = 1\n",
        "a = 1\na += 1\n",
        "for a in (1, 2):\n    pass\n",
        "try:\n    import a\nexcept ImportError:\n    a = None\n",
        "if TYPE_CHECKING:\n    import a\nelse:\n    a = None\n",
        "import figgen.models.b\n",
        "def f():\n    import figgen.models.b, figgen.models.c\n",
        "from figgen.models.b import *\n",
        "from figgen.models.b import (  *)\n",
        "def f(:\n",
    ],
)
def test_a_source_that_does_more_than_define_is_one_thing(source: str) -> None:
    assert definitions(source) is None


def test_a_name_that_a_room_passes_on_from_the_press_stands_for_its_whole_module() -> None:
    """`evaluate` finds a formula by its name in a text, so it may need any of them."""
    code = SourceCode()
    code.look()
    reached = code.reached("figgen.formulas:evaluate")
    assert {("figgen.formulas", ""), ("figgen.formulas.experts", "")} <= reached
    assert ("figgen.formulas.experts", "") not in code.reached(
        "figgen.formulas.experts:expert_all_to_all_ccr"
    )


def test_all_functions_that_a_figure_runs_are_among_those_that_it_reaches() -> None:
    """The figures of random fences of the guide run with a profiler that sees each call."""
    code, asked = SourceCode(), list[tuple[str, dict[str, object]]]()
    code.look()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for fence in fences(page.read_text(encoding="utf-8")):
            given = directive.parse(fence.body)
            asked += [(given.figure, dict(own)) for _, _, own in given.variants()]
    seen = 0
    for name, own in random.Random(0).sample(asked, min(FIGURES, len(asked))):
        function = all_figures()[name].function
        reached = code.reached(f"{function.__module__}:{function.__name__}")
        for called in calls(name, own):
            module, _, top = called.partition(":")
            assert reached & {(module, top), (module, "")}, f"{name} runs {called}"
            seen += 1
    assert seen > 20 * min(FIGURES, 5)


def calls(name: str, arguments: dict[str, object]) -> set[str]:
    """Return `module:definition` of each function of a room that runs while a figure is built."""
    rooms = tuple(f"{room}." for room in subject().rooms)
    modules = {
        module.__file__: name
        for name, module in sys.modules.items()
        if f"{name}.".startswith(rooms)
    }
    profile = cProfile.Profile()
    profile.runcall(build, name, arguments)
    ran = [entry.code for entry in profile.getstats() if isinstance(entry.code, CodeType)]
    # Not the functions that dataclasses make, which have no file.
    tops = {(modules.get(code.co_filename), code.co_qualname.partition(".")[0]) for code in ran}
    return {f"{module}:{top}" for module, top in tops if module and not top.startswith("<")}
