"""The command line: one verb per question; status 2 and one line for bad input."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from plotly import io as plotly_io
from pypdf import PdfReader

from figgen import __main__ as command_line
from figgen.__main__ import main
from figgen.catalog import ACCELERATORS, LINKS, MODELS, PRESETS
from figgen.commands import OneLineParser
from figgen.formulas import FORMULAS
from figgen.guide.lookups import RANGES
from figgen.quantity_shown import NBSP
from figgen.registry import all_figures

VERBS = (
    "list", "show", "eval", "stats", "ranks", "schedule", "trace", "convert", "cost", "memory",
    "step", "lint",
)  # fmt: skip


def said(capsys, *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_eval_prints_value_worked_line_and_source(capsys):
    out = said(capsys, "eval", "bubble_fraction(stages=4, microbatches=8):.1%").splitlines()

    assert out[0] == "27.3%"
    assert out[1].startswith("(4 − 1) / (8 + 4 − 1)")
    assert out[2].startswith("source: Huang")


def test_eval_as_json_gives_the_whole_number(capsys):
    answer = json.loads(said(capsys, "eval", "--json", "bubble_fraction(stages=4, microbatches=8)"))

    assert answer["value"] == 3 / 11
    assert answer["unit"] == "1"


def test_eval_gives_the_range_of_a_value_that_is_not_certain(capsys):
    h800, h100 = (f"accelerator('{name}-sxm-80gb').hbm_bytes:bytes" for name in ("h800", "h100"))
    shown = [said(capsys, "eval", call).splitlines()[0] for call in (h800, h100)]
    assert [line.replace(NBSP, " ") for line in shown] == ["80 GB (80 GB to 85.9 GB)", "80 GB"]
    answer = json.loads(said(capsys, "eval", "--json", h800))
    assert (answer["low"], answer["value"], answer["high"]) == (80e9, 80e9, 85.9e9)


@pytest.mark.parametrize("entries", [ACCELERATORS, LINKS], ids=["accelerators", "links"])
def test_a_bare_number_of_the_catalog_is_the_value_of_the_field_it_names(entries):
    found = 0
    for entry in entries.values():
        for name, field in RANGES.items():
            if hasattr(entry, name):
                assert getattr(entry, name) == getattr(entry, field).value
                found += 1
    assert found >= len(entries)


def test_show_draws_a_schedule_as_text(capsys):
    out = said(capsys, "show", "pipeline-timeline", "schedule=1f1b", "backward=1")

    assert "F0 F1 F2 F3" in out


def test_show_as_csv_has_one_row_per_slot(capsys):
    text = said(capsys, "show", "pipeline-timeline", "schedule=gpipe", "--as", "csv")
    rows = list(csv.reader(io.StringIO(text)))

    assert len(rows) == 1 + 4 * 8 * 2


def test_show_as_svg_stands_alone(capsys):
    out = said(capsys, "show", "pipeline-timeline", "schedule=gpipe", "--as", "svg")

    assert out.startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_show_as_json_is_the_chart(capsys):
    chart = json.loads(said(capsys, "show", "bubble-curves", "stages=[4, 8]", "--as", "json"))

    assert chart["kind"] == "Curves"
    assert [series["name"] for series in chart["series"]] == ["P = 4", "P = 8"]


@pytest.mark.parametrize(("form", "begin"), [("pdf", b"%PDF-"), ("png", b"\x89PNG"), ("csv", b"")])
def test_show_writes_a_file(capsys, tmp_path, form, begin):
    file = tmp_path / f"one.{form}"
    out = said(
        capsys, "show", "pipeline-timeline", "schedule=1f1b", "--as", form, "--to", str(file)
    )
    assert out == f"{file}: {file.stat().st_size:,} bytes\n"
    assert file.read_bytes().startswith(begin)


def test_show_names_a_file_after_its_figure(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said(capsys, "show", "bubble-curves", "stages=[4, 8]", "--as", "pdf", "--width", "icml")
    (page,) = PdfReader("bubble-curves.pdf").pages
    assert float(page.mediabox.width) == 3.25 * 72
    assert page.extract_text().count("P = ") == 2


def test_show_as_html_is_one_page_that_asks_no_server(capsys, tmp_path):
    file = tmp_path / "bubbles.html"
    said(capsys, "show", "bubble-curves", "stages=[4, 8]", "--as", "html", "--to", str(file))
    page = file.read_text("utf-8")
    assert "<title>bubble-curves</title>" in page
    assert not re.search(r'<(?:script|link|img)[^>]*(?:src|href)="', page)
    for name in ("P = 4", "P = 8"):
        assert json.dumps({"name": name})[1:-1].replace(": ", ":") in page
    assert "var(--fig-" not in page.rpartition("Plotly.newPlot")[2]


def test_show_as_plotly_is_what_the_package_reads(capsys):
    text = said(capsys, "show", "bubble-curves", "stages=[4, 8]", "--as", "plotly")
    made = plotly_io.from_json(text)
    assert [trace.name for trace in made.data] == ["P = 4", "P = 8"]
    assert made.data[0].line.color.startswith("#")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ring-film", "--as", "html"], "a figure: expected a chart, got 'a film'"),
        (["bubble-curves", "--as", "svg", "--width", "icml"], "--width: expected --as png or pdf"),
        (["bubble-curves", "--as", "pdf", "--width", "icmll"], "did you mean icml"),
        (
            ["bubble-curves", "stages=[4, 8]", "--as", "pdf", "--to", "a.svg"],
            "--to: expected a name that ends in .pdf, or --as svg, got 'a.svg'",
        ),
        (
            ["bubble-curves", "--as", "pdf", "--to", "/no/such/folder/a.pdf"],
            "--to: expected a file",
        ),
    ],
)
def test_what_cannot_be_written_is_one_line(capsys, arguments, message):
    assert main(["show", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_eval_takes_a_number_with_an_exponent_and_names_what_a_formula_needs(capsys):
    given = ("weight_bytes_per_param=2", "gradient_bytes_per_param=2", "dp=1", "zero_stage=0")
    state = ("eval", "--json", "zero_state_bytes", *given, "optimizer_bytes_per_param=12")
    values = [
        json.loads(said(capsys, *state, f"parameters={count}"))["value"]
        for count in ("6.7e9", "6.7E+9", "6700000000")
    ]
    assert values == [16 * 6.7e9] * 3
    assert main(["eval", "bubble_fraction"]) == 2
    assert "bubble_fraction needs stages, microbatches" in capsys.readouterr().err


def test_eval_takes_a_layer_of_a_fractional_number_of_parameters(capsys):
    out = said(
        capsys, "eval", "fsdp_layer_bytes", "layer_parameters=1.5", "bytes_per_param=2", "dp=4"
    ).splitlines()
    assert out[0] == "6.75\N{NO-BREAK SPACE}B"  # 3 × 1.5 × 2 × 3/4


def test_eval_takes_a_formula_and_its_arguments_apart(capsys):
    out = said(
        capsys,
        "eval",
        "ring_all_reduce_time:time",
        "ranks=8",
        "message_bytes=1 GB",
        "latency_s=1 µs",
        "bandwidth_bytes_per_s=450 GB/s",
    )

    assert out.startswith("3.9")


KINDS = {
    "figures": all_figures(),
    "formulas": FORMULAS,
    "models": MODELS,
    "accelerators": ACCELERATORS,
    "presets": PRESETS,
}


@pytest.mark.parametrize("kind", KINDS)
def test_list_names_everything_of_a_kind(capsys, kind):
    lines = said(capsys, "list", kind).splitlines()
    assert sorted(line.split()[0] for line in lines) == sorted(KINDS[kind])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("eval", "bubble(stages=4)"), "unknown formula 'bubble'"),
        (("show", "pipeline"), "unknown figure 'pipeline'"),
        (("show", "pipeline-timeline", "stages"), "a parameter: expected key=value, got 'stages'"),
        (("show", "pipeline-timeline", "schedule=1f1b", "stages=0"), "stages of schedule '1f1b'"),
        (("list", "figurs"), "unknown kind 'figurs' (did you mean figures"),
    ],
)
def test_bad_input_is_one_line_and_status_two(capsys, arguments, message):
    assert main(arguments) == 2
    error = capsys.readouterr().err

    assert message in error
    assert error.startswith("figgen: ")
    assert error.count("\n") == 1


def test_wrong_usage_is_one_line_and_status_two(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["ranks", "--nodes"])

    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
SHOWN_IN_README = re.findall(r"^\.venv/bin/figgen (.+)$", README, flags=re.MULTILINE)


@pytest.mark.parametrize("command", SHOWN_IN_README)
def test_a_command_of_the_readme_answers(capsys, command):
    assert said(capsys, *shlex.split(command))
    assert json.loads(said(capsys, *shlex.split(command), "--json"))


def test_the_readme_shows_every_verb_that_needs_no_pages():
    assert {command.split()[0] for command in SHOWN_IN_README} == {*VERBS, "take", "write"} - {
        "stats",
        "lint",
    }


@pytest.mark.parametrize("module", sorted(set(command_line.VERBS.values())))
def test_a_command_line_finds_its_verb_without_the_other_modules(module: str) -> None:
    added = OneLineParser().add_subparsers()
    import_module(f"figgen.commands.{module}").add(added)
    assert list(added.choices) == [v for v, where in command_line.VERBS.items() if where == module]


def test_without_a_verb_the_help_lists_them_all(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    ([a-z-]+)\s", capsys.readouterr().out, flags=re.MULTILINE)
    assert listed == list(command_line.VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_whose_examples_answer(capsys, tmp_path, monkeypatch, verb):
    if verb == "show":
        monkeypatch.chdir(tmp_path)  # one of its examples writes a file
    if verb == "ranks":
        monkeypatch.chdir(tmp_path)
        (tmp_path / "hostfile").write_text("one slots=8\ntwo slots=8\n")
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out.split("examples:")[1]
    examples = re.findall(rf"^  figgen ({verb}\b.*)$", shown, flags=re.MULTILINE)
    assert examples
    for example in examples:
        assert said(capsys, *shlex.split(example))


def test_help_on_a_models_sizes_says_which_take_a_number_a_name_or_a_switch(capsys):
    with pytest.raises(SystemExit):
        main(["step", "--help"])
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    for size in ("--layers N", "--norm NAME", "--tied on|off"):
        assert f"[{size}]" in told


@pytest.mark.parametrize("words", ["plan --help", "eval bubble_fraction(stages=4,microbatches=8)"])
def test_a_terminal_without_greek_letters_is_answered(words: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "figgen", *words.split()],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=Path(__file__).parents[1],
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\\u" in ran.stdout or "\\x" in ran.stdout
