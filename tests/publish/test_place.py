"""A built site replaces the last one at once, wherever that is, and everyone can read it."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from figgen.publish import place
from figgen.publish.place import begin, main, put

ROOT = Path(__file__).parents[2]
DEAD = 2**22 + 1
"""A number that Linux gives no process."""


def site(folder: Path, word: str) -> Path:
    (folder / "page").mkdir(parents=True)
    for name in ("index.html", f"{word}.html", "page/index.html"):
        (folder / name).write_text(word, encoding="utf-8")
    return folder


def words(folder: Path) -> set[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 3, files
    return {path.read_text("utf-8") for path in files}


def test_a_link_stays_a_link_and_what_it_leads_to_is_exchanged(tmp_path: Path) -> None:
    site(tmp_path / "srv" / "www", "old")
    (tmp_path / "site").symlink_to(tmp_path / "srv" / "www")
    new = begin(tmp_path / "site", os.getpid())
    assert new.parent == tmp_path / "srv", "beside what the link leads to"
    put(site(new, "new"), tmp_path / "site")
    assert (tmp_path / "site").is_symlink()
    assert words(tmp_path / "srv" / "www") == {"new"}
    assert [path.name for path in (tmp_path / "srv").iterdir()] == ["www"]


@pytest.mark.parametrize("number", place.ELSEWHERE)
def test_what_cannot_be_renamed_is_copied_and_what_is_gone_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(place, "_exchange", refuse)
    old = site(tmp_path / "site", "old")
    (old / "page" / "old").mkdir()
    (old / "page" / "old" / "link").symlink_to("/")
    put(site(tmp_path / "new", "new"), old)
    assert words(tmp_path / "site") == {"new"}
    assert not (old / "page" / "old").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


MOUNTED = """mount -t tmpfs none site && mkdir site/gone && echo old > site/gone/x && cd "$1" &&
new=$("$0" -m figgen.publish.place begin "$2/site" $$) && mkdir -p "$new" &&
echo new > "$new/index.html" && "$0" -m figgen.publish.place end "$new" "$2/site" &&
cat "$2/site/index.html" && ls -A "$2/site" "$2"
"""


def test_a_site_that_is_mounted_is_written_as_in_a_container(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    shell = ["unshare", "-rm", "sh", "-c"]
    trial = [*shell, "mount -t tmpfs none /mnt"]
    if not shutil.which("unshare") or subprocess.run(trial).returncode:
        pytest.skip("this system lets nobody mount")
    words = [MOUNTED, sys.executable, str(ROOT), str(tmp_path)]
    done = subprocess.run([*shell, *words], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["new", f"{tmp_path}:", "site", f"{tmp_path}/site:", "index.html"]


def test_no_reader_meets_a_moment_without_a_site(tmp_path: Path) -> None:
    """Between two renames there used to be such a moment, and a build killed then left no site."""
    site(tmp_path / "site", "old")
    try:
        place._exchange(site(tmp_path / "a", "a"), tmp_path / "site", tmp_path / "never")
    except FileNotFoundError:
        pytest.skip("this system exchanges no folders")
    assert not (tmp_path / "never").exists()
    missed, done = [], threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                (tmp_path / "site" / "index.html").read_text("utf-8")
            except FileNotFoundError:
                missed.append(1)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(200):
        put(site(tmp_path / f"new-{number}", "new"), tmp_path / "site")
    done.set()
    reader.join()
    # A file may be asked for in the folder that was just exchanged.
    assert len(missed) <= 2


def test_without_an_exchange_a_killed_build_s_site_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "other")
    site(tmp_path / "site", "old")
    put(site(begin(tmp_path / "site", os.getpid()), "new"), tmp_path / "site")
    assert words(tmp_path / "site") == {"new"}
    # As one leaves it that is killed between its two renames.
    (tmp_path / "site").rename(tmp_path / f".site-old-{DEAD}")
    site(tmp_path / f".site-new-{DEAD}", "half")
    begin(tmp_path / "site", os.getpid())
    assert words(tmp_path / "site") == {"new"}
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("copied", [False, True])
def test_everybody_can_read_a_site_that_was_built_under_any_mask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    if copied:
        refused = OSError(errno.EXDEV, "another file system")
        monkeypatch.setattr(place, "_exchange", lambda *_: (_ for _ in ()).throw(refused))
    mask = os.umask(0o077)
    try:
        site(tmp_path / "site", "old")
        put(site(tmp_path / "new", "new"), tmp_path / "site")
    finally:
        os.umask(mask)
    modes = {
        path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "site").rglob("*")
    }
    assert modes == {True: 0o755, False: 0o644}


@pytest.mark.parametrize("at", ["file", "nowhere/site"])
def test_a_place_that_cannot_be_taken_is_told_in_a_line_before_the_work(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["begin", str(tmp_path / at), str(os.getpid())]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert str(tmp_path / at) in told.err
