"""README.md's promises about setting up: locked packages, listed commands, clear refusals."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from figgen.publish.place import put

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
LOCKS = (
    "requirements.txt",
    "tests/benchmarks/requirements.txt",
    "tests/benchmarks/rivals/requirements.txt",
    "tests/mutants/requirements.txt",
)
TARGETS = (
    "setup",
    "serve",
    "build",
    "test",
    "check",
    "site-check",
    "diff",
    "validate",
    "paper",
    "rivals",
    "golden",
    "bench",
    "authoring",
    "mutants",
    "stats",
    "builders",
    "canary",
    "audit",
    "upgrade",
    "clean",
)
SUPPORTED = ("3.11.0", "3.11.9", "3.12.4", "3.13.0", "3.14.0")


@cache
def locked(lock: str = LOCK) -> list[tuple[Requirement, list[str]]]:
    """Return every entry of a lock file with its hashes."""
    entries = re.sub(r" *\\\n *", " ", lock)
    lines = [line for line in entries.splitlines() if line and not line.lstrip().startswith("#")]
    parts = [line.split(" --hash=") for line in lines]
    return [(Requirement(first), [hash_.split()[0] for hash_ in rest]) for first, *rest in parts]


def make(*arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess:
    program = shutil.which("make")
    assert program is not None
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=inherited | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


DIRECT = [
    Requirement(text)
    for text in (
        *PROJECT["project"]["dependencies"],
        *PROJECT["dependency-groups"]["dev"],
        *PROJECT["build-system"]["requires"],
    )
]


def test_the_lock_names_everything_that_its_packages_require() -> None:
    """`make setup` lets pip look for no further packages, so the lock must be complete."""
    pinned = {
        canonicalize_name(entry.name): entry
        for entry, _ in locked()
        if entry.marker is None or entry.marker.evaluate()
    }
    missing = [
        f"{name} requires {text}"
        for name, entry in pinned.items()
        for text in requires(name) or ()
        for needed in [Requirement(text)]
        for extra in ("", *entry.extras)
        if needed.marker is None or needed.marker.evaluate({"extra": extra})
        if canonicalize_name(needed.name) not in pinned
    ]
    assert missing == []


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("wanted", DIRECT, ids=str)
def test_dependency_is_locked_once_within_its_range(wanted: Requirement, version: str) -> None:
    machine = {"python_full_version": version, "python_version": version.rpartition(".")[0]}
    pins = [
        entry.specifier
        for entry, _ in locked()
        if entry.name.lower() == wanted.name.lower()
        and (entry.marker is None or entry.marker.evaluate(machine))
    ]
    assert len(pins) == 1
    (pin,) = pins[0]
    assert pin.operator == "=="
    assert wanted.specifier.contains(pin.version)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_version_has_hashes(lock: str) -> None:
    entries = locked((ROOT / lock).read_text(encoding="utf-8"))
    assert [str(entry) for entry, hashes in entries if not hashes] == []
    assert entries


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_index_and_no_path(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert re.findall(r"^--.*|https?://|file:|^/.*| /\w+.*", text, flags=re.MULTILINE) == []


def test_the_gate_s_lock_has_hashes_and_names_no_registry() -> None:
    folder = ROOT / "tests/browser/gate"
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))
    wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"]
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_every_lock_is_resolved_again_by_one_target() -> None:
    """`make lock` names each file, and so does every setup that installs one."""
    told = make("--dry-run", "lock").stdout
    for lock in LOCKS:
        assert f"--output-file {lock}" in told
    assert "cd tests/browser/gate" in told
    found = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("requirements.txt")
    }
    assert found | {"requirements.txt"} == {*LOCKS}


def test_help_lists_each_target_on_one_line() -> None:
    lines = make("help").stdout.splitlines()
    assert [line.split()[1] for line in lines] == list(TARGETS)
    assert all(line.startswith("make ") and len(line) <= 100 for line in lines)


def test_commands_in_the_readme_exist() -> None:
    commands = re.findall(r"^make (\w+)$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert {"serve", "test"} <= set(commands) <= set(TARGETS)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [
        line
        for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
        if "make" in line and not line.startswith("#")
    ]
    assert commands == ["exec make test </dev/null"]


@pytest.fixture
def bare_machine(tmp_path: Path) -> Path:
    """A folder with what the setup reads, and no .venv."""
    for name in ("Makefile", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def stand_in(folder: Path, script: str) -> str:
    """Write a program that stands in for an unsuitable Python."""
    path = folder / "some-python"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_old_python_is_refused_with_a_remedy(bare_machine: Path) -> None:
    python = stand_in(bare_machine, "exit 1")
    done = make("setup", folder=bare_machine, PYTHON=python)
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "make PYTHON=" in done.stderr
    assert not (bare_machine / ".venv").exists()


def test_python_without_venv_is_refused_with_a_remedy(bare_machine: Path) -> None:
    python = stand_in(bare_machine, 'case "$2" in *venv*) exit 1;; esac')
    done = make("setup", folder=bare_machine, PYTHON=python)
    assert done.returncode != 0
    assert "python3-venv" in done.stderr
    assert not (bare_machine / ".venv").exists()


def test_newer_python_is_found_next_to_an_old_one(bare_machine: Path) -> None:
    tools = bare_machine / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(stand_in(bare_machine, "exit 1"))
    (tools / "python3.12").symlink_to(sys.executable)
    (bare_machine / "show.mk").write_text('show:\n\t@echo "$(PYTHON)";\n', encoding="utf-8")
    makefiles = ("-f", "Makefile", "-f", "show.mk")
    done = make(*makefiles, "show", folder=bare_machine, PATH=str(tools))
    assert done.stdout.strip() == "python3.12"


def test_setup_that_did_not_finish_starts_afresh(bare_machine: Path) -> None:
    """The stand-in creates an environment whose pip fails; nothing may then count as ready."""
    python = stand_in(
        bare_machine,
        'case "$2" in venv) echo "$@" >>calls; mkdir -p .venv/bin; cp /bin/false .venv/bin/python;;'
        " esac",
    )
    for _ in range(2):
        assert make("setup", folder=bare_machine, PYTHON=python).returncode != 0
        assert not (bare_machine / ".venv" / "ready").exists()
    assert (bare_machine / "calls").read_text() == "-m venv --clear .venv\n" * 2


def test_a_fresh_machine_gets_its_browser_while_pip_installs(bare_machine: Path) -> None:
    """If neither can be had, pip reports what is wrong."""
    python = stand_in(bare_machine, 'case "$2" in *chromium*) echo "$1" >>calls;; esac; exit 1')
    done = make("test", folder=bare_machine, PYTHON=python)
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert (bare_machine / "calls").read_text() == "-c\n"
    (bare_machine / ".venv").mkdir()
    (bare_machine / ".venv" / "ready").touch()
    assert make("first-browser", folder=bare_machine, PYTHON=python).returncode == 0
    assert (bare_machine / "calls").read_text() == "-c\n"


BUILDER = """case "$2" in
  mkdocs) mkdir -p "$6"; echo half >"$6/index.html"; {fate};;
  *) exec {python} "$@";;
