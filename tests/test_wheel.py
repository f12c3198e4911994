"""The wheel: what another project installs, and what a new user's first ten minutes
need from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.test_layers import SUBJECT, within

ROOT = Path(__file__).parents[1]


def run(folder: Path, *command: str | Path, **settings: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        | {"NO_MKDOCS_2_WARNING": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "figgen", source / "figgen", ignore=shutil.ignore_patterns("__pycache__")
    )
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    run(folder, sys.executable, "-m", "pip", "wheel", *options, source)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with figgen installed by name, next to the locked packages."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    path = place / "lib" / version / "site-packages" / "locked.pth"
    path.write_text(sysconfig.get_path("purelib"))
    options = ("--quiet", "--no-deps", "--ignore-installed", "--no-index", "--find-links")
    pip = (sys.executable, "-m", "pip", "--python", place / "bin/python")
    run(place, *pip, "install", *options, wheel.parent, "mkdocs-figgen")
    return place / "bin"


def test_the_wheel_holds_all_that_a_site_is_made_with(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    kept = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "figgen").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert kept - inside == set()
    assert not any(name.startswith(("tests/", "docs/", "hooks/")) for name in inside)


def test_a_new_user_starts_builds_and_tests_a_site(
    programs: Path, wheel: Path, tmp_path: Path
) -> None:
    """Nothing of this checkout is used: the package, its data and its entry points are
    the wheel's."""
    python, site = programs / "python", tmp_path / "my-site"
    place = run(tmp_path, python, "-c", "import figgen; print(figgen.__file__)").strip()
    assert Path(place).is_relative_to(programs.parent)
    told = run(tmp_path, programs / "figgen", "start", site)
    assert "mkdocs build --strict" in told
    said = run(site, python, "-X", "importtime", "-m", "mkdocs", "build", "--strict")
    loaded = {line.rpartition("|")[2].strip() for line in said.splitlines() if "|" in line}
    assert "figgen.publish.build" in loaded
    # A first build takes five seconds; to load the guide besides would take as long again.
    assert {name for name in loaded if any(within(name, room) for room in SUBJECT)} == set()
    page = (site / "site" / "index.html").read_text("utf-8")
    assert "Kettle in the kitchen" in page
    assert "334\N{NO-BREAK SPACE}kJ" in page
    assert (site / "site" / "assets/javascripts/figures.js").is_file()
    name = tomllib.loads((site / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"][0]
    assert (name, wheel.name.partition("-")[0]) == ("mkdocs-figgen", "mkdocs_figgen")
    steps = yaml.safe_load((site / ".github/workflows/site.yml").read_text("utf-8"))
    commands = [one["run"] for one in steps["jobs"]["build"]["steps"] if "run" in one]
    assert commands == [
        "pip install --find-links wheels .",
        "python -m pytest",
        "figgen lint docs",
        "mkdocs build --strict",
        'figgen diff "origin/$GITHUB_BASE_REF" >>"$GITHUB_STEP_SUMMARY"',
    ], "what is run here, below"
    assert "1 passed" in run(site, python, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "every page follows the rules" in run(site, programs / "figgen", "lint", "docs")
    shown = run(site, programs / "figgen", "show", "time-to-boil", "preset=travel")
    assert "Travel kettle" in shown
    assert "heat_of_water" in run(site, programs / "figgen", "list", "formulas")


def test_a_site_is_started_only_in_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    done = subprocess.run(
        [sys.executable, "-m", "figgen", "start", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "expected one that is new or empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
