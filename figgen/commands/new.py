"""new: write stubs of a formula, figure, preset, accelerator or page, with test and oracle.

Names are checked against the checkout that is written to. Everything is checked and shown before
anything is written; TODO marks what the author has to fill in.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from figgen.commands import Answer, Verbs, add_verb
from figgen.errors import InputError, unknown

STUBS = Path(__file__).with_name("stubs")
ORACLES = "tests/oracles"
FORMULAS, CATALOG = "figgen/formulas", "figgen/catalog"
WORD = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class StubFiles:
    """The texts that a stub writes, by path: new files, and existing files with added lines."""

    new: dict[str, str]
    longer: dict[str, str] = field(default_factory=dict)


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    new = add_verb(
        verbs,
        "new",
        _new,
        "write the stubs of a contribution and its test",
        "formula gather_time --in data_parallel",
        "figure gather-steps --in zero",
        "preset map-48",
        "accelerator h400-sxm",
        "page guide/stragglers",
    )
    new.add_argument("kind", help=", ".join(STUB_MAKERS))
    new.add_argument("name")
    new.add_argument(
        "--in", dest="room", default="", help="module or folder that the new thing belongs to"
    )
    new.add_argument("--root", type=Path, default=Path(), help="the project's folder")
    new.add_argument(
        "--dry-run", action="store_true", help="print what would be written, and write nothing"
    )


def _new(options: argparse.Namespace) -> Answer:
    if options.kind not in STUB_MAKERS:
        raise unknown("kind", options.kind, STUB_MAKERS)
    if not (options.root / "figgen" / "catalog").is_dir():
        raise InputError(
            "figgen new adds to the guide on distributed training",
            expected="the project's folder; on a site of your own, write in the site's module",
            got=str(options.root),
        )
    changes: StubFiles = STUB_MAKERS[options.kind](options.root, options.name, options.room)
    for path in changes.new:
        if (options.root / path).exists():
            raise InputError(f"{path} exists already", expected="a different name")
    plan = [
        *(f"new file {path}" for path in changes.new),
        *(
            f"{_lines_more(options.root / path, text)} in {path}"
            for path, text in changes.longer.items()
        ),
    ]
    written = [*changes.new, *changes.longer]
    if options.dry_run:
        return Answer({"would_write": written}, "\n".join([*plan, "nothing is written"]))
    print("\n".join(plan), file=sys.stderr, flush=True)
    for path, text in (changes.new | changes.longer).items():
        target = options.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    after = "fill in every TODO, then run make golden, make check and make test"
    return Answer({"wrote": written}, f"wrote {len(written)} files\n{after}")


def _lines_more(path: Path, text: str) -> str:
    count = text.count("\n") - path.read_text(encoding="utf-8").count("\n")
    return f"{count} more lines" if count > 1 else "one more line"


def _formula(root: Path, name: str, room: str) -> StubFiles:
    sources = {path.stem: _text(path) for path in (root / FORMULAS).glob("*.py")}
    topics = [topic for topic, text in sources.items() if "\n@formula(" in text]
    taken = [found for text in sources.values() for found in re.findall(r"(?m)^def (\w+)\(", text)]
    _check_name("formula", name, WORD, taken, "words joined by _, as in ring_all_reduce_time")
    _check_room(room, topics)
    module, points = f"{FORMULAS}/{room}.py", f"{FORMULAS}/points.json"
    words = {"name": name, "symbol": name.split("_")[0]}
    test = f"tests/formulas/test_{name}.py"
    return StubFiles(
        new={
            test: _stub("formula_test.py", words),
            f"{ORACLES}/{name}.json": _stub("oracle.json", words),
        },
        longer={
            module: _after(root / module, _stub("formula.py", words)),
            points: _with_point(root / points, name),
            **_listed(root, f"{name}.json points", f"{test}::test_{name}_is_what_was_published"),
        },
    )


def _figure(root: Path, name: str, room: str) -> StubFiles:
    figures = root / "figgen" / "figures"
    folders = [path.parent.name for path in figures.glob("*/__init__.py")]
    taken = [
        found
        for path in figures.rglob("*.py")
        for found in re.findall(r'@figure\(\s*"([\w-]+)"', _text(path))
    ]
    _check_name("figure", name, NAME, taken, "words joined by -, as in ring-steps")
    _check_room(room, folders)
    function = name.replace("-", "_")
    words = {"name": name, "function": function}
    return StubFiles(
        new={
            f"figgen/figures/{room}/{function}.py": _stub("figure.py", words),
            f"tests/figures/test_{function}_figure.py": _stub("figure_test.py", words),
        }
    )


def _preset(root: Path, name: str, room: str) -> StubFiles:
    taken = _entries(root, "presets")
    _check_name("preset", name, NAME, taken, "words joined by -, as in map-64")
    printed = '"nodes": 1, "gpus_per_node": 8, "tp": 8, "pp": 1, "dp": 1'
    return _entry(root, "preset", name, "PRESETS", printed)


def _accelerator(root: Path, name: str, room: str) -> StubFiles:
    taken = _entries(root, "accelerators")
    _check_name("accelerator", name, NAME, taken, "words joined by -, as in h100-sxm-80gb")
    return _entry(root, "accelerator", name, "ACCELERATORS", '"year": 2026, "scale_up_domain": 8')


def _entries(root: Path, file: str) -> list[str]:
    """Return the names of the entries of a catalog file."""
    return list(tomllib.loads(_text(root / CATALOG / f"{file}.toml")))


def _entry(root: Path, kind: str, name: str, table: str, printed: str) -> StubFiles:
    if name in _entries(root, "sources"):
        raise InputError(f"{name!r} is the name of a source", expected="a different name")
    function = name.replace("-", "_")
    words = {
        "name": name,
        "function": function,
        "kind": kind,
        "table": table,
        "printed": printed,
        "file": f"{kind}_{function}",
        "month": f"{datetime.now(UTC):%Y-%m}",
    }
    data, sources = f"{CATALOG}/{kind}s.toml", f"{CATALOG}/sources.toml"
    test = f"tests/catalog/test_{kind}_{function}.py"
    return StubFiles(
        new={
            test: _stub("entry_test.py", words),
            f"{ORACLES}/{words['file']}.json": _stub("entry_oracle.json", words),
        },
        longer={
            data: _after(root / data, _stub(f"{kind}.toml", words)),
            sources: _after(root / sources, _stub("source.toml", words)),
            **_listed(
                root,
                f"{words['file']}.json printed",
                f"{test}::test_{function}_is_what_its_source_prints",
            ),
        },
    )


def _page(root: Path, name: str, room: str) -> StubFiles:
    folder, _, own = name.rpartition("/")
    docs, nav = root / "docs", _text(root / "mkdocs.yml")
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
    return StubFiles(
        new={f"docs/{name}.md": _stub("page.md", {"title": title})},
        longer={"mkdocs.yml": f"{nav[:at]}{indent}- {title}: {name}.md\n{nav[at:]}"},
    )


STUB_MAKERS: Mapping[str, Callable[[Path, str, str], StubFiles]] = {
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
        raise InputError(f"there is a {kind} {name!r} already", expected="a different name")


def _check_room(room: str, rooms: Collection[str]) -> None:
    if room not in rooms:
        raise unknown("--in", room, rooms)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _stub(file: str, words: Mapping[str, str]) -> str:
    text = _text(STUBS / f"{file}.txt")
    return re.sub(r"%([a-z]+)", lambda found: words[found[1]], text)


def _after(path: Path, stub: str) -> str:
    return _text(path).rstrip("\n") + "\n" + stub


def _with_point(path: Path, name: str) -> str:
    """Return the test points with one more, for the stub's expression."""
    text, end = _text(path), "\n]\n}\n"
    if not text.endswith(end):
        raise InputError(str(path), expected="lines of ] and } at its end")
    rows = text.removesuffix(end)
    given = {"message_bytes": 8, "bandwidth_bytes_per_s": 2}
    row = {"formula": name, "arguments": given, "value": 4, "expression": "TODO: whose sum"}
    return f"{rows},\n{json.dumps(row)}{end}"


def _listed(root: Path, part: str, test: str) -> dict[str, str]:
    """Return the list of oracles with one more row."""
    path = root / ORACLES / "README.md"
    row = f"| {part} | {test} | TODO how closely | TODO why not more closely |\n"
    return {f"{ORACLES}/README.md": _text(path).rstrip("\n") + f"\n{row}"}
