"""Finds a Chromium for the browser tests and, when run as a program, provides one.

The search looks at CHROME_PATH, then PATH, then Playwright's earlier downloads. Only the program
(`make test` runs it) installs one: the system's package as root, otherwise Playwright's download.
It prints the path that it found, and exits with 1 if there is none.

It needs nothing but Python, so on a new machine `make test` installs the system's package while pip
installs everything else.

A candidate counts only if it renders a page: Ubuntu's chromium-browser is a stub that only asks for
snap, and a browser without a usable sandbox starts, prints its version, and dies.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

# The shell has no windows: it draws and runs pages alike, in three quarters of the processor time.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)

# Nothing leaves the machine: no service of the browser's own, no name but the loopback address.
# Pictures are put together in software at once, without a library that imitates a GPU.
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-first-run",
)

# Without any font Chromium has nothing to draw text with, and Debian's package brings none.
PACKAGE_MANAGERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "apt-get": (
        ("update",),
        ("install", "-y", "--no-install-recommends", "chromium-headless-shell", "fonts-liberation"),
    ),
    "dnf": (("install", "-y", "chromium"),),
    "apk": (("add", "--no-cache", "chromium", "font-liberation"),),
    "zypper": (("--non-interactive", "install", "chromium"),),
    "pacman": (("-Sy", "--noconfirm", "chromium"),),
}

PLAYWRIGHT = (sys.executable, "-m", "playwright")
DOWNLOADED_NAMES = (
    "chrome",
    "chrome-headless-shell",
    "headless_shell",
    "Google Chrome for Testing",
)
START_TIMEOUT_S = 30
INSTALL_TIMEOUT_S = 240


def is_root() -> bool:
    """Return whether this process is root, for whom Chromium's sandbox does not work."""
    return os.geteuid() == 0


def flags() -> list[str]:
    """Return the switches with which every test browser is started."""
    return [*FLAGS, "--no-sandbox"] if is_root() else list(FLAGS)


def given() -> str | None:
    """Return CHROME_PATH, or else the browser that `find` finds.

    CHROME_PATH is not tested again, because whoever sets it (`make test` does) has tested it, and
    each test takes a worker 1.5 s.
    """
    return os.environ.get("CHROME_PATH") or find()


def find() -> str | None:
    """Return the path of the first Chromium that renders a page, or None."""
    return next(filter(starts, candidates()), None)


def candidates() -> Iterator[str]:
    """Return paths that may be a Chromium, in order of preference."""
    if named := os.environ.get("CHROME_PATH"):
        yield named
    yield from filter(None, map(shutil.which, NAMES))
    yield from downloaded()


def downloaded() -> Iterator[str]:
    """Return executables in the folders in which the installed Playwright keeps its browsers."""
    _, plan = run(*PLAYWRIGHT, "install", "--dry-run", "chromium", timeout_s=START_TIMEOUT_S)
    for line in plan.splitlines():
        key, _, folder = line.strip().partition(":")
        if key == "Install location":
            paths = sorted(Path(folder.strip()).rglob("*"))
            yield from (str(path) for path in paths if path.name in DOWNLOADED_NAMES)


def starts(executable: str) -> bool:
    """Return whether `executable` renders an empty page within half a minute."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        code, page = run(
            executable,
            *flags(),
            "--headless",
            f"--user-data-dir={profile}",
            "--dump-dom",
            "about:blank",
            timeout_s=START_TIMEOUT_S,
        )
    works = code == 0 and "<html" in page
    if not works:
        print(f"{executable} does not render a page; looking further", file=sys.stderr)
    return works


def provide() -> str | None:
    """Return the path of a Chromium, installing one if none is found; None if that fails."""
    found = find()
    for install in (install_package, download):
        if found is None:
            install()
            found = find()
    return found


def install_package() -> None:
    """Install the system's own Chromium, if this is root and the package manager is known."""
    manager = next(filter(shutil.which, PACKAGE_MANAGERS), None)
    if is_root() and manager:
        for arguments in PACKAGE_MANAGERS[manager]:
            install_step(manager, *arguments)


def download() -> None:
    """Download Playwright's headless Chromium and, as root, the libraries that it needs."""
    if is_root():
        install_step(*PLAYWRIGHT, "install-deps", "chromium")
    install_step(*PLAYWRIGHT, "install", "--only-shell", "chromium")


def install_step(*command: str) -> None:
    """Run one step of an installation; a failure is reported, and the search afterward decides."""
    print("No Chromium yet:", *command, file=sys.stderr)
    code, output = run(*command, timeout_s=INSTALL_TIMEOUT_S)
    if code != 0:
        print(*output.splitlines()[-5:], sep="\n", file=sys.stderr)


def run(*command: str, timeout_s: float) -> tuple[int, str]:
    """Return exit code and output of a command without input, which is stopped after its time
    limit."""
    try:
        process = start(command)
    except OSError as error:
        return 127, str(error)
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return 124, f"{output}\nstopped after {timeout_s:g} s"
    return process.returncode, output


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    """Start the command as a separate process group, so that its children can be
    stopped with it."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        start_new_session=True,
    )


def main() -> int:
    """Print the path of a Chromium, providing one first if necessary."""
    path = provide()
    if path is None:
        print(
            "No Chromium: set CHROME_PATH to one, or run as root, or allow Playwright's download.",
            file=sys.stderr,
        )
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
