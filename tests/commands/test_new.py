"""`figgen new`: stubs that pass all checks unchanged, and names that are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from figgen.__main__ import main
from tests.browser.site import ROOT, copy_of_the_project, few_pages

NEW = (
    ("formula", "gather_time", "--in", "data_parallel"),
    ("figure", "gather-shares", "--in", "zero"),
    ("preset", "map-48"),
    ("accelerator", "h400-sxm"),
    ("page", "guide/stragglers"),
)
COPIED = (
    "pyproject.toml", "tests/test_oracles.py", "tests/formulas/points.py",
    "tests/formulas/test_points.py",
)  # fmt: skip
VALUES = "test_value_at_point_is_the_catalogues"


def new(root: Path, *arguments: str) -> int:
    return main(["new", *arguments, "--root", str(root)])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A copy of the project with one stub of each kind, and the list of new files in it."""
    root = copy_of_the_project(tmp_path_factory.mktemp("new") / "project")
    for name in COPIED:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    # The tests' own conftest.py says so, and needs a browser's modules beside.
    (root / "conftest.py").write_text('from figgen import subject\n\nsubject.use("figgen.guide")\n')
    before = set(root.rglob("*"))
    for arguments in NEW:
        assert new(root, *arguments) == 0
    after = sorted(path for path in set(root.rglob("*")) - before if path.is_file())
    return root, [path.relative_to(root).as_posix() for path in after]


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=root, env=settings, capture_output=True, text=True
    )


def test_each_kind_comes_with_its_test_and_its_oracle(written: tuple[Path, list[str]]) -> None:
    assert written[1] == [
        "docs/guide/stragglers.md",
        "figgen/figures/zero/gather_shares.py",
        "tests/catalog/test_accelerator_h400_sxm.py",
        "tests/catalog/test_preset_map_48.py",
        "tests/figures/test_gather_shares_figure.py",
        "tests/formulas/test_gather_time.py",
        "tests/oracles/accelerator_h400_sxm.json",
        "tests/oracles/gather_time.json",
        "tests/oracles/preset_map_48.json",
    ]


def test_the_stubs_pass_style_prose_and_their_tests(
    written: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """Only the generated pages are included, because computing the guide too takes half
    a minute."""
    root, files = shutil.copytree(written[0], tmp_path / "project"), written[1]
    few_pages(root, [name.removeprefix("docs/") for name in files if name.endswith(".md")])
    python = [name for name in files if name.endswith(".py")]
    module = "figgen/formulas/data_parallel.py"
    tests = [name for name in python if name.startswith("tests/")]
    points = "tests/formulas/test_points.py"
    tests += [f"{points}::test_every_formula_has_a_point", f"{points}::{VALUES}"]
    listed = "tests/test_oracles.py::test_every_file_names_its_source"
    for command in (
        ("ruff", "check", "--quiet", *python, module),
        ("ruff", "format", "--check", "--quiet", *python, module),
        ("pytest", "-q", "-p", "no:cacheprovider", *tests, listed),
        ("figgen", "lint", "docs"),
        ("figgen", "agree", "docs"),  # computes the reference of formulas
        ("figgen", "show", "gather-shares"),
    ):
        done = run(root, *command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "0.25" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("formula", "GatherTime", "--in", "zero"), "name of a formula: expected words"),
        (("formula", "Scatter Time"), "(did you mean scatter_time?)"),
        (("formula", "class", "--in", "placement"), "name of a formula: expected words"),
        (("formula", "bubble_fraction", "--in", "pipeline"), "'bubble_fraction' already"),
        (("formula", "scatter_time", "--in", "piepline"), "(did you mean pipeline?)"),
        (("figure", "bubble-curves", "--in", "pipeline"), "'bubble-curves' already"),
        (("figure", "../evil", "--in", "pipeline"), "(did you mean evil?)"),
        (("figure", "gather", "--in", "../.."), "unknown --in"),
        (("preset", "map-64"), "'map-64' already"),
        (("accelerator", "h100-sxm-80gb"), "'h100-sxm-80gb' already"),
        (("accelerator", "nvidia-h100"), "the name of a source"),
        (("page", "stragglers"), "expected PART/NAME"),
        (("page", "guide/memory"), "'memory' already"),
        (("page", "../guide/x"), "expected PART/NAME"),
        (("chart", "x"), "unknown kind 'chart'"),
    ],
)
def test_a_bad_or_taken_name_is_refused(
    arguments: tuple[str, ...],
    told: str,
    written: tuple[Path, list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert new(written[0], *arguments) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("arguments", NEW, ids=lambda words: words[0])
def test_a_name_that_the_checkout_took_since_is_refused(
    arguments: tuple[str, ...], written: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """This process has loaded a different checkout, which has none of these names."""
    assert new(written[0], *arguments) == 2
    assert "already" in capsys.readouterr().err


def test_a_file_that_would_be_written_over_is_refused(
    written: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    taken = written[0] / "tests" / "oracles" / "scatter_time.json"
    taken.write_text("{}")
    assert new(written[0], "formula", "scatter_time", "--in", "data_parallel") == 2
    assert "tests/oracles/scatter_time.json exists already" in capsys.readouterr().err
    assert taken.read_text() == "{}"
    taken.unlink()


def test_a_dry_run_says_what_is_told_again_before_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = copy_of_the_project(tmp_path / "project")
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    words = ("page", "guide/stragglers")
    assert new(root, *words, "--dry-run") == 0
    assert before == {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    *plan, last = capsys.readouterr().out.splitlines()
    assert plan == ["new file docs/guide/stragglers.md", "one more line in mkdocs.yml"]
    assert last == "nothing is written"
    assert new(root, *words) == 0
    assert capsys.readouterr().err.splitlines() == plan


def test_a_folder_that_is_not_the_project_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(tmp_path, "preset", "map-48") == 2
    assert "the project's folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
