"""What the journey's pages claim about layouts, compared with the planner's search of
all layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from figgen.catalog import run as catalog_run
from figgen.models.memory.fit_probability import SAFE, deviations_below, most_bytes
from figgen.registry import build
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import PlanRow, plan_rows
from figgen.scenarios.planning.planner import fastest
from figgen.scenarios.stories.journey import JourneyJob, job, rung

JOURNEY = Path(__file__).parents[1] / "docs/journey"
BATCH = "sequence=8192 global_batch=512"


def page(name: str) -> str:
    return (JOURNEY / f"{name}.md").read_text("utf-8")


def quoted(name: str, model: str, sizes: str, options: str) -> JourneyJob:
    """Return a job that a page quotes in an inline value and in a figure."""
    text = page(name)
    assert f'job("{model}", "{sizes}", "{BATCH} {options}")' in text
    assert f"| {model} | {sizes} | {BATCH} {options}" in text
    return job(model, sizes, f"{BATCH} {options}")


def best(model: str, nodes: int, fit_chance: float = SAFE, **fixed: object) -> PlanRow:
    """Return the fastest layout that fits with this chance; fixed options are not searched."""
    batch = {"sequence": 8192, "global_batch": 512}
    asked = scenario(model=model, nodes=nodes, gpus_per_node=8, **(batch | fixed))
    return plan_rows(fastest(plan_question(asked, fit_chance=fit_chance)), [0])[0]


def test_page_6_shows_the_planners_best_layout_and_it_has_no_pipeline() -> None:
    found = best("llama-3-70b", 8, fit_chance=0.5)
    chosen = {name: found.choices[name] for name in ("tp", "pp", "cp", "zero_stage", "recompute")}
    assert chosen == {"tp": 8, "pp": 1, "cp": 1, "zero_stage": 2, "recompute": "layernorm"}
    assert found.choices["microbatch_size"] == 2
    sizes = "nodes=8 gpus_per_node=8 tp=8"
    options = f"{BATCH} zero_stage=2 microbatch_size=2 recompute=layernorm"
    assert f'job("llama-3-70b", "{sizes}", "{options}")' in page("splitting-the-layer")
    shown = job("llama-3-70b", sizes, options)
    assert shown.step_time_s == pytest.approx(found.step_s)
    assert shown.total_bytes == pytest.approx(found.memory_bytes)
    assert 0.5 < shown.fit_chance < 0.65 < 0.9 < rung(7).fit_chance


def test_on_page_6_layouts_that_use_their_memory_beat_recomputation() -> None:
    sizes = "nodes=8 gpus_per_node=8 tp=8"
    one = quoted("splitting-the-layer", "llama-3-70b", sizes, "zero_stage=3")
    repeated = quoted(
        "splitting-the-layer",
        "llama-3-70b",
        "nodes=8 gpus_per_node=8",
        "zero_stage=3 recompute=full",
    )
    two = rung(6)
    whole = job("llama-3-70b", sizes, f"{BATCH} zero_stage=2 microbatch_size=2 recompute=layernorm")
    # All err alike, so that the predictions themselves are compared.
    assert whole.step_time_s < 0.95 * two.step_time_s < 0.9 * repeated.step_time_s
    assert repeated.step_time_s < 0.7 * one.step_time_s
    assert one.exposed_s > 0.45 * one.step_time_s > two.exposed_s
    assert one.far_bytes == pytest.approx(2 * two.far_bytes)
    assert job("llama-3-70b", sizes, f"{BATCH} zero_stage=1").missing_bytes > 0
    # Half the bandwidth costs full sharding within whole nodes nothing, the others their messages.
    slower = job(
        "llama-3-70b", "nodes=8 gpus_per_node=8", f"{BATCH} zero_stage=3 recompute=full nic=ib-hdr"
    )
    assert slower.step_time_s < 1.01 * repeated.step_time_s
    assert "Before you add another kind of parallelism, use the memory" in page(
        "splitting-the-layer"
    )


def test_the_layout_that_page_6_keeps_is_safe_because_its_norms_are_recomputed() -> None:
    options = f"{BATCH} zero_stage=3 microbatch_size=2"
    heavier, kept = job("llama-3-70b", "nodes=8 gpus_per_node=8 tp=8", options), rung(6)
    assert heavier.fit_chance < SAFE < kept.fit_chance
    assert kept.total_bytes < 0.8 * kept.capacity_bytes < heavier.total_bytes
    assert kept.step_time_s == pytest.approx(heavier.step_time_s, rel=0.01)
    said = "less than a fifth of the memory free, so recompute the norms too"
    assert f"{said}, which takes hardly any time" in page("splitting-the-layer")


def test_work_hides_the_same_large_share_of_tensor_parallel_messages_on_pages_6_and_10() -> None:
    """As in the bars of page 11, which show only what stays exposed."""
    for at in (6, 7, 10):
        parts = [row for row in rung(at).estimate.rows if row.axis == "tp"]
        exposed_s = sum(row.exposed_s for row in parts)
        assert exposed_s / sum(row.time_s for row in parts) == pytest.approx(
            1 - rung(at).tensor_hidden_share
        )
        assert rung(at).tensor_hidden_share == pytest.approx(0.79, abs=0.01)
    assert rung(5).tensor_hidden_share == 0
    bars = build("journey-subtract", {}).values
    assert float(bars["tp_computed"].value) == pytest.approx(
        sum(row.exposed_s for row in rung(10).estimate.rows if row.axis == "tp"), rel=0.01
    )
    assert "Messages that matmuls hide aren't in the bars" in page("when-it-does-not")


def test_tuned_software_is_predicted_between_the_two_measured_steps_of_plain_pytorch() -> None:
    tuned = job(
        "llama-3-1b",
        "nodes=1 gpus_per_node=1",
        "sequence=4096 global_batch=2 microbatch_size=2 zero_stage=0",
    )
    timed = build("step-measured", {}).values
    assert timed["sequence"].value == tuned.sequence
    fast, slow = (float(timed[f"{way}_measured"].value) for way in ("compiled", "eager"))
    assert tuned.low_s < fast < tuned.step_time_s < slow < tuned.high_s
    assert "is between the two measured steps, and its interval contains both" in page("one-gpu")


def test_the_formula_of_page_1_counts_nearly_all_activations() -> None:
    """The rest are the tokens, and the last norm's input and output."""
    text, tokens, width = page("one-gpu"), 8192, 2048
    assert r"$2 \cdot 16\,(6 \cdot 2048 + 2 \cdot 512 + 3 \cdot 8192) + 4 \cdot 128256$" in text
    per_token = 2 * 16 * (6 * width + 2 * 512 + 3 * 8192) + 4 * 128256
    rest = rung(1).activations_bytes - tokens * per_token
    assert rest == 8 * tokens + 2 * 2 * tokens * width


