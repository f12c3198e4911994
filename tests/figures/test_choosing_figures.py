"""Choosing a layout: limits by hand, and searches that miss no better layout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from figgen.catalog.rates import constants
from figgen.errors import InputError
from figgen.figures.training.choosing import (
    Tried,
    best_layouts,
    layout_search,
    mesh_label,
    search,
    strategy_limits,
)
from figgen.figures.training.planned import planned
from figgen.figures.training.planned_jobs import planned_jobs
from figgen.models.memory.fit_probability import SAFE
from figgen.scenarios.options.resolve import resolve
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.planner import plan
from figgen.scenarios.stories.journey import job


def test_every_mesh_is_there_once_in_its_fastest_way_and_no_layout_is_faster() -> None:
    """Planning one mesh at a time gives no faster layout."""
    tried = search("llama-3-70b", 8)
    assert len(set(found(tried))) == len(tried)
    rows = [tried.row(place) for place in range(len(tried))]
    assert [row.step_s for row in rows] == sorted(row.step_s for row in rows)
    for row in (rows[0], rows[5], rows[-1]):
        tp, pp, mode = (row.choices[name] for name in ("tp", "pp", "recompute"))
        asked = tried.plans[0].question.asked.but(tp=tp, pp=pp, recompute=mode)
        assert plan(plan_question(asked)).found.step_s[0] == row.step_s


def found(tried: Tried) -> list[tuple[int, int]]:
    """Return the meshes of a search by TP and number of stages."""
    chosen = [tried.row(place).choices for place in range(len(tried))]
    return [(int(str(each["tp"])), int(str(each["pp"]))) for each in chosen]


def test_parts_of_every_layout_of_the_search_add_up_to_its_prediction() -> None:
    """Rings of 512 ranks that pay the network's latency at each of 511 hops would not add up."""
    tried = search("llama-3-8b", 64)
    for row in (tried.row(place) for place in range(min(12, len(tried)))):
        step = resolve(tried.plans[0].question.asked.but(**row.choices))
        assert step.estimate.step_time_s == pytest.approx(row.step_s, rel=1e-9)
        assert 0.3 < step.compute_efficiency < 0.8


def test_the_page_says_of_the_search_what_it_finds() -> None:
    page = (Path(__file__).parents[2] / "docs/guide/choosing.md").read_text("utf-8")
    tried = search("llama-3-70b", 8)
    shown = [tried.row(place) for place in range(6)]
    first, last = shown[0].step_s, shown[-1].step_s
    residuals = tried.plans[0].question.residuals
    assert "all rows differ by less than the prediction's error" in page
    assert last / first < min(residuals.high, 1 / residuals.low)
    assert "The layout to beat is among these rows" in page
    assert "DP 64, ZeRO-3, recomputed" in map(mesh_label, shown)
    assert "That gains no more than the prediction's error" in page
    whole = planned("", "llama-3-70b", "nodes=8", "").found.step_s[0]
    assert first * tried.plans[0].question.residuals.low < whole < first
    assert "on 512 GPUs each GPU still has a whole sequence" in page
    row, job = search("llama-3-8b", 64).row(0), search("llama-3-8b", 64).plans[0].question.job
    assert (row.dp, row.microbatches, row.choices["zero_stage"]) == (512, 1, 3)
    assert job.setup.sequence == 8192 > 989.4e12 / 400e9


def test_leaving_a_fifth_of_the_memory_free_answers_the_examples_of_the_page_as_the_planner() -> (
    None
):
    asked = "sequence=8192 global_batch=512 zero_stage="
    for model, sizes, stage in (
        ("llama-3-70b", "nodes=8 gpus_per_node=8", 3),
        ("llama-3-70b", "nodes=8 gpus_per_node=8 tp=8", 1),
        ("llama-3-70b", "nodes=8 gpus_per_node=8 tp=8 pp=2", 1),
        ("llama-3-70b", "nodes=64 gpus_per_node=8 tp=8", 1),
        ("llama-3-8b", "nodes=1 gpus_per_node=8", 3),
        ("llama-3-8b", "nodes=1 gpus_per_node=8 tp=2", 1),
    ):
        found = job(model, sizes, f"{asked}{stage}")
        assert (found.total_bytes <= 0.8 * found.capacity_bytes) == (found.fit_chance >= SAFE)


def test_zero_2_gives_way_to_zero_3_where_a_step_has_one_microbatch_not_where_it_does_not_fit() -> (
    None
):
    for nodes, fastest in ((1, 2), (8, None), (64, 3)):
        tried = search("llama-3-8b", nodes)
        asked = tried.plans[0].question.asked.but(**tried.row(0).choices)
        steps = {stage: resolve(asked.but(zero_stage=stage)) for stage in (2, 3)}
        assert steps[2].memory.fits
        seconds = {stage: step.predicted.step_time_s for stage, step in steps.items()}
        if fastest is None:
            assert seconds[2] == pytest.approx(seconds[3], rel=1e-3)
        else:
            assert min(seconds, key=seconds.__getitem__) == fastest
    assert 1 / 3 < constants()["exposed_data.megatron"].value < 0.4


def test_what_must_recompute_does_not_fit_otherwise() -> None:
    """The state of 70B parameters fits 64 GPUs, but the activations of a whole sequence do not."""
    tried = search("llama-3-70b", 8)
    labels = {mesh_label(tried.row(place)) for place in range(len(tried))}
    assert "DP 64, ZeRO-3, recomputed" in labels
    assert "DP 64, ZeRO-3" not in labels


