"""Publishes a built site, or the preview of a pull request, on the branch that the host serves.

Runs with a token that writes, from the main branch, with the standard library alone.  What a
pull request built is data here: members of a zip file that are never unpacked to disk, of which
only regular files of known types and bounded size reach the branch, as blobs, through
`git fast-import`.  No work tree of the branch exists, so nothing in it can configure git.

Each publication replaces the branch by one commit without a parent, pushed only if the branch is
still what was read; whoever comes second reads again.  Nobody's work is lost, and neither the
history nor the number of previews grows without bound.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

BRANCH = "refs/heads/gh-pages"
LEDGER = "previews.json"
KEPT = {"CNAME", ".nojekyll", "robots.txt", LEDGER}
"""What stands at the root of the branch and belongs to no build."""

TYPES = {
    "css", "csv", "gz", "html", "ico", "jpg", "js", "json", "map", "md", "pdf", "png", "py",
    "svg", "txt", "webp", "woff2", "xml",
}  # fmt: skip
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")
"""Of a file or folder; a disk takes 255 bytes, and the host must write what is pushed to one."""

MOST_FILES = 12_000
MOST_BYTES_OF_A_LISTING = 600  # of a file with the longest path
MOST_BYTES_OF_A_FILE = 32 * 2**20
MOST_BYTES = 256 * 2**20
MOST_PREVIEWS = 20
MOST_BYTES_OF_PREVIEWS = 500 * 2**20
MOST_VERSIONS = 12
MOST_BYTES_OF_VERSIONS = 300 * 2**20
TRIES = 20
FOLDER = re.compile(r"pr-[1-9][0-9]{0,8}|v(0|[1-9][0-9]{0,3})(\.(0|[1-9][0-9]{0,3})){1,2}")
"""The folders beside the site: previews of pull requests, and versions by their tag."""

HEAD = re.compile(rb"\s*(?:<!doctype html>)?\s*<html[^<>]*>\s*<head>", re.IGNORECASE)
MOST_BYTES_BEFORE_A_HEAD = 1000
UNLISTED = b'<meta name="robots" content="noindex">'
ARTICLE = re.compile(rb"<article\b[^<>]*>")
VERSIONS = "about/versions/index.html"
LISTED = re.compile(rb'(<ul id="version-list">).*?(</ul>)', re.DOTALL)
"""The site's page of versions, and the list in it that is written here."""


class Refused(Exception):
    """What must not be published, with the reason."""


TOLD = (
    Refused, zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeError, NotImplementedError,
)  # fmt: skip
"""What is wrong with an archive, as it is noticed."""


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file of a zip; raises Refused for anything but plain files."""
    if archive.stat().st_size > MOST_BYTES:
        raise Refused("the archive is too large")
    _check_listing(archive)
    total = 0
    seen: set[str] = set()
    with zipfile.ZipFile(archive) as opened:
        infos = [info for info in opened.infolist() if not info.filename.endswith("/")]
        if len(infos) > MOST_FILES:
            raise Refused(f"{len(infos)} files, at most {MOST_FILES} are published")
        for info in infos:
            path = _checked(info)
            if path.lower() in seen:
                raise Refused(f"{path!r} stands twice")
            seen.add(path.lower())
            with opened.open(info) as file:
                content = file.read(MOST_BYTES_OF_A_FILE + 1)
            total += len(content)
            if len(content) > MOST_BYTES_OF_A_FILE or total > MOST_BYTES:
                raise Refused(f"{path!r} is too large, or all files together are")
            yield path, content
    for path in sorted(seen):
        if seen & {str(folder) for folder in PurePosixPath(path).parents}:
            raise Refused(f"{path!r} stands below a file")


def _check_listing(archive: Path) -> None:
    """Raise Refused where the archive lists more than a site has, before the list is read."""
    with archive.open("rb") as file:
        ending = zipfile._EndRecData(file)
    if ending and ending[zipfile._ECD_SIZE] > MOST_FILES * MOST_BYTES_OF_A_LISTING:
        raise Refused(f"the list of its files is too long, at most {MOST_FILES} are published")


def _checked(info: zipfile.ZipInfo) -> str:
    """The path of a member, if it is one of a regular file of a known type inside the site."""
    path = info.filename
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(f"{path!r} is encrypted or packed in an unusual way")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Refused(f"{path!r} is a link or a device")
    if len(path) > 400 or not all(NAME.fullmatch(part) for part in path.split("/")):
        raise Refused(f"{path!r} is no path inside a site")
    if PurePosixPath(path).suffix[1:].lower() not in TYPES:
        raise Refused(f"{path!r} is of no type that a site has")
    return path


def unlisted(html: bytes) -> bytes:
    """A page that search engines leave out."""
    head = HEAD.match(html[:MOST_BYTES_BEFORE_A_HEAD])
    end = head.end() if head else 0
    return html[:end] + UNLISTED + html[end:]


def of_version(html: bytes, path: str, folder: str, address: str) -> bytes:
    """A page of a version: it says so, and tells search engines that the site's own is the page."""
    address = address.rstrip("/")
    for begin in (b'<link rel="canonical" href="', b'<meta property="og:url" content="'):
        html = html.replace(begin + f"{address}/{folder}/".encode(), begin + f"{address}/".encode())
    root = "../" * (path.count("/") + 1)
    said = (
        f'<div class="admonition note"><p class="admonition-title">Version {folder}</p>'
        f"<p>This page stays as it was when {folder} was published. "
        f'<a href="{root}{path.removesuffix("index.html")}">The newest one</a> · '
        f'<a href="{root}{VERSIONS.removesuffix("index.html")}">All versions</a></p></div>'
    )
    article = ARTICLE.search(html)
    end = article.end() if article else 0
    return html[:end] + said.encode() + html[end:] if end else html


