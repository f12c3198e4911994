"""The tools for agents, called as an agent calls them: over a process's streams."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import figgen
from figgen import agents
from figgen.__main__ import main
from figgen.api import FUNCTIONS
from figgen.errors import InputError
from figgen.registry import all_figures, all_formulas

ROOT = Path(__file__).parents[1]
JOB = {"model": "llama-3-70b", "nodes": 8, "gpus_per_node": 8, "tp": 8, "pp": 4}
ASKED: dict[str, dict[str, Any]] = {
    "formula": {"name": "bubble_fraction", "arguments": {"stages": 4, "microbatches": 8}},
    "figure": {
        "name": "pipeline-timeline",
        "arguments": {"schedule": "1f1b", "stages": 4, "microbatches": 8},
    },
    "step": JOB,
    "memory": {**JOB, "zero": 1},
    "ranks": {"nodes": 2, "gpus_per_node": 8, "tp": 2, "pp": 4},
    "schedule": {"name": "1f1b", "stages": 2, "microbatches": 2},
    "trace": {"collective": "all-reduce", "algorithm": "ring", "ranks": 4},
    "cost": {
        "collective": "all-reduce", "algorithm": "ring", "ranks": 8, "bytes": "1 GB",
        "link": "nvlink4",
    },
    "take": {"file": "docs/assets/examples/train.sh"},
    "plan": {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8},
    "misspelt": {},
}  # fmt: skip
WRONG = {
    "step": {**JOB, "tp": 3},
    "cost": {"collective": "all-reduce", "ranks": 8, "bytes": "1 GB", "link": "nvlink44"},
    "schedule": {"stages": 2, "microbatches": 2},
}


async def session() -> dict[str, Any]:
    """One session: the tools, and every correct and incorrect call."""
    from mcp import Client  # takes a second, also in a worker that runs none of these tests
    from mcp.client.stdio import StdioServerParameters

    program = StdioServerParameters(
        command=sys.executable, args=["-m", "figgen", "serve-tools"], cwd=ROOT
    )
    async with Client(program, read_timeout_seconds=30) as client:
        listed = (await client.list_tools()).tools
        right = {name: await client.call_tool(name, given) for name, given in ASKED.items()}
        wrong = {name: await client.call_tool(name, given) for name, given in WRONG.items()}
        return {"listed": listed, "about": client.instructions, "right": right, "wrong": wrong}


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return asyncio.run(session())


def test_the_ten_functions_are_listed_with_their_options(told: dict[str, Any]) -> None:
    listed = {tool.name: tool for tool in told["listed"]}
    assert list(listed) == list(FUNCTIONS)
    assert "Options are those of the command line" in told["about"]
    for name, tool in listed.items():
        assert tool.description == inspect.getdoc(FUNCTIONS[name])
        assert set(tool.input_schema["required"]) <= set(tool.input_schema["properties"])
        given = ASKED[name]
        assert set(given) <= set(tool.input_schema["properties"]), name
    assert "description" in listed["step"].input_schema["properties"]["microbatch_size"]


def test_every_tool_answers_what_its_function_answers(told: dict[str, Any]) -> None:
    right = {name: answer for name, answer in told["right"].items() if name != "misspelt"}
    assert [name for name, answer in right.items() if answer.is_error] == []
    assert right["formula"].structured_content["value"] == pytest.approx(3 / 11)
    assert "Huang" in right["formula"].content[0].text
    assert right["figure"].structured_content["values"]["bubble_fraction"] == pytest.approx(3 / 11)
    assert right["step"].structured_content == dict(figgen.step(**JOB))
    assert right["ranks"].structured_content["dense"]["tp"][0] == [0, 1]
    assert right["schedule"].structured_content["order"][0] == ["0F0", "0F1", "0B0", "0B1"]
    assert len(right["trace"].structured_content["steps"]) == 2 * (4 - 1)
    # 2 (N − 1) messages of an eighth of a gigabyte at 450 GB/s, with their latency.
    assert 1000 * right["cost"].structured_content["time_s"] == pytest.approx(3.94, abs=0.06)
    assert right["take"].structured_content["format"] == "megatron-lm"
    memory = figgen.memory(**JOB, zero=1)
    assert right["memory"].content[0].text == memory.text


def test_bad_input_is_an_answer_that_says_what_was_expected(told: dict[str, Any]) -> None:
    wrong = told["wrong"]
    assert all(answer.is_error for answer in wrong.values())
    assert "nvlink4" in wrong["cost"].content[0].text
    assert "tp" in wrong["step"].content[0].text
    assert "'name' is missing" in wrong["schedule"].content[0].text
    unknown = told["right"]["misspelt"]
    assert unknown.is_error
    assert "formula" in unknown.content[0].text


def test_an_option_that_no_verb_has_is_named() -> None:
    with pytest.raises(InputError, match="gpu-count"):
        agents.called("step", {**JOB, "gpu_count": 8})
    with pytest.raises(InputError, match="unknown formula"):
        agents.called("formula", {"name": "bubble_fractoin", "arguments": {}})


def test_the_skill_names_every_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve-tools", "--skill"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("---\nname: figgen\ndescription: ")
    assert [name for name in FUNCTIONS if f"- {name}: " not in text] == []


QUESTIONS = json.loads((ROOT / "tests" / "agent_questions.json").read_text("utf-8"))["questions"]
"""Fifty questions as an agent asked them, each with an answer calculated by hand."""


def test_fifty_questions_have_the_answers_of_a_reckoning_by_hand() -> None:
    """With the descriptions alone, 49 were right at the first try (45 required); now all are."""
    assert len(QUESTIONS) == 50
    assert {asked["tool"] for asked in QUESTIONS} == set(FUNCTIONS)
    for asked in QUESTIONS:
        _, found = agents.called(asked["tool"], asked["given"])
        for key in asked["at"]:
            found = len(found) if key == "#" else found[key]
        by_hand = eval(asked["by"], {"__builtins__": {}})
        assert found == pytest.approx(by_hand, rel=asked.get("rel", 1e-6)), asked["ask"]


def test_an_agent_finds_names_without_a_command_line() -> None:
    for kind, names in (("formula", all_formulas()), ("figure", all_figures())):
        listed = agents.schema(kind)["properties"]["name"]["description"]
        assert all(name in listed for name in names)
    formulas = agents.schema("formula")["properties"]["name"]["description"]
    assert "training_cost(gpu_hours, price_per_gpu_hour)" in formulas
    told = [p for name in FUNCTIONS for p in agents.schema(name)["properties"].values()]
    assert not any("SUPPRESS" in one.get("description", "") for one in told)
