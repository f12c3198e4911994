"""`figgen ranks`: Megatron's own groups, in the promised JSON shape."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from figgen.__main__ import main

ORACLES = Path(__file__).parents[1] / "oracles"
RANKS = json.loads((ORACLES / "megatron_rank_groups.json").read_text(encoding="utf-8"))
WORLD_8 = ("--nodes", "1", "--gpus-per-node", "8", "--tp", "2")


def ranks(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["ranks", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "case", RANKS["cases"], ids=lambda case: f"{case['world']}-{case['order']}"
)
def test_ranks_prints_megatrons_groups_of_both_meshes(capsys, case):
    sizes = {"tp": 1} | {
        axis: case[axis] for axis in ("tp", "cp", "pp", "ep", "etp") if axis in case
    }
    flags = [text for axis, size in sizes.items() for text in (f"--{axis}", str(size))]
    world = ("--nodes", "1", "--gpus-per-node", str(case["world"]))
    answer = ranks(capsys, *world, *flags, "--order", case["order"])

    assert answer["world_size"] == case["world"]
    assert set(answer["dense"]) == {"tp", "cp", "dp", "pp"}
    assert set(answer["expert"]) == {"etp", "ep", "edp", "pp"}
    names = {"dense": {}, "expert": {"etp": "tp", "edp": "dp"}}
    for mesh, others in names.items():
        for axis, found in answer[mesh].items():
            recorded = case[mesh][others.get(axis, axis)]
            if isinstance(recorded, dict):
                found = hashlib.sha256(json.dumps(found).encode()).hexdigest()
                recorded = recorded["sha256"]
            assert found == recorded


def test_groups_asked_for_stay_on_their_meshes(capsys):
    answer = ranks(capsys, *WORLD_8, "--cp", "2", "--groups", "tp,pp,ep,dp-cp,etp-ep")

    assert set(answer["dense"]) == {"tp", "pp"}
    assert set(answer["expert"]) == {"pp", "ep"}
    assert answer["combined"]["dp-cp"] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert answer["combined"]["etp-ep"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert set(answer["crossings"]) == {"tp", "pp", "ep", "dp-cp", "etp-ep"}


def test_an_order_without_experts_has_no_expert_groups(capsys):
    answer = ranks(capsys, *WORLD_8, "--order", "llama3")

    assert answer["expert"] == {}
    assert set(answer["dense"]) == {"tp", "cp", "dp", "pp"}
    assert set(answer["crossings"]) == {"tp", "cp", "dp", "pp", "dp-cp"}


def test_crossings_say_which_groups_leave_their_node_and_by_how_many_links(capsys):
    # TP 3 on nodes of 4: groups 0–2 | 3–5 | 6–8 | 9–11, of which the middle two cross.
    answer = ranks(capsys, "--nodes", "3", "--gpus-per-node", "4", "--tp", "3")

    assert answer["crossings"]["tp"]["inter_node_links_by_group"] == [0, 2, 2, 0]
    assert answer["crossings"]["tp"]["crossing_groups"] == 2
    assert answer["warnings"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tp", "8", "--pp", "2", "--dp", "4", "--nodes", "32"), "did you mean tp=8 pp=2 dp=16"),
        (("--tp", "2", "--groups", "tq"), "axes of a communicator"),
        (("--tp", "2", "--groups", "tp,"), "axes of a communicator"),
        (("--tp", "2", "--groups", "tp-ep"), "axes of a communicator"),
        (("--tp", "2", "--groups", "ep", "--order", "llama3"), "lays out no experts"),
        (("--tp", "2", "--nodes", "1048576"), "at most 1,048,576, got 8388608"),
    ],
)
def test_impossible_layouts_are_one_line_and_status_two(capsys, arguments, message):
    nodes = () if "--nodes" in arguments else ("--nodes", "1")
    assert main(["ranks", *nodes, "--gpus-per-node", "8", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