def with_versions(html: bytes, ledger: Mapping[str, Mapping[str, float]]) -> bytes:
    """The page of versions with a link to each that is published, the newest first.

    `target` keeps the theme from exchanging the content alone, which would mix two versions.
    """
    lines = ['<li><a href="../../">The newest</a></li>']
    for folder in sorted((name for name in ledger if name[0] == "v"), key=_release, reverse=True):
        day = time.strftime("%Y-%m-%d", time.gmtime(ledger[folder]["published"]))
        when = f', <time datetime="{day}">{day}</time>' if ledger[folder]["published"] else ""
        lines.append(f'<li><a href="../../{folder}/" target="_self">{folder}</a>{when}</li>')
    return LISTED.sub(lambda match: match[1] + "".join(lines).encode() + match[2], html)


def _release(folder: str) -> tuple[int, ...]:
    return tuple(int(part) for part in folder[1:].split("."))


def git(where: str, *words: str, stdin: bytes | None = None) -> bytes:
    """One git command in the bare repository `where`, without the machine's configuration."""
    ran = subprocess.run(
        ["git", "--git-dir", where, *words],
        input=stdin,
        capture_output=True,
        timeout=300,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"},
    )
    if ran.returncode:
        raise RuntimeError(f"git {words[0]}: {ran.stderr.decode(errors='replace').strip()}")
    return ran.stdout


def listing(where: str, commit: str) -> dict[str, str]:
    """The blob of every regular file of a commit; links and nested repositories are left out."""
    blobs = {}
    for line in git(where, "ls-tree", "-r", "-z", commit).split(b"\0"):
        if line.startswith(b"100"):
            about, path = line.split(b"\t", 1)
            blobs[path.decode()] = about.decode().split(" ")[2]
    return blobs


def belongs(path: str, folder: str) -> bool:
    """Whether a file of the branch is replaced when `folder` is published ("" is the site)."""
    if folder:
        return path.startswith(f"{folder}/")
    return path not in KEPT and not FOLDER.fullmatch(path.partition("/")[0])


