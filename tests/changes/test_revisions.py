"""Two revisions of a small guide: the report names what moved and why, and nothing else."""

from __future__ import annotations

import compileall
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from figgen.changes.builds import interpreter
from figgen.errors import InputError
from tests.browser import site as built
from tests.pages import BUBBLES

ROOT = Path(__file__).parents[2]

CONFIGURATION = """site_name: Small
site_url: http://127.0.0.1/
theme: {name: mkdocs}
plugins: [figgen: {modules: [figgen.guide]}]
exclude_docs: |
  /appendix/
  /reference/
  /validation/
  /search.md
"""

PAGE = """# Numbers

The ridge of an H100 is {{ ridge_point(peak_flops_per_s=accelerator("h100-sxm-80gb").bf16, bandwidth_bytes_per_s=accelerator("h100-sxm-80gb").hbm_bandwidth):.4g}} operations a byte.

A megabyte takes {{ point_to_point_time(message_bytes="1 MB", latency_s=link("ib-ndr").latency, bandwidth_bytes_per_s=link("ib-ndr").bandwidth):time}}.

A quarter is {{ bubble_fraction(stages=2, microbatches=3):.0%}}.

<bubbles>
```figure
figure: state-homes
caption: Where state can be.
alt: Another table.
```
""".replace("<bubbles>\n", BUBBLES + "\n")  # noqa: E501


def git(where: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", "-C", str(where), *who, *words], check=True, timeout=30)


def put(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert text.count(old) == 1, (old, text.count(old))
    file.write_text(text.replace(old, new), "utf-8")


def entry_with(file: Path, name: str, old: str, new: str) -> None:
    """Change one line of one entry of a catalog file."""
    text = file.read_text("utf-8")
    changed = re.sub(rf"(\[{name}\]\n(?:[^\[].*\n)*?){re.escape(old)}\n", rf"\g<1>{new}\n", text)
    assert changed != text
    file.write_text(changed, "utf-8")


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the revisions `base`, `same` (one comment later) and `hardware` (two
    constants later)."""
    root = tmp_path_factory.mktemp("guide")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "figgen", root / "figgen", ignore=ignore)
    # Compiled modules that are known by the hash of their source are good in every work tree.
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    assert compileall.compile_dir(root / "figgen", quiet=1, invalidation_mode=mode)
    (root / "mkdocs.yml").write_text(CONFIGURATION)
    (root / "docs").mkdir()
    (root / "docs/index.md").write_text(PAGE)
    (root / ".gitignore").write_text(".cache/\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "base")
    git(root, "tag", "base")
    with (root / "figgen/units.py").open("a") as file:
        file.write("\n# A comment.\n")
    git(root, "commit", "--quiet", "--all", "--message", "same")
    git(root, "tag", "same")
    catalog = root / "figgen/catalog"
    entry_with(catalog / "accelerators.toml", "h100-sxm-80gb",
               'hbm_bandwidth = "3.35 TB/s"', 'hbm_bandwidth = "3 TB/s"')  # fmt: skip
    entry_with(
        catalog / "links.toml",
        "ib-ndr",
        'latency = { value = "2.8 µs", source = "deepseek-insights: Table 5" }',
        'latency = { value = "5.6 µs", source = "deepseek-insights: Table 5" }',
    )
    put(root / "docs/index.md", "A quarter is", "One part in four is")
    git(root, "commit", "--quiet", "--all", "--message", "hardware")
    git(root, "tag", "hardware")
    return root


def diff(root: Path, *words: str) -> tuple[int, str]:
    """Return exit code and output. Each revision takes a build, and each constant one more."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "figgen", "diff", *words]
    return built.listened_to(command, cwd=root, env=environment)


def test_a_comment_changes_nothing_and_says_so(guide: Path) -> None:
    code, said = diff(guide, "base", "same", "--exit-code")
    assert code == 0, said
    assert said.startswith("**No number, figure or text changed, although")


def test_two_constants_move_exactly_the_numbers_that_follow_from_each(guide: Path) -> None:
    assert diff(guide, "hardware", "hardware")[1].startswith("**Nothing changed.**")
    code, said = diff(guide, "base", "hardware", "--report", "report", "--exit-code")
    assert code == 1, said
    report = json.loads((guide / "report/changes.json").read_text("utf-8"))
    # From the datasheets by hand: 989.4e12/3.35e12 and 989.4e12/3e12; 20 µs and the latency.
    found = {n["name"].partition("(")[0]: (n["before"], n["after"]) for n in report["numbers"]}
    assert found == {
        "ridge_point": (pytest.approx(295.343, rel=1e-5), pytest.approx(329.8)),
        "point_to_point_time": (pytest.approx(22.8e-6), pytest.approx(25.6e-6)),
        # 13,476,831,232 bytes are two for each parameter; Adam's state is six times as much.
        "fig-state-homes: hbm_s": (
            pytest.approx(13476831232 / 3.35e12),
            pytest.approx(13476831232 / 3e12),
        ),
        "fig-state-homes: hbm_optimizer_s": (
            pytest.approx(80860987392 / 3.35e12),
            pytest.approx(80860987392 / 3e12),
        ),
        # Two FLOP for each byte, at 989.4e12/s.
        "fig-state-homes: hbm_tokens": (
            pytest.approx(989.4e12 / 3.35e12),
            pytest.approx(989.4e12 / 3e12),
        ),
    }
    # 22.8 → 25.6 µs is 12.3% more, 3.35/3 is 11.7%.
    assert [(cause["what"], cause["numbers"]) for cause in report["causes"]] == [
        ("links.toml, ib-ndr: latency/value 2.8 µs → 5.6 µs", 1),
        ("accelerators.toml, h100-sxm-80gb: hbm_bandwidth 3.35 TB/s → 3 TB/s", 4),
    ]
    assert all(number["seen"] for number in report["numbers"])
    assert report["figures"] == ["index.md#fig-state-homes"]
    assert report["counts"]["pages"] == 1
    page = (guide / "report/index.html").read_text("utf-8")
    assert "<del>A quarter is #.</del>" in page
    assert "<ins>One part in four is #.</ins>" in page
    assert "<script" not in page


def test_a_revision_is_built_with_the_versions_of_its_own_lock(tmp_path: Path) -> None:
    """Otherwise an upgrade would be built twice with the new versions and seem to move nothing."""
    root, tree = tmp_path / "root", tmp_path / "tree"
    lock = "./mkdocs-figgen-that-is-not-there.whl --hash=sha256:00\n"
    for folder in (root, tree):
        folder.mkdir()
        (folder / "requirements.txt").write_text(lock)
    assert interpreter(root, tree) == sys.executable
    (root / "requirements.txt").write_text("# new\n")
    with pytest.raises(InputError, match=r"requirements\.txt of the other revision failed"):
        interpreter(root, tree)
    (made,) = (root / ".cache/environments").iterdir()
    (made / "ready").touch()
    assert interpreter(root, tree) == str(made / "bin/python")
    assert Path(interpreter(root, tree)).exists()


def test_a_revision_that_does_not_exist_is_one_line(guide: Path) -> None:
    code, said = diff(guide, "--", "--output=x", "base")
    assert code == 2
    assert len(said.splitlines()) == 1
    assert not (guide / "x").exists()
    code, said = diff(guide, "9" * 400)
    assert (code, len(said.splitlines())) == (2, 1)


def test_no_work_tree_is_left_behind(guide: Path) -> None:
    listed = subprocess.run(
        ["git", "-C", str(guide), "worktree", "list"], capture_output=True, text=True, check=True
    )
    assert len(listed.stdout.splitlines()) == 1
