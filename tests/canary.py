"""Builds the site with MkDocs' successors and tells what differs: `make canary`.

Each has an environment of its own with its newest version, beside the locked packages.  A builder
that does not run our hooks leaves figures' files out, which is what the report is for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

from tests.browser.site import copy_of_the_project

BUILDERS = {
    "mkdocs": ("mkdocs", "build", "--strict"),
    "properdocs": ("properdocs", "build", "--strict"),
    "zensical": ("zensical", "build"),
}
"""The first one is what the others are compared with."""

MOST = 12
_HIDDEN = re.compile(r"<(script|style|svg|template)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.S)


def words(page: Path) -> list[str]:
    """What a page says, without markup."""
    return unescape(_HIDDEN.sub(" ", page.read_text(encoding="utf-8", errors="replace"))).split()


def compared(one: Path, other: Path) -> dict[str, list[str]]:
    """Files that only one of two sites has, pages that say something else, files that differ."""
    left, right = (
        {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
        for site in (one, other)
    )
    differ = [
        name for name in left & right if (one / name).read_bytes() != (other / name).read_bytes()
    ]
    said = [
        name for name in differ
        if name.endswith(".html") and words(one / name) != words(other / name)
    ]  # fmt: skip
    found = {
        "missing": left - right, "added": right - left, "pages that say something else": said,
        "other files and markup": set(differ) - set(said),
    }  # fmt: skip
    return {what: sorted(names) for what, names in found.items()}


def built(name: str, project: Path, programs: Path) -> str:
    """Build a copy of the project; what the builder said where it failed, else nothing."""
    program, *options = BUILDERS[name]
    path = (
        programs / program
        if (programs / program).exists()
        else Path(sys.executable).parent / program
    )
    settings = {
        "PYTHONPATH": str(project),
        "NO_MKDOCS_2_WARNING": "1",
        "FIGGEN_CACHE": str(project.parent / "cache"),
        "SOURCE_DATE_EPOCH": "1767225600",
    }
    done = subprocess.run(
        [str(path), *options],
        cwd=project,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]


def main(programs: Path, work: Path) -> int:
    """Print what differs, or how a builder fails; 1 if the one to compare with does."""
    shutil.rmtree(work, ignore_errors=True)
    failed, base = False, work / "mkdocs" / "site"
    for name in BUILDERS:
        project = copy_of_the_project(work / name)
        if fault := built(name, project, programs):
            print(f"{name} failed:\n{fault}")
            failed = failed or name == "mkdocs"
        elif project / "site" != base and base.is_dir():
            print(f"{name} beside mkdocs:")
            for what, names in compared(base, project / "site").items():
                shown = ", ".join(names[:MOST]) + (", …" if len(names) > MOST else "")
                print(f"  {len(names):5} {what}{': ' * bool(names)}{shown}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()))
