"""Questions with an answer field, computed by the formula of their fold, in Python and
in a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from figgen.equations.call_data import CallData, followed, looked_up, number_of, varied
from figgen.errors import InputError
from figgen.formulas import FORMULAS, module
from figgen.markdown.questions import AnsweredQuestion, cases, form, questions
from figgen.publish.scripts import FOLDER
from figgen.scenarios.tools.graded import SLIPS, TOLERANCE, Candidate, candidates, graded, verdict
from figgen.units import format_quantity
from figgen.values import call_data, compute, evaluated, evaluated_or_nan, parse
from tests.translation.run import imported, ran
from tests.yours import lookups

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {path.stem: path.read_text("utf-8") for path in sorted(DOCS.glob("[gj]*/*.md"))}
ASKED = [
    (f"{path.parent.name}/{path.stem}", one)
    for path in sorted(DOCS.glob("[gj]*/*.md"))
    for one in questions(path.read_text("utf-8"))
]
JOURNEY = (
    "one-gpu", "two-replicas", "hiding", "sharding", "leaving-the-node", "splitting-the-layer",
    "splitting-the-depth", "long-sequences", "experts", "all-at-once", "when-it-does-not",
)  # fmt: skip
IDS = [f"{page}:{one.line}" for page, one in ASKED]


def slips_of(asked: CallData) -> list[Candidate]:
    return candidates(asked, evaluated_or_nan)


def shown(one: AnsweredQuestion) -> tuple[str, str, float]:
    """Return the answer as written in the fold, with its unit and value."""
    found, _ = compute(one.call)
    assert isinstance(found.value, int | float)
    return found.text(one.spec), found.unit, found.value


def test_sixty_questions_and_all_worked_problems_with_a_number_take_an_answer() -> None:
    assert len(ASKED) >= 60
    without = []
    for page, source in PAGES.items():
        folds = re.split(r"^\?\?\? question ", source, flags=re.M)[1:]
        for fold in folds:
            body = re.match(r"[^\n]*\n(?:(?:    [^\n]*)?\n)*", fold)
            assert body
            rest = fold[body.end() :]
            if fold.startswith('"Worked problem') and not rest.startswith("{= "):
                without.append((page, "{{" in body[0]))
    # Two of the problems have no number in them, so there is nothing to compute.
    assert without == [("placement", False), ("placement", False)]


@pytest.mark.parametrize(("page", "one"), ASKED, ids=IDS)
def test_the_answer_of_the_fold_is_right_and_other_numbers_have_others(
    page: str, one: AnsweredQuestion
) -> None:
    text, unit, value = shown(one)
    found = call_data(parse(one.call))
    assert evaluated(found) == pytest.approx(value)
    slips = slips_of(found)
    assert graded(text, unit, value, text, slips).right
    assert not graded(format_quantity(3.7 * value, unit, "unit.6"), unit, value, text, slips).right
    for case in cases(one):
        changed = varied(found, case.changes)
        new = evaluated(changed)
        assert abs(new / value - 1) > 0.05
        written = format_quantity(new, unit, one.spec)
        assert graded(written, unit, new, written, slips_of(changed)).right, case.words
        if unit != "1":
            assert not graded(text, unit, new, written, slips_of(changed)).right, case.words


@pytest.mark.parametrize(("page", "one"), ASKED, ids=IDS)
def test_what_a_slip_gives_is_wrong_and_named(page: str, one: AnsweredQuestion) -> None:
    text, unit, value = shown(one)
    slips = slips_of(call_data(parse(one.call)))
    for slip in slips:
        if slip.value <= 0 or abs(slip.value / value - 1) < 0.05:
            continue
        typed = format_quantity(slip.value, unit, "unit.6")
        grade = graded(typed, unit, value, text, slips)
        assert grade.right or grade.why
        if not grade.right:
            assert any(grade.why == other.why for other in slips), (typed, grade)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("27.2 ms", "both directions"),
        ("6.81 ms", "bits for bytes"),
        ("435 ms", "bytes for bits"),
        ("58.5 ms", "GiB for GB"),
        ("27.22 ms", "both directions"),
        ("54.4 us", "prefix"),
        ("100 ms", ""),
    ],
)
def test_likely_slips_of_a_ring_are_explained(typed: str, why: str) -> None:
    call = (
        'ring_all_reduce_time(ranks=8, message_bytes="14 GB", latency_s="0 s", '
        "bandwidth_bytes_per_s=4.5e11)"
    )
    found = call_data(parse(call))
    grade = graded(typed, "s", evaluated(found), "54.4 ms", slips_of(found))
    assert not grade.right
    assert why in grade.why
    assert bool(grade.why) is bool(why)


def test_slips_of_a_pipeline_are_told_apart() -> None:
    found = call_data(parse("bubble_fraction(stages=8, microbatches=32)"))
    why = {
        typed: graded(typed, "1", evaluated(found), "17.9%", slips_of(found)).why
        for typed in ("21.9%", "20%", "0.179", "1790%")
    }
    assert "work alone" in why["21.9%"]
    assert "P − 1" in why["20%"]
    assert why["0.179"] == ""
    assert "percent" in why["1790%"]


def test_an_answer_needs_its_unit_where_it_has_prefixes() -> None:
    with pytest.raises(InputError, match="a time, such as 43 ms"):
        graded("54", "s", 0.054, "54 ms", [])
    with pytest.raises(InputError, match="bytes"):
        graded("3 s", "B", 3.0, "3 B", [])
    assert graded("5.5B", "param", 5.48e9, "5.48B", []).right
    assert graded("13,824", "element", 13824, "13,824", []).right
    assert not graded("9 GPUs", "GPU", 8, "8", []).right


def test_slips_name_arguments_and_formulas_that_exist() -> None:
    names = {argument.name for one in FORMULAS.values() for argument in one.args}
    for slip in SLIPS:
        ends = {n for n in names if n == slip.argument or n.endswith(f"_{slip.argument}")}
        assert ends, slip
        assert set(slip.formulas) <= set(FORMULAS), slip
        assert not slip.other or slip.other in names


def test_a_page_grades_every_question_as_python_does(tmp_path: Path) -> None:
    asked, expected = [], []
    for _, one in ASKED:
        text, unit, _ = shown(one)
        data = re.search(r'data-ask="([^"]*)"', form(one, "x.js"))
        assert data
        given = json.loads(unescape(data[1]))
        others = [varied(given["call"], changes) for changes, _ in given["cases"]]
        for at, found in enumerate([given["call"], *others], start=-1):
            written = format_quantity(evaluated(found), unit, one.spec)
            typed = [text, written, "12 apples", format_quantity(3.7 * evaluated(found), unit, "")]
            typed += [format_quantity(slip.value, unit, "unit.6") for slip in slips_of(found)]
            asked.append([given, at, typed])
            told = [verdict(word, unit, one.spec, found, evaluated_or_nan) for word in typed]
            expected.append([[answer.right, answer.words] for answer in told])
    scripts = imported(PROGRAM, {f"{FOLDER}/formulas.js": module(FORMULAS.values())})
    assert ran(tmp_path, PROGRAM, scripts, asked) == expected


PROGRAM = """
import fs from "node:fs";
import { callOf, verdictOn } from "./assets/javascripts/tools/answers_model.js";
const asked = JSON.parse(fs.readFileSync("data.json", "utf8"));
console.log(JSON.stringify(asked.map(([given, at, typed]) => typed.map((text) => {
  const { right, words } = verdictOn(given, callOf(given, undefined, at), text);
  return [right, words];
}))));
"""


def test_on_a_readers_cluster_the_number_that_the_fold_shows_is_right() -> None:
    yours: dict[str, Any] = {
        "model": "llama-3-405b",
        "accelerator": "b200-sxm-hgx",
        "nodes": 128,
        "nic": "ib-xdr",
    }
    numbers = {stem: at for at, stem in enumerate(JOURNEY, start=1)}
    follow = []
    for page, one in ASKED:
        found, _ = compute(one.call)
        if found.follows is None:
            continue
        names = dict(lookups(numbers[page.removeprefix("journey/")], yours))

        def look_up(name: str, given: list[Any], field: str, names: Any = names) -> float:
            return float(getattr(names[name](*given), field))

        call = looked_up(found.follows, evaluated_or_nan, look_up)
        value = followed(found.follows, evaluated_or_nan, look_up)
        assert isinstance(found.value, int | float)
        typed = [format_quantity(shown, found.unit, one.spec) for shown in (value, found.value)]
        told = [verdict(t, found.unit, one.spec, call, evaluated_or_nan).right for t in typed]
        same = abs(found.value / value - 1) <= TOLERANCE
        assert told == [True, same], (page, one.asked)
        follow.append(same)
    assert follow.count(False) >= 4


def test_other_numbers_replace_an_argument_that_is_looked_up_by_its_own_value() -> None:
    sent = ["all_reduce_bytes_sent", {"ranks": 8, "message_bytes": 4.0}]
    times = {"latency_s": 0, "bandwidth_bytes_per_s": 2.0}
    call = ["point_to_point_time", {"message_bytes": sent, **times}]
    assert number_of(call, "message_bytes") == 4.0
    assert number_of(varied(call, {"message_bytes": 6.0, "ranks": 2}), "ranks") == 2
    assert evaluated(varied(call, {"message_bytes": 6.0})) == pytest.approx(6 * 7 / 8)


def test_a_question_stands_below_its_fold_and_names_a_value_of_it(
    convert: Callable[..., Any],
) -> None:
    fold = '??? question "Idle?"\n    {{ bubble_fraction(stages=4, microbatches=8):.1%}}\n\n'
    html, problems, *_ = convert(f"{fold}{{= bubble_fraction :: What share? :: stages =}}\n")
    assert not problems
    assert "<span>What share?</span>" in html
    data = json.loads(unescape(re.search(r'data-ask="([^"]*)"', html)[1]))  # type: ignore[index]
    assert data["call"] == ["bubble_fraction", {"stages": 4, "microbatches": 8}]
    assert data["unit"] == "1"
    assert len(data["cases"]) > 1
    for wrong, line in [
        (f"{fold}{{= bubble_overhead :: What share? =}}", 4),
        (f"{fold}{{= bubble_fraction#2 :: What share? =}}", 4),
        (f"{fold}{{= bubble_fraction :: What share? :: ranks =}}", 4),
        ("Text.\n\n{= bubble_fraction :: What share? =}", 3),
    ]:
        _, problems, *_ = convert(wrong)
        assert [problem.line for problem in problems] == [line], wrong
