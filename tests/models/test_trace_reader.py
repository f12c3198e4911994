"""Traces in pieces: what is read from them, and why some are refused."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.profiles import trace_reader
from figgen.models.profiles.trace_reader import trace_events

EXAMPLE = Path(__file__).parents[2] / "docs/assets/examples/data-parallel-rank0.json.gz"


def event(name: str, start: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": 17.25, "args": args}


def test_values_are_read_across_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pieces of seven characters every value is split; the result equals that of json."""
    monkeypatch.setattr(trace_reader, "PIECE", 7)
    whole = {
        "schemaVersion": 123456789,
        "distributedInfo": {"rank": 12},
        "traceEvents": [event("gemm [{", 1234.5 + i, b={"c": [i]}) for i in range(50)],
        "traceName": "after",
    }
    file = tmp_path / "trace.json"
    for content, events in ((whole, whole["traceEvents"]), (whole["traceEvents"],) * 2):
        file.write_text(json.dumps(content), encoding="utf-8")
        assert [found for _, found in trace_events(str(file))] == events


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("nested", [{"b": 1}, [{"c": "},{"}, {}]])
def test_the_end_of_an_event_is_searched_once_a_window(
    tmp_path: Path, separators: tuple[str, str], nested: Any
) -> None:
    """Each search reads a megabyte, so one per event made a small packed trace take a minute."""
    events = [event("gemm", 1.0 + i, b=nested) for i in range(2_000)]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": events}, separators=separators), encoding="utf-8")
    searches = 0

    def count(_frame: object, kind: str, called: Any) -> None:
        nonlocal searches
        searches += kind == "c_call" and called.__name__ == "rfind"

    sys.setprofile(count)
    try:
        read = [event for _, event in trace_events(str(file))]
    finally:
        sys.setprofile(None)
    assert read == events
    assert searches < 20


REFUSED = {
    "": "an empty file",
    "[": "a whole JSON value",
    '{"traceEvents": [{"ph": "M"}': "one of ,",
    '{"traceEvents": [1]}': "events that are objects",
    '{"a": 1}': "a list traceEvents",
    '{"traceEvents": []}': "kernels, or operators",
    '{"traceEvents": [{"ph": "X", "ts": NaN, "dur": 1}]}': "a finite ts",
    '{"traceEvents": [{"ph": "X", "ts": 1, "dur": -1}]}': "a finite ts",
    '{"traceEvents": [{"ph": "X", "ts": "1"}]}': "a finite ts",
    "[" * 5000: "at most 200 nested lists and objects",
}


def test_what_is_wrong_is_shown_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_reader, "PIECE", 1000)
    whole = json.dumps({"traceEvents": [event(f"gemm {n}", n) for n in range(50)]})
    place = whole.index(', {"ph"', 2000)
    file = tmp_path / "trace.json"
    file.write_text(f"{whole[:place]};{whole[place + 1 :]}", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        list(trace_events(str(file)))
    got = f";{whole[place + 1 : place + 40]}"  # half a line of a screen
    assert f"character {place:,}: expected one of ,, got {got!r}" in str(refused.value)
    monkeypatch.setattr(trace_reader, "LARGEST_VALUE", 1000)
    file.write_text(f'{{"made": "{"x" * 1200}", {whole[1:]}', encoding="utf-8")
    with pytest.raises(InputError, match="at most 1,000 characters"):
        list(trace_events(str(file)))


@pytest.mark.parametrize("content", REFUSED)
def test_what_is_no_trace_is_refused_in_one_line(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trace.json"
    file.write_text(content, encoding="utf-8")
    assert main(["profile", str(file)]) == 2
    said = capsys.readouterr().err
    assert REFUSED[content] in said
    assert said.count("\n") == 1


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(EXAMPLE.read_bytes()[:4000])
    for path in (tmp_path / "none.json", tmp_path, cut):
        with pytest.raises(InputError, match="trace"):
            list(trace_events(str(path)))


def test_a_packed_file_unpacks_to_no_more_than_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A few kilobytes of gzip can contain gigabytes of spaces, which used to be read to the end."""
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b" " * 200_000_000))
    assert main(["profile", str(bomb), "--most-bytes", "5000000"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "at most 5,000,000 bytes, unpacked" in said
    assert main(["profile", str(EXAMPLE), "--most-bytes", "10000000"]) == 0