def test_on_page_4_sharding_leaves_nearly_a_fifth_and_its_buffers_have_three_parts() -> None:
    found = rung(4)
    assert 0.17 < -found.missing_bytes / found.capacity_bytes < 0.2
    parts = (found.working_bytes, found.buffers_bytes, found.reserve_bytes)
    assert sum(parts) == pytest.approx(found.rest_bytes)
    assert "lowest stage that leaves about a fifth of the memory free" in page("sharding")


def test_on_page_8_over_a_quarter_of_the_time_of_keys_and_values_is_exposed() -> None:
    (ring,) = (row for row in rung(8).estimate.rows if row.axis == "cp")
    assert 0.25 < ring.exposed_s / ring.time_s < 0.33
    assert "more than a quarter of the time spent sending keys and values stays" in page(
        "long-sequences"
    )


def test_pages_5_to_8_and_10_have_steps_of_one_size() -> None:
    assert {rung(at).tokens_per_step for at in (5, 6, 7, 8, 10)} == {1 << 22}
    assert "except on page 9" in page("leaving-the-node")


def test_405b_on_512_gpus_is_faster_with_stages_which_send_no_weights() -> None:
    name, whole = "splitting-the-depth", "nodes=64 gpus_per_node=8"
    batch = "sequence=4096 global_batch=1024"
    text = page(name)

    def shown(sizes: str, options: str) -> JourneyJob:
        assert f'job("llama-3-405b", "{whole} {sizes}", "{batch} {options}")' in text
        return job("llama-3-405b", f"{whole} {sizes}", f"{batch} {options}")

    alone = shown("tp=8", "zero_stage=3")
    flat = shown("tp=4", "zero_stage=3 recompute=full microbatch_size=4")
    deep = shown("tp=8 pp=16", "zero_stage=1")
    cut = "layers_per_stage=" + ",".join(["7", *["8"] * 14, "7"])
    lighter = job("llama-3-405b", f"{whole} tp=8 pp=16", f"{batch} zero_stage=1 {cut}")
    # One layer less on the last stage takes longer off it than the head adds.
    assert lighter.step_time_s < 0.96 * deep.step_time_s
    assert deep.layers + 2 == 16 * 8
    assert r"7 + 14 \cdot 8 + 7 = 126" in text
    sliced = shown(
        "tp=8 pp=16", "zero_stage=1 schedule=interleaved-1f1b chunks=8 recompute=layernorm"
    )
    # What is fastest of all, and what is fastest without a pipeline.
    fixed = {"sequence": 4096, "global_batch": 1024}
    found = best("llama-3-405b", 64, fit_chance=0.9, **fixed)
    assert (found.choices["tp"], found.choices["pp"], found.choices["cp"]) == (8, 16, 1)
    assert sliced.step_time_s == pytest.approx(found.step_s)
    without = best("llama-3-405b", 64, pp=1, **fixed)
    assert (without.choices["tp"], without.choices["recompute"]) == (4, "full")
    assert flat.step_time_s == pytest.approx(without.step_s)
    assert sliced.step_time_s < deep.step_time_s < 0.95 * flat.step_time_s
    # One sequence at a time, most of the step waits for weights.
    assert alone.exposed_s > 0.5 * alone.step_time_s > 2 * flat.step_time_s * 0.9
    assert deep.far_bytes < flat.far_bytes / 30 < alone.far_bytes / 200
    assert min(one.fit_chance for one in (alone, flat)) > SAFE
    assert min(one.fit_chance for one in (deep, sliced)) > 0.9
    # The head takes two thirds of a layer, and a sixth of the four layers of each of 32 stages.
    assert deep.head_s == pytest.approx(2 / 3 * deep.layer_s, rel=0.05)
    assert deep.head_s / (deep.layers / 32 * deep.layer_s) == pytest.approx(1 / 6, rel=0.05)
    kept = shown("tp=8 pp=16", "zero_stage=1 schedule=interleaved-1f1b chunks=8")
    assert kept.total_bytes > sliced.total_bytes > deep.total_bytes
    gpipe = shown("tp=8 pp=16", "zero_stage=1 schedule=gpipe")
    assert gpipe.missing_bytes > 0
    assert gpipe.activations_bytes == pytest.approx(
        deep.activations_bytes * deep.microbatches / deep.stages, rel=0.1
    )


