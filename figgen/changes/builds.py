"""Read a build's manifest from a site, or build the site of a git revision.

A manifest can come from a fork: the type of every field is checked, and its length is limited.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from figgen.cache import digest
from figgen.errors import InputError, unknown
from figgen.project import site_of

MANIFEST, SOURCES = "figures.json", "sources.json"
LONGEST = 400
MOST_BYTES = 64 * 2**20
KEPT_BUILDS = 4
LOCK = "requirements.txt"
PACKAGE, DISTRIBUTION = Path(__file__).parents[1], "mkdocs-figgen"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestNumber:
    """One number as readers see it; `name` is its call, or the name of a figure's value.

    `formula` is the formula in symbols, if the number comes from one.
    """

    page: str
    line: int
    name: str
    shown: str
    value: float | str
    unit: str
    formula: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFigure:
    """One figure: digests of its data and of its picture, and the picture's file in the site."""

    page: str
    line: int
    id: str
    number: str
    function: str
    data: str
    picture: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A build: its numbers by a key that survives inserted lines, figures, sources and files."""

    name: str
    numbers: Mapping[str, ManifestNumber]
    figures: Mapping[str, ManifestFigure]
    sources: Mapping[str, Mapping[str, str]]
    folder: Path | None


def read_build(path: Path, name: str = "") -> Build:
    """Read a build from a site's folder or from a manifest.  Raises InputError for other files."""
    folder = path if path.is_dir() else None
    manifest = path / MANIFEST if folder else path
    entries = _json(manifest)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(str(manifest), expected="a list of figures and numbers")
    beside = manifest.with_name(SOURCES)
    return Build(
        name=name or str(path),
        numbers=_numbers(entries),
        figures={f"{f.page}#{f.id}": f for f in _figures(entries, folder)},
        sources=_sources(_json(beside) if beside.is_file() else {}),
        folder=folder,
    )


def _json(path: Path) -> Any:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(str(path), expected=f"at most {MOST_BYTES:,} bytes")
        return json.loads(path.read_text(encoding="utf-8"), parse_int=_whole)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {type(error).__name__}") from None


def _whole(digits: str) -> float:
    """Return a whole number, or infinity if it is beyond the range of a float."""
    return int(digits) if len(digits) < 300 else float(digits)


def _text(value: object) -> str:
    """Return a shortened string that UTF-8 can encode, without lone surrogates."""
    return value[:LONGEST].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _value(value: object) -> float | str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return _text(value)


def _place(entry: Mapping[str, Any]) -> tuple[str, int]:
    page, _, line = _text(entry.get("where")).rpartition(":")
    return page, int(line) if line.isdecimal() and len(line) < 9 else 0


def _numbers(entries: list[dict[str, Any]]) -> dict[str, ManifestNumber]:
    """Return inline numbers by page, call and occurrence, and figures' values by id and name."""
    found: dict[str, ManifestNumber] = {}
    seen: dict[str, int] = {}
    for entry in sorted(entries, key=_place):
        page, line = _place(entry)
        if "call" in entry:
            name = _text(entry["call"])
            key = f"{page}: {name}"
            seen[key] = seen.get(key, 0) + 1
            found[f"{key} {seen[key]}"] = ManifestNumber(
                page=page,
                line=line,
                name=name,
                shown=_text(entry.get("shown")),
                value=_value(entry.get("value")),
                unit=_text(entry.get("unit")),
                formula=_text(entry.get("formula")),
            )
            continue
        values = entry.get("values")
        for name, pair in values.items() if isinstance(values, dict) else ():
            if isinstance(pair, list) and len(pair) == 2:
                value, unit, shown = _value(pair[0]), _text(pair[1]), _figures_value(pair)
                what = f"{_text(entry.get('id'))}: {_text(name)}"
                found[f"{page}#{what}"] = ManifestNumber(
                    page=page, line=line, name=what, shown=shown, value=value, unit=unit
                )
    return found


def _figures_value(pair: list[Any]) -> str:
    from figgen.units import format_quantity

    value, unit = _value(pair[0]), _text(pair[1])
    if isinstance(value, str):
        return value
    try:
        return format_quantity(value, unit, "")
    except InputError:
        return f"{value:.6g} {unit}"


def _figures(entries: list[dict[str, Any]], folder: Path | None) -> Iterator[ManifestFigure]:
    for entry in entries:
        if "figure" not in entry:
            continue
        (page, line), name = _place(entry), _text(entry.get("id"))
        file = _picture_file(page, name)
        picture, there = _text(entry.get("picture_sha256")), False
        if folder and file and (there := is_file(folder / file)):
            picture = digest((folder / file).read_text(encoding="utf-8", errors="replace"))
        yield ManifestFigure(
            page=page,
            line=line,
            id=name,
            number=_text(entry.get("number")),
            function=_text(entry.get("figure")),
            data=_text(entry.get("data_sha256")),
            picture=picture,
            file=file if there else "",
        )


def _picture_file(page: str, name: str) -> str:
    """Return the path of a figure's picture in a site; "" if the page's path leaves the site."""
    parts = PurePosixPath(page.removesuffix(".md")).parts
    if not parts or {"..", "/"} & {*parts, name[:1]} or "/" in name:
        return ""
    where = parts[:-1] if parts[-1] == "index" and parts[1:] else parts
    return str(PurePosixPath("assets/figures", *where, f"{name}.svg"))