def crowded_out(ledger: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The oldest previews and the lowest versions beyond the limits of number and size."""
    previews = [folder for folder in ledger if folder.startswith("pr-")]
    versions = sorted({*ledger} - {*previews}, key=_release, reverse=True)
    previews.sort(key=lambda folder: -ledger[folder]["published"])
    return [
        *_beyond(ledger, previews, MOST_PREVIEWS, MOST_BYTES_OF_PREVIEWS),
        *_beyond(ledger, versions, MOST_VERSIONS, MOST_BYTES_OF_VERSIONS),
    ]


def _beyond(
    ledger: Mapping[str, Mapping[str, float]], newest: list[str], most: int, most_bytes: int
) -> list[str]:
    kept_bytes, dropped = 0.0, []
    for place, folder in enumerate(newest):
        kept_bytes += ledger[folder]["bytes"]
        if place and (place >= most or kept_bytes > most_bytes):
            dropped.append(folder)
    return dropped


def commit_without_parent(
    where: str, kept: Mapping[str, str], added: Mapping[str, bytes], message: str
) -> str:
    """Write one commit of these files; returns its hash."""
    stream = [b"commit refs/heads/next\n", b"committer previews <previews@localhost> now\n"]
    stream += [_data(message.encode())]
    stream += [f"M 100644 {blob} {_quoted(path)}\n".encode() for path, blob in kept.items()]
    for path, content in added.items():
        stream += [f"M 100644 inline {_quoted(path)}\n".encode(), _data(content)]
    git(where, "fast-import", "--quiet", "--force", "--date-format=now", stdin=b"".join(stream))
    return git(where, "rev-parse", "refs/heads/next").decode().strip()


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def replace_folder(remote: str, folder: str, files: Mapping[str, bytes], message: str) -> None:
    """Make `folder` of the branch hold exactly `files`, whatever others publish meanwhile."""
    with tempfile.TemporaryDirectory() as where:
        git(where, "init", "--quiet", "--bare", where)
        for tries_left in reversed(range(TRIES)):
            git(where, "fetch", "--quiet", "--depth=1", remote, f"+{BRANCH}:refs/heads/old")
            old = git(where, "rev-parse", "refs/heads/old").decode().strip()
            new = _next(where, old, folder, files, message)
            lease = f"--force-with-lease={BRANCH}:{old}"
            try:
                git(where, "push", "--quiet", lease, remote, f"{new}:{BRANCH}")
                return
            except RuntimeError:
                if not tries_left:
                    raise
                time.sleep(random.uniform(0.1, 2))  # others publish as well


def _next(where: str, old: str, folder: str, files: Mapping[str, bytes], message: str) -> str:
    """The commit that follows `old`."""
    blobs = listing(where, old)
    ledger = _ledger(where, old, blobs)
    if folder:
        ledger.pop(folder, None)
        if files:
            size = sum(map(len, files.values()))
            ledger[folder] = {"bytes": size, "published": time.time()}
    gone = crowded_out(ledger)
    for name in gone:
        del ledger[name]
    kept = {
        path: blob
        for path, blob in blobs.items()
        if path != LEDGER and path.partition("/")[0] not in gone and not belongs(path, folder)
    }
    if folder in gone:
        files = {}  # a version below all that are kept
    added = {f"{folder}/{path}" if folder else path: content for path, content in files.items()}
    if VERSIONS in kept:
        added[VERSIONS] = git(where, "show", f"{old}:{VERSIONS}")
        del kept[VERSIONS]
    if VERSIONS in added:
        added[VERSIONS] = with_versions(added[VERSIONS], ledger)
    added[LEDGER] = json.dumps(ledger, indent=1, sort_keys=True).encode() + b"\n"
    if ".nojekyll" not in kept:
        added[".nojekyll"] = b""
    return commit_without_parent(where, kept, added, message)


def _ledger(where: str, commit: str, blobs: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """When each folder was published and its size; one that nobody noted is old and empty."""
    noted = json.loads(git(where, "show", f"{commit}:{LEDGER}")) if LEDGER in blobs else {}
    folders = {path.partition("/")[0] for path in blobs}
    found = sorted(name for name in folders if FOLDER.fullmatch(name))
    return {name: noted.get(name, {"bytes": 0, "published": 0}) for name in found}


def publish(archive: Path, folder: str, remote: str, address: str, commit: str) -> None:
    """Publish a built site at the root, or in the folder of a pull request or a version."""
    files = dict(members(archive))
    if "index.html" not in files:
        raise Refused("no index.html at the root of the site")
    if folder:
        preview = folder.startswith("pr-")
        for path in [path for path in files if path.lower().endswith(".html")]:
            page = files[path]
            files[path] = unlisted(page) if preview else of_version(page, path, folder, address)
        # The worker that keeps pages for reading without a network keeps none of a preview.
        left_out = {"robots.txt", "sw.js"} if preview else {"robots.txt"}
        for path in [p for p in files if p.startswith("sitemap.xml") or p in left_out]:
            del files[path]
    else:
        for path in files:
            if FOLDER.fullmatch(path.partition("/")[0]):
                raise Refused(f"{path!r} would take the place of a preview or of a version")
        for path in KEPT:
            files.pop(path, None)
        root = urlsplit(address).path.rstrip("/")
        files["robots.txt"] = (
            f"User-agent: *\nDisallow: {root}/pr-\nSitemap: {address.rstrip('/')}/sitemap.xml\n"
        ).encode()
    replace_folder(remote, folder, files, f"Publish {commit[:40]} in {folder or 'the site'}")


def main(words: list[str] | None = None) -> int:
    """`publish SITE.zip` or `remove`; what is refused is told and ends with status 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--folder", default="", help="pr-NUMBER or vMAJOR.MINOR; or the site itself"
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("remove")
    options = verbs.add_parser("publish")
    options.add_argument("archive", type=Path)
    options.add_argument("--commit", required=True)
    options.add_argument("--address", required=True, help="of the site's root")
    asked = parser.parse_args(words)
    remote, folder = os.environ["PAGES_REMOTE"], asked.folder
    if not FOLDER.fullmatch(folder) and (folder or asked.verb == "remove"):
        parser.error(f"--folder: expected pr-NUMBER or vMAJOR.MINOR, got {folder!r}")
    try:
        if asked.verb == "remove":
            replace_folder(remote, folder, {}, f"Remove {folder}")
        else:
            publish(asked.archive, folder, remote, asked.address, asked.commit)
    except TOLD as error:
        print(f"::error::not published: {str(error)[:300]!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