def test_16_measured_stages_keep_half_of_the_throughput_and_tp_16_a_tenth() -> None:
    kept = build("swept-axis", {"jobs": ["3B on 64"], "axes": ["tp", "pp"]}).values
    assert 0.5 < float(kept["share_3B_pp16"].value) < 0.7
    assert 0.08 < float(kept["share_3B_tp16"].value) < 0.1
    assert "more than half of the throughput" in page("splitting-the-depth")


def test_for_70b_two_stages_are_no_faster_but_safer_and_hardly_use_the_network() -> None:
    sizes, options = "nodes=8 gpus_per_node=8", f"{BATCH} zero_stage=2 microbatch_size=2"
    flat = job("llama-3-70b", f"{sizes} tp=8", f"{options} recompute=layernorm")
    stages = rung(7)
    assert flat.step_time_s < stages.step_time_s < rung(6).step_time_s < flat.high_s
    assert stages.total_bytes < 0.85 * flat.total_bytes
    assert stages.far_bytes < min(flat.far_bytes / 20, rung(6).far_bytes / 50)
    half = (
        job("llama-3-70b", f"{sizes} tp=8 pp=2", f"{BATCH} zero_stage=1 nic=ib-hdr"),
        job("llama-3-70b", f"{sizes} tp=8", f"{options} recompute=layernorm nic=ib-hdr"),
    )
    assert half[0].step_time_s < 0.85 * half[1].step_time_s
    assert half[0].step_time_s < 1.01 * stages.step_time_s


