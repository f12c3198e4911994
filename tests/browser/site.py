"""The site for the browser tests: built once for all workers and served on the loopback
interface."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import http.server
import io
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Set where the site is published; they would put the published address into the pages under test.
PUBLISHING_VARIABLES = ("SITE_URL", "REPO_URL", "EDIT_URI")
# The day that the site map gives to every page.
SOURCE_DATE_EPOCH = "1767225600"
# How long a build may say nothing; it may take longer, on a machine that does much else.
PATIENCE_S = 30
FEW_PAGES = """INHERIT: mkdocs.yml
nav: [{sources}]
exclude_docs: |
  *.toml
  /about/changelog.md
  /about/releases/
  /overrides/
  /search.md
  {without}
validation:
  anchors: ignore
  not_found: ignore
  unrecognized_links: ignore
  omitted_files: ignore
"""


def copy_of_the_project(folder: Path) -> Path:
    """Copy the site's sources to a folder where they can be edited.

    Compiled modules are copied too: a copied file keeps its date, by which Python recognizes them.
    """
    for name in ("docs", "figgen", "hooks", "tests/oracles"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    return folder


def few_pages(
    folder: Path,
    sources: Collection[str],
    without: Collection[str] = ("/appendix/", "/reference/", "/validation/"),
) -> str:
    """Keep only these pages in a copy of the project, and return the configuration that builds
    them.

    Without the reference and the tools, a build takes a third of the time. `without` are the
    folders whose generated pages are omitted.
    """
    docs = folder / "docs"
    for path in docs.rglob("*.md"):
        if path.relative_to(docs).as_posix() not in sources:
            path.unlink()
    shutil.rmtree(docs / "assets" / "javascripts" / "tools")
    text = FEW_PAGES.format(sources=", ".join(sources), without="\n  ".join(without))
    (folder / "few.yml").write_text(text, encoding="utf-8")
    return "few.yml"


def build(
    directory: Path, root: Path = ROOT, configuration: str = "mkdocs.yml", **settings: str
) -> str:
    """Build the site into `directory`; return the output of mkdocs if it fails, else "".

    `root` is the folder of the sources, `settings` are environment variables for this build.
    """
    environment = {k: v for k, v in os.environ.items() if k not in PUBLISHING_VARIABLES}
    options = ("--strict", "--config-file", configuration, "--site-dir", str(directory))
    fixed = {"NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH}
    code, said = listened_to(
        [sys.executable, "-m", "mkdocs", "--verbose", "build", *options],
        cwd=root,
        env={**environment, **fixed, **settings},
    )
    told = [line for line in said.splitlines(keepends=True) if not line.startswith("DEBUG")]
    return "".join(told) if code else ""


def listened_to(command: Sequence[str], **options: Any) -> tuple[int, str]:
    """Return exit code and output of a command, stopped if it prints and computes nothing for too
    long."""
    said = b""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **options,
    ) as process:
        assert process.stdout is not None
        used = -1.0
        while True:
            if select.select([process.stdout], [], [], PATIENCE_S)[0]:
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    return process.wait(PATIENCE_S), said.decode(errors="replace")
                said += piece
            elif used == (used := processor_s(process.pid)):
                break
        os.killpg(process.pid, signal.SIGKILL)
    return 124, f"{said.decode(errors='replace')}\nsaid nothing for {PATIENCE_S} s"


def processor_s(pid: int) -> float:
    """Return the processor time of a process and its session, if the system reports it.

    A process that computes, or whose children compute, is not stuck.
    """
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            if str(pid) in (stat.parent.name, fields[3]):
                ticks += sum(map(int, fields[11:15]))  # with what its ended children computed
    return ticks / os.sysconf("SC_CLK_TCK")


def build_once(folder: Path) -> Path:
    """Build the site in `folder` in whichever process comes first, while the others wait.

    Its pictures are in a separate cache next to it, to which nothing else writes.

    Raises RuntimeError with the build's output, in every process, if the build failed.
    """
    outcome = folder / "outcome.txt"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not outcome.exists():
            outcome.write_text(
                build(folder / "site", FIGGEN_CACHE=str(folder / "cache")), encoding="utf-8"
            )
    if failure := outcome.read_text(encoding="utf-8"):
        raise RuntimeError(f"mkdocs build --strict failed:\n{failure}")
    return folder / "site"


class Server(http.server.ThreadingHTTPServer):
    """Accepts as many simultaneous connections as a browser opens, even on a busy machine."""

    request_queue_size = 128


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files with the types that a static host sends, whatever this machine's tables say."""

    extensions_map = {  # noqa: RUF012
        "": "application/octet-stream",
        ".css": "text/css",
        ".csv": "text/csv",
        ".html": "text/html; charset=utf-8",
        ".ico": "image/x-icon",
        ".js": "text/javascript",
        ".json": "application/json",
        ".mjs": "text/javascript",
        ".png": "image/png",
        ".svg": "image/svg+xml",
        ".txt": "text/plain; charset=utf-8",
        ".woff2": "font/woff2",
        ".xml": "application/xml",
    }

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing; a failing test reports what it missed."""


class Packing(Handler):
    """Serves texts compressed as a static host does, which affects what is timed."""

    def send_head(self) -> Any:
        path = Path(self.translate_path(self.path))
        file = path / "index.html" if path.is_dir() else path
        if not file.is_file() or file.suffix in (".png", ".woff2"):
            return super().send_head()
        body = gzip.compress(file.read_bytes(), 6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)


@contextlib.contextmanager
def serve(directory: Path, handler: type[Handler] = Handler) -> Iterator[str]:
    """Serve `directory` on a free loopback port; yield the address, without a trailing slash."""
    with Server(("127.0.0.1", 0), partial(handler, directory=str(directory))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
