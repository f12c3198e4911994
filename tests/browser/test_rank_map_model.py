"""What the rank map computes, in a real browser without its page, against the models."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from figgen.__main__ import main
from figgen.errors import InputError
from figgen.layouts import layouts
from figgen.models.frameworks import AXES, CONVENTIONS
from figgen.models.layout import ParallelLayout, layout, mesh_of
from figgen.models.mesh import coordinate_array, groups
from figgen.models.placement import communicator
from figgen.page import with_security_policy
from tests.browser.conftest import BLANK, RUN
from tests.browser.engine import Ask, differing
from tests.browser.site import ROOT, serve

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCRIPTS = ROOT / "docs" / "assets" / "javascripts"
SIZES = ("nodes", "gpus", "tp", "cp", "ep", "etp", "pp", "order")
PRESETS = [{key: found[key] for key in SIZES} | {"dp": None} for found in layouts()]  # type: ignore[literal-required]
State = dict[str, Any]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty page under the site's security policy, beside the engine and the tools."""
    folder = tmp_path_factory.mktemp("tools")
    for name in ("engine", "tools"):
        shutil.copytree(SCRIPTS / name, folder / name)
    shutil.copy(Path(__file__).with_name("rank_map_suites.js"), folder)
    (folder / "index.html").write_text(with_security_policy(BLANK), encoding="utf-8")
    with serve(folder) as served:
        yield served


@pytest.fixture
def ask(page: Page, address: str) -> Ask:
    """`ask(suite, cases)`: what the suite of rank_map_suites.js answers, in one evaluation."""
    page.goto(f"{address}/index.html")
    module = f"{address}/rank_map_suites.js"
    return lambda suite, given: json.loads(page.evaluate(RUN, [module, suite, given]))


def laid_out(state: State) -> ParallelLayout:
    sizes = {key: state[key] for key in ("nodes", "tp", "cp", "ep", "etp", "pp", "dp", "order")}
    return layout(**sizes, gpus_per_node=state["gpus"])


def printed(command: str) -> str:
    """What the command line prints for the command that the tool offers."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(command.removeprefix("figgen ").split()) == 0
    return out.getvalue()


def shows(parallel: ParallelLayout) -> list[str]:
    names = ["tp", "cp", "ep", "dp", "edp", "pp", "tp-cp", "dp-cp", "etp"]
    hidden = {"ep", "edp", "etp"} if not parallel.has_experts else set()
    hidden |= {"etp"} if parallel.etp == parallel.tp else set()
    return [name for name in names if name not in hidden]


def row(parallel: ParallelLayout, name: str) -> list[Any]:
    found = communicator(parallel, name)
    grid = "dense" if mesh_of(parallel, name) == parallel.dense else "expert"
    low, high = found.nodes_touched_min, found.nodes_touched_max
    inside, between = found.intra_node_links, found.inter_node_links
    level = "none" if found.size == 1 else "inside nodes" if not between else "between nodes"
    if inside and between:
        level = "both"
    span = str(low) if low == high else f"{low}–{high}"
    sizes = [found.group_count, found.size, found.stride, span, level, inside, between]
    return [name, grid, *sizes]


def moved(parallel: ParallelLayout) -> int:
    """Ranks whose dense coordinates are others than in Megatron's order, by reshaping."""
    sizes = [getattr(parallel, axis) for axis in ("pp", "dp", "cp", "tp")]
    usual = np.argwhere(np.ones(sizes))[:, ::-1]
    order = [parallel.dense.names.index(axis) for axis in ("tp", "cp", "dp", "pp")]
    here = coordinate_array(parallel.dense)[:, order]
    return int((here != usual).any(axis=1).sum())


def random_states(seed: int, count: int) -> list[State]:
    """Sizes of which about half fit, on clusters of up to 512 GPUs, in any order."""
    rng = np.random.default_rng(seed)
    orders = [*CONVENTIONS, "pp-dp-tp", "cp-tp-ep-pp-dp", "tp-cp-pp-dp"]
    states = []
    for _ in range(count):
        state: State = {"nodes": int(rng.integers(1, 65)), "gpus": int(rng.choice([1, 2, 4, 8, 6]))}
        state |= {axis: int(2 ** rng.integers(0, 4)) for axis in ("tp", "cp", "ep", "pp")}
        state |= {axis: 1 for axis in ("cp", "ep", "pp") if rng.random() < 0.5}
        state["etp"] = int(2 ** rng.integers(0, 4)) if rng.random() < 0.3 else None
        state["dp"] = int(rng.integers(1, 9)) if rng.random() < 0.1 else None
        state["order"] = str(rng.choice(orders))
        states.append(state)
    return states


