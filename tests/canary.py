"""Builds the site with MkDocs and its successors and tells what differs.

`make builders` asks MkDocs and ProperDocs in their locked versions, and fails where a byte differs
but for their names.  `make canary` asks the newest versions of all, each in an environment of its
own beside the locked packages, and reports; a builder that does not run the plug-in leaves figures'
files out, which is what the report is for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from html import unescape
from pathlib import Path, PurePosixPath
from statistics import median

from tests.browser.site import copy_of_the_project

BUILDERS = {
    "mkdocs": ("mkdocs", "build", "--strict"),
    "properdocs": ("properdocs", "build", "--strict"),
    "zensical": ("zensical", "build"),
}
"""The first one is what the others are compared with."""

MOST = 12
_BUILDER = re.compile(rb'<meta name="generator"[^>]*>')
_HIDDEN = re.compile(r"<(script|style|svg|template)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.S)


def words(page: Path) -> list[str]:
    """What a page says, without markup."""
    return unescape(_HIDDEN.sub(" ", page.read_text(encoding="utf-8", errors="replace"))).split()


def content(file: Path) -> bytes:
    """A file of a site; a page without the name of what built it."""
    found = file.read_bytes()
    return _BUILDER.sub(b"", found) if file.suffix == ".html" else found


def compared(one: Path, other: Path) -> dict[str, list[str]]:
    """Files that only one of two sites has, pages that say something else, files that differ."""
    left, right = (
        {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
        for site in (one, other)
    )
    differ = [name for name in left & right if content(one / name) != content(other / name)]
    said = [
        name for name in differ
        if name.endswith(".html") and words(one / name) != words(other / name)
    ]  # fmt: skip
    found = {
        "missing": left - right, "added": right - left, "pages that say something else": said,
        "other files and markup": set(differ) - set(said),
    }  # fmt: skip
    return {what: sorted(names) for what, names in found.items()}


def kinds(names: list[str]) -> str:
    """How many of them are where, by their uppermost folder and their ending, most first."""
    counted = Counter[str]()
    for path in map(PurePosixPath, names):
        folders = path.parent.parts[: 2 if path.parts[0] == "assets" else 1]
        counted["/".join((*folders, f"*{path.suffix}"))] += 1
    said = [f"{count} {kind}" for kind, count in counted.most_common(MOST)]
    return ", ".join(said) + ", …" * (len(counted) > MOST)


def kept(one: Path, other: Path, pages: list[str]) -> str:
    """Which share of the words of a page its other build has too, at the median and at least."""
    shares = []
    for page in pages:
        mine, theirs = Counter(words(one / page)), Counter(words(other / page))
        shares.append(((mine & theirs).total() / max(1, mine.total()), page))
    middle, (least, page) = median(share for share, _ in shares), min(shares)
    return f"with {middle:.0%} of the words, {page} with {least:.0%}"


def program(name: str, programs: Path) -> str:
    """The builder's path: its own environment's, else the one that the site is built with."""
    own = programs / BUILDERS[name][0]
    return str(own if own.exists() else Path(sys.executable).parent / own.name)


def built(name: str, project: Path, programs: Path) -> str:
    """Build a copy of the project; what the builder said where it failed, else nothing."""
    settings = {
        "PYTHONPATH": str(project),
        "NO_MKDOCS_2_WARNING": "1",
        "NO_COLOR": "1",
        "FIGGEN_CACHE": str(project.parent / "cache"),
        "SOURCE_DATE_EPOCH": "1767225600",
    }
    done = subprocess.run(
        [program(name, programs), *BUILDERS[name][1:]],
        cwd=project,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]


def release(name: str, programs: Path) -> str:
    """A builder and its version."""
    command = [program(name, programs), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return f"{name} {re.findall(r'[0-9][0-9.]+', said)[0]}"


def main(programs: Path, work: Path, equal: Collection[str] = ()) -> int:
    """Print what differs, or how a builder fails; 1 if the one to compare with does.

    With `equal` only these builders are asked, and 1 is returned if any of them fails or differs.
    """
    shutil.rmtree(work, ignore_errors=True)
    failed, base = False, work / "mkdocs" / "site"
    for name in ["mkdocs", *equal] if equal else BUILDERS:
        project, known = copy_of_the_project(work / name), release(name, programs)
        site = project / "site"
        if fault := built(name, project, programs):
            print(f"{known} failed:\n{fault}")
            failed = failed or name == "mkdocs" or name in equal
        elif site != base and base.is_dir():
            print(f"{known} beside mkdocs:")
            found = compared(base, site)
            failed = failed or (name in equal and any(found.values()))
            for what, names in found.items():
                print(f"  {len(names):5} {what}{': ' * bool(names)}{kinds(names)}")
                if what == "pages that say something else" and names:
                    print(f"        {kept(base, site, names)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute(), sys.argv[3:]))
