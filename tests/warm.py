"""Runs Python commands in forks of a process that has imported the host and the press already.

Those imports, and matplotlib's for the shapes of markers, take much of a small build, and hundreds
of commands of tests would repeat them.
Nothing of a site's subject is imported, so every command registers its own. A command that tests
imports, hash seeds or another host has to start an interpreter of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORTED = (
    "mkdocs.commands.build", "figgen.plugin", "figgen.publish.site", "figgen.publish.companions",
    "figgen.search.publish", "figgen.serving.files", "figgen.serving.templates",
    "figgen.commands.changes", "figgen.commands.figures", "figgen.project", "figgen.prose.rules",
    "figgen.renderers.svg", "figgen.renderers.svg_plot", "figgen.tables", "latex2mathml.converter",
    "markdown.extensions.codehilite", "pymdownx.arithmatex", "pymdownx.superfences",
)  # fmt: skip


def run(
    folder: Path, *words: str, apart: bool = False, fresh: bool = False, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE …` or `python -c CODE …` in a folder, with figgen on the path.

    `apart` keeps what it says on standard error separate from standard output, `fresh` starts an
    interpreter of its own, and `settings` are environment variables.
    """
    settings |= {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"}
    if fresh:
        return subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            text=True,
        )
    with tempfile.TemporaryDirectory() as place:
        said, errors = Path(place, "said"), Path(place, "errors")
        order = {
            "words": words,
            "folder": str(folder),
            "environment": os.environ | settings,
            "said": str(said),
            "errors": str(errors if apart else said),
        }
        process = _process()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps(order)}\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        told = errors.read_text("utf-8") if apart else ""
        return subprocess.CompletedProcess(words, code, said.read_text("utf-8"), told)


@cache
def _process() -> subprocess.Popen[str]:
    """Start the process that forks; it ends with this one."""
    command = (sys.executable, "-m", "tests.warm")
    pipe = subprocess.PIPE
    settings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    process = subprocess.Popen(command, cwd=ROOT, env=settings, stdin=pipe, stdout=pipe, text=True)
    atexit.register(process.communicate)  # which closes its input, and waits
    return process


def _become(
    *, words: Sequence[str], folder: str, environment: dict[str, str], said: str, errors: str
) -> None:
    """Make this process what `python` would be with these words."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for stream, path in ((0, os.devnull), (1, said), (2, errors)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), stream)
    sys.path[0] = folder
    option, name, *rest = words
    sys.argv = [option, *rest]
    if option == "-m":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        exec(name, {"__name__": "__main__"})


def _serve() -> None:
    """Do what is asked, line by line; the fork returns from here with the command's result."""
    for name in IMPORTED:
        import_module(name)
    for line in sys.stdin:
        fork = os.fork()
        if not fork:
            _become(**json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()
