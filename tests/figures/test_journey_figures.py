"""The journey's figures: rows that fit and add up, and pictures compared with NumPy and closed
forms."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from figgen import catalog
from figgen.catalog.rates import constants
from figgen.charts import Bars, Curves, Diagram, Overview, Table
from figgen.errors import InputError
from figgen.registry import build
from figgen.renderers import svg
from figgen.scenarios.stories.journey import job, rung
from figgen.scenarios.stories.journey_charts import layout_words
from figgen.scenarios.stories.journey_ladder import RUNGS
from figgen.values import compute
from tests.figures.reading import DRAWN

DOCS = Path(__file__).parents[2] / "docs"
LAYOUTS = (
    "alone", "DP 2", "DP 8", "FSDP 8", "FSDP 64", "TP 8 · FSDP 8", "TP 8 · PP 2 · DP 4, ZeRO-1",
    "TP 8 · CP 16 · PP 2 · DP 2, ZeRO-1", "EP 8 · PP 16 · DP 32, ZeRO-1",
    "TP 8 · PP 2 · DP 32, ZeRO-1, 5 slices",
)  # fmt: skip
ONE = "one | llama-3-1b | nodes=1 gpus_per_node=8 | sequence=8192 global_batch=8 zero_stage=0"
EIGHT = "eight | llama-3-1b | nodes=1 gpus_per_node=8 | sequence=8192 global_batch=64 zero_stage=0"


@pytest.mark.parametrize("page", ["hiding", "when-it-does-not"])
def test_figures_of_the_work_of_page_1_take_as_long_as_it_does(page: str) -> None:
    page_text = (DOCS / "journey" / f"{page}.md").read_text("utf-8")
    utilization = float(re.findall(r"^utilization: (.+)$", page_text, re.MULTILINE)[0])
    found = build("bucket-film", {"utilization": utilization, "bucket_mib": 340}).values
    assert found["backward_s"].value == pytest.approx(rung(1).backward_s, rel=2e-3)
    # What sticks out is the last bucket, 2·7/8 of it at 50 GB/s and 14 steps of 14 us.
    last = 1.75 * found["last_bytes"].value / 50e9 + 14 * 14e-6
    assert found["exposed_s"].value == pytest.approx(last, rel=1e-3)


def test_page_3_plays_the_machine_that_it_is_scored_on() -> None:
    """Film and ladder both have eight servers with one adapter each and gradients in 32 bits."""
    text_ = (DOCS / "journey/hiding.md").read_text("utf-8")
    fence = next(f for f in text_.split("```") if "figure: bucket-film" in f)
    names = "gradient_bytes", "bucket_mib", "first_bucket_mib", "utilization"
    asked = {name: float(re.findall(rf"^{name}: (.+)$", fence, re.MULTILINE)[0]) for name in names}
    film = build("bucket-film", {n: v if n == "utilization" else int(v) for n, v in asked.items()})
    shown, found = film.values, rung(3)
    assert found.far_bytes == pytest.approx(1.75 * found.gradients_bytes, rel=1e-6)
    assert found.near_bytes == 0
    ring_s = 1.75 * found.gradients_bytes / 50e9
    assert shown["all_reduce_s"].value == pytest.approx(ring_s + 14 * 14e-6)
    assert ring_s > shown["backward_s"].value  # so buckets queue up
    assert shown["hidden"].value == pytest.approx(0.5, abs=0.03)  # "about half"
    one = job("llama-3-1b", "nodes=8 gpus_per_node=1", "sequence=8192 zero_stage=0 global_batch=8")
    # The fitted model and the film's buckets agree on what sticks out.
    assert one.exposed_s == pytest.approx(shown["exposed_s"].value, rel=0.15)
    assert one.exposed_s / one.step_time_s == pytest.approx(1 / 4, abs=0.02)
    assert found.exposed_s / found.step_time_s < 0.06


@pytest.mark.parametrize("page", range(1, len(RUNGS) + 1))
def test_every_rung_fits_and_its_layout_is_what_its_words_say(page: int) -> None:
    found, entry = rung(page), RUNGS[page - 1]
    assert entry.page == page
    assert found.missing_bytes <= 0
    assert found.low_s < found.step_time_s < found.high_s
    parallel, setup = found.found.setup.parallel, found.found.setup
    assert layout_words(setup) == LAYOUTS[page - 1]
    said = dict(re.findall(r"([A-Z][A-Za-z]+)[ -](\d+)", LAYOUTS[page - 1]))
    slices = re.search(r"(\d+) slices", LAYOUTS[page - 1])
    assert setup.placement.chunks == (int(slices[1]) if slices else 1)
    assert (setup.zero_stage == 3) is ("FSDP" in said)
    assert int(said.pop("ZeRO", 0)) == (setup.zero_stage if setup.zero_stage < 3 else 0)
    for axis, size in said.items():
        assert getattr(parallel, "dp" if axis == "FSDP" else axis.lower()) == int(size)


@pytest.mark.parametrize("page", [1, 6, len(RUNGS)])
def test_time_work_and_memory_of_a_job_are_divided_without_a_rest(page: int) -> None:
    found = rung(page)
    whole, fullest = found.step_time_s, found.found.memory.fullest
    shares = (found.idle_share + found.straggling_share) * whole
    alone = found.update_s + found.fixed_s
    assert found.computing_s + found.exposed_s + shares + alone == pytest.approx(whole)
    # On one GPU the closed form has some microseconds for gradients that nobody waits for.
    assert found.computing_s <= found.work_s + 1e-4
    assert found.paid_once_share * whole == pytest.approx(alone + found.gradients_share * whole)
    assert found.backward_s / (found.work_s - found.backward_s) == pytest.approx(2)
    # Twice the unmasked half of attention, over all GPUs and tokens of the step.
    flops = (found.matmuls_gflops + 2 * found.attention_gflops) * 1e9 * found.tokens_per_step
    peak = found.found.cluster.peak_flops_per_s
    assert found.at_peak_s == pytest.approx(flops / found.gpus / peak)
    others = [fullest.bytes_of(part) for part in ("working", "communication", "reserve")]
    assert found.rest_bytes == pytest.approx(sum(others))
    assert found.state_bytes + found.activations_bytes + found.rest_bytes == pytest.approx(
        found.capacity_bytes + found.missing_bytes
    )


def test_a_layer_of_the_first_model_moves_eight_bytes_a_weight() -> None:
    """Llama 3.2 1B is 2,048 wide with 8 KV heads for 32 heads; two gathers of 2 bytes, one scatter
    of 4."""
    weights = 2 * 2048 * (2048 + 512) + 3 * 2048 * 8192
    assert job("llama-3-1b", "nodes=1 gpus_per_node=8").layer_sharded_bytes == 8 * weights


def test_a_board_of_n_pages_is_the_first_n_rows_of_the_whole_board() -> None:
    whole = build("journey-scoreboard", {"page": 10})
    third = build("journey-scoreboard", {"page": 3})
    assert isinstance(whole, Table)
    assert isinstance(third, Table)
    assert third.rows == whole.rows[:3]
    with pytest.raises(InputError, match="page"):
        build("journey-scoreboard", {"page": 11})


@pytest.mark.parametrize("page", range(2, len(RUNGS) + 1))
def test_a_ledger_adds_up_to_the_boards_bytes(page: int) -> None:
    found = build("journey-ledger", {"page": page})
    assert isinstance(found, Bars)
    near, far = (segment.lengths for segment in found.segments)
    for lengths, bytes_ in ((near, rung(page).near_bytes), (far, rung(page).far_bytes)):
        assert sum(lengths) == pytest.approx(bytes_)
    for at, (label, one, other) in enumerate(zip(found.labels, near, far, strict=True), 1):
        product = re.search(r"([\d×\N{NO-BREAK SPACE}]+) calls of ", label)
        assert product is not None
        calls = np.prod([int(factor) for factor in re.findall(r"\d+", product[1])])
        each = found.values[f"each_{at}"].value
        assert isinstance(each, float)
        assert calls * each == pytest.approx(one + other)


def test_products_of_a_ledger_are_those_that_the_pages_derive() -> None:
    border = 8192 * 8192 * 2  # activations between two layers of the 70B model
    tensor = build("journey-ledger", {"page": 6}).values
    assert tensor["calls_1"].value == 32 * 80 * 8
    assert tensor["each_1"].value == pytest.approx(7 / 8 * border * 2)  # of two sequences
    experts = build("journey-ledger", {"page": 9}).values
    assert experts["each_1"].value == pytest.approx(7 / 8 * 8 * 4096 * 7168 * 2)
    context = build("journey-ledger", {"page": 8}).values  # keys and values of one head, 16-bit
    assert context["each_4"].value == pytest.approx(2 * 131072 / 16 * 128 * 2)


def test_tokens_that_hide_are_the_ridge_over_the_work_per_byte() -> None:
    peak = 989.4e12
    for page, bandwidth in ((4, 450e9), (5, 400e9), (6, 50e9)):
        assert rung(page).tokens_to_hide == pytest.approx(peak / bandwidth * 8 / 6)


def test_the_missing_seconds_are_those_of_a_ring_at_a_third_of_a_healthy_one() -> None:
    """A layer has four gathers and scatters forward and six backward, on 40 layers and 16
    microbatches.

    A healthy ring hides all of them except the fitted share. At a third of its bandwidth they take
    longer than the matmuls that could hide them: 2 · 8,192 · 855.6 million / 8 FLOPs forward and
    twice that backward.
    """
    found = build("journey-subtract", {}).values
    bytes_ = 7 / 8 * 8192 * 8192 * 2
    rates = rung(10).predicted.attained
    matmuls_s = 2 * 8192 * 855_638_016 / 8 / rates.matmul_flops_per_s
    hop_s = constants()["near_latency_s.all"].value
    healthy_s, weak_s = (bytes_ / (0.8 * 450e9 / n) + 7 * hop_s for n in (1, 3))
    computed_s = constants()["exposed_tensor.megatron"].value * 10 * healthy_s
    weak_wait_s = 10 * weak_s - 3 * matmuls_s
    for name, seconds in (("tp_computed", computed_s), ("tp_measured", weak_wait_s)):
        assert found[name].value == pytest.approx(16 * 40 * seconds, rel=2e-3)
    assert rung(10).slowed_gather_s == pytest.approx(bytes_ / (370e9 / 3) + 7 * 3.4e-6)
    assert found["measured"].value == pytest.approx(rung(10).slowed_s)
    # The interval is for clusters that nobody has met, so the page says that this fault is in it.
    assert rung(10).step_time_s < rung(10).slowed_s < rung(10).high_s


def test_full_sharding_sends_what_replicas_send_where_gradients_have_32_bits() -> None:
    """2 + 2 + 4 bytes per parameter equal 4 + 4; with everything in 16 bits they are 6 and 4."""
    options = "sequence=8192 global_batch=8 zero_stage="
    each = (job("llama-3-8b", "nodes=1 gpus_per_node=8", f"{options}{at}") for at in (0, 3))
    replicas, sharded = (one.near_bytes for one in each)
    assert sharded == pytest.approx(replicas, rel=1e-6)
    assert sharded == pytest.approx(7 / 8 * 8 * 8_030_261_248, rel=1e-6)
    front = (DOCS / "index.md").read_text("utf-8")
    line = next(s for s in front.splitlines() if "[ZeRO and FSDP]" in s)
    assert "gradient_bytes_per_param=4" in line
    assert "With gradients in 32 bits, they send no more than plain" in front
    assert "with everything in 16 bits, one and a half times as much." in front


def test_the_film_of_buckets_has_the_backward_of_page_1() -> None:
    text_ = (DOCS / "journey/hiding.md").read_text("utf-8")
    utilization = re.search(r"utilization: ([\d.]+)", text_)
    assert utilization
    film = build("bucket-film", {"utilization": float(utilization[1]), "bucket_mib": 340}).values
    assert film["backward_s"].value == pytest.approx(rung(1).backward_s, rel=3e-4)


@pytest.mark.parametrize("page", range(1, len(RUNGS) + 1))
def test_no_step_is_shorter_than_its_bytes_at_full_bandwidth(page: int) -> None:
    found = rung(page)
    assert found.step_time_s > found.far_bytes / 50e9
    assert found.step_time_s > found.near_bytes / 450e9
    assert found.mfu == pytest.approx(found.found.estimate.model_flops_utilisation)


def test_bars_of_layouts_are_as_long_as_their_steps() -> None:
    shown = ["sharded | llama-3-70b | nodes=8 gpus_per_node=8 tp=8 | global_batch=512 zero_stage=3"]
    found = build("journey-layouts", {"jobs": [*shown, EIGHT]})
    assert isinstance(found, Bars)
    for at, seconds in enumerate((found.values["step_1"].value, found.values["step_2"].value)):
        lengths = [segment.lengths[at] for segment in found.segments]
        assert sum(lengths) == pytest.approx(seconds)


def test_what_counts_of_attention_is_the_triangle_of_the_long_sequence() -> None:
    short, long, last = rung(7), rung(8), rung(10)
    triangle = (
        6 * 80 * 131072 * 8192 / 1e9
    )  # of two products, forward and twice in backward: one half
    assert long.attention_gflops == pytest.approx(triangle)
    assert short.attention_gflops == pytest.approx(triangle / 16)
    # 32 sequences of 131,072 tokens over 512 GPUs of 989.4 TFLOP/s.
    assert long.attention_at_peak_s == pytest.approx(triangle * 32 * 131072 / 512 / 989.4e3)
    assert long.matmuls_gflops == pytest.approx(
        6e-9 * catalog.model("llama-3-70b").parameters, 0.02
    )
    counted = long.matmuls_gflops + long.attention_gflops
    assert long.mfu_causal == pytest.approx(counted * long.tokens_per_second_and_gpu / 989.4e3)
    assert long.mfu / long.mfu_causal == pytest.approx(1 + triangle / counted)
    assert last.gradients_share == pytest.approx(last.gradients_s / last.step_time_s)


def test_four_stages_lose_to_the_head_what_the_last_stage_has_more() -> None:
    four = job(
        "llama-3-70b",
        "nodes=8 gpus_per_node=8 tp=8 pp=4",
        "sequence=8192 global_batch=512 zero_stage=1",
    )
    assert four.work_s - rung(7).work_s == pytest.approx((256 - 128) * rung(7).head_s)
    assert four.straggling_share == pytest.approx(rung(7).straggling_share, rel=1e-2)


def test_a_sequence_of_131072_tokens_needs_more_than_cp_4() -> None:
    options = "sequence=131072 global_batch=32 zero_stage=1"
    four, eight = (
        job("llama-3-70b", f"nodes=64 gpus_per_node=8 tp=8 cp={cp} pp=2", options) for cp in (4, 8)
    )
    assert four.missing_bytes > 0 > eight.missing_bytes
    assert eight.step_time_s > rung(8).step_time_s  # eight microbatches idle more than sixteen


def test_sixteen_ranks_of_experts_save_in_memory_half_of_what_they_wait_for_the_network() -> None:
    options = "sequence=4096 global_batch=4096 zero_stage=1 recompute=full"
    eight, sixteen, many = (
        job("deepseek-v3", f"nodes=64 gpus_per_node=8 ep={ep} pp=16", options) for ep in (8, 16, 32)
    )
    saved = eight.expert_memory_s - sixteen.expert_memory_s
    later = sixteen.expert_memory_s - many.expert_memory_s
    assert saved == pytest.approx(2 * later)  # 16 experts of a GPU less, then 8
    waited = sixteen.expert_messages_s - eight.expert_messages_s
    assert 0.4 < saved / (1.5 * waited) < 1  # a repeated forward waits half as long again
    copies = 1 - 0.5**8, 3 * (1 - 0.75**8)  # expected other nodes of a token with eight experts
    assert many.expert_messages_s / sixteen.expert_messages_s == pytest.approx(
        copies[1] / copies[0]
    )


def test_bytes_and_state_are_those_of_the_closed_forms() -> None:
    small, large = (catalog.model(f"llama-3-{size}b").parameters for size in (1, 8))
    assert rung(1).state_bytes == pytest.approx(18 * small)
    assert rung(2).near_bytes == pytest.approx(4 * small, rel=1e-6)  # 2 · 1/2 of four bytes each
    assert rung(3).far_bytes == pytest.approx(2 * 7 / 8 * 4 * small, rel=1e-6)
    assert rung(4).state_bytes == pytest.approx(18 * large / 8, rel=1e-3)
    # Eight microbatches gather 16-bit weights twice and scatter 32-bit gradients once.
    assert rung(4).near_bytes == pytest.approx(8 * 7 / 8 * (2 + 2 + 4) * large, rel=1e-3)
    assert rung(4).far_bytes == 0


@pytest.mark.parametrize("page", [1, 4, 7, 9])
def test_what_pages_quote_of_a_job_fits_together(page: int) -> None:
    found, asked = rung(page), f"{RUNGS[page - 1].sizes} {RUNGS[page - 1].options}"
    size = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)\b", asked)}
    gpus = size["nodes"] * size["gpus_per_node"]
    model_ranks = size.get("tp", 1) * size.get("cp", 1) * size.get("pp", 1)
    tokens = size["global_batch"] * size["sequence"]
    assert (found.gpus, found.tokens_per_step) == (gpus, tokens)
    assert found.microbatches * gpus // model_ranks == size["global_batch"]
    rate = tokens / found.step_time_s
    assert found.tokens_per_second == rate
    assert found.tokens_per_second_and_gpu == pytest.approx(rate / gpus)
    assert found.trillion_tokens_s * rate == pytest.approx(1e12)
    assert found.speed_up == pytest.approx(rate / (8192 / rung(1).step_time_s))
    assert found.low_s < found.step_time_s < found.high_s
    assert 0 < found.update_s < found.step_time_s / 4
    pp, microbatches = size.get("pp", 1), found.microbatches
    # The slowest stage waits while the first microbatch comes to it and the last one goes on:
    # once through all other stages. A bubble's share, or less where those are lighter.
    shape, parts = found.found.model.shape, found.found.predicted.parts
    dense = shape.dense_layers if shape.experts else shape.layers
    layers_s = dense * parts.dense.total_s + (shape.layers - dense) * parts.expert.total_s
    others_s = layers_s + parts.head_s - parts.work_s / microbatches
    assert parts.idle_s == pytest.approx(others_s if pp > 1 else 0)
    assert found.idle_share == pytest.approx(parts.idle_s / found.step_time_s)
    assert found.idle_share <= (pp - 1) / (microbatches + pp - 1)
    memory = found.found.memory
    assert found.capacity_bytes == catalog.accelerator("h100-sxm-80gb").capacity_bytes
    assert found.capacity_bytes + found.missing_bytes == pytest.approx(memory.fullest.total_bytes)
    lines = dict.fromkeys(("weights", "gradients", "optimizer", "activations"), 0.0)
    for line in memory.fullest.lines:
        if line.part in lines:
            lines[line.part] += line.bytes
    kept = (found.weights_bytes, found.gradients_bytes, found.optimizer_bytes)
    assert (*kept, found.activations_bytes) == pytest.approx(tuple(lines.values()))
    assert found.state_bytes == pytest.approx(sum(kept))
    together = found.state_bytes + found.activations_bytes + found.rest_bytes
    assert together == pytest.approx(memory.fullest.total_bytes)
    assert found.far_s == pytest.approx(found.far_bytes / 50e9)
    assert (found.near_bytes > 0, found.far_bytes > 0) == (gpus > 1, size["nodes"] > 1)


def test_utilization_is_work_over_peak_and_time() -> None:
    found, shape = rung(1), catalog.model("llama-3-1b").shape
    attention = 12 * shape.layers * shape.hidden * 8192
    work = found.tokens_per_step * (6 * catalog.model("llama-3-1b").parameters + attention)
    assert found.mfu == pytest.approx(work / 989.4e12 / found.step_time_s, rel=1e-3)


def test_pages_quote_any_job_by_name() -> None:
    value, _ = compute('job("llama-3-8b", "nodes=1 gpus_per_node=1", "zero_stage=0").state_bytes')
    assert value.value == job("llama-3-8b", "nodes=1 gpus_per_node=1", "zero_stage=0").state_bytes
    assert value.unit == "B"
    with pytest.raises(InputError, match="1 to 10"):
        compute("rung(11).mfu")


def test_bars_add_up_to_the_step_and_to_the_memory() -> None:
    steps = build("journey-layouts", DRAWN["journey-layouts"])
    held = build("journey-fit", DRAWN["journey-layouts"])
    assert isinstance(steps, Bars)
    assert isinstance(held, Bars)
    totals = [sum(each) for each in zip(*(s.lengths for s in steps.segments), strict=True)]
    assert totals == pytest.approx([steps.values["step_1"].value, steps.values["step_2"].value])
    totals = [sum(each) for each in zip(*(s.lengths for s in held.segments), strict=True)]
    jobs = [job(*(part.strip() for part in text.split("|")[1:])) for text in (ONE, EIGHT)]
    assert totals == pytest.approx([one.total_bytes for one in jobs])
    with pytest.raises(InputError, match="label"):
        build("journey-fit", {"jobs": ["nothing"]})


def test_the_clocks_cross_where_peak_over_bandwidth_says() -> None:
    chart = build("journey-two-clocks", {})
    assert isinstance(chart, Curves)
    work = chart.series[0]
    for mark, bandwidth in zip(chart.marks, (50e9, 400e9), strict=True):
        assert mark.x == pytest.approx(989.4e12 / bandwidth * 8 / 6, rel=1e-3)
        assert np.interp(mark.x, work.x, work.y) == pytest.approx(mark.y, rel=1e-6)


def test_more_tokens_give_more_of_the_peak_on_any_number_of_nodes() -> None:
    chart = build("journey-tokens-decide", {"nodes": [1, 8]})
    assert isinstance(chart, Curves)
    for series in chart.series:
        assert list(series.y) == sorted(series.y)
    sizes = "nodes=8 gpus_per_node=8"
    longest = job("llama-3-8b", sizes, "sequence=16384 microbatches=8 zero_stage=3")
    assert chart.series[1].y[-1] == pytest.approx(longest.mfu)


def test_memory_over_a_step_is_drawn_in_proportion_to_its_bytes() -> None:
    chart = build("journey-one-step", {})
    assert isinstance(chart, Diagram)
    boxes = {box.name: box for box in chart.boxes}
    # 1,235,814,400 parameters: 2 bytes of weight, 4 of gradient, 12 of Adam.
    assert boxes["gradients"].height == pytest.approx(2 * boxes["weights"].height)
    assert boxes["optimizer"].height == pytest.approx(6 * boxes["weights"].height)
    assert chart.values["weights"].value == 2 * 1_235_814_400
    steps = [box for box in chart.boxes if box.name.startswith("activations")]
    held = [box.height for box in steps]
    assert len(steps) == 2 * 16
    assert held == sorted(held[:16]) + sorted(held[16:], reverse=True)
    per_byte = boxes["weights"].height / (2 * 1_235_814_400)
    activations = chart.values["activations"].value
    assert isinstance(activations, float)
    assert max(held) == pytest.approx(activations * per_byte)
    # Each step stands on the state, below the work that holds it.
    assert {round(box.y + box.height, 9) for box in steps} == {round(boxes["optimizer"].y, 9)}
    assert boxes["backward"].width == pytest.approx(2 * boxes["forward"].width)
    assert steps[15].x + steps[15].width == pytest.approx(boxes["backward"].x)


def test_a_layer_is_whole_on_every_gpu_only_between_all_gather_and_free() -> None:
    chart = build("journey-gather", {"gpus": 4})
    assert isinstance(chart, Diagram)
    parts = [box for box in chart.boxes if box.name.startswith("part")]
    rows = [[box for box in parts if f" {row} " in box.name] for row in ("before", "during")]
    assert [len(row) for row in rows] == [4, 16]
    assert len(parts) == 4 + 16 + 4
    # A part is as wide before as during: a quarter of its GPU.
    whole = next(box for box in chart.boxes if box.frame)
    assert {round(4 * box.width, 9) for box in parts} == {round(whole.width, 9)}
    assert [box.role for box in rows[0]] == ["rank-0", "rank-1", "rank-2", "rank-3"]


def test_a_gathered_layer_is_the_sum_of_its_parts() -> None:
    values = build("journey-gather", {"gpus": 4}).values
    assert values["layer"].value == 4 * values["part"].value
    shape = catalog.model("llama-3-8b").shape
    kv = shape.kv_heads * shape.head_dim
    matrices = 2 * 4096 * 4096 + 2 * 4096 * kv + 3 * 4096 * 14336
    assert values["layer"].value == pytest.approx(2 * matrices, rel=1e-3)


def test_the_front_pages_job_is_the_last_rung_with_every_rank_and_every_microbatch_once() -> None:
    found, shown = rung(10), build("journey-job", {"page": 10})
    assert isinstance(shown, Overview)
    # TP 8 the fastest digit, DP 32, PP 2 the slowest, as Megatron numbers them.
    ranks = np.arange(512)
    assert [cell.rank for cell in shown.room.cells] == ranks.tolist()
    assert [cell.coordinates[0] for cell in shown.room.cells] == (ranks % 8).tolist()
    assert list(shown.stage_of_cell) == (ranks // 256).tolist()
    assert shown.marked == (tuple(range(8)), tuple(range(256, 264)))
    assert shown.step.end == pytest.approx(found.step_time_s)
    for lane in (0, 1):
        own = [slot for slot in shown.step.slots if slot.lane == lane]
        for role in ("forward", "backward"):
            done = {(slot.chunk, int(slot.label)) for slot in own if slot.role == role}
            assert done == {(piece, each) for piece in range(5) for each in range(16)}
        ordered = sorted(own, key=lambda slot: slot.start)
        assert all(a.end <= b.start + 1e-9 for a, b in pairwise(ordered))
    with pytest.raises(InputError, match="page"):
        build("journey-job", {"page": 3})


def test_the_overview_draws_every_rank_and_lane_in_both_shapes_and_moves_none_out() -> None:
    drawn = svg.render(build("journey-job", {"page": 10}), "x")
    for shape in ("wide", "narrow"):
        body = drawn[drawn.index(f'class="{shape}"') :].split("</svg>")[0]
        across, tall = map(float, re.findall(r'viewBox="0 0 (\d+) (\d+)"', body)[0])
        ranks = re.findall(r'<path d="([^"]*)" class="r-rank-', body)
        assert sum(path.count("z") for path in ranks) == 512
        slots = re.findall(r'<path d="([^"]*)" fill="var\(--fig-\w+-soft\)"', body)
        assert sum(path.count("z") for path in slots) == 2 * (2 * 5 * 16 + 2)
        for path in (*ranks, *slots):
            for x, y, wide, high in re.findall(r"M(\S+) (\S+?)h([\d.]+)v([\d.]+)h", path):
                assert 0 <= float(x) <= float(x) + float(wide) <= across
                assert 0 <= float(y) <= float(y) + float(high) <= tall
