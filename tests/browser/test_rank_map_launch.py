"""What the rank map writes for launchers and reads from their lines, checked against frameworks."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.machine.mesh import groups
from figgen.scenarios.taking.job import read_job
from figgen.scenarios.taking.left_open import completed_job
from figgen.scenarios.taking.options import catalog_sizes
from figgen.scenarios.tools.data import page_names
from tests.browser.engine import Ask
from tests.browser.rank_map_cases import PRESETS, expected, laid_out, random_states

SUITES = "rank_map_suites.js"
ORACLES = Path(__file__).parents[1] / "oracles"


# What was written for a launcher, read as its framework reads it.
def megatron_arguments(text: str) -> dict[str, int]:
    given = {name: int(size) for name, size in re.findall(r"--([\w-]+) (\d+)", text)}
    assert set(given) <= {
        "nnodes", "nproc-per-node", "tensor-model-parallel-size", "context-parallel-size",
        "pipeline-model-parallel-size", "expert-model-parallel-size", "expert-tensor-parallel-size",
    }  # fmt: skip
    return given


def meshes(text: str) -> dict[str, Any]:
    """Return the device meshes of a PyTorch program: an array of ranks each, and its axes."""
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
    """Return EP groups of DeepSpeed's MoE layer over (pipe, data, model), as in its
    utils/groups.py.

    These are neighbors within a stage, or the data ranks of one model rank if experts are split
    too.
    """
    ranks = np.moveaxis(grid, 1, 2) if split else grid
    return {tuple(group) for group in ranks.reshape(-1, ep).tolist()}


def check_pytorch(parallel: ParallelLayout, text: str) -> str:
    for name, (ranks, axes) in meshes(text).items():
        mesh = parallel.dense if name == "dense" else parallel.expert
        for axis in axes:
            assert rows_of(ranks, axes, axis) == set(groups(mesh, axis)), axis
    return "pytorch"


def check_megatron(parallel: ParallelLayout, text: str) -> str:
    given = megatron_arguments(text)
    same = layout(
        nodes=given["nnodes"],
        gpus_per_node=given["nproc-per-node"],
        tp=given["tensor-model-parallel-size"],
        cp=given.get("context-parallel-size", 1),
        pp=given["pipeline-model-parallel-size"],
        ep=given.get("expert-model-parallel-size", 1),
        etp=given.get("expert-tensor-parallel-size"),
        order="tp-cp-ep-pp-dp" if "--use-tp-pp-dp-mapping" in text else "megatron",
    )
    for axis in ("tp", "cp", "dp", "pp"):
        assert groups(same.dense, axis) == groups(parallel.dense, axis)
    if parallel.ep > 1:
        assert groups(same.expert, "ep") == groups(parallel.expert, "ep")
    return "megatron"


def check_deepspeed(parallel: ParallelLayout, text: str) -> str:
    pp, mp, dp = map(int, re.findall(r"num_(?:pp|mp|dp)=(\d+)", text))
    grid = np.arange(parallel.world_size).reshape(pp, dp, mp)  # pipe, data, model
    for axis in ("tp", "pp"):
        assert rows_of(grid, ["pp", "dp", "tp"], axis) == set(groups(parallel.dense, axis))
    if parallel.ep == 1:
        return "deepspeed"
    split = "enable_expert_tensor_parallelism=True" in text
    assert deepspeed_experts(grid, parallel.ep, split) == set(groups(parallel.expert, "ep"))
    return "deepspeed-split" if split else "deepspeed-whole"


def check_torchtitan(parallel: ParallelLayout, text: str) -> str:
    degrees = dict(re.findall(r"--parallelism\.(\w+)_degree (\d+)", text))
    size = {name: int(degree) for name, degree in degrees.items()}
    grid = np.arange(parallel.world_size).reshape(
        size["pipeline_parallel"],
        size["data_parallel_shard"],
        size["context_parallel"],
        size["tensor_parallel"],
    )
    assert rows_of(grid, ["pp", "dp", "cp", "tp"], "dp") == set(groups(parallel.dense, "dp"))
    assert size["expert_parallel"] == parallel.ep
    assert "-m torchtitan.train --job.config_file $CONFIG_FILE" in text
    return "torchtitan"


CHECKS = {
    "pytorch": check_pytorch, "megatron": check_megatron, "deepspeed": check_deepspeed,
    "torchtitan": check_torchtitan,
}  # fmt: skip


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
    counted: Counter[str] = Counter()
    for state, answer in zip(states, ask("launched", states), strict=True):
        for name, text in answer["found"].items():
            if text:
                counted[CHECKS[name](laid_out(state), text)] += 1
        assert all(answer["again"].values()), (state, answer)
    assert {*CHECKS, "deepspeed-split", "deepspeed-whole"} == counted.keys()
    assert min(counted.values()) >= 10, counted


def test_dense_layouts_are_placed_by_every_framework_with_their_order(ask: Ask) -> None:
    """The expert grid of a model without experts is no reason to refuse a layout."""
    states = [
        {"nodes": 4, "gpus": 8, "tp": tp, "cp": cp, "ep": 1, "etp": None, "pp": pp, "dp": None}
        | {"order": order}
        for tp, cp, pp in itertools.product((1, 2, 8), (1, 2), (1, 2))
        for order in ("megatron", "torchtitan", "nanotron")
    ]
    for state, answer in zip(states, ask("launched", states), strict=True):
        for name in ("megatron", "pytorch", "torchtitan"):
            assert answer["found"][name], (state, name)
            CHECKS[name](laid_out(state), answer["found"][name])
        assert bool(answer["found"]["deepspeed"]) == (state["cp"] == 1), state


def test_what_a_pasted_command_line_does_not_say_of_the_layout_is_named(ask: Ask) -> None:
    text = """TP=8
    torchrun --nnodes=4 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size $TP \\
      --pipeline-model-parallel-size "2" --bf16 --num-layers 32 --use-tp-pp-dp-mapping"""
    cases = [
        text,
        "x --tensor-model-parallel-size two",
        "srun --nodes 3 --ntasks-per-node 8 x --tensor-model-parallel-size 0",
        "<img src=x onerror=alert(1)>",
        "",
        "torchrun --nnodes 2 x.py --use-tp-pp-dp-maping",
    ]
    good, bad, zero, hostile, empty, typed = ask("pasted", cases)
    assert good["changes"] == {
        "nodes": 4, "gpus": 8, "tp": 8, "cp": 1, "ep": 1, "etp": None, "pp": 2, "dp": None,
        "order": "megatron-tp-pp-dp",
    }  # fmt: skip
    assert good["found"]["taken"]["layers"] == 32
    assert "got 'two'" in bad["found"]["notes"][0]
    assert "got 0" in zero["found"]["notes"][0]
    assert any("did you mean --use-tp-pp-dp-mapping" in note for note in typed["found"]["notes"])
    assert [answer["changes"] for answer in (bad, hostile, empty)] == [None] * 3


def test_trays_of_a_rack_that_a_text_names_are_said_to_share_fast_links(ask: Ask) -> None:
    rows = ask("pastedRows", "#SBATCH -N 2\n#SBATCH --gres=gpu:gb200:4\nsrun x.py --tp 4")
    said = "2 nodes of 4 GPUs count as separate; if they share fast links, set 1 of 8."
    assert rows[-1] == ["warning", said]


def test_texts_are_read_as_the_command_line_reads_them(ask: Ask) -> None:
    cases = json.loads((ORACLES / "taken_jobs.json").read_text("utf-8"))["cases"]
    texts = [case["text"] for case in cases] + [
        "--tensor-model-parallel-size 8 --tensor-model-parallel-size 4 --nnodes 2",
        "TP=8\nTP=4\nx --tensor-model-parallel-size $TP --nnodes 2 --seq-length $LONG",
    ]
    names = page_names()
    for text, answer in zip(texts, ask("pasted", texts), strict=True):
        job = completed_job(read_job(text, {}, names), names, catalog_sizes())
        assert answer["found"] == asdict(job)


@pytest.mark.parametrize(
    "word", ["V{}=4 ", "--tensor-model-parallel-size 8 ", "--parallel-{} 1 ", '"a ', "x", "--a"]
)
def test_a_line_that_is_four_times_as_long_takes_four_times_as_long(ask: Ask, word: str) -> None:
    """256 kB of assignments used to take nine seconds: sixteen times as long for a line four times
    as long."""
    few, many = (
        "".join(map(word.format, range(length // len(word) + 1)))[:length]
        for length in (15_000, 60_000)
    )
    # Other programs only make it slower: of several tries one is hardly disturbed.
    for _ in range(10):
        *short, long = ask("pastedTimes", [few, few, few, many])
        if long < 8 * max(*short, 0.1):
            break
    else:
        pytest.fail(f"{short} ms for {len(few)} characters, {long} ms for {len(many)}")
    [answer] = ask("pasted", [many])
    assert answer["changes"] or answer["problems"]


def test_a_huge_line_is_refused(ask: Ask) -> None:
    [refused] = ask("pasted", ["TP=4 " * 52_429])
    assert refused["changes"] is None
    assert "at most 65,536 characters, got 262145" in refused["problems"][0]