def expected(state: State) -> Any:
    try:
        parallel = laid_out(state)
    except InputError as error:
        return {"error": str(error), "nearest": list(error.nearest)}
    return {"rows": [row(parallel, name) for name in shows(parallel)], "moved": moved(parallel)}


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
    cases = [(*cluster, *box) for cluster in clusters for box in ((640, 660), (358, 520))]
    assert differing(cases, ask("arrangements", cases), [[]] * len(cases)) == []


# What was written for a launcher, read as its framework reads it.


def megatron_arguments(text: str) -> dict[str, int]:
    given = {name: int(size) for name, size in re.findall(r"--([\w-]+) (\d+)", text)}
    assert set(given) <= {
        "nnodes", "nproc-per-node", "tensor-model-parallel-size", "context-parallel-size",
        "pipeline-model-parallel-size", "expert-model-parallel-size", "expert-tensor-parallel-size",
    }  # fmt: skip
    return given


def meshes(text: str) -> dict[str, Any]:
    """The device meshes of a PyTorch program: an array of ranks each, and its axes."""
    found = {}
    for name, shape, names in re.findall(
        r'^(\w+) = init_device_mesh\("cuda", (\(.*?\)), mesh_dim_names=(\(.*?\))\)$', text, re.M
    ):
        sizes = tuple(int(size) for size in re.findall(r"\d+", shape))
        axes = re.findall(r"\w+", names)
        found[name] = (np.arange(math.prod(sizes)).reshape(sizes), axes)
    return found


def rows_of(ranks: Any, axes: list[str], axis: str) -> set[tuple[int, ...]]:
    lines = np.moveaxis(ranks, axes.index(axis), -1).reshape(-1, ranks.shape[axes.index(axis)])
    return {tuple(line) for line in lines.tolist()}


def deepspeed_experts(grid: Any, ep: int, split: bool) -> set[tuple[int, ...]]:
    """EP groups of DeepSpeed's MoE layer over (pipe, data, model), as deepspeed/utils/groups.py:

    neighbours of a stage, or of the data ranks of one model rank where experts are split too.
    """
    ranks = np.moveaxis(grid, 1, 2) if split else grid
    return {tuple(group) for group in ranks.reshape(-1, ep).tolist()}


def test_launch_options_place_every_rank_where_the_picture_does(ask: Ask) -> None:
    valid = [s for s in random_states(2, 250) if "rows" in expected(s)]
    states = [*valid, *(s for s in PRESETS if s["nodes"] * s["gpus"] <= 2048)]
    states += [
        {"nodes": 2, "gpus": 8, "tp": tp, "cp": 1, "ep": ep, "etp": etp, "pp": pp}
        | {"dp": None, "order": order}
        for tp, ep, pp, order in itertools.product(
            (2, 4), (2, 4), (1, 2), ("megatron", "deepspeed")
        )
        for etp in (1, tp)
        if 16 % (tp * ep * pp) == 0
    ]
    counted = dict.fromkeys(("megatron", "pytorch", "deepspeed", "torchtitan"), 0)
    counted |= {"deepspeed-split": 0, "deepspeed-whole": 0}
    for state, answer in zip(states, ask("launched", states), strict=True):
        parallel, texts = laid_out(state), answer["found"]
        for name, text in texts.items():
            counted[name] += bool(text)
        for name, (ranks, axes) in meshes(texts["pytorch"]).items():
            for axis in axes:
                mesh = parallel.dense if name == "dense" else parallel.expert
                assert rows_of(ranks, axes, axis) == set(groups(mesh, axis)), (state, axis)
        if texts["megatron"]:
            given = megatron_arguments(texts["megatron"])
            order = (
                "tp-cp-ep-pp-dp" if "--use-tp-pp-dp-mapping" in texts["megatron"] else "megatron"
            )
            same = layout(
                nodes=given["nnodes"], gpus_per_node=given["nproc-per-node"],
                tp=given["tensor-model-parallel-size"], cp=given.get("context-parallel-size", 1),
                pp=given["pipeline-model-parallel-size"],
                ep=given.get("expert-model-parallel-size", 1),
                etp=given.get("expert-tensor-parallel-size"), order=order,
            )  # fmt: skip
            assert all(
                groups(same.dense, axis) == groups(parallel.dense, axis)
                for axis in ("tp", "cp", "dp", "pp")
            )
            if parallel.ep > 1:
                assert groups(same.expert, "ep") == groups(parallel.expert, "ep")
            assert answer["back"]["problems"] == []
        if texts["deepspeed"]:
            pp, mp, dp = map(int, re.findall(r"num_(?:pp|mp|dp)=(\d+)", texts["deepspeed"]))
            grid = np.arange(parallel.world_size).reshape(pp, dp, mp)  # pipe, data, model
            assert rows_of(grid, ["pp", "dp", "tp"], "tp") == set(groups(parallel.dense, "tp"))
            assert rows_of(grid, ["pp", "dp", "tp"], "pp") == set(groups(parallel.dense, "pp"))
            if parallel.ep > 1:
                split = "enable_expert_tensor_parallelism=True" in texts["deepspeed"]
                counted["deepspeed-split" if split else "deepspeed-whole"] += 1
                assert deepspeed_experts(grid, parallel.ep, split) == set(
                    groups(parallel.expert, "ep")
                )
        if texts["torchtitan"]:
            degrees = dict(re.findall(r"--parallelism\.(\w+)_degree (\d+)", texts["torchtitan"]))
            size = {name: int(degree) for name, degree in degrees.items()}
            grid = np.arange(parallel.world_size).reshape(
                size["pipeline_parallel"], size["data_parallel_shard"],
                size["context_parallel"], size["tensor_parallel"],
            )  # fmt: skip
            assert rows_of(grid, ["pp", "dp", "cp", "tp"], "dp") == set(
                groups(parallel.dense, "dp")
            )
            assert size["expert_parallel"] == parallel.ep
            # Both are required: torchtitan/config/manager.py.
            assert "-m torchtitan.train --module $MODULE --config $CONFIG" in texts["torchtitan"]
    assert min(counted.values()) >= 10, counted


