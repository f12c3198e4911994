"""The public functions: the examples in their docstrings are what they return."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
import xml.etree.ElementTree as etree
from pathlib import Path

import pytest

import figgen
from figgen import api
from figgen.errors import InputError
from figgen.generated.api_page import api_page

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", api.FUNCTIONS)
def test_the_example_of_each_function_holds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (test,) = doctest.DocTestFinder(recurse=False).find(
        api.FUNCTIONS[name], name, globs={"figgen": figgen}
    )
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_page_shows_every_function_with_its_example() -> None:
    page = api_page()
    for name, function in api.FUNCTIONS.items():
        assert f"## figgen.{name} {{ #{name} }}" in page
        examples = doctest.DocTestParser().get_examples(function.__doc__ or "")
        assert all(f">>> {example.source.splitlines()[0]}" in page for example in examples)
    assert max(len(line) for line in page.split("```python")[1].splitlines()) <= 80


def test_the_package_offers_each_function_by_its_name() -> None:
    assert sorted(figgen.__all__) == sorted(api.FUNCTIONS)
    assert all(getattr(figgen, name) is api.FUNCTIONS[name] for name in figgen.__all__)
    with pytest.raises(AttributeError):
        figgen.nothing  # noqa: B018


def test_a_function_answers_what_the_command_line_does() -> None:
    words = ("memory", "--model", "llama-3-70b", "--nodes", "8", "--gpus-per-node", "8", "--json")
    told = subprocess.run(
        [sys.executable, "-m", "figgen", *words], capture_output=True, text=True, check=True
    ).stdout
    found = figgen.memory("llama-3-70b", nodes=8, gpus_per_node=8)
    assert json.loads(json.dumps(found.data)) == json.loads(told)


def test_a_notebook_shows_a_figure_and_its_numbers() -> None:
    found = figgen.figure("pipeline-timeline", schedule="1f1b", stages=2, microbatches=2)
    assert repr(found) == found.text
    assert repr(found.data).startswith(f"{len(found.data)} rows of lane, ")
    assert etree.fromstring(found._repr_svg_()).tag == "{http://www.w3.org/2000/svg}svg"
    shown = found._repr_html_()
    assert shown.startswith('<img alt="pipeline-timeline" src="data:image/svg+xml;base64,')
    assert "<table" in shown
    assert (
        {row["lane"] for row in found.data}
        == set(found.data.column("lane"))
        == {"rank 0", "rank 1"}
    )


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: figgen.memory("llama-3-70b", nodes=8, gpus_a_node=8), "gpus-a-node"),
        (lambda: figgen.figure("pipelin-timeline"), "did you mean pipeline-timeline"),
        (lambda: figgen.formula("bubble_fraction", stages=4), "needs microbatches"),
        (lambda: figgen.step("lama-3-70b", nodes=8, gpus_per_node=8), "did you mean"),
    ],
)
def test_bad_input_says_what_was_expected(ask, told: str) -> None:
    with pytest.raises(InputError, match=told):
        ask()
