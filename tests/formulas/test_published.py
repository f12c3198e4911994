"""Formulas compared with published tables and recorded outputs of other people's code."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from figgen.formulas.activation_memory import (
    full_recompute_layer_activation_bytes,
    layer_activation_bytes,
    selective_recompute_layer_activation_bytes,
    sequence_parallel_layer_activation_bytes,
    stage_activation_bytes,
    tensor_parallel_layer_activation_bytes,
)
from figgen.formulas.collectives import ring_chunk_owned, ring_chunk_sent
from figgen.formulas.compute_and_roofline import (
    model_flops_utilization,
    time_of_work,
    training_flops_with_attention,
    training_flops_with_recompute,
)
from figgen.formulas.pipeline import (
    bubble_fraction,
    interleaved_bubble_fraction,
    interleaved_in_flight,
    interleaved_warmup,
    one_f_one_b_in_flight,
    one_f_one_b_warmup,
    pipeline_step_time,
)
from figgen.formulas.rank_mapping import (
    cp_index_of_rank,
    data_parallel_size,
    dense_rank,
    dense_world_size,
    dp_index_of_rank,
    dp_index_of_rank_after_pp,
    expert_data_parallel_size,
    expert_rank,
    group_count,
    pp_index_of_rank,
    pp_index_of_rank_before_dp,
    tp_index_of_rank,
)
from figgen.formulas.scale_and_state import (
    gpt_parameters,
    layer_parameters,
    model_state_bytes,
    zero_state_bytes,
)

ORACLES = Path(__file__).parents[1] / "oracles"
GIB = 2**30


def oracle(name: str) -> Any:
    return json.loads((ORACLES / f"{name}.json").read_text(encoding="utf-8"))


TABLES = oracle("published_tables")
GPT = TABLES["megatron_2104.04473_table1"]
KORTHIKANTI = TABLES["korthikanti_2205.05198"]
ORDERS = oracle("pipeline_orders")


@pytest.mark.parametrize("row", GPT["rows"], ids=lambda row: f"{row[0]}B")
def test_parameters_are_those_of_the_ten_gpt_models(row: list[float]) -> None:
    billions, _, hidden, layers = row[:4]
    found = gpt_parameters(layers, hidden, GPT["vocab"], GPT["seq"])
    assert found / 1e9 == pytest.approx(billions, abs=0.06)


@pytest.mark.parametrize("row", TABLES["megatron_2104.04473_table2"]["rows"], ids=str)
def test_training_days_are_those_of_the_table(row: list[Any]) -> None:
    _, billions, gpus, tflops, days = row
    work = training_flops_with_recompute(billions * 1e9, 300e9)
    found = time_of_work(work, gpus, 312e12, tflops / 312)
    # The paper counts a little more than 8Nτ, and rounds to days.
    assert 0.96 * days - 0.5 < found / 86_400 < days + 0.5


def test_palm_reaches_its_published_utilization() -> None:
    palm = TABLES["palm_2204.02311"]
    found = model_flops_utilization(
        palm["params_B"] * 1e9, palm["tok_s"] / palm["chips"], palm["peak_TF"] * 1e12
    )
    assert found == pytest.approx(palm["mfu_pct_no_attention"] / 100, abs=5e-4)
    width = palm["heads"] * palm["head_dim"]
    parameters = palm["params_B"] * 1e9
    work = training_flops_with_attention(parameters, palm["tok_s"], palm["L"], palm["seq"], width)
    attained = work / (palm["chips"] * palm["peak_TF"] * 1e12)
    assert attained == pytest.approx(palm["mfu_pct"] / 100, abs=5e-4)


def test_zero_paper_figure_1() -> None:
    found = [zero_state_bytes(7.5e9, 2, 2, 12, 64, stage) / 1e9 for stage in range(4)]
    # The figure prints three digits.
    printed = TABLES["zero_1910.02054_table1"]["stages_0_to_3_GB"]
    assert found == pytest.approx(printed, abs=0.05, rel=0)
    assert found[3] == pytest.approx(printed[3], abs=0.005, rel=0)


@pytest.mark.parametrize("model", KORTHIKANTI["configs"])
def test_model_state_is_that_of_korthikantis_figure(model: str) -> None:
    shape = KORTHIKANTI["configs"][model]
    shard = shape["L"] * layer_parameters(shape["h"]) / (shape["t"] * shape["p"])
    found = model_state_bytes(shard, 2, 4, 12) / GIB
    assert found == pytest.approx(KORTHIKANTI["fig1_GiB"]["state"][model], rel=1e-12)


def first_stage_gib(model: str, layer_bytes: float) -> float:
    shape = KORTHIKANTI["configs"][model]
    microbatches = shape["B"] // shape["b"]
    in_flight = (
        interleaved_in_flight(shape["p"], microbatches, shape["interleave_m"])
        if shape["interleave_m"] > 1
        else one_f_one_b_in_flight(shape["p"], 0, microbatches)
    )
    return float(stage_activation_bytes(in_flight, shape["L"], shape["p"], layer_bytes) / GIB)


@pytest.mark.parametrize("model", KORTHIKANTI["configs"])
def test_activations_are_those_of_korthikantis_figures(model: str) -> None:
    shape = KORTHIKANTI["configs"][model]
    block = (KORTHIKANTI["seq"], shape["b"], shape["h"])
    none = tensor_parallel_layer_activation_bytes(*block, shape["a"], shape["t"])
    assert first_stage_gib(model, none) == pytest.approx(KORTHIKANTI["fig1_GiB"]["act_none"][model])
    both = selective_recompute_layer_activation_bytes(*block, shape["t"])
    assert first_stage_gib(model, both) == pytest.approx(
        KORTHIKANTI["fig1_GiB"]["act_sp_selective"][model]
    )
    # Percentages read off a printed figure.
    column = list(KORTHIKANTI["configs"]).index(model)
    published = {key: row[column] for key, row in KORTHIKANTI["fig7_pct_of_none"].items()}
    sequence = sequence_parallel_layer_activation_bytes(*block, shape["a"], shape["t"])
    assert 100 * sequence / none == pytest.approx(published["seq"], abs=0.15)
    assert 100 * both / none == pytest.approx(published["seqsel"], abs=0.15)
    full = full_recompute_layer_activation_bytes(*block)
    assert 100 * full / none == pytest.approx(published["full"], abs=0.15)
    assert tensor_parallel_layer_activation_bytes(*block, shape["a"], 1) == (
        layer_activation_bytes(*block, shape["a"])
    )


def sizes(name: str) -> tuple[int, int, int]:
    """Parse stages, microbatches and chunks from "P4 M8 v2"."""
    found = {word[0]: int(word[1:]) for word in name.split()}
    return found["P"], found["M"], found.get("v", 1)


def peak(actions: str) -> int:
    """Return the most forwards without their backward at any point of one rank's order."""
    held = most = 0
    for action in actions.split():
        held += 1 if "F" in action else -1
        most = max(most, held)
    return most