def test_megatron_options_are_read_back_as_they_were_written(ask: Ask) -> None:
    states = [s for s in [*random_states(3, 200), *PRESETS[:12]] if "rows" in expected(s)]
    answers = [a for a in ask("launched", states) if a["found"]["megatron"]]
    assert len(answers) > 40
    for answer in answers:
        assert answer["back"]["changes"] is not None
        assert answer["back"]["aside"] in ([], ["--node-rank", "--master-addr"])
    # In Megatron's own order the layout that is read is the one that was written, whole.
    own = [state for state in states if state["order"] == "megatron"]
    assert len(own) > 20
    assert all(answer["again"] for answer in ask("launched", own))


def test_what_a_pasted_command_line_does_not_say_of_the_layout_is_named(ask: Ask) -> None:
    text = """TP=8
    torchrun --nnodes=4 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size $TP \\
      --pipeline-model-parallel-size "2" --bf16 --num-layers 32 --use-tp-pp-dp-mapping"""
    cases = [
        text,
        "--tensor-model-parallel-size two",
        "--tensor-model-parallel-size",
        "--tensor-parallel-size 8 --context-parallel-size 2",
        "srun --nodes 3 --ntasks-per-node 8 x --tensor-model-parallel-size 0",
        "<img src=x onerror=alert(1)>",
        "",
        # Options of Megatron-LM@d98e8a64 that are about parallelism and move no rank.
        "--nnodes 2 --sequence-parallel --hierarchical-context-parallel-sizes 2 4 "
        "--pipeline-model-parallel-layout E|tt*4|L --pipeline-model-parallel-comm-backend nccl "
        "--num-virtual-stages-per-pipeline-rank 2 --num-layers-per-virtual-pipeline-stage 1 "
        "--data-parallel-sharding-strategy optim --overlap-moe-expert-parallel-comm",
        "--nnodes 2 --use-tp-pp-dp-maping",
    ]
    good, bad, missing, slip, zero, hostile, empty, others, typed = ask("pasted", cases)
    assert (others["problems"], len(others["aside"])) == ([], 8)
    assert "did you mean --use-tp-pp-dp-mapping" in typed["problems"][0]
    assert good["changes"] == {
        "nodes": 4, "gpus": 8, "tp": 8, "cp": 1, "ep": 1, "etp": None, "pp": 2, "dp": None,
        "order": "megatron-tp-pp-dp",
    }  # fmt: skip
    assert (good["aside"], good["problems"]) == (["--bf16", "--num-layers"], [])
    assert "got 'two'" in bad["problems"][0]
    assert slip["changes"]["cp"] == 2
    assert "did you mean --tensor-model-parallel-size" in slip["problems"][0]
    assert [answer["changes"] for answer in (bad, missing, zero, hostile, empty)] == [None] * 5


