"""Duplicates are errors, because one of the two values would silently win and be published."""

from __future__ import annotations

import pytest

from figgen.__main__ import main
from figgen.errors import InputError
from figgen.registry import build
from figgen.values import compute

TWICE = "stages=4, stages=5, microbatches=8"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"bubble_fraction({TWICE})", "stages"),
        (f"bubble_fraction({TWICE}):.1%", "stages"),
        ("bubble_fraction(stages=4, stages=4, microbatches=8)", "stages"),
        ("schedule('1f1b', stages=4, stages=8, microbatches=9).bubble_fraction", "stages"),
        (f"bubble_fraction(stages=2, microbatches=bubble_fraction({TWICE}))", "stages"),
        ("job('llama-3-8b', 'nodes=1 nodes=2 gpus_per_node=8 tp=8').step_time_s", "nodes"),
        (
            "job('llama-3-8b', 'nodes=1 gpus_per_node=8', 'zero_stage=1 zero_stage=3').step_time_s",
            "zero_stage",
        ),
    ],
)
def test_an_inline_value_takes_each_argument_once(text: str, name: str) -> None:
    with pytest.raises(InputError, match=rf"{name}.*expected one value, got 2"):
        compute(text)


def test_a_figure_takes_each_word_of_its_sizes_and_options_once() -> None:
    with pytest.raises(InputError, match="'tp': expected one value, got 2"):
        build("rank-grid", {"sizes": "nodes=2 gpus_per_node=8 tp=2 tp=4"})


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["eval", "bubble_fraction", "stages=4", "stages=5", "microbatches=8"], "stages"),
        (["eval", f"bubble_fraction({TWICE})"], "stages"),
        (["show", "pipeline-timeline", "stages=4", "microbatches=8", "stages=5"], "stages"),
        (["show", "bubble-table", "--as", "csv", "--as", "text"], "--as"),
        (["step", "--model", "llama-3-8b", "--nodes", "1", "--nodes=2"], "--nodes"),
        (["step", "--model", "llama-3-8b", "--node", "1", "--nodes=1"], "--nodes"),
        (["convert", "busbw", "all-reduce", "--ranks", "8", "--ranks", "16"], "--ranks"),
        (["ranks", "--tp", "8", "--tp", "4"], "--tp"),
    ],
)
def test_the_command_line_takes_each_argument_once(
    words: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(words)
    except SystemExit as end:
        status = int(str(end.code))
    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert name in shown.err
    assert "expected one value, got " in shown.err
    assert shown.err.count("\n") == 1


def test_one_command_line_after_another_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["show", "pipeline-timeline", "schedule=1f1b", "--as", "csv"]) == 0
    assert capsys.readouterr().err == ""
