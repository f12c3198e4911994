"""Processes take pieces of work from both ends; none waits for one that has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from figgen.serving import others
from figgen.serving.others import Others, beside

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="builds fork on Linux only")
PIECES = [str(number) for number in range(8)]


@pytest.fixture
def begun() -> Iterator[list[Others]]:
    running: list[Others] = []
    yield running
    for one in running:
        one.end()


def done_by(running: Others) -> list[str | None]:
    """Return the fork's result for every piece, requested from the first on."""
    return [running.made(piece) for piece in PIECES]


def test_every_piece_is_done_by_one_of_both_the_first_by_the_server(
    begun: list[Others],
) -> None:
    begun.append(Others(PIECES, lambda piece: f"{piece} by {os.getpid()}"))
    made = done_by(begun[0])
    ours = made.count(None)
    assert made[:ours] == [None] * ours
    assert {found.partition(" by ")[0] for found in made[ours:] if found} == set(PIECES[ours:])
    assert str(os.getpid()) not in "".join(filter(None, made))


def test_several_forks_share_what_the_first_does_not_do(begun: list[Others]) -> None:
    begun.append(Others(PIECES, lambda piece: f"{piece} by {os.getpid()}", 3))
    made = done_by(begun[0])
    ours = made.count(None)
    assert made[:ours] == [None] * ours
    assert [found.partition(" by ")[0] for found in made[ours:] if found] == PIECES[ours:]


def test_of_several_forks_one_that_is_killed_keeps_nobody_waiting(begun: list[Others]) -> None:
    one, other = os.pipe()
    first, fork = os.pipe()

    def do(piece: str) -> str:
        if piece == "b":  # the last is begun first; nobody else may find it free
            os.write(fork, b"b")
            os.read(one, 1)
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(other, b"a")
        return piece

    begun.append(Others(["a", "b"], do, 2))
    assert os.read(first, 1) == b"b"
    started = time.monotonic()
    assert begun[0].made("b") is None
    assert begun[0].made("a") == "a"
    assert time.monotonic() - started < others.PATIENCE_S


def test_the_first_waits_for_a_piece_that_the_fork_has_begun(
    begun: list[Others], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def do(piece: str) -> str:
        return gate.read_text() + piece

    begun.append(Others(["a", "b"], do))
    with gate.open("w") as opened:  # by the fork, which has begun with the last
        assert begun[0].made("a") is None
        opened.write("late ")
    assert begun[0].made("b") == "late b"
    assert begun[0].made("of no build") is None


def test_what_the_fork_cannot_do_is_left_for_the_server(begun: list[Others]) -> None:
    def do(piece: str) -> object:
        if piece == "3":
            raise ValueError(piece)
        return (lambda: piece) if piece == "5" else None

    begun.append(Others(PIECES, do))
    assert done_by(begun[0]) == [None] * len(PIECES)


def test_the_first_does_what_a_fork_that_was_killed_had_begun(begun: list[Others]) -> None:
    def do(piece: str) -> str:
        if piece == "5":
            os.kill(os.getpid(), signal.SIGKILL)
        return "x" * 1_000_000  # more than a pipe holds

    begun.append(Others(PIECES, do))
    begun[0]._forks[0][0].join()
    assert done_by(begun[0]) == [None] * 6 + ["x" * 1_000_000] * 2


def test_a_fork_that_says_nothing_is_not_waited_for(
    begun: list[Others], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def do(piece: str) -> str:
        with gate.open("w"):
            pass
        signal.pause()
        return piece

    begun.append(Others(["a"], do))
    gate.read_text()
    monkeypatch.setattr(others, "PATIENCE_S", 0.01)
    assert begun[0].made("a") is None


@pytest.mark.parametrize("processors", [1, 2])
def test_what_is_made_beside_is_made_here_where_nobody_else_can(
    processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.getpid()

    def make() -> int:
        if processors == 2 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    assert beside(make)() == here


def test_what_is_made_beside_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def make() -> int:
        gate.read_text()
        return os.getpid()

    made = beside(make)
    with gate.open("w"):  # by the other process, which has begun
        pass
    assert made() != os.getpid()


KILLED = """
import os, time
from figgen.serving.others import Others, beside

fork, server = os.pipe()

def do(piece):
    os.write(server, f"{os.getpid()}\\n".encode())
    time.sleep(600)

running = Others(["a"], do)
os.write(1, os.read(fork, 100))
time.sleep(600)
"""


def test_a_fork_ends_with_a_build_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    ) as server:
        assert server.stdout is not None
        assert int(server.stdout.readline())
        server.kill()
        # The pipe closes when its last writer, the fork, has ended: who buries it differs.
        assert server.communicate(timeout=20)[0] == ""
