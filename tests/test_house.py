"""The diagrams of imports in CONTRIBUTING.md match the code, and no imports are circular."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection
from functools import cache

import pytest

from tests.test_layers import ROOT, SOURCES, imports, module_of

Arrows = dict[str, set[str]]
"""Imports: module by module, or room by room."""
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
FENCED = re.compile(r"(<!-- rooms of ([\w.]+) -->\n```\n)(.*?)(```\n<!-- /rooms -->)", re.S)
HOUSES = ("figgen", "figgen.models", "figgen.scenarios")
"""Packages whose rooms CONTRIBUTING shows."""


@cache
def arrows() -> Arrows:
    """Return every module of figgen and every hook, with those among them that it imports."""
    paths = {module_of(path.relative_to(ROOT)): path for path in SOURCES}
    found: Arrows = {}
    for module, path in paths.items():
        names = imports(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        found[module] = {known(name, paths) for _, name in names} - {module, "figgen", ""}
    return found


def known(name: str, modules: Collection[str]) -> str:
    """Return our module that an imported name is or is in; "" if it is not ours."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def rooms(house: str) -> Arrows:
    """Return every folder and file directly in a package, and which of the others each imports.

    Hooks are listed along with the rooms of `figgen`.
    """
    found: Arrows = {}
    for module, others in arrows().items():
        if room := room_of(module, house):
            named = {room_of(other, house) for other in others}
            found.setdefault(room, set()).update(named - {room, ""})
    return found


def room_of(module: str, house: str) -> str:
    """Return `models` for `figgen.models.machine.mesh` in `figgen`, "" for modules outside the
    house."""
    if module.startswith("hooks") and house == "figgen":
        return "hooks"
    inside = module.removeprefix(f"{house}.")
    return inside.partition(".")[0] if inside != module else ""


def reach(found: Arrows, start: str) -> set[str]:
    """Return everything that is imported directly or indirectly."""
    below: set[str] = set()
    open_ends = list(found.get(start, ()))
    while open_ends:
        other = open_ends.pop()
        if other not in below:
            below.add(other)
            open_ends += found.get(other, ())
    return below


def picture(house: str) -> str:
    """Return rooms by floor from the top, each with its imports that no other import implies.

    The ground floor, whose rooms import nothing, is one line.
    """
    found = rooms(house)
    ground = {room for room, others in found.items() if not others}
    below = {room: reach(found, room) for room in found}
    floors: dict[str, int] = {}
    for room in sorted(found, key=lambda room: len(below[room])):
        floors[room] = 1 + max((floors[other] for other in found[room]), default=0)
    lines = []
    for room in sorted(found.keys() - ground, key=lambda room: (-floors[room], room)):
        near = {
            other
            for other in found[room]
            if not any(other in below[beside] for beside in found[room] - {other})
        }
        lines.append(f"{floors[room]:2} {room:11} → {' '.join(sorted(near))}")
    return "\n".join([*lines, f" 1 {' '.join(sorted(ground))}"]) + "\n"


@pytest.mark.parametrize("house", HOUSES)
def test_no_room_imports_what_imports_it(house: str) -> None:
    found = rooms(house)
    assert len(found) > 5
    assert {room for room in found if room in reach(found, room)} == set()


def test_no_file_imports_what_imports_it() -> None:
    """This includes imports of types: what two files need from each other belongs in a
    third one."""
    found = arrows()
    assert len(found) > 300
    assert {module for module in found if module in reach(found, module)} == set()


@pytest.mark.golden
def test_the_pictures_in_contributing_are_those_of_the_code(pytestconfig: pytest.Config) -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    assert [shown[2] for shown in FENCED.finditer(text)] == list(HOUSES)
    if pytestconfig.getoption("--update-golden"):
        drawn = FENCED.sub(lambda shown: shown[1] + picture(shown[2]) + shown[4], text)
        CONTRIBUTING.write_text(drawn, encoding="utf-8")
        return
    for shown in FENCED.finditer(text):
        message = "pytest tests/test_house.py --update-golden redraws it"
        assert shown[3] == picture(shown[2]), message


MOST_LINES_OF_A_FUNCTION, MOST_LINES_OF_A_FILE = 60, 500
LONG_FILES = {"docs/tools/measure/measure.py"}
"""Readers download this program as one file, and run it without any other file of ours."""


def test_functions_and_files_are_short() -> None:
    """This covers the package, the hooks, and the programs that readers download."""
    functions, files = set(), set()
    for path in [*SOURCES, *(ROOT / "docs").rglob("*.py")]:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        if text.count("\n") > MOST_LINES_OF_A_FILE:
            files.add(name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_LINES_OF_A_FUNCTION:
                    functions.add(f"{name}: {node.name}")
    assert not functions
    assert files <= LONG_FILES


def test_a_class_has_a_name_of_its_own() -> None:
    """There used to be three `Job`, four `Plan` and three `Kept`, all different."""
    declared = re.compile(r"^class (\w+)", re.M)
    names = [name for path in SOURCES for name in declared.findall(path.read_text("utf-8"))]
    assert [name for name, count in Counter(names).items() if count > 1] == []


HOMONYMS = {"double-binary-tree", "oversubscription", "packing", "send-recv"}
"""Names that figures share with an algorithm, an argument, a trainer's option or an
NCCL operation."""


def named_in(word: str, *folders: str) -> set[str]:
    """Return our files in which `word` stands on its own."""
    pattern = re.compile(rf"(?<![\w-]){word}(?![\w-])")
    suffixes = (".py", ".js", ".html")
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and pattern.search(path.read_text(encoding="utf-8"))
    }


