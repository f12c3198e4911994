"""Attribute the numbers that moved to the inputs that changed.

If only one catalog entry changed, it explains everything. If several did, the base is rebuilt with
each of them alone, and the numbers that move are attributed to it. The rest is attributed to code,
data files, texts and libraries.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from figgen.changes.builds import build_of, checkout, git, make_site, read_build
from figgen.changes.compare import Changes, moved
from figgen.changes.sources import catalog_files

MOST_TRIALS = 6


@dataclass(frozen=True, slots=True)
class Cause:
    """A changed input, in words, and the keys of the numbers that it moves."""

    what: str
    keys: frozenset[str]


def causes(changes: Changes, root: Path | None, base: str, head: str) -> tuple[Cause, ...]:
    """Group the numbers of `changes` by cause; a number may have several causes.

    Without a repository, or with more than `MOST_TRIALS` changed entries, all are one cause.
    """
    everything = frozenset(number.key for number in changes.numbers)
    entries = _changed_entries(changes.inputs)
    others = _other_inputs(changes.inputs)
    if not everything:
        return ()
    if not entries:
        return (Cause(others or "nothing that a manifest records", everything),)
    if len(entries) == 1 and not others:
        return (Cause(_described(entries[0], changes.inputs), everything),)
    if root is None or len(entries) > MOST_TRIALS:
        described = [_described(entry, changes.inputs) for entry in entries]
        if len(entries) > MOST_TRIALS:
            described = [_listed("catalog entry", [": ".join(entry) for entry in entries])]
        return (Cause("; ".join([*described, *filter(None, [others])]), everything),)
    found = [
        Cause(_described(entry, changes.inputs), _moved_by(root, base, head, entry) & everything)
        for entry in entries
    ]
    rest = everything.difference(*(cause.keys for cause in found))
    return (*found, *([Cause(others or "several of these together", rest)] if rest else []))


def _changed_entries(inputs: Mapping[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """Return file and entry of every catalog value that changed."""
    found = (re.match(r"catalog: (.+?\.toml)/([^/]+)", name) for name in inputs)
    return sorted({(entry[1], entry[2]) for entry in found if entry})


def _other_inputs(inputs: Mapping[str, tuple[str, str]]) -> str:
    words = []
    kinds = {"code": "file of code", "data": "data file", "pages": "text", "libraries": "library"}
    for kind, singular in kinds.items():
        names = [n.partition(": ")[2] for n in inputs if n.startswith(f"{kind}: ")]
        if names:
            words.append(_listed(singular, names))
    return "; ".join(words)


def _listed(singular: str, names: list[str]) -> str:
    """Return, for example, `7 × file of code: a.py, b.py, c.py …`."""
    return f"{len(names)} × {singular}: {', '.join(names[:3])}{' …' * (len(names) > 3)}"


def _described(entry: tuple[str, str], inputs: Mapping[str, tuple[str, str]]) -> str:
    """Return, for example, `accelerators.toml, h100: hbm_bandwidth 3.35 TB/s → 3 TB/s`."""
    begin = f"catalog: {entry[0]}/{entry[1]}/"
    values = [
        f"{name.removeprefix(begin)} {old or '(absent)'} → {new or '(absent)'}"
        for name, (old, new) in inputs.items()
        if name.startswith(begin)
    ]
    return f"{entry[0]}, {entry[1]}: {', '.join(values[:4])}"


def _moved_by(root: Path, base: str, head: str, entry: tuple[str, str]) -> frozenset[str]:
    """Return the keys of the numbers that move if only this entry is as in `head`."""
    file, name = entry
    path = _path_of(root, file)
    if path is None or not all(_has(root, revision, path) for revision in (base, head)):
        return frozenset()
    new = (root / path).read_text("utf-8") if head == "." else git(root, "show", f"{head}:./{path}")
    with checkout(root, base) as tree, tempfile.TemporaryDirectory() as folder:
        old = tree / path
        old.write_text(_with_entry(old.read_text("utf-8"), new + "\n", name), encoding="utf-8")
        make_site(root, tree, Path(folder) / "trial")
        found = moved(build_of(root, base), read_build(Path(folder) / "trial"))
        return frozenset(number.key for number in found)


def _path_of(root: Path, file: str) -> str | None:
    """Return a catalog file's path in the repository; None if it lies elsewhere."""
    path = catalog_files().get(file)
    if path is None or not path.resolve().is_relative_to(root.resolve()):
        return None
    return path.resolve().relative_to(root.resolve()).as_posix()


def _has(root: Path, revision: str, path: str) -> bool:
    """Return whether a revision has a file."""
    if revision == ".":
        return (root / path).is_file()
    return bool(git(root, "ls-tree", "--name-only", revision, "--", path))


def _stanza(text: str, name: str) -> tuple[int, int]:
    """Return start and end of a table and its subtables in TOML; they are equal if it is absent."""
    header = re.compile(rf'^\[\[?"?{re.escape(name)}"?[\].]', re.M)
    begins = [match.start() for match in header.finditer(text)]
    if not begins:
        return len(text), len(text)
    after = re.compile(r"^\[", re.M)
    end = next(
        (m.start() for m in after.finditer(text, begins[0] + 1) if m.start() not in begins),
        len(text),
    )
    return begins[0], end


def _with_entry(old: str, new: str, name: str) -> str:
    """Return the TOML text `old` with the table `name` taken from `new`."""
    begin, end = _stanza(old, name)
    new_begin, new_end = _stanza(new, name)
    return f"{old[:begin].rstrip()}\n\n{new[new_begin:new_end].rstrip()}\n\n{old[end:]}"
