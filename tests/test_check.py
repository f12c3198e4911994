"""What `make check` checks, `make test` checks too, so that it cannot be lost unnoticed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from figgen.__main__ import main
from tests.thorough import THOROUGH

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
(RECIPE,) = re.findall(r"^check:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.M)
COMMANDS = re.findall(r"^\t(?:\$\(RUN\) |\.venv/bin/)(.+)$", RECIPE, flags=re.M)


def test_every_line_of_the_check_is_a_command_of_the_environment() -> None:
    assert len(COMMANDS) == RECIPE.count("\n") >= 5


# These are tests of their own, without a process for each: tests/test_layers, tests/test_agreement.
# Types take a minute, which a usual run leaves to `make check`; CI asks it of every change.
ELSEWHERE = ("pytest ", "figgen agree ", *(() if THOROUGH else ("mypy",)))


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if not command.startswith(ELSEWHERE)]
)
def test_check_passes(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = command.split()
    if program == "figgen":  # in this process, which keeps the figures that other tests built
        monkeypatch.chdir(ROOT)
        assert main(words) == 0, capsys.readouterr().out
        return
    beside = Path(sys.executable).with_name(program)  # zizmor is no module
    done = subprocess.run(
        [*([str(beside)] if program == "zizmor" else [sys.executable, "-m", program]), *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_what_the_check_leaves_to_pytest_is_there() -> None:
    files = [command.split()[-1] for command in COMMANDS if command.startswith("pytest ")]
    assert files
    assert all((ROOT / file).exists() for file in files)
