"""The picture of who imports whom, in CONTRIBUTING.md, is that of the code; no two rooms circle."""

from __future__ import annotations

import re

import pytest

from tests.test_layers import ROOT, SOURCES, imports, module_of

Rooms = dict[str, set[str]]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
FENCED = re.compile(r"(<!-- rooms -->\n```\n)(.*?)(```\n<!-- /rooms -->)", re.S)


def rooms() -> Rooms:
    """Every folder and file directly in `figgen`, the hooks, and the rooms that each imports."""
    found: Rooms = {}
    for path in SOURCES:
        inside = path.relative_to(ROOT)
        room = room_of(module_of(inside))
        if room:
            named = (room_of(name) for _, name in imports(inside, path.read_text(encoding="utf-8")))
            found.setdefault(room, set()).update(other for other in named if other)
    for room, others in found.items():
        others.discard(room)
    return found


def room_of(module: str) -> str:
    """`models` for `figgen.models.machine.mesh`, `hooks` for a hook, "" for what is not ours."""
    first, _, rest = module.partition(".")
    return {"figgen": rest.partition(".")[0], "hooks": "hooks"}.get(first, "")


def reach(found: Rooms, room: str) -> set[str]:
    """All rooms below this one."""
    below: set[str] = set()
    open_ends = list(found.get(room, ()))
    while open_ends:
        other = open_ends.pop()
        if other not in below:
            below.add(other)
            open_ends += found.get(other, ())
    return below


def picture() -> str:
    """Floors of rooms, the top one first; each with what it imports that no other brings along."""
    found = rooms()
    below = {room: reach(found, room) for room in found}
    floors: dict[str, int] = {}
    for room in sorted(found, key=lambda room: len(below[room])):
        floors[room] = 1 + max((floors[other] for other in found[room]), default=0)
    lines = []
    for room in sorted(found, key=lambda room: (-floors[room], room)):
        near = {
            other
            for other in found[room]
            if not any(other in below[beside] for beside in found[room] - {other})
        }
        lines.append(f"{floors[room]:2}  {room:10} ─► {' '.join(sorted(near))}".rstrip(" ─►"))
    return "\n".join(lines) + "\n"


def test_no_room_imports_what_imports_it() -> None:
    found = rooms()
    assert {room for room in found if room in reach(found, room)} == set()


@pytest.mark.golden
def test_the_picture_in_contributing_is_that_of_the_code(pytestconfig: pytest.Config) -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    assert len(FENCED.findall(text)) == 1
    if pytestconfig.getoption("--update-golden"):
        CONTRIBUTING.write_text(FENCED.sub(rf"\g<1>{picture()}\g<3>", text), encoding="utf-8")
        return
    shown = FENCED.search(text)
    assert shown
    assert shown[2] == picture(), "pytest tests/test_house.py --update-golden draws it anew"


HOMONYMS = {"double-binary-tree", "oversubscription"}
"""Figures that go by the name of an algorithm, and of an argument."""


def named_in(word: str, *folders: str) -> set[str]:
    """Files of ours in which `word` stands by itself."""
    pattern = re.compile(rf"(?<![\w-]){word}(?![\w-])")
    suffixes = (".py", ".js", ".html")
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and pattern.search(path.read_text(encoding="utf-8"))
    }


def test_an_option_is_a_field_a_line_of_the_table_and_its_mirror() -> None:
    """It stood in 14 places before; the command line, pages and forms are made from the line.

    An option of which no figure and no advice has anything to say of its own.
    """
    found = named_in("overlap_data_parallel", "figgen", "docs")
    effects = ("figgen/models/", "docs/assets/javascripts/engine/")
    at_work = {file for file in found if file.startswith(effects)}
    assert "figgen/models/setup/training_setup.py" in at_work
    assert any(file.endswith(".js") for file in at_work)
    # What frameworks call it is read from their files besides.
    assert found - at_work == {
        "figgen/scenarios/options/schema.py",
        "figgen/scenarios/taking/state.py",
    }


def test_a_figure_is_named_where_it_is_written_and_in_fences() -> None:
    """Pages that nobody writes have fences in `generated`, and the agreement of numbers a table."""
    declared = re.compile(r'@figure\(\s*"([\w-]+)"')
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "figgen").rglob("*.py")}
    names = [name for text in texts.values() for name in declared.findall(text)]
    assert len(names) == len(set(names)) > 150
    elsewhere = {
        (name, path.relative_to(ROOT).as_posix())
        for path, text in texts.items()
        if "generated" not in path.parts
        for name in set(re.findall(r'"([\w-]+)"', text)) & (set(names) - HOMONYMS)
        if f'@figure("{name}"' not in text
    }
    assert elsewhere == set()
