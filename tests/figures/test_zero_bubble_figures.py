"""Schedules with split backwards, compared with the idle times and memory that papers print."""

from __future__ import annotations

import pytest

from figgen.catalog import model
from figgen.errors import InputError
from figgen.figures.pipeline.zero_bubble import layer_parts, messages, split_trace
from figgen.models.algorithms.communication_ratio import layer_training_flops_per_token
from figgen.models.pipeline.schedules import SCHEDULES
from figgen.models.shape.transformer import attention_weights, ffn_weights
from figgen.models.step.step import step
from figgen.registry import build
from figgen.scenarios.options.resolve import training_step
from tests.figures.reading import DRAWN

SEQUENCES = (1024, 8192, 131072)


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 8), (4, 8), (4, 16), (8, 32)])
@pytest.mark.parametrize("times", [(1.0, 1.0, 1.0), (1.0, 1.25, 0.75), (2.0, 2.5, 1.5)])
def test_idle_time_of_zb1p_is_that_of_its_paper(
    stages: int, microbatches: int, times: tuple[float, float, float]
) -> None:
    f, i, w = times
    trace = split_trace("zb1p", stages, microbatches, times)
    work = microbatches * (f + i + w)
    # (p − 1)(T_F + T_B − T_W), Qi et al. 2023, table 2; B is the input's part there.
    assert trace.makespan == pytest.approx(work + (stages - 1) * (f + i - w))


@pytest.mark.parametrize("stages", [2, 4, 6, 8])
def test_idle_time_and_memory_of_dualpipe_are_those_of_its_table(stages: int) -> None:
    trace = split_trace("dualpipe", stages, 4 * stages)
    # (PP/2 − 1)(F&B + B − 3W) with B the whole backward, arXiv:2412.19437, table 2.
    assert trace.makespan == 4 * stages * 3 + (stages / 2 - 1) * (3 + 2 - 3)
    assert max(trace.peak_in_flight) == stages + 1


