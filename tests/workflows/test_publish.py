"""Pages are published from an archive that a stranger may have made, on a branch shared by many."""

from __future__ import annotations

import io
import json
import os
import random
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from tests.thorough import drawn
from tests.workflows.scripts import SCRIPTS, load

PAGE = "<!doctype html>\n<html lang=en>\n<head><title>x</title></head><body>x</body></html>"
ADDRESS = "https://someone.github.io/guide/"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load("publish")


def git(where: Path, *words: str, stdin: str | None = None) -> str:
    return subprocess.run(
        ["git", "-C", str(where), "-c", "user.name=t", "-c", "user.email=t@localhost", *words],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=30,
    ).stdout


def zipped(to: Path, files: Mapping[str | zipfile.ZipInfo, str | bytes]) -> Path:
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return to


def link(path: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(path)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def packed(path: str, method: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(path)
    info.compress_type = method
    return info


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A bare repository with a branch as older workflows left it, including a symbolic link."""
    bare, work = tmp_path / "remote.git", tmp_path / "work"
    git(tmp_path, "init", "--quiet", "--bare", str(bare))
    git(tmp_path, "init", "--quiet", "--initial-branch=gh-pages", str(work))
    for path, content in {
        "CNAME": "guide.example", "index.html": "old", "gone.html": "old", "pr-3/index.html": "3",
    }.items():  # fmt: skip
        (work / path).parent.mkdir(exist_ok=True)
        (work / path).write_text(content)
    (work / "pr-3/out").symlink_to("/etc/passwd")
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "old")
    git(work, "push", "--quiet", str(bare), "gh-pages")
    return bare


def run(remote: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "publish.py"), *words],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PAGES_REMOTE": str(remote)},
    )


def publish(remote: Path, archive: Path, folder: str = "") -> subprocess.CompletedProcess[str]:
    words = ("publish", str(archive), "--commit", "c0ffee", "--address", ADDRESS)
    return run(remote, *(("--folder", folder) if folder else ()), *words)


def published(remote: Path) -> dict[str, str]:
    """Return every file of the branch with its content."""
    listed = git(remote, "ls-tree", "-r", "gh-pages").splitlines()
    assert all(line.startswith("100644 ") for line in listed)
    paths = [line.split("\t", 1)[1] for line in listed]
    return {path: git(remote, "show", f"gh-pages:{path}") for path in paths}


def test_the_site_replaces_itself_and_keeps_its_domain_and_the_previews(
    remote: Path, tmp_path: Path
) -> None:
    site = {"index.html": PAGE, "guide/a.html": PAGE, "CNAME.txt": "", "robots.txt": "hostile"}
    assert publish(remote, zipped(tmp_path / "site.zip", site)).returncode == 0
    found = published(remote)
    assert found["CNAME"] == "guide.example"
    assert found["index.html"] == PAGE
    assert found["pr-3/index.html"] == "3"
    assert "Disallow: /guide/pr-\n" in found["robots.txt"]
    assert set(found) == {
        ".nojekyll", "CNAME", "CNAME.txt", "guide/a.html", "index.html", "pr-3/index.html",
        "previews.json", "robots.txt",
    }  # fmt: skip


def test_a_preview_is_kept_from_search_engines_and_changes_nothing_else(
    remote: Path, tmp_path: Path
) -> None:
    blank = "\n" * 10**5
    site = {"index.html": PAGE, "no-head.html": "x", "LOUD.HTML": "y", "blank.html": blank,
            "sitemap.xml": "<urlset/>"}  # fmt: skip
    before = published_without_links(remote)
    assert publish(remote, zipped(tmp_path / "site.zip", site), "pr-7").returncode == 0
    found = published(remote)
    noindex = '<meta name="robots" content="noindex">'
    assert found["pr-7/index.html"] == PAGE.replace("<head>", f"<head>{noindex}")
    assert found["pr-7/no-head.html"] == f"{noindex}x"
    assert found["pr-7/LOUD.HTML"] == f"{noindex}y"
    assert found["pr-7/blank.html"] == noindex + blank
    assert "pr-7/sitemap.xml" not in found
    assert before.items() <= found.items()


def published_without_links(remote: Path) -> dict[str, str]:
    return {
        line.split("\t")[1]: git(remote, "show", f"gh-pages:{line.split(chr(9))[1]}")
        for line in git(remote, "ls-tree", "-r", "gh-pages").splitlines()
        if line.startswith("100644")
    }


def test_the_branch_has_one_commit_however_often_it_is_published(
    remote: Path, tmp_path: Path
) -> None:
    archive = zipped(tmp_path / "site.zip", {"index.html": PAGE})
    for _ in range(3):
        assert publish(remote, archive, "pr-7").returncode == 0
    assert git(remote, "rev-list", "--count", "gh-pages") == "1\n"


LISTING = '<article class="x"><ul id="version-list"><li>alone</li></ul></article>'


def test_a_version_stays_when_the_site_and_previews_are_published(
    remote: Path, tmp_path: Path
) -> None:
    canonical = f'<link rel="canonical" href="{ADDRESS}v1.0/guide/">'
    site = {
        "index.html": PAGE,
        "sitemap.xml": "<urlset/>",
        "about/versions/index.html": LISTING,
        "guide/index.html": f"<head>{canonical}</head><article>text",
    }
    archive = zipped(tmp_path / "site.zip", site)
    for folder in ("v1.0", "pr-7", "", "v1.10", "v1.9.2"):
        assert publish(remote, archive, folder).returncode == 0
    found = published(remote)
    assert found["v1.0/index.html"] == found["v1.10/index.html"] == PAGE
    assert set(json.loads(found["previews.json"])) == {"pr-3", "pr-7", "v1.0", "v1.10", "v1.9.2"}
    # Search engines find each page once, and a reader of an old one the newest.
    assert "sitemap.xml" in found
    assert "v1.0/sitemap.xml" not in found
    head, _, body = found["v1.0/guide/index.html"].partition("</head>")
    assert head == f'<head><link rel="canonical" href="{ADDRESS}guide/">'
    assert [where for _, where in links(body)] == ["../../guide/", "../../about/versions/"]
    # The site's own page lists them without a script, the newest first; theirs stay as they were.
    named = [("The newest", "../../"), ("v1.10", "../../v1.10/"),
             ("v1.9.2", "../../v1.9.2/"), ("v1.0", "../../v1.0/")]  # fmt: skip
    assert [(text, where) for text, where in links(found["about/versions/index.html"])] == named
    assert "<li>alone</li>" in found["v1.0/about/versions/index.html"]
    assert publish(remote, archive).returncode == 0
    assert links(published(remote)["about/versions/index.html"]) == named


def links(html: str) -> list[tuple[str, str]]:
    found = re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', html)
    return [(text, where) for where, text in found]


def test_versions_are_bounded_and_the_lowest_go_first(script: ModuleType) -> None:
    ledger = {f"v1.{n}": {"bytes": 90 * 2.0**20, "published": 9.0 - n} for n in (9, 10, 2, 11)}
    assert script.crowded_out(ledger | {"pr-1": {"bytes": 1.0, "published": 1.0}}) == ["v1.2"]
    many = {f"v{n}.0": {"bytes": 1.0, "published": 0.0} for n in range(1, 15)}
    assert script.crowded_out(many) == ["v2.0", "v1.0"]


def test_a_version_below_all_that_are_kept_is_not_published(
    script: ModuleType, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "MOST_VERSIONS", 2)
    for folder in ("v1.2", "v1.1", "v1.0"):
        script.replace_folder(str(remote), folder, {"index.html": PAGE.encode()}, "x")
    found = published(remote)
    assert {path for path in found if path[0] == "v"} == {"v1.1/index.html", "v1.2/index.html"}
    assert "v1.0" not in json.loads(found["previews.json"])


def test_a_removed_preview_is_gone_and_removing_it_again_changes_nothing(
    remote: Path, tmp_path: Path
) -> None:
    publish(remote, zipped(tmp_path / "site.zip", {"index.html": PAGE}), "pr-7")
    for _ in range(2):
        assert run(remote, "--folder", "pr-7", "remove").returncode == 0
        assert not [path for path in published(remote) if path.startswith("pr-7")]
    assert "pr-3/index.html" in published(remote)


HOSTILE: dict[str, dict[str | zipfile.ZipInfo, str | bytes]] = {
    "a nested repository": {"x/.git/config": "[core]\nfsmonitor = touch pwned"},
    "a repository in disguise": {"x/.GIT/config": ""},
    "a hidden file": {".htaccess": ""},
    "a link": {link("a.html"): "/etc/passwd"},
    "a way up": {"../index.html": ""},
    "a way up within": {"a/../../b.html": ""},
    "an absolute path": {"/etc/x.html": ""},
    "a drive": {"C:\\x.html": ""},
    "a backslash": {"a\\..\\b.html": ""},
    "a line end": {"a\nM 100644 inline b.html": ""},
    "a program": {"run.sh": ""},
    "a name that is no ASCII": {"ﬁgure.html": ""},
    "a name that reads backwards": {"a\u202elmth.html": ""},
    "a short name on some disks": {"git~1/config.json": ""},
    "an unusual packing": {packed("a.html", zipfile.ZIP_LZMA): "x"},
    "a file without a type": {"CNAME": "evil.example"},
    "two names on some disks": {"a.html": "", "A.html": ""},
    "a file that is a folder too": {"a.html": "", "A.html/b.html": ""},
    "a bomb": {"zeros.html": bytes(33 * 2**20)},
    "a name that no disk takes": {f"{'a' * 251}.html": ""},
    "an overlong path": {f"{'a/' * 300}b.html": ""},
}


@pytest.fixture
def refused(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], bool]:
    """Return whether an archive is refused before the branch is read, as there is none to read."""
    monkeypatch.setenv("PAGES_REMOTE", "/nowhere")

    def ask(archive: Path) -> bool:
        words = ("publish", str(archive), "--commit", "c0ffee", "--address", ADDRESS)
        return script.main(["--folder", "pr-7", *words]) == 1

    return ask


@pytest.mark.parametrize("what", HOSTILE)
def test_nothing_of_an_archive_is_published_that_holds(
    what: str,
    refused: Callable[[Path], bool],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert refused(zipped(tmp_path / "site.zip", {"index.html": PAGE, **HOSTILE[what]}))
    said = capsys.readouterr().err
    assert said.startswith("::error::not published: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"x" * 1000])
def test_what_is_no_archive_is_refused(
    content: bytes, refused: Callable[[Path], bool], tmp_path: Path
) -> None:
    (tmp_path / "site.zip").write_bytes(content)
    assert refused(tmp_path / "site.zip")


def test_what_is_encrypted_is_refused(refused: Callable[[Path], bool], tmp_path: Path) -> None:
    archive = zipped(tmp_path / "site.zip", {"index.html": PAGE})
    content = bytearray(archive.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(content)
    assert refused(archive)


def test_any_damage_to_an_archive_is_refused_in_one_line(
    script: ModuleType, tmp_path: Path
) -> None:
    """The reader of archives raises only errors that are reported as refusals."""
    whole = zipped(tmp_path / "site.zip", {"index.html": PAGE * 9, "a/b.json": "{}"}).read_bytes()
    chance, told = random.Random(1), 0
    cases = drawn(500, 2000)
    for _ in range(cases):
        content = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 4))):
            content[chance.randrange(len(content))] = chance.choice((0, 255, chance.randrange(256)))
        (tmp_path / "site.zip").write_bytes(content[: chance.choice((None, -9, len(whole) // 2))])
        try:
            dict(script.members(tmp_path / "site.zip"))
        except script.TOLD:
            told += 1
    assert told > cases / 2


def test_a_site_without_a_home_page_is_refused(
    refused: Callable[[Path], bool], tmp_path: Path
) -> None:
    assert refused(zipped(tmp_path / "site.zip", {"guide/index.html": PAGE}))


def test_a_refused_archive_leaves_the_branch_alone(remote: Path, tmp_path: Path) -> None:
    before = git(remote, "rev-parse", "gh-pages")
    archive = zipped(tmp_path / "site.zip", {"index.html": PAGE, "x/.git/config": ""})
    assert publish(remote, archive, "pr-7").returncode == 1
    assert git(remote, "rev-parse", "gh-pages") == before


@pytest.mark.parametrize(
    "folder",
    [
        "pr-",
        "pr-0",
        "pr-007",
        "v01.2",
        "v1.02",
        "pr-1/..",
        "../x",
        "guide",
        "pr-1\n",
        "v1",
        "v1.0/x",
    ],
)
@pytest.mark.parametrize("verb", ["publish", "remove"])
def test_no_other_folder_can_be_named(
    verb: str, folder: str, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGES_REMOTE", "/nowhere")
    words = ["publish", "x.zip", "--commit", "c", "--address", "a"]
    with pytest.raises(SystemExit):
        script.main(["--folder", folder, *(words if verb == "publish" else ["remove"])])


def test_publishers_at_once_lose_nothing(remote: Path, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "site.zip", {"index.html": PAGE})
    folders = ["", "pr-11", "pr-12", "pr-13"]
    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(lambda folder: publish(remote, archive, folder), folders))
    assert [r.returncode for r in ran] == [0, 0, 0, 0], [r.stderr for r in ran]
    found = published(remote)
    assert {f"{folder}/index.html".lstrip("/") for folder in folders} <= set(found)
    assert set(json.loads(found["previews.json"])) == {"pr-3", "pr-11", "pr-12", "pr-13"}


def test_the_oldest_previews_make_room(script: ModuleType) -> None:
    ledger = {f"pr-{n}": {"bytes": 1.0, "published": float(n)} for n in range(1, 24)}
    assert script.crowded_out(ledger) == ["pr-3", "pr-2", "pr-1"]
    heavy = {f"pr-{n}": {"bytes": 250 * 2.0**20, "published": float(n)} for n in range(1, 5)}
    assert script.crowded_out(heavy) == ["pr-2", "pr-1"]


def test_the_size_that_an_archive_claims_is_not_believed(
    script: ModuleType, tmp_path: Path
) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("index.html", bytes(40 * 2**20))
    claimed = made.getvalue().replace(
        (40 * 2**20).to_bytes(4, "little"), (10).to_bytes(4, "little")
    )
    (tmp_path / "site.zip").write_bytes(claimed)
    with pytest.raises((script.Refused, zipfile.BadZipFile)):
        list(script.members(tmp_path / "site.zip"))


@pytest.mark.parametrize("path", ["pr-7/index.html", "v9.9/index.html", "pr-3/x.html"])
def test_a_build_of_the_site_cannot_hold_a_preview_or_a_version(
    path: str, remote: Path, tmp_path: Path
) -> None:
    before = git(remote, "rev-parse", "gh-pages")
    archive = zipped(tmp_path / "s.zip", {"index.html": PAGE, path: PAGE})
    done = publish(remote, archive)
    assert done.returncode == 1
    assert "would take the place of a preview or of a version" in done.stderr
    assert git(remote, "rev-parse", "gh-pages") == before
    assert publish(remote, archive, "pr-8").returncode == 0, "within a preview it is a folder"


def test_a_preview_has_no_worker_that_keeps_its_pages(remote: Path, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "s.zip", {"index.html": PAGE, "sw.js": "1", "a/sw.js": "1"})
    for folder in ("pr-7", "v1.0", ""):
        assert publish(remote, archive, folder).returncode == 0
    kept = {path for path in published(remote) if path.endswith("sw.js")}
    assert kept == {"sw.js", "a/sw.js", "v1.0/sw.js", "v1.0/a/sw.js", "pr-7/a/sw.js"}


def test_a_list_of_millions_of_files_is_refused_before_it_is_read(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred megabytes can list millions of files, for which `zipfile` takes gigabytes."""
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(200):
            archive.writestr(f"{number}.html", "")
    monkeypatch.setattr(script, "MOST_FILES", 10)
    monkeypatch.setattr(script, "MOST_BYTES_OF_A_LISTING", 100)
    monkeypatch.setattr(script.zipfile, "ZipFile", None)  # nothing is opened
    with pytest.raises(script.Refused, match="the list of its files is too long"):
        list(script.members(tmp_path / "many.zip"))
