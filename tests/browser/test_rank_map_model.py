"""What the rank map computes, in a real browser without its page, compared with the models."""

from __future__ import annotations

import hashlib
import itertools
import json

from figgen.models.machine.layout import mesh_of
from figgen.models.machine.mesh import coordinate_array, group_array, group_index, groups
from tests.browser.engine import Ask, differing
from tests.browser.rank_map_cases import PRESETS, State, expected, laid_out, printed, random_states

SUITES = "rank_map_suites.js"


def test_every_preset_is_what_the_models_and_the_command_line_say(ask: Ask) -> None:
    shown = ask("configurations", PRESETS)
    assert len(shown) >= 24
    small = [state["nodes"] * state["gpus"] <= 4096 for state in PRESETS]
    for state, answer, whole in zip(PRESETS, shown, small, strict=True):
        assert {key: answer[key] for key in ("rows", "moved")} == json.loads(
            json.dumps(expected(state))
        )
        if whole:
            text = printed(answer["command"])
            assert hashlib.sha256(text.encode()).hexdigest() == answer["json"], state


def test_random_configurations_are_laid_out_or_refused_as_by_the_models(ask: Ask) -> None:
    states = random_states(1, 300)
    shown = ask("configurations", states)
    wanted = [expected(state) for state in states]
    assert 60 < sum("error" in answer for answer in wanted) < 240
    compared = [
        {key: answer[key] for key in want} for answer, want in zip(shown, wanted, strict=True)
    ]
    assert differing(states, compared, wanted) == []
    for state, answer in zip(states, shown, strict=True):
        assert all(answer.get("fits", [])), (state, answer["nearest"])
        if state["dp"] is None and "json" in answer and state["nodes"] < 12:
            text = printed(answer["command"])
            assert hashlib.sha256(text.encode()).hexdigest() == answer["json"], state


def test_every_wrong_configuration_on_small_clusters_has_a_way_out_that_fits(ask: Ask) -> None:
    sizes = [1, 2, 3, 4, 8]
    states: list[State] = [
        {"nodes": nodes, "gpus": 8, "tp": tp, "cp": cp, "ep": ep, "etp": None, "pp": pp}
        | {"dp": None, "order": "megatron"}
        for nodes, tp, cp, ep, pp in itertools.product((1, 3), sizes, sizes, sizes, (1, 3))
    ]
    refused = [answer for answer in ask("configurations", states) if "error" in answer]
    assert len(refused) > 100
    assert all(answer["fits"] and all(answer["fits"]) for answer in refused)


def test_all_about_a_rank_is_what_the_models_say(ask: Ask) -> None:
    cases = [(state, [0, state["nodes"] * state["gpus"] // 2 + 1]) for state in PRESETS[1:8]]
    answers = ask("facts", cases)
    for (state, ranks), found in zip(cases, answers, strict=True):
        parallel = laid_out(state)
        dense = coordinate_array(parallel.dense)
        for rank, facts in zip(ranks, found, strict=True):
            assert list(facts["dense"].values()) == dense[rank].tolist()
            assert (facts["node"], facts["local"]) == divmod(rank, state["gpus"])
            for name, (group, place, nodes, members) in facts["groups"].items():
                all_groups = groups(mesh_of(parallel, name), name)
                assert tuple(members) == all_groups[group]
                assert members[place] == rank
                assert nodes == len({member // state["gpus"] for member in members})


def test_every_gpu_is_drawn_once_and_found_where_it_is_drawn(ask: Ask) -> None:
    clusters = [(1, 1), (1, 8), (2, 8), (3, 5), (7, 8), (16, 8), (64, 8), (4, 72), (300, 4), (5, 1)]
    cases = [(*cluster, *box, False) for cluster in clusters for box in ((640, 660), (358, 520))]
    large = [(2000, 8), (257, 72), (2999, 7), (4096, 4)]  # as boxes of several nodes
    cases += [(*cluster, 380, 320, True) for cluster in large]
    assert differing(cases, ask("arrangements", cases), [[]] * len(cases)) == []


def test_a_box_of_several_nodes_counts_its_groups_and_shares_its_shade_with_equals(
    ask: Ask,
) -> None:
    sizes = {"cp": 1, "ep": 1, "etp": None, "dp": None}
    states = [
        {"nodes": 2048, "gpus": 8, "tp": 4, "pp": 8, "order": "megatron", **sizes},
        {"nodes": 3000, "gpus": 6, "tp": 2, "pp": 3, "order": "llama3", **sizes},
    ]
    cases = [(state, name, 380) for state in states for name in ("tp", "dp", "pp", "tp-cp")]
    for (state, name, _), found in zip(cases, ask("boxes", cases), strict=True):
        parallel, size = laid_out(state), found["inBox"]
        mesh = mesh_of(parallel, name)
        index, rows = group_index(mesh, name), group_array(mesh, name)
        assert size % state["gpus"] == 0
        shade_of: dict[frozenset[int], int] = {}
        for at, box in enumerate(found["boxes"]):
            first, end = at * size, min((at + 1) * size, parallel.world_size)
            inside = frozenset(index[first:end].tolist())
            whole = [g for g in inside if rows[g, 0] >= first and rows[g, -1] < end]
            assert (box["touching"], box["whole"]) == (len(inside), len(whole)), (name, at)
            assert shade_of.setdefault(inside, box["shade"]) == box["shade"]
            assert (box["shade"] == 0) == (len(whole) == len(inside))


def test_more_gpus_than_can_be_drawn_are_refused(ask: Ask) -> None:
    sizes = {"tp": 1, "cp": 1, "ep": 1, "etp": None, "dp": None, "pp": 1, "order": "megatron"}
    told = ask("refuses", [{"nodes": n, "gpus": 8, **sizes} for n in (16384, 16385, 1048576)])
    assert told[0] is None
    assert all("131,072 GPUs in the picture" in text for text in told[1:])
