"""The progress line is drawn on a terminal and silent in a log."""

from __future__ import annotations

import io

from figgen.progress import Progress, Share, Spent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_the_count_and_then_a_clean_line(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    progress = Progress(what="plots", total=2, stream=stream)
    progress.advance()

    assert "1 of 2 plots" in stream.getvalue()
    assert "\x1b[36m" in stream.getvalue()

    progress.advance()

    assert stream.getvalue().endswith("\r\x1b[2K")


def test_no_colour_is_respected(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Progress(what="plots", total=3, stream=stream).advance()

    assert "\x1b[36m" not in stream.getvalue()


def test_a_log_stays_clean():
    stream = io.StringIO()
    Progress(what="plots", total=1, stream=stream).advance()

    assert stream.getvalue() == ""


def test_work_within_work_counts_for_itself_alone():
    times = iter((0.0, 1.0, 3.0, 7.0, 100.0, 101.0))
    spent = Spent(clock=lambda: next(times))
    with spent.on("converting"), spent.on("evaluating"):
        pass
    with spent.on("drawing"):
        pass

    assert spent.words() == "5.0 s converting, 2.0 s evaluating, 1.0 s drawing"


def test_a_terminal_is_told_how_much_was_read():
    terminal = Terminal()
    shown = Share(what="read of a.json", bytes=1000, stream=terminal)
    for read in (0, 1, 500, 500, 1000):
        shown.reached(read)
    shown.end()
    assert terminal.getvalue() == (
        "\r 0 % read of a.json \r 50 % read of a.json \r 100 % read of a.json \r\x1b[2K"
    )
    log = io.StringIO()
    Share(what="read", bytes=10, stream=log).reached(5)
    assert log.getvalue() == ""