def test_table_has_every_schedule_and_the_memories_that_papers_print() -> None:
    chart = build("schedule-table", {"stages": 8, "microbatches": 32})
    assert len(chart.rows) == len(SCHEDULES) == 12
    values = {name: named.value for name, named in chart.values.items()}
    assert values["zb1p_peak"] == values["zbv_peak"] == values["one_f_one_b_peak"] == 8
    assert values["zb2p_peak"] == 2 * 8 - 1
    assert (values["v_half_peak"], values["v_min_peak"]) == ((8 + 2) // 2, (8 + 4) // 3)
    assert values["zb2p_open"] == pytest.approx(0, abs=1e-12)
    assert values["zbv_open"] == pytest.approx(0, abs=1e-12)
    copies = {name: values[f"{name}_copies"] for name in ("dualpipe", "dualpipev", "zbv")}
    assert copies == {"dualpipe": 2, "dualpipev": 1, "zbv": 1}


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_microbatch_crosses_every_boundary_between_ranks_twice(name: str) -> None:
    trace = split_trace(name, 4, 8)
    chunks = trace.schedule.placement.chunks
    turns = chunks - 1 if trace.schedule.placement.name == "v-shape" else 0
    assert messages(trace.schedule) == 8 * 2 * (4 * chunks - 1 - turns)


def test_parts_of_a_layer_are_its_training_work_with_attention_as_its_authors_count_it() -> None:
    """Dao's own benchmark: 4·s²·d per head forward, half of it if causal, and 2.5 times that
    backward."""
    shape = model("llama-3-8b").shape
    for sequence in SEQUENCES:
        forward, inputs, weights = layer_parts(shape, sequence)
        products = layer_training_flops_per_token(shape, sequence=0)
        attention = 4 * sequence * shape.heads * shape.head_dim / 2
        assert forward == pytest.approx(products / 3 + attention)
        assert forward + inputs + weights == pytest.approx(products + 3.5 * attention)
        assert weights == pytest.approx(products / 3)


def test_a_mixture_has_no_layer_of_one_kind() -> None:
    with pytest.raises(InputError, match="dense model"):
        build("backward-parts", {"model": "mixtral-8x7b", "sequences": (1024,)})


def test_1f1b_idles_alike_whatever_a_backward_is_made_of_and_zb1p_does_not() -> None:
    values = build("idle-by-sequence", DRAWN["idle-by-sequence"]).values
    assert values["one_f_one_b_first"].value == pytest.approx(7 / 39)
    assert values["one_f_one_b_last"].value == pytest.approx(7 / 39)
    assert 7 / 103 < values["zb1p_first"].value < values["zb1p_last"].value < 7 / 39


def test_at_131072_tokens_zbv_idles_a_little_more_than_interleaving_as_the_caption_says() -> None:
    """Interleaving with two chunks idles 7 / (64 + 7), however a backward is split."""
    asked = {
        "sequences": (2048, 131072),
        "schedules": ("1f1b", "interleaved-1f1b", "zb1p", "zbv", "v-half"),
    }
    values = build("idle-by-sequence", {"model": "llama-3-8b", **asked}).values
    interleaving, most = values["interleaved_1f1b_last"].value, values["one_f_one_b_last"].value
    assert interleaving == pytest.approx(7 / 71)
    assert interleaving < values["zbv_last"].value < 1.1 * interleaving
    assert values["zb1p_last"].value < most < values["v_half_last"].value


def test_no_schedule_of_the_frontier_is_better_in_both_than_one_of_the_three_named() -> None:
    values = {name: named.value for name, named in build("schedule-frontier", {}).values.items()}
    names = [name.removesuffix("_idle") for name in values if name.endswith("_idle")]
    best = {"zbv", "v_half", "v_min"}
    for name in set(names) - best:
        assert any(
            values[f"{other}_idle"] <= values[f"{name}_idle"]
            and values[f"{other}_peak"] <= values[f"{name}_peak"]
            for other in best
        ), name


def test_computing_is_the_same_under_every_schedule_and_pairs_hide_expert_traffic() -> None:
    chart = build("schedule-steps", DRAWN["schedule-steps"])
    computing = next(segment for segment in chart.segments if segment.name == "computing")
    assert computing.lengths[0] == pytest.approx(computing.lengths[1])
    # What pairs hide is at most what is sent and what they compute, and most of the less.
    exposed = [float(chart.values[f"{name}_ep"].value) for name in ("one_f_one_b", "dualpipe")]
    least = min(exposed[0], computing.lengths[0])
    # What enters first and leaves last has nothing to pair with.
    assert 0.65 < (exposed[0] - exposed[1]) / least <= 1


def test_a_v_has_the_pairs_of_dualpipe_and_both_ends_of_the_model_on_one_rank() -> None:
    chart = build("schedule-steps", DRAWN["schedule-steps"])
    values = {name: float(named.value) for name, named in chart.values.items() if named.unit == "s"}
    assert (
        max(values["dualpipev_ep"], values["dualpipev_recut_ep"]) < 0.4 * values["one_f_one_b_ep"]
    )
    # 61 layers, a module of one more, and two output layers of 129,280 rows: in layers, by their
    # matmuls with weights, what rank 0 has. With one layer fewer it no longer works longest.
    shape = model("deepseek-v3").shape
    expert = shape.experts.top_k + shape.experts.shared
    layer = attention_weights(shape) + expert * ffn_weights(shape, shape.experts.ffn_hidden)
    heads = 2 * shape.vocab * shape.hidden / layer
    inside = values["dualpipe_computing"] / 4
    assert values["dualpipev_computing"] / inside == pytest.approx(2 + 1 + heads, rel=0.1)
    assert values["dualpipev_recut_computing"] == pytest.approx(4 * inside, rel=0.01)


@pytest.mark.parametrize(
    ("schedule", "bubble_fraction", "above"),
    [
        ("1f1b", 3 / 11, False),
        ("interleaved-1f1b", 3 / 19, False),
        ("zb1p", 1 / 9, True),  # (P - 1)(F + I - W) of 3M + P - 1 units, Qi et al. 2023
        ("v-min", 5.5 / 29.5, True),
    ],
)
def test_a_step_idles_less_than_its_schedule_where_backwards_are_whole(
    schedule: str, bubble_fraction: float, above: bool
) -> None:
    """Llama 3.1 70B in four stages, eight microbatches of 8,192 tokens: I is longer than W."""
    found = training_step(
        model="llama-3-70b",
        nodes=12,
        gpus_per_node=8,
        tp=8,
        pp=4,
        microbatches=8,
        schedule=schedule,
    )
    estimate = step(found.setup, found.cluster)
    assert (estimate.bubble_fraction > bubble_fraction) == above
