"""Pages read quantities as the command line does: values, units and messages are equal."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from figgen.errors import InputError
from figgen.quantity_text import read_quantity
from figgen.scenarios.options.typed import typed_amount, typed_batch, typed_count, typed_measure
from figgen.scenarios.verdict.words import typed_speed
from tests.test_units import READ, REFUSED
from tests.translation.run import imported, ran

PROGRAM = """
import fs from "node:fs";
import { read_quantity } from "./assets/javascripts/quantity_text.js";
import {
  typed_amount, typed_batch, typed_count, typed_measure,
} from "./assets/javascripts/scenarios/options/typed.js";
const read = { read_quantity, typed_amount, typed_batch, typed_count, typed_measure };
const said = ([name, given]) => {
  try {
    const found = read[name](...given);
    return typeof found === "object" ? [found.value, found.unit] : found;
  } catch (error) {
    return error.name === "InputError" ? `refused: ${error.message}` : error.stack;
  }
};
console.log(JSON.stringify(JSON.parse(fs.readFileSync("data.json", "utf8")).map(said)));
"""
READERS = {
    one.__name__: one
    for one in (read_quantity, typed_amount, typed_batch, typed_count, typed_measure)
}
NONSENSE = [
    "", " ", "fast", "GB 3", "nan", "3 foo", "3 GB GB", "3 B//s", "1e", "3 /s", "1,23,456 B",
    "1,2,3", "1.2.3 s", "43,5.1 ms", "2h99", "2h30s", ",5", "1,,000", "1e999999999 B", "9" * 70,
    "1e301", "0x10", "--3", "1 000", "Infinity", "½", "3 μs/B", "3 kHz", "1.000", "1.234.567",
]  # fmt: skip
NUMBERS = [
    "0", "1", "3", "43,5", "1,500", "0.125", "989.4", "1.5e6", "6.25e-2", "1.234,5", "123456789",
]  # fmt: skip
UNITS = [
    "", "B", "GB", "GiB", "GB/s", "Gb/s", "Gbps", "µs", "μs", "us", "ms", "min", "h", "days", "k",
    "M", "tokens", "M tokens", "Mi tokens", "TFLOP/s", "%", "GPUs", "nodes", "$/GPU-h", "GB/h",
]  # fmt: skip


def said(name: str, given: list[Any]) -> object:
    try:
        found = READERS[name](*given)
    except InputError as error:
        return f"refused: {error}"
    if isinstance(found, int | float):
        return found
    return [float(found.value), found.unit]  # an exact 3.15 × 10²³ is Python's alone


def test_pages_read_what_the_command_line_reads(tmp_path: Path) -> None:
    written = [*READ, *REFUSED, *NONSENSE]
    written += [f"{number} {unit}" for number, unit in itertools.product(NUMBERS, UNITS)]
    counts = ["8k", "8K tokens", "512", "1,000", "1.000", "8 GPUs", "16 nodes", "1.5", "abc", "-3"]
    batches = [
        "512", "510", "4M tokens", "4M", "16M tok", "4,194,304 tokens", "1e6 tokens", "abc", "0",
        "2048 samples", "512 GPUs", "4 Mi tokens", "4,000,000 tokens", "4e6 tokens", "4m tokens",
    ]  # fmt: skip
    cases: list[tuple[str, list[Any]]] = [("read_quantity", [text]) for text in written]
    names = ("nodes", "sequence", "gpus_per_node")
    cases += [("typed_count", [name, text]) for name, text in itertools.product(names, counts)]
    cases += [("typed_batch", [text, *of]) for text in batches for of in ((8192, 4), (4096, 3))]
    cases += [
        ("typed_amount", ["latency", text, "s", 1e-6])
        for text in ("3", "3 µs", "0,5", "3 GB", "2h30", "1:30", "5m", "fast", "")
    ]
    cases += [
        ("typed_amount", ["tokens", text, "token", 1e9])
        for text in ("300", "1T", "1,5 T", "500B", "15T tokens", "3 GB")
    ]
    prices = ("$2.50", "€ 2,50", "2.5 $", "2.50", "$", "2.50 GB")
    cases += [("typed_amount", ["price", text, "1", 1.0]) for text in prices]
    cases += [
        ("typed_measure", ["--x", text, unit])
        for text in (
            "8 GiB",
            "8",
            "43,5 ms",
            "3 d",
            "1:30:00",
            "400 Gbps",
            "-3 B",
            "1e31 B",
            "x",
            "3 gb",
        )
        for unit in ("B", "s", "B/s")
    ]
    cases += [
        ("typed_measure", ["--x", text, "FLOP/s"])
        for text in ("1979 TFLOPS", "1,98 PFLOPs", "1979 TFLOP/s", "1979 TFLOP", "9 FLOPSY")
    ]
    scripts = imported(PROGRAM)
    found = ran(tmp_path, PROGRAM, scripts, cases)
    for case, answer in zip(cases, found, strict=True):
        shown = [float(answer[0]), answer[1]] if isinstance(answer, list) else answer
        assert shown == said(*case), case


@pytest.mark.parametrize(
    ("text", "sequence", "share", "sequences"),
    [
        ("512", 8192, 4, 512),
        ("4M tokens", 8192, 4, 512),
        ("16M tokens", 8192, 8, 2048),
        ("4,000,000 tokens", 8192, 4, 512),
        ("4e6 tokens", 8192, 4, 512),
        ("4m tokens", 8192, 4, 512),
        ("4M tokens", 4000, 8, 1000),
        ("4,194,304 tokens", 8192, 4, 512),
        ("1,000 sequences", 4096, 8, 1000),
    ],
)
def test_a_batch_is_taken_in_sequences_or_tokens(
    text: str, sequence: int, share: int, sequences: int
) -> None:
    """Llama 3's 4M and 16M tokens are 512 and 2,048 sequences of 8,192 (arXiv 2407.21783)."""
    assert typed_batch(text, sequence, share) == sequences


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("510", ("508", "512")), ("4M", ()), ("abc", ()), ("512 GPUs", ()), ("1.000", ("1,000", "1"))],
)
def test_a_batch_that_is_none_gets_a_message_of_its_own(
    text: str, nearest: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as caught:
        typed_batch(text, 8192, 4)
    assert caught.value.nearest == nearest
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("9.5", 9.5),
        ("9,5", 9.5),
        ("43,5 ms", 0.0435),
        ("5m", 300),
        ("3 d", 259_200),
        ("1 hr", 3600),
    ],
)
def test_the_field_of_a_time_takes_what_people_write(text: str, seconds: float) -> None:
    assert typed_amount("step_time", text, "s", 1.0) == seconds


