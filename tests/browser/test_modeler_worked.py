"""The worked lines of the modeler, without its page: each ends in its number."""

from __future__ import annotations

import json
import re

import pytest

from tests.browser.engine import Ask
from tests.browser.modeler import TUNED

SUITES = "modeler_suites.js"


UNITS = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "min": 60, "B": 1, "FLOP": 1, "FLOP/B": 1} | {
    f"{prefix}{unit}": 10.0**power
    for prefix, power in zip("kMGTPEZ", range(3, 24, 3), strict=True)
    for unit in ("B", "B/s", "FLOP", "FLOP/s")
}
COUNTS = {"": 1, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
NUMBER = re.compile(r"([\d.]+)(?:\u00a0([^\s)]+)|([KMBT]?)(?![\w%])|%)")


def adds_up(text: str) -> bool:
    """Return whether the line is a calculation; fail if its numbers do not give its result."""
    if "= " not in text or re.search(r"[^\d\s.,·+−/()=%KMBTkGPEZFLOPsmiµn]", text):
        return False

    def number(match: re.Match[str]) -> str:
        value, unit, count = match.groups()
        factor = UNITS[unit] if unit else COUNTS[count] if count is not None else 0.01
        return repr(float(value) * factor)

    plain = NUMBER.sub(number, re.sub(r"(?<=\d),(?=\d{3})", "", text)).translate(
        str.maketrans("·−", "*-")
    )
    given, result = plain.rsplit("= ", 1)
    # Each number is shown with three digits; what is left of a difference has fewer.
    slack = (
        0.006 * sum(map(float, re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", given)))
        if "*" not in given
        else 0
    )
    # A share is shown to a tenth of a percent.
    slack = max(slack, 0.0006 * text.endswith("%"))
    assert eval(given) == pytest.approx(float(result), rel=0.016, abs=slack), text
    return True


def test_every_number_has_a_worked_line_that_ends_in_it(ask: Ask) -> None:
    queries = [
        "",
        "preset=deepseek-v3",
        "preset=llama-3-405b-131k",
        "nodes=2&zero=3&schedule=gpipe",
        *TUNED,
    ]
    checked = 0
    for query, lines in zip(queries, ask("worked", queries), strict=True):
        assert len(lines) > 80
        for key, found in lines.items():
            assert found, (query, key)
            for line in found:
                assert line["doc"], (query, key)
                assert "undefined" not in json.dumps(line), (query, key, line)
                assert "NaN" not in json.dumps(line), (query, key, line)
                if "name" not in line:
                    checked += adds_up(line["text"])
    assert checked > 300
    [first] = ask("worked", [""])
    forwards, both = first["operations"]
    assert forwards["text"] == "4 · 8 = 32"
    assert both["text"] == "32 + 32 = 64"
    assert first["fraction"][0]["text"] == "(4 − 1) / (8 + 4 − 1) ≈ 27.3%"
    assert first["efficiency"][1]["text"].endswith("= 12 microbatches".replace(" m", "\u00a0m"))


def test_one_call_of_every_row_takes_what_its_formula_says(ask: Ask) -> None:
    """The bandwidth in a worked line is the one that the engine computed with.

    If a step waits longer for its calls than that bandwidth explains, a separate line says so.
    """
    queries = ["", "preset=gpt-3-175b", "preset=qwen-3-235b-a22b", "preset=llama-3-405b-131k"]
    queries += TUNED
    answers, lines = ask("answers", queries), ask("worked", queries)
    checked = longer = 0
    for answer, worked in zip(answers, lines, strict=True):
        for index, row in enumerate(answer["step"]["communication"]):
            call, *more = worked[f"row:{index}"]
            if "value" in call:
                nominal_s = call["value"] * row["calls"]
                if len(more) > 1:
                    assert nominal_s < row["time_s"], call
                    assert row["exposed_s"] == pytest.approx(row["time_s"], rel=1e-9), call
                    longer += 1
                else:
                    assert nominal_s == pytest.approx(row["time_s"], rel=1e-9), call
                checked += 1
    assert checked > 20
    assert 0 < longer < checked / 2