def test_an_option_is_a_field_and_a_line_of_the_table_and_nothing_in_a_script() -> None:
    """The command line, pages and forms are made from the line, and models are printed.

    The tested option is one for which no figure and no advice has special code.
    """
    found = named_in("overlap_data_parallel", "figgen", "docs")
    at_work = {file for file in found if file.startswith("figgen/models/")}
    assert "figgen/models/setup/training_setup.py" in at_work
    # What frameworks call it is read from their files besides, and written into them.
    written = {file for file in found if file.startswith("figgen/scenarios/writing/")}
    assert found - at_work - written == {
        "figgen/scenarios/options/schema_step.py",
        "figgen/scenarios/taking/switches.py",
    }


def test_a_figure_is_named_where_it_is_written_and_in_fences() -> None:
    """Generated pages have their fences in `generated`, and `api.py` has an example that runs."""
    declared = re.compile(r'@figure\(\s*"([\w-]+)"')
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "figgen").rglob("*.py")}
    names = [name for text in texts.values() for name in declared.findall(text)]
    assert len(names) == len(set(names)) > 150
    elsewhere = {
        (name, path.relative_to(ROOT).as_posix())
        for path, text in texts.items()
        if "generated" not in path.parts and path.name != "api.py"
        for name in set(re.findall(r'"([\w-]+)"', text)) & (set(names) - HOMONYMS)
        if f'@figure("{name}"' not in text
    }
    assert elsewhere == set()


UNFINISHED = "figgen/models/step/"
"""The room whose records may still be constructed with positional arguments."""
PYTHON = sorted(
    path
    for folder in ("figgen", "hooks", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in path.parts
)
LITERAL = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.BinOp)
DISPLAY = (ast.Tuple, ast.List, ast.Set, ast.Dict)


def positional_records(tree: ast.Module) -> list[str]:
    """Return dataclasses of more than three fields whose constructors accept positional
    arguments."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(
            "dataclass" in ast.unparse(decorator) and "kw_only=True" not in ast.unparse(decorator)
            for decorator in node.decorator_list
        )
        and sum(
            isinstance(line, ast.AnnAssign)
            and "ClassVar" not in ast.unparse(line.annotation)
            and "init=False" not in ast.unparse(line)
            for line in node.body
        )
        > 3
    ]


def unformatted(text: str) -> list[int]:
    """Return lines that turn the formatter off for something other than a table of literals."""
    if "# fmt: skip" not in text:
        return []
    tables = {
        node.end_lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, DISPLAY) and node.lineno < (node.end_lineno or 0) and is_literal(node)
    }
    lines = enumerate(text.splitlines(), 1)
    return [at for at, line in lines if line.endswith("# fmt: skip") and at not in tables]


def is_literal(node: ast.expr) -> bool:
    """Return whether a display contains nothing but constants, names and arithmetic with them."""
    if isinstance(node, ast.Dict):
        return all(is_literal(item) for item in (*filter(None, node.keys), *node.values))
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(is_literal(item) for item in node.elts)
    return isinstance(node, LITERAL)


def test_records_of_more_than_three_fields_are_made_by_keyword() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in PYTHON}
    positional = {
        file: names
        for file, text in texts.items()
        if "dataclass" in text  # to parse every file takes seconds
        and (names := positional_records(ast.parse(text)))
        and not file.startswith(UNFINISHED)
    }
    assert positional == {}
    four = "@dataclass(frozen=True)\nclass Box:\n    a: int\n    b: int\n    c: int\n    d: int\n"
    assert positional_records(ast.parse(four)) == ["Box"]
    assert positional_records(ast.parse(four.replace("True)", "True, kw_only=True)"))) == []


def test_the_formatter_is_switched_off_for_tables_of_literals_alone() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in PYTHON}
    lines = {file: found for file, text in texts.items() if (found := unformatted(text))}
    assert sum(map(len, lines.values())) <= 118, lines
    switch = "  # fmt: skip\n"
    assert unformatted(f"a = (\n    (1, 2), (3, 4),\n){switch}") == []
    assert unformatted(f"a = f(\n    (1, 2), (3, 4),\n){switch}") == [3]


def test_contributing_is_read_in_a_few_minutes() -> None:
    """A new rule replaces or shortens an old one: the file has at most 9,000 bytes."""
    assert CONTRIBUTING.stat().st_size <= 9000
