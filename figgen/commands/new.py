"""new: the stubs of a formula, a figure, a preset, an accelerator or a page, with test and oracle.

Everything is checked before anything is written, and what is to be filled in says TODO.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from figgen.commands import Answer, add_verb
from figgen.errors import InputError, unknown

if TYPE_CHECKING:
    from figgen.commands import Verbs

STUBS = Path(__file__).with_name("stubs")
ORACLES = "tests/oracles"
POINTS = "figgen/formulas/points.json"
WORD = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    new = add_verb(
        verbs, "new", _new, "stubs of something new, with its test and its oracle",
        "formula gather_time --in data_parallel", "figure gather-steps --in zero",
        "preset map-48", "accelerator h400-sxm", "page guide/stragglers",
    )  # fmt: skip
    new.add_argument("kind", help=", ".join(KINDS))
    new.add_argument("name")
    new.add_argument("--in", dest="room", default="", help="the module or folder it belongs to")
    new.add_argument("--root", type=Path, default=Path(), help="the project's folder")


def _new(options: argparse.Namespace) -> Answer:
    if options.kind not in KINDS:
        raise unknown("kind", options.kind, KINDS)
    if not (options.root / "figgen" / "catalog").is_dir():
        raise InputError("root", expected="the project's folder", got=str(options.root))
    written: Mapping[str, str] = KINDS[options.kind](options.root, options.name, options.room)
    for path, text in written.items():
        target = options.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    lines = [f"wrote {path}" for path in written]
    after = "fill in every TODO, then: make golden, make check, make test"
    return Answer({"wrote": list(written)}, "\n".join([*lines, after]))


def _formula(root: Path, name: str, room: str) -> dict[str, str]:
    from figgen.formulas import FORMULAS, TOPICS

    topics = [topic.__name__.rpartition(".")[2] for topic in TOPICS]
    _check_name("formula", name, WORD, FORMULAS, "words joined by _, as in ring_all_reduce_time")
    _check_room(room, topics)
    module, words = f"figgen/formulas/{room}.py", {"name": name, "symbol": name.split("_")[0]}
    return {
        module: _after(root / module, _stub("formula.py", words)),
        f"tests/formulas/test_{name}.py": _stub("formula_test.py", words),
        f"{ORACLES}/{name}.json": _stub("oracle.json", words),
        POINTS: _with_point(root / POINTS, name),
        **_listed(root, f"{name}.json points",
                  f"tests/formulas/test_{name}.py::test_{name}_is_what_was_published"),
    }  # fmt: skip


def _figure(root: Path, name: str, room: str) -> dict[str, str]:
    from figgen.registry import all_figures

    folders = [path.parent.name for path in (root / "figgen" / "figures").glob("*/__init__.py")]
    _check_name("figure", name, NAME, all_figures(), "words joined by -, as in ring-steps")
    _check_room(room, folders)
    function = name.replace("-", "_")
    words = {"name": name, "function": function}
    module = f"figgen/figures/{room}/{function}.py"
    if (root / module).exists():
        raise InputError(f"{module} is there already", expected="another name")
    return {
        module: _stub("figure.py", words),
        f"tests/figures/test_{function}_figure.py": _stub("figure_test.py", words),
    }


def _preset(root: Path, name: str, room: str) -> dict[str, str]:
    from figgen import catalog

    _check_name("preset", name, NAME, catalog.PRESETS, "words joined by -, as in map-64")
    printed = '"nodes": 1, "gpus_per_node": 8, "tp": 8, "pp": 1, "dp": 1'
    return _entry(root, "preset", name, "PRESETS", printed)


def _accelerator(root: Path, name: str, room: str) -> dict[str, str]:
    from figgen import catalog

    known = catalog.ACCELERATORS
    _check_name("accelerator", name, NAME, known, "words joined by -, as in h100-sxm-80gb")
    return _entry(root, "accelerator", name, "ACCELERATORS", '"year": 2026, "scale_up_domain": 8')


def _entry(root: Path, kind: str, name: str, table: str, printed: str) -> dict[str, str]:
    from figgen import catalog

    if name in catalog.SOURCES:
        raise InputError(f"{name!r} is the name of a source", expected="another name")
    function = name.replace("-", "_")
    words = {"name": name, "function": function, "kind": kind, "table": table, "printed": printed,
             "file": f"{kind}_{function}", "month": f"{datetime.now(UTC):%Y-%m}"}  # fmt: skip
    data, sources = f"figgen/catalog/{kind}s.toml", "figgen/catalog/sources.toml"
    test = f"tests/catalog/test_{kind}_{function}.py"
    return {
        data: _after(root / data, _stub(f"{kind}.toml", words)),
        sources: _after(root / sources, _stub("source.toml", words)),
        test: _stub("entry_test.py", words),
        f"{ORACLES}/{words['file']}.json": _stub("entry_oracle.json", words),
        **_listed(root, f"{words['file']}.json printed",
                  f"{test}::test_{function}_is_what_its_source_prints"),
    }  # fmt: skip


def _page(root: Path, name: str, room: str) -> dict[str, str]:
    folder, _, own = name.rpartition("/")
    docs, nav = root / "docs", (root / "mkdocs.yml").read_text(encoding="utf-8")
    parts = sorted(
        {path.split("/")[0] for path in re.findall(r": ([\w-]+/[\w-]+)\.md$", nav, re.M)}
    )
    if folder not in parts:
        raise InputError("page", expected=f"PART/NAME with a part of {', '.join(parts)}", got=name)
    there = [path.stem for path in (docs / folder).glob("*.md")]
    _check_name("page", own, NAME, there, "words joined by -, as in guide/ring-all-reduce")
    title = own.replace("-", " ").capitalize()
    entries = list(re.finditer(rf"^( *)- [^\n]*: {folder}/[\w-]+\.md\n", nav, re.M))
    at, indent = entries[-1].end(), entries[-1][1]
    return {
        f"docs/{name}.md": _stub("page.md", {"title": title}),
        "mkdocs.yml": f"{nav[:at]}{indent}- {title}: {name}.md\n{nav[at:]}",
    }


KINDS: Mapping[str, Callable[[Path, str, str], dict[str, str]]] = {
    "formula": _formula,
    "figure": _figure,
    "preset": _preset,
    "accelerator": _accelerator,
    "page": _page,
}


def _check_name(
    kind: str, name: str, form: re.Pattern[str], known: Collection[str], expected: str
) -> None:
    if not form.fullmatch(name) or keyword.iskeyword(name):
        wished = re.sub(r"[^a-z0-9]+", "_" if form is WORD else "-", name.lower()).strip("_-")
        nearest = (wished,) if form.fullmatch(wished) and wished not in known else ()
        raise InputError(f"name of a {kind}", expected=expected, got=name, nearest=nearest)
    if name in known:
        raise InputError(f"there is a {kind} {name!r} already", expected="another name")


def _check_room(room: str, rooms: Collection[str]) -> None:
    if room not in rooms:
        raise unknown("--in", room, rooms)


def _stub(file: str, words: Mapping[str, str]) -> str:
    text = (STUBS / f"{file}.txt").read_text(encoding="utf-8")
    return re.sub(r"%([a-z]+)", lambda found: words[found[1]], text)


def _after(path: Path, stub: str) -> str:
    return path.read_text(encoding="utf-8").rstrip("\n") + "\n" + stub


def _with_point(path: Path, name: str) -> str:
    """The test points with one more, that of the stub's expression."""
    text, end = path.read_text(encoding="utf-8"), "\n]\n}\n"
    if not text.endswith(end):
        raise InputError(str(path), expected="lines of ] and } at its end")
    rows = text.removesuffix(end)
    given = {"message_bytes": 8, "bandwidth_bytes_per_s": 2}
    row = {"formula": name, "arguments": given, "value": 4, "expression": "TODO: whose sum"}
    return f"{rows},\n{json.dumps(row)}{end}"


def _listed(root: Path, part: str, test: str) -> dict[str, str]:
    """The list of oracles with one more row."""
    path = root / ORACLES / "README.md"
    row = f"| {part} | {test} | TODO how closely | TODO why not more closely |\n"
    return {f"{ORACLES}/README.md": path.read_text(encoding="utf-8").rstrip("\n") + f"\n{row}"}