esac"""


@pytest.mark.parametrize("fate", ["exit 28", "kill -9 $PPID", "kill -9 $$"])
def test_a_build_that_fails_or_is_killed_leaves_the_last_site(
    bare_machine: Path, fate: str
) -> None:
    (bare_machine / "site").mkdir()
    (bare_machine / "site" / "index.html").write_text("whole\n", encoding="utf-8")
    (bare_machine / ".venv" / "bin").mkdir(parents=True)
    for attempt in (fate, "echo whole >$6/index.html"):
        builder = stand_in(bare_machine, BUILDER.format(fate=attempt, python=sys.executable))
        os.replace(builder, bare_machine / ".venv" / "bin" / "python")
        (bare_machine / ".venv" / "ready").touch()
        done = make("build", folder=bare_machine, PYTHONPATH=str(ROOT))
        assert (done.returncode == 0) == (attempt != fate), done.stderr
        assert [f.read_text() for f in (bare_machine / "site").iterdir()] == ["whole\n"]
    left = [path.name for path in bare_machine.iterdir() if path.name.startswith(".site")]
    assert left == [], "what the killed one left is gone"


def test_of_sites_that_are_finished_at_once_one_stays_and_is_whole(tmp_path: Path) -> None:
    made = [tmp_path / f"site-{number}" for number in range(12)]
    for folder in made:
        (folder / "page").mkdir(parents=True)
        for name in ("index.html", "page/index.html"):
            (folder / name).write_text(folder.name, encoding="utf-8")
    with ThreadPoolExecutor(len(made)) as pool:
        list(pool.map(lambda folder: put(folder, tmp_path / "site"), made))
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert len(files) == 2
    assert len({path.read_text("utf-8") for path in files}) == 1


def test_the_package_and_its_citation_have_the_version_of_the_last_release() -> None:
    released, day = re.findall(
        r"^## \[(\d[\d.]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert PROJECT["project"]["version"] == citation["version"] == released
    assert str(citation["date-released"]) == day