def is_file(path: Path) -> bool:
    """Return whether a file exists; False for names that the system rejects."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _sources(found: Any) -> dict[str, dict[str, str]]:
    if not isinstance(found, dict):
        return {}
    return {
        kind: {_text(name): _text(value) for name, value in about.items()}
        for kind, about in found.items()
        if isinstance(about, dict)
    }


def git(root: Path, *words: str) -> str:
    """Return the output of a git command. Raises InputError with git's message if it fails."""
    ran = _ran(["git", "-C", str(root), *words])
    if ran.returncode:
        raise InputError(f"git {words[0]}: {ran.stderr.strip()}")
    return ran.stdout.strip()


def _ran(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command and decode its output as UTF-8, whatever the locale."""
    return subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace", **options)


def commit_of(root: Path, revision: str) -> str:
    """Return the commit that a revision names. Raises InputError with the repository's names."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return git(root, *words)
    except InputError:
        names = git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags")
        if not names:
            what = "the repository has no commit to compare with"
            raise InputError(what, expected="git commit first") from None
        raise unknown("revision", revision[:LONGEST], names.splitlines()) from None


@contextmanager
def checkout(root: Path, revision: str) -> Iterator[Path]:
    """Check out a revision in a temporary work tree; yield the folder that is `root` there.

    Raises InputError if the revision has no such folder.
    """
    commit = commit_of(root, revision)
    inside = git(root, "rev-parse", "--show-prefix")
    with tempfile.TemporaryDirectory(prefix="figgen-diff-") as folder:
        tree = Path(folder) / "tree"
        git(root, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            if not (tree / inside).is_dir():
                raise InputError(f"revision {revision}", expected=f"one with the folder {inside}")
            yield tree / inside
        finally:
            git(root, "worktree", "remove", "--force", str(tree))


def make_site(root: Path, tree: Path, to: Path) -> None:
    """Build the site in `tree`, which is `root` of a revision, with the program that it is for.

    Raises InputError with the build's last lines.
    """
    cache, python = root / ".cache/figgen", interpreter(root, tree)
    # A revision may have moved from one host to the other, or had the plug-in not yet.
    sites = [site for site in map(site_of, (tree, root)) if site]
    found = [site for site in sites if (tree / site.configuration.name).is_file()]
    if not found:
        raise InputError(f"the build of {to.name}", expected="a site's configuration in its folder")
    words = [python, "-m", found[0].host, "build", "--config-file", found[0].configuration.name]
    words += ["--strict", "--site-dir", str(to)]
    environment = {**os.environ, "FIGGEN_CACHE": str(cache), "NO_MKDOCS_2_WARNING": "1"}
    _run(f"the build of {to.name}", words, tree, environment)


def interpreter(root: Path, tree: Path) -> str:
    """Return the Python that builds a work tree: this one, or one with its locked versions.

    Different locked versions can move numbers too, which builds with the same libraries would hide.
    A lock has hashes; one of a site of its own must also have this package, which builds it.
    Raises InputError with the last lines of a failed installation.
    """
    ours, its = (folder / LOCK for folder in (root, tree))
    guide = root == PACKAGE.parent
    text = its.read_text(encoding="utf-8") if its.is_file() else ""
    locks = "--hash=" in text and (guide or DISTRIBUTION in text)
    if not locks or (ours.is_file() and ours.read_text(encoding="utf-8") == text):
        return sys.executable
    place = root / ".cache/environments" / digest(text)[:16]
    python, ready = str(place / "bin/python"), place / "ready"
    if not ready.is_file():
        # With our pip: installing another one takes longer than creating the environment.
        install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        for words in (
            [sys.executable, "-m", "venv", "--clear", "--without-pip", str(place)],
            [*install, "--no-deps", "--require-hashes", "-r", str(its)],
            *[[*install, "--no-deps", "--no-build-isolation", "-e", str(root)]] * guide,
        ):
            _run(f"installing the versions in {LOCK} of the other revision", words, tree)
        ready.touch()
    return python


def _run(
    what: str, words: list[str], where: Path, environment: Mapping[str, str] | None = None
) -> None:
    ran = _ran(words, cwd=where, env=environment)
    if ran.returncode:
        last = " | ".join(ran.stderr.strip().splitlines()[-3:])
        raise InputError(f"{what} failed", got=last)


def build_of(root: Path, revision: str) -> Build:
    """Return the build of a revision, cached in `.cache/diff` by tree; "." is the work tree."""
    kept = root / ".cache/diff"
    kept.mkdir(parents=True, exist_ok=True)
    if revision == ".":
        shutil.rmtree(kept / "worktree", ignore_errors=True)
        make_site(root, root, kept / "worktree")
        return read_build(kept / "worktree", "the work tree")
    commit = commit_of(root, revision)
    site = kept / git(root, "rev-parse", f"{commit}^{{tree}}")
    if not (site / MANIFEST).is_file():
        with checkout(root, commit) as tree:
            unfinished = site.with_suffix(f".{os.getpid()}")
            make_site(root, tree, unfinished)
        shutil.rmtree(site, ignore_errors=True)
        unfinished.rename(site)
    os.utime(site)
    for old in sorted(kept.iterdir(), key=lambda path: -path.stat().st_mtime)[KEPT_BUILDS:]:
        shutil.rmtree(old, ignore_errors=True)
    return read_build(site, f"{revision} ({commit[:10]})")