def test_a_safe_layout_leaves_a_fifth_of_the_memory_free() -> None:
    capacity, spread = rung(10).capacity_bytes, rung(10).setup.framework_memory.peak_spread
    free = 1 - most_bytes(capacity, spread, deviations_below(SAFE)) / capacity
    assert free == pytest.approx(0.2, abs=0.02)
    assert "leave a fifth of the memory free" in page("all-at-once")


def test_mixtral_on_64_gpus_needs_experts_in_groups_of_four_and_no_stages() -> None:
    found = best("mixtral-8x7b", 8).choices
    assert (found["pp"], found["ep"]) == (1, 4)
    assert "groups of four GPUs divide its experts" in page("all-at-once")


def test_405b_needs_a_split_sequence_only_when_sequences_are_long() -> None:
    """The planned jobs take sequences of 8,192 tokens, page 7 half of that."""
    whole = "nodes=64 gpus_per_node=8 tp=8 pp=16"
    assert job("llama-3-405b", whole, f"{BATCH} zero_stage=1").fit_chance < SAFE
    assert "sequences are twice as long as on page 7" in page("all-at-once")
    assert "sequence=4096" in page("splitting-the-depth")


def test_nvidias_405b_run_on_512_h100_is_predicted_within_two_percent() -> None:
    measured = catalog_run("mlperf-v5.0-llama-3-405b-h100-512")
    predicted = training_step(run="mlperf-v5.0-llama-3-405b-h100-512").predicted.step_time_s
    assert measured.gpus == 512
    assert measured.step_time is not None
    assert predicted == pytest.approx(measured.step_time.value, rel=0.02)
    assert "predicts that step closely" in page("splitting-the-depth")


def test_deepseeks_planned_layout_has_large_groups_because_they_spare_it_recomputation() -> None:
    fixed = {"sequence": 4096, "global_batch": 1024}
    found, small = best("deepseek-v3", 64, **fixed), best("deepseek-v3", 64, ep=8, **fixed)
    assert (found.choices["ep"], found.choices["etp"]) == (64, 1)
    assert found.choices["recompute"] == "layernorm,moe_act"
    assert small.choices["recompute"] == "full"
    assert found.step_s < 0.85 * small.step_s
    assert "With EP 8, the fastest safe layout has to recompute everything" in page("all-at-once")


def test_page_9_shows_the_planners_fastest_layout_of_its_job() -> None:
    found = best("deepseek-v3", 64, sequence=4096, global_batch=4096)
    shown = job(
        "deepseek-v3",
        "nodes=64 gpus_per_node=8 tp=4 ep=64 etp=1 pp=4",
        "sequence=4096 global_batch=4096 zero_stage=1 recompute=layernorm,moe_act "
        "schedule=interleaved-1f1b chunks=8",
    )
    assert shown.step_time_s == pytest.approx(found.step_s)
    assert (found.choices["ep"], found.choices["tp"], found.choices["chunks"]) == (64, 4, 8)
    assert page("experts").count("tp=4 ep=64 etp=1 pp=4") >= 2
    assert shown.fit_chance > SAFE
    # Recomputing everything, the same layout has room to spare, and is slower than page 9's own.
    full = job(
        "deepseek-v3",
        "nodes=64 gpus_per_node=8 tp=4 ep=64 etp=1 pp=4",
        "sequence=4096 global_batch=4096 zero_stage=1 recompute=full "
        "schedule=interleaved-1f1b chunks=8",
    )
    assert full.total_bytes < 0.7 * shown.total_bytes
    assert full.step_time_s > max(rung(9).step_time_s, 1.25 * shown.step_time_s)


def test_deepseeks_planned_batch_is_a_quarter_of_page_9s() -> None:
    planned = job("deepseek-v3", "nodes=64 gpus_per_node=8 ep=8 pp=16", BATCH)
    assert rung(9).tokens_per_step == 4 * planned.tokens_per_step
    assert "four million tokens" in page("all-at-once")
    assert "DeepSeek-V3's batch is a quarter of the one on page 9" in page("all-at-once")