def test_idle_of_a_searched_layout_is_that_of_its_slowest_rank_not_of_the_schedule() -> None:
    table = layout_search(model="llama-3-70b", nodes=8)
    assert "idle" in [column.label for column in table.columns]
    tried = search("llama-3-70b", 8)
    for place in range(6):
        asked = tried.plans[0].question.asked.but(**tried.row(place).choices)
        setup, estimate = resolve(asked).setup, resolve(asked).estimate
        stages, microbatches = setup.parallel.pp, setup.microbatches
        schedule = (stages - 1) / (microbatches + stages - 1)
        # The head makes the last stage longer: its rank idles less than the mean of all.
        assert estimate.bubble_s / estimate.step_time_s <= schedule + 1e-12


def test_a_model_that_nothing_holds_is_refused() -> None:
    with pytest.raises(InputError, match="more nodes"):
        layout_search(model="llama-3-70b", nodes=1)


def test_70_billion_parameters_do_not_fit_eight_gpus() -> None:
    """At 18 bytes each they take 1,260 GB, twice what the node has."""
    assert best_layouts().values["llama_3_70b_8"].value == "none fits"


def test_limits_of_an_h100_node_are_those_worked_out_by_hand() -> None:
    values = strategy_limits().values
    ridge_out, ridge_in = 989.4e12 / 50e9, 989.4e12 / 450e9
    assert values["ddp"].value == pytest.approx(85.017e9 / 18, rel=1e-3)
    assert values["tp_inside"].value == pytest.approx(ridge_in * 7 * 2 / 9)
    assert values["tp_outside"].value == pytest.approx(ridge_out * 7 * 2 / 9)
    assert values["cp_inside"].value == pytest.approx(
        ridge_in * 2 / 8
    )  # half the pairs, an eighth of the bytes
    assert strategy_limits(heads=8).values["cp_inside"].value == pytest.approx(ridge_in * 2)
    assert values["alone"].value == pytest.approx(ridge_out)
    assert values["tokens"].value == pytest.approx(ridge_out / 8)
    assert values["microbatches"].value == pytest.approx(63)


def walked(model: str, nodes: int) -> str:
    """Return where the decision tree ends for sequences of 8,192 tokens on nodes of eight H100."""
    asked = "sequence=8192 global_batch=512 zero_stage="
    one = job(model, "nodes=1 gpus_per_node=1", "sequence=8192 global_batch=1 zero_stage=1")
    sharded = job(model, f"nodes={nodes} gpus_per_node=8", f"{asked}3")
    tensor = job(model, f"nodes={nodes} gpus_per_node=8 tp=8", f"{asked}1")
    if one.fit_chance >= SAFE:
        return "DP"
    if sharded.fit_chance >= SAFE and sharded.tokens_to_hide <= 8192:
        return "DP sharded"
    return "TP DP" if tensor.fit_chance >= SAFE else "TP PP DP"


@pytest.mark.parametrize(
    ("model", "nodes"),
    [
        ("llama-3-8b", 1),
        ("llama-3-8b", 8),
        ("llama-3-8b", 64),
        ("llama-3-70b", 8),
        ("llama-3-70b", 64),
        ("gpt-3-175b", 8),
        ("gpt-3-175b", 16),
        ("gpt-3-175b", 64),
    ],
)
def test_the_tree_ends_where_the_search_does(model: str, nodes: int) -> None:
    """The search tries every layout and does not use the tree's questions."""
    found = str(best_layouts().values[f"{model.replace('-', '_')}_{8 * nodes}"].value)
    axes, _, rest = found.partition(", ")
    kind = re.sub(r"[ ·0-9]+", " ", axes).strip()
    if kind == "DP" and rest in ("ZeRO-2", "ZeRO-3"):
        kind = "DP sharded"
    assert kind == walked(model, nodes)


def test_planned_jobs_are_the_planners_answers_and_no_alternative_is_faster() -> None:
    for one in planned_jobs():
        others = [row for row in (one.no_stages, one.simplest) if row is not None]
        times = [one.best.step_s, *(row.step_s for row in others)]
        assert times == sorted(times), one.model
        assert all(row.choices["zero_stage"] == 3 and row.choices["pp"] == 1 for row in others)
    simple = {(one.model, one.gpus): one.simplest for one in planned_jobs()}
    assert simple["llama-3-405b", 512] is None
    alone = simple["llama-3-70b", 512]
    assert alone is not None
    # On 64 GPUs the small model needs no split: both pages call plain FSDP a tie.
    plain = job(
        "llama-3-8b", "nodes=8 gpus_per_node=8", "sequence=8192 global_batch=512 zero_stage=3"
    )
    (small,) = (one for one in planned_jobs() if (one.model, one.gpus) == ("llama-3-8b", 64))
    assert small.best.step_s < plain.step_time_s < 1.01 * small.best.step_s
    # The journey writes the same layout out, with a model of a step that knows no planner.
    written = job(
        "llama-3-70b",
        "nodes=64 gpus_per_node=8",
        "sequence=8192 global_batch=512 zero_stage=3 recompute=full",
    )
    assert alone.step_s == pytest.approx(written.step_time_s)