def test_csv_has_every_rank_of_every_communicator_once(ask: Ask) -> None:
    state = PRESETS[5]
    parallel = laid_out(state)
    head, *lines = ask("csv", state).splitlines()
    assert head == "communicator,mesh,group,place,rank,node,local_rank"
    names = ("tp", "cp", "dp", "pp", "dp-cp", "etp", "ep", "edp")
    assert len(lines) == len(names) * parallel.world_size
    mesh = {name: "expert" if name in ("etp", "ep", "edp") else "dense" for name in names}
    wanted = {
        f"{name},{mesh[name]},{group},{place},{rank},{rank // 8},{rank % 8}"
        for name in names
        for group, members in enumerate(groups(mesh_of(parallel, name), name))
        for place, rank in enumerate(members)
    }
    assert set(lines) == wanted


def test_states_survive_their_address(ask: Ask) -> None:
    rng = np.random.default_rng(5)
    named = list(layouts())
    states = []
    for state in [*random_states(4, 200), *PRESETS]:
        more = {
            "show": str(rng.choice(["tp", "dp", "tp-cp", "none"])),
            "moved": bool(rng.integers(2)),
        }
        if rng.random() < 0.5:
            more |= {"rank": int(rng.integers(8)), "group": int(rng.integers(4))}
        states.append({**state, **more})
    for state, answer in zip(states, ask("states", [named, states]), strict=True):
        assert answer["problems"] == []
        assert {key: answer["state"][key] for key in state} == state, answer["written"]
    by_name = {found["name"]: found for found in named}
    written = [answer["written"] for answer in ask("states", [named, [{**by_name[n], "preset": n}
               for n in ("map-128", "map-256", "llama-3-405b-131k")]])]  # fmt: skip
    assert written == ["", "preset=map-256", "preset=llama-3-405b-131k"]


def test_hostile_addresses_leave_the_defaults_and_say_why(ask: Ask) -> None:
    named = list(layouts())
    bad = [
        "tp=-1", "tp=0", "tp=1.5", "tp=NaN", "tp=Infinity", "tp=1e3", "tp=0x8", "tp=", "tp=%20",
        "tp=99999999999999999999", "nodes=1048577", "gpus=<script>alert(1)</script>",
        "order=<img src=x onerror=alert(1)>", "order=tp-tp", "order=" + "a" * 5000,
        "preset=../../etc/passwd", "show=constructor", "rank=-5", "moved=maybe", "group=1;2",
        "tpp=8",
    ]  # fmt: skip
    answers = ask("queries", [named, bad])
    fresh = ask("queries", [named, [""]])[0]["state"]
    for query, answer in zip(bad, answers, strict=True):
        assert len(answer["problems"]) == 1, query
        assert len(answer["problems"][0]) < 250
        assert answer["state"] == fresh, query
    twice, ours, foreign = ask(
        "queries", [named, ["tp=2&tp=4", "nodes=2&tp=4", "__proto__=1&utm_source=x&h=rank"]]
    )
    assert (twice["state"]["tp"], len(twice["problems"])) == (2, 1)
    assert (ours["state"]["nodes"], ours["state"]["tp"], ours["state"]["cp"]) == (2, 4, 1)
    assert (foreign["problems"], foreign["state"]) == ([], fresh)


def test_more_gpus_than_can_be_drawn_are_refused(ask: Ask) -> None:
    sizes = {"tp": 1, "cp": 1, "ep": 1, "etp": None, "dp": None, "pp": 1, "order": "megatron"}
    told = ask("refuses", [{"nodes": n, "gpus": 8, **sizes} for n in (16384, 16385, 1048576)])
    assert told[0] is None
    assert all("131,072 GPUs in the picture" in text for text in told[1:])


def test_ranks_are_listed_in_few_words(ask: Ask) -> None:
    lists = [
        [3],
        [0, 1, 2],
        [*range(8)],
        [*range(0, 64, 8)],
        [*range(0, 22, 2)],
        [0, 1, 8, 9, 16, 17],
    ]
    assert ask("words", lists) == [
        "3", "0, 1, 2", "0 … 7", "0, 8, 16, … 56 (every 8th)", "0, 2, 4, … 20 (every 2nd)",
        "0, 1, 8, … 17",
    ]  # fmt: skip


def test_moves_are_told_with_an_example(ask: Ask) -> None:
    base: State = {
        "nodes": 8,
        "gpus": 8,
        "tp": 8,
        "cp": 1,
        "ep": 1,
        "etp": None,
        "dp": None,
        "pp": 4,
    }
    stay, move = ask("moves", [{**base, "order": name} for name in ("nanotron", "llama3")])
    assert stay == "All 64 ranks hold what they hold in Megatron's default order."
    assert move.startswith("48 of 64 ranks hold another part")
    assert "rank 8 is dp 0, pp 1 instead of dp 1, pp 0" in move
    assert set(AXES) >= {"dp", "pp"}
