"""The same sources give the same site, byte for byte, on every machine and after any
other build."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from figgen.serving import answers
from tests.browser import site as built
from tests.thorough import one_in

PICTURES = "assets/figures/guide"
FEW = one_in(
    2, ["guide/pipeline-schedules.md", "guide/memory.md", "index.md", "guide/rank-mapping.md"]
)


def tree(folder: Path) -> dict[str, str]:
    """Return every file of a built site with its digest."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def differences(one: Path, other: Path) -> list[str]:
    """Return the files that are missing in one site or differ."""
    left, right = tree(one), tree(other)
    assert len(left) > 50
    return sorted(name for name in left | right if left.get(name) != right.get(name))


ROUND = 40


def history(copy: Path) -> dict[str, str]:
    """Give a copy the history from which git tells when its pages changed, if there is one."""
    asked = ["git", "-C", str(built.ROOT), "rev-parse", "--absolute-git-dir"]
    found = subprocess.run(asked, capture_output=True, text=True)
    known = found.returncode == 0
    return {"GIT_DIR": found.stdout.strip(), "GIT_WORK_TREE": str(copy)} if known else {}


def damage(content: bytes, index: int) -> bytes:
    """Corrupt five of forty entries as a disk, a crash or a person would, and keep the others."""
    spoilt = {
        0: b"",
        1: content[: len(content) // 2],
        2: content.replace(b"1", b"2"),
        3: b"\xff\xfe" + content,
        4: content + content,
    }
    return spoilt.get(index % ROUND, content)


def test_two_builds_that_share_a_damaged_cache_give_the_same_site(
    tmp_path: Path, site_folder: Path
) -> None:
    """They run together, in different folders, with different hash seeds, one of them on a single
    processor and adding floats as other versions of Python do, on pages of every kind except runs.

    The site that the other tests read was built elsewhere, and drew all its pictures once.
    """
    cache = shutil.copytree(site_folder.with_name("cache"), tmp_path / "cache")
    entries = sorted(path for path in cache.iterdir() if path.is_file())
    assert len(entries) > 50
    for index, entry in enumerate(entries):
        if entry.name.startswith(answers.PREFIX):
            entry.unlink()  # recomputes everything
            continue
        entry.write_bytes(damage(entry.read_bytes(), index))

    def one(seed: int, alone: bool) -> str:
        root = built.copy_of_the_project(tmp_path / f"place-{seed}")
        configuration = built.few_pages(root, FEW, without=("/appendix/", "/validation/"))
        settings = {"PYTHONHASHSEED": str(seed), "FIGGEN_CACHE": str(cache), **history(root)}
        if alone:
            if hasattr(os, "sched_setaffinity"):  # of this thread, and of what it starts
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            settings["PYTHONPATH"] = str(Path(__file__).with_name("other_sum"))
        return built.build(tmp_path / f"site-{seed}", root, configuration, **settings)

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(one, (1, 2), (True, False))) == ["", ""]
    assert differences(tmp_path / "site-1", tmp_path / "site-2") == []
    whole, some = tree(site_folder / PICTURES), tree(tmp_path / "site-1" / PICTURES)
    # A long table is a page with the site's head, which names what the site has.
    some = {name: digest for name, digest in some.items() if not name.endswith(".html")}
    assert some.items() <= whole.items()
    assert len(some) > 50
    emptied = entries[::ROUND]
    assert any(entry.exists() and entry.stat().st_size for entry in emptied), "none was made again"