@pytest.mark.parametrize("name", ORDERS["megatron_1f1b"]["orders"])
def test_1f1b_holds_and_warms_up_as_megatrons_order(name: str) -> None:
    stages, microbatches, _ = sizes(name)
    for stage, actions in enumerate(ORDERS["megatron_1f1b"]["orders"][name]):
        assert one_f_one_b_in_flight(stages, stage, microbatches) == peak(actions)
        before = actions.split("B")[0].count("F")
        # The forward of the first pair comes after the warm-up, unless nothing is left for it.
        warmup = one_f_one_b_warmup(stages, stage, microbatches)
        assert min(warmup + 1, microbatches) == before


@pytest.mark.parametrize("name", ORDERS["megatron_interleaved"]["orders"])
def test_interleaving_holds_and_warms_up_as_megatrons_order(name: str) -> None:
    stages, microbatches, chunks = sizes(name)
    orders = ORDERS["megatron_interleaved"]["orders"][name]
    assert interleaved_in_flight(stages, microbatches, chunks) == peak(orders[0]) / chunks
    for stage, actions in enumerate(orders):
        before = actions.split("B")[0].count("F")
        warmup = interleaved_warmup(stages, stage, chunks, stages, microbatches)
        assert min(warmup + 1, microbatches * chunks) == before


TIMELINES = ORDERS["timelines"]["rows"]


