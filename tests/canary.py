"""Builds the site with MkDocs and its successors and reports the differences.

`make builders` runs MkDocs and ProperDocs in their locked versions, and fails if a byte differs
except for their names. `make canary` runs the newest versions of all, each in an environment of its
own next to the locked packages, and only reports. A builder that does not run the plug-in omits the
figures' files, which the report shows.
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
"""Builders; the others are compared with the first."""

MOST = 12
_BUILDER = re.compile(rb'<meta name="generator"[^>]*>')
_HIDDEN = re.compile(r"<(script|style|svg|template)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.S)


def words(page: Path) -> list[str]:
    """Return the text of a page without markup."""
    return unescape(_HIDDEN.sub(" ", page.read_text(encoding="utf-8", errors="replace"))).split()


def content(file: Path) -> bytes:
    """Return a file of a site; for a page, without the name of the builder."""
    found = file.read_bytes()
    return _BUILDER.sub(b"", found) if file.suffix == ".html" else found


def compared(one: Path, other: Path) -> dict[str, list[str]]:
    """Return files that only one of two sites has, pages whose words differ, and files
    that differ."""
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
    """Count the files by top-level folder and extension, the largest number first."""
    counted = Counter[str]()
    for path in map(PurePosixPath, names):
        folders = path.parent.parts[: 2 if path.parts[0] == "assets" else 1]
        counted["/".join((*folders, f"*{path.suffix}"))] += 1
    said = [f"{count} {kind}" for kind, count in counted.most_common(MOST)]
    return ", ".join(said) + ", …" * (len(counted) > MOST)


def kept(one: Path, other: Path, pages: list[str]) -> str:
    """Return the share of a page's words that the other build has too: its median and
    its minimum."""
    shares = []
    for page in pages:
        mine, theirs = Counter(words(one / page)), Counter(words(other / page))
        shares.append(((mine & theirs).total() / max(1, mine.total()), page))
    middle, (least, page) = median(share for share, _ in shares), min(shares)
    return f"with {middle:.0%} of the words, {page} with {least:.0%}"


def program(name: str, programs: Path) -> str:
    """Return the path of the builder: in its own environment, or in the one that builds
    the site."""
    own = programs / BUILDERS[name][0]
    return str(own if own.exists() else Path(sys.executable).parent / own.name)


def built(name: str, project: Path, programs: Path) -> str:
    """Build a copy of the project; return the builder's output if it failed, else ""."""
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
    """Return a builder and its version."""
    command = [program(name, programs), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return f"{name} {re.findall(r'[0-9][0-9.]+', said)[0]}"


def main(programs: Path, work: Path, equal: Collection[str] = ()) -> int:
    """Print what differs or how a builder fails; return 1 if the reference builder fails.

    With `equal`, only these builders run, and 1 is returned if any of them fails or differs.
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