@pytest.mark.parametrize("text", ["fast", "", "1:30", "2h75", "1:75:00", "3 weeks"])
def test_what_is_no_time_gets_a_message_about_times(text: str) -> None:
    with pytest.raises(InputError, match=r"a time, such as 43\.5 ms, 2h30 or 1:30:00") as caught:
        typed_amount("step_time", text, "s", 1.0)
    assert caught.value.got == text


def test_thousands_in_the_german_way_are_asked_about_in_a_count_only() -> None:
    with pytest.raises(InputError, match="did you mean 1,000 or 1"):
        typed_count("nodes", "1.000")
    assert typed_count("nodes", "1,000") == 1000
    assert read_quantity("1.000 s").value == 1


def test_a_sequence_of_8k_has_8192_tokens() -> None:
    assert [typed_count("sequence", text) for text in ("8k", "8K tokens", "8192")] == [8192] * 3
    assert typed_count("microbatches", "8k") == 8000


def test_a_rate_of_work_may_be_written_as_datasheets_do() -> None:
    for text in ("1979 TFLOPS", "1979 TFLOPs", "1.979 PFLOP/s"):
        assert typed_measure("--peak", text, "FLOP/s") == 1979e12
    assert typed_speed("412 TFLOPS/GPU") == ("tflops", 412e12)
    assert typed_speed("1m30s") == ("step_time", 90)
    with pytest.raises(InputError, match="the time of a step, tokens/s or TFLOP/s"):
        typed_speed("fast")
    with pytest.raises(InputError):
        typed_measure("--bytes", "8 GFLOPS", "B")


def test_a_price_may_have_the_sign_of_its_currency() -> None:
    for text in ("$2.50", "€ 2,50", "2.5 $", "2.50"):
        for name in ("price", "money"):  # of the page and of the command line
            assert typed_amount(name, text, "1", 1.0) == 2.5
    with pytest.raises(InputError):
        typed_amount("compute_efficiency", "$2.50", "1", 1.0)