@pytest.mark.parametrize("name", TIMELINES)
def test_idle_share_is_that_of_a_simulated_timeline(name: str) -> None:
    kind, shape, backward = re.fullmatch(
        r"(\S+) (P\d+ M\d+(?: v\d+)?)(?: t_b=(\d))?", name
    ).groups()  # type: ignore[union-attr]
    stages, microbatches, chunks = sizes(shape)
    rows = [row.split() for row in TIMELINES[name]]
    wall = max(len(row) for row in rows)
    idle = sum(wall - len(row) + row.count(".") for row in rows) / (wall * stages)
    fraction = (
        interleaved_bubble_fraction(stages, microbatches, chunks)
        if kind == "interleaved-1f1b"
        else bubble_fraction(stages, microbatches)
    )
    assert fraction == pytest.approx(idle)
    # The timeline's unit of time is the forward of one chunk.
    step = pipeline_step_time(stages, microbatches, chunks, chunks, chunks * int(backward or 1), 0)
    assert step == wall


Place = tuple[int, ...]
CASES = oracle("megatron_rank_groups")["cases"]


def agree(groups: list[list[int]], recorded: Any) -> bool:
    """Return whether the groups equal the recorded ones; for large worlds only some
    were recorded."""
    if isinstance(recorded, list):
        return groups == recorded
    few = {"n": len(groups), "first3": groups[:3], "last": groups[-1]}
    return few == {key: recorded[key] for key in few}


def groups_of(axis: int, shape: Place, rank: Callable[..., int]) -> list[list[int]]:
    """Return groups along `axis` (0 is the fastest), ordered by their first ranks."""
    starts = (place[::-1] for place in itertools.product(*(range(n) for n in shape[::-1])))
    return [
        [
            rank(*start[:axis], index, *start[axis + 1 :], *shape[:-1])
            for index in range(shape[axis])
        ]
        for start in starts
        if start[axis] == 0
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"world={case['world']}")
def test_groups_of_both_grids_are_those_of_megatron(case: dict[str, Any]) -> None:
    tp, cp, dp, pp = (case.get(axis, 1) for axis in ("tp", "cp", "dp", "pp"))
    assert dense_world_size(tp, cp, dp, pp) == case["world"]
    assert data_parallel_size(case["world"], tp, cp, pp) == dp
    for axis, name in enumerate(("tp", "cp", "dp", "pp")):
        groups = groups_of(axis, (tp, cp, dp, pp), dense_rank)
        assert agree(groups, case["dense"][name])
        assert group_count(case["world"], len(groups[0])) == len(groups)
    etp, ep = case.get("etp", tp), case.get("ep", 1)
    edp = expert_data_parallel_size(case["world"], etp, ep, pp)
    assert edp == case["edp"]
    for axis, name in enumerate(("tp", "ep", "dp", "pp")):
        groups = groups_of(axis, (etp, ep, edp, pp), expert_rank)
        assert agree(groups, case["expert"][name])


def test_coordinates_of_a_rank_lead_back_to_it() -> None:
    for tp, cp, dp, pp in itertools.product((1, 2, 8), (1, 2), (1, 3), (1, 4)):
        for rank in range(tp * cp * dp * pp):
            place = (
                tp_index_of_rank(rank, tp),
                cp_index_of_rank(rank, tp, cp),
                dp_index_of_rank(rank, tp, cp, dp),
                pp_index_of_rank(rank, tp, cp, dp),
            )
            assert all(index < size for index, size in zip(place, (tp, cp, dp, pp), strict=True))
            assert dense_rank(*place, tp, cp, dp) == rank
            other = tp * cp * pp_index_of_rank_before_dp(rank, tp, cp, pp)
            other += tp * cp * pp * dp_index_of_rank_after_pp(rank, tp, cp, pp)
            assert place[0] + tp * place[1] + other == rank


@pytest.mark.parametrize("schedule", ["textbook", "nccl"])
def test_ring_sends_the_chunks_of_a_hand_checked_trace(schedule: str) -> None:
    trace = oracle("collective_ring_4_ranks")[schedule]
    offset = {"textbook": 0, "nccl": -1}[schedule]
    for step, messages in enumerate(trace["sends"][:3]):
        sent = [[r, (r + 1) % 4, ring_chunk_sent(r, step, 4, offset)] for r in range(4)]
        assert sorted(messages) == sent
    for rank, chunks in enumerate(trace["states"][3]):
        assert chunks[ring_chunk_owned(rank, 4, offset)].count("+") == 3
