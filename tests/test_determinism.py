"""The same sources give the same site, byte for byte, whoever builds it, where, and after what."""

from __future__ import annotations

import hashlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.browser import site as built


def tree(folder: Path) -> dict[str, str]:
    """Every file of a built site with its digest."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def differences(one: Path, other: Path) -> list[str]:
    """The files that are not in both sites, or not the same."""
    left, right = tree(one), tree(other)
    assert len(left) > 50
    return sorted(name for name in left | right if left.get(name) != right.get(name))


def checkout(folder: Path) -> Path:
    """The project's sources in another folder."""
    shutil.copytree(built.ROOT / "docs", folder / "docs")
    for name in ("figgen", "hooks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(built.ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(built.ROOT / "tests" / "oracles", folder / "tests" / "oracles")
    shutil.copy(built.ROOT / "mkdocs.yml", folder)
    return folder


def test_two_builds_from_nothing_that_share_a_cache_give_the_same_site(
    tmp_path: Path, site_folder: Path
) -> None:
    """They run together, in different folders, with different hash seeds, from an empty cache.

    The site that the other tests read was built elsewhere, maybe from pictures kept long ago.
    """

    def one(seed: int) -> str:
        root = checkout(tmp_path / f"place-{seed}")
        settings = {"PYTHONHASHSEED": str(seed), "FIGGEN_CACHE": str(tmp_path / "cache")}
        return built.build(tmp_path / f"site-{seed}", root, **settings)

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(one, (1, 2))) == ["", ""]
    assert differences(tmp_path / "site-1", tmp_path / "site-2") == []
    assert differences(tmp_path / "site-1", site_folder) == []


def test_damaged_cache_gives_the_same_site(tmp_path: Path, site_folder: Path) -> None:
    kept = Path(os.environ.get("FIGGEN_CACHE", built.ROOT / ".cache" / "figgen"))
    # Other tests may build meanwhile, and write to files with such names first.
    cache = shutil.copytree(kept, tmp_path / "cache", ignore=shutil.ignore_patterns(".new-*"))
    entries = sorted(path for path in cache.iterdir() if path.is_file())
    assert len(entries) > 50
    emptied = entries[::8]
    for index, entry in enumerate(entries):
        content = entry.read_bytes()
        damaged = {
            0: b"",
            1: content[: len(content) // 2],
            2: content.replace(b"1", b"2"),
            3: b"\xff\xfe" + content,
            4: content + content,
        }
        entry.write_bytes(damaged.get(index % 8, content))
    assert built.build(tmp_path / "site", FIGGEN_CACHE=str(cache)) == ""
    assert differences(tmp_path / "site", site_folder) == []
    assert any(entry.exists() and entry.stat().st_size for entry in emptied), "none was made again"
