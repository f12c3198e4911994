"""Every check of the catalog, applied to a real file with one mistake in it.

Each case takes a file as shipped, makes one edit, and expects the error to name the file, the entry
and the key. An edit whose text is not found fails too.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from figgen.catalog import load
from figgen.catalog.hardware import read_accelerators, read_links
from figgen.catalog.measurements import read_measurements
from figgen.catalog.models import read_models
from figgen.catalog.nccl import read_nccl
from figgen.catalog.presets import read_presets
from figgen.catalog.runs import read_runs
from figgen.entries.read import read_sources
from figgen.errors import InputError


def read(file: str, content: str) -> object:
    """Load one file as the catalog does, and the others as shipped."""
    if file.startswith("models"):
        return read_models(file, content, load.sources())
    if file.startswith("runs"):
        return read_runs(file, content, load.sources(), load.models(), load.accelerators())
    if file == "presets.toml":
        return read_presets(
            content, load.sources(), accelerators=load.accelerators(), links=load.links(),
            runs=load.runs(), nccl=load.nccl(),
        )  # fmt: skip
    if file in ("accelerators.toml", "measurements.toml"):
        if file == "accelerators.toml":
            return read_accelerators(file, content, load.sources(), load.links())
        return read_measurements(content, load.sources(), load.accelerators())
    if file == "sources.toml":
        return read_sources(content)
    readers = {"links.toml": read_links, "nccl.toml": read_nccl}
    return readers[file](content, load.sources())


def entry_of(file: str, name: str) -> str:
    """Return the text of one entry, including its header."""
    content = load.content(file)
    header = f'["{name}"]\n' if f'["{name}"]\n' in content else f"[{name}]\n"
    start = content.index(header)
    end = content.find("\n[", start + 1)
    return content[start : end if end >= 0 else len(content)]


HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;b&gt;", "{{ 1 }}",
    "[a](javascript:alert(1))", "`code`", "$x$", "a | b", "**bold**", "one\ntwo", "a\\b",
)  # fmt: skip
NAMES = (
    *HOSTILE, "../x", "../../etc/passwd", "javascript:x", "x" * 10_000, "a\x00b",
    "a\x1b[31m", "\u202eabc", "a\u200bb", "A", "a b", "", "constructor", "__proto__", ".", "..",
    "-", "a/b", "é", "toString", ".hidden", "1", "a\nb",
)  # fmt: skip
TEXTS = (*HOSTILE, "x" * 10_000, "a\x00b", "a\x1b[31m", "\u202eabc\u202c", "a\u200bb", "", " ")
DEFECTS = tomllib.loads((Path(__file__).parent / "defects.toml").read_text(encoding="utf-8"))[
    "defects"
]


@pytest.mark.parametrize(
    ("file", "entry", "text", "instead", "message"),
    DEFECTS,
    ids=[f"{file}-{message}" for file, _, _, _, message in DEFECTS],
)
def test_a_planted_defect_is_named(
    file: str, entry: str, text: str, instead: str, message: str
) -> None:
    shipped = entry_of(file, entry)
    assert text in shipped
    with pytest.raises(InputError) as raised:
        read(file, shipped.replace(text, instead, 1))
    first = str(raised.value).splitlines()[0]
    assert re.match(rf"{re.escape(file)}:\d+: \[", first)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_hostile_name_is_refused_in_one_line_with_its_file_and_section(name: str) -> None:
    shipped = entry_of("links.toml", "nvlink4")
    with pytest.raises(InputError) as raised:
        read("links.toml", shipped.replace("[nvlink4]", f"[{json.dumps(name)}]", 1))
    message = str(raised.value)
    assert re.match(r"links\.toml(:\d+)?: \[.*\]: a name: expected ", message)
    assert message.isprintable()
    assert len(message) < 250


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_hostile_title_is_refused_in_one_line_with_its_file_and_section(text: str) -> None:
    shipped = entry_of("accelerators.toml", "h100-sxm-80gb")
    title = re.search(r'^title = ".*"$', shipped, re.MULTILINE)
    assert title
    with pytest.raises(InputError) as raised:
        read("accelerators.toml", shipped.replace(title[0], f"title = {json.dumps(text)}", 1))
    message = str(raised.value)
    assert re.match(r"accelerators\.toml:\d+: \[h100-sxm-80gb\] title: ", message)
    assert message.isprintable()
    assert len(message) < 250


def test_all_faults_of_a_file_are_told_at_once_with_their_lines() -> None:
    text = entry_of("links.toml", "nvlink4") + entry_of("links.toml", "nvlink3")
    for right, wrong in (("\nbandwidth = ", "\nbandwith = "), ('seen = "2026-11"', 'seen = "now"')):
        assert right in text
        text = text.replace(right, wrong)
    with pytest.raises(InputError) as raised:
        read("links.toml", text)
    told = str(raised.value).splitlines()
    places = [line.split("] ")[0] + "] " + line.split("] ")[1].split(":")[0] for line in told]
    lines = text.splitlines()
    assert places == [
        f"links.toml:{number}: [{name}] {key}"
        for name, key, number in (
            (name, key, 1 + next(n for n, line in enumerate(lines) if n > start and key in line))
            for name in ("nvlink4", "nvlink3")
            for start in [lines.index(f"[{name}]")]
            for key in ("bandwith", "seen")
        )
    ]
    assert told[0].endswith("unknown key (did you mean bandwidth?)")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_of_the_catalog_is_markup(hostile: str) -> None:
    """A name on a page is displayed as a name, whatever part of the code writes it."""
    shipped = entry_of("models.toml", "gpt-2-xl")
    title = next(line for line in shipped.splitlines() if line.startswith("title = "))
    wanted = r"models\.toml:\d+: \[gpt-2-xl\] (title|note): not plain text"
    without = "".join(line for line in shipped.splitlines(True) if not line.startswith("note ="))
    for text in (f"title = {json.dumps(hostile)}", f"{title}\nnote = {json.dumps(hostile)}"):
        with pytest.raises(InputError, match=wanted):
            read("models.toml", without.replace(title, text))


def test_a_sum_that_is_off_passes_only_with_its_reason() -> None:
    kimi = entry_of("models.toml", "kimi-k2")
    reason = next(line for line in kimi.splitlines() if line.startswith("explained ="))
    read("models.toml", kimi)
    with pytest.raises(
        InputError, match=r"models\.toml:\d+: \[kimi-k2\] parameters: the shape sums"
    ):
        read("models.toml", kimi.replace(reason, ""))


def test_a_file_that_is_not_toml_is_named() -> None:
    with pytest.raises(InputError, match=r"links\.toml:\d+: not TOML"):
        read("links.toml", "[nvlink4\n")


def test_an_entry_twice_in_a_file_is_refused() -> None:
    with pytest.raises(InputError, match=r"links\.toml:\d+: not TOML"):
        read("links.toml", 2 * entry_of("links.toml", "nvlink4"))


def test_an_accelerator_without_a_peak_is_refused() -> None:
    v100 = entry_of("accelerators.toml", "v100-sxm2-32gb").replace('fp16 = "125 TFLOP/s"\n', "")
    with pytest.raises(InputError, match=r"\[v100-sxm2-32gb\]: no dense peak"):
        read("accelerators.toml", v100)


def test_a_missing_table_of_constants_is_named() -> None:
    with pytest.raises(InputError, match="latency-nvlink"):
        read("nccl.toml", entry_of("nccl.toml", "latency-base"))


def test_an_unknown_table_of_constants_gets_the_one_that_was_meant() -> None:
    renamed = entry_of("nccl.toml", "latency-base").replace("latency-base", "latency-bass")
    with pytest.raises(InputError, match="did you mean latency-base"):
        read("nccl.toml", renamed)


def test_a_name_in_two_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "MODEL_FILES", ("models.toml", "models.toml"))
    with pytest.raises(InputError, match=r"\[gpt-2-xl\]: twice in the catalog"):
        load.models.whole.__wrapped__()
    monkeypatch.setattr(load, "RUN_FILES", ("runs-reports.toml", "runs-reports.toml"))
    with pytest.raises(InputError, match=r"\[gpt-3-175b\]: twice in the catalog"):
        load.runs.whole.__wrapped__()
