"""The golden comparison reports what changed, and what to do about it."""

from __future__ import annotations

from pathlib import Path

from tests import goldens


def test_written_text_has_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "schedule.txt"
    goldens.write(path, "F0 F1\nB0 B1")
    assert goldens.difference(path, "F0 F1\nB0 B1") == ""


def test_changed_line_is_shown_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "schedule.txt"
    goldens.write(path, "F0 F1\nB0 B1")
    message = goldens.difference(path, "F0 F1\nB1 B0")
    assert "make golden" in message
    assert "-B0 B1" in message
    assert "+B1 B0" in message


def test_missing_golden_names_the_command_that_writes_it(tmp_path: Path) -> None:
    message = goldens.difference(tmp_path / "new.txt", "text")
    assert "new.txt has never been written" in message
    assert "make golden" in message
