"""What frameworks hold in addition, each line compared with the program it was found in."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.catalog import load
from figgen.catalog.measured_file import read_measured
from figgen.errors import InputError
from figgen.models.machine.layout import layout
from figgen.models.memory.memory import MemoryEstimate, memory
from figgen.models.memory.memory_fixes import _changes, heavier_recomputation, reason, what_fits
from figgen.models.memory.memory_lines import PARTS
from figgen.models.setup.framework_memory import FRAMEWORKS, SOURCES, framework_memory
from figgen.models.setup.stage_layers import (
    fullest_and_beside_head,
    layers_by_cost,
    stage_shares,
    virtual_stage_shares,
)
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import recipe
from figgen.scenarios.options.resolve import resolve
from figgen.scenarios.options.scenario import scenario
from tests.models.jobs import sized

ONE_B = sized(16, 2048, 32, 32, 64, 8192, 131072, 4096, tied_embeddings=True)
LLAMA = catalog.model("llama-3-8b").shape
OUTSIDE = ("allocator", "contexts")
LASTING = (
    "weights", "FP8 weights", "accumulated gradients", "buckets of gradients", "optimizer state",
)  # fmt: skip


def lines(setup: TrainingSetup, rank: int = 0) -> dict[str, float]:
    return {line.name: line.bytes for line in memory(setup).ranks[rank].lines}


def nanotron(dp: int, microbatches: int, zero_stage: int = 0, **sizes: int) -> TrainingSetup:
    world = dp * sizes.get("tp", 1) * sizes.get("pp", 1)
    parallel = layout(nodes=world // 8 or 1, gpus_per_node=min(8, world), **sizes)
    return TrainingSetup(
        shape=ONE_B,
        parallel=parallel,
        microbatches=microbatches,
        sequence=4096,
        zero_stage=zero_stage,
        framework="nanotron",
    )


def dealt(layers: int, layer: int, head: int, stages: int) -> tuple[tuple[int, ...], int]:
    """Deal blocks as nanotron's build_model does: to a rank until their cost passes its threshold.

    Return the layers of every rank, and the rank of the head; the blocks are embedding, layers,
    norm, head, cast and loss.
    """
    blocks = ["embedding", *["layer"] * layers, "norm", "head", "cast", "loss"]
    costs = {"layer": layer, "head": head}
    ranks: list[list[str]] = [[] for _ in range(stages)]
    whole, rank = layers * layer + head, 0
    for block, cumulative in zip(blocks, accumulate(costs.get(b, 0) for b in blocks), strict=True):
        ranks[rank].append(block)
        if cumulative > whole * ((rank + 1) / stages):
            rank += 1
    counts = tuple(held.count("layer") for held in ranks)
    return counts, next(rank for rank, held in enumerate(ranks) if "head" in held)


@pytest.mark.parametrize("stages", [1, 2, 4, 8, 16, 32])
def test_stages_by_cost_are_those_that_nanotron_builds(stages: int) -> None:
    for shape in (ONE_B, replace(ONE_B, layers=28, hidden=3072, head_dim=96), LLAMA):
        h, f = shape.hidden, shape.ffn_hidden
        layer, head = 4 * h * h + 3 * f * h, shape.vocab * h
        found = layers_by_cost(shape, stages)
        assert found == dealt(shape.layers, layer, head, stages)
        assert sum(found[0]) == shape.layers


def test_the_head_takes_the_place_of_four_layers() -> None:
    # A layer costs 2048²·16, the head 131072·2048, four times as much: 20 together.
    assert layers_by_cost(ONE_B, 2) == ((11, 5), 1)
    assert layers_by_cost(ONE_B, 4) == ((6, 5, 5, 0), 3)
    # Shares of 2.5 end after 3, 5 (as it is not more than 5), 6, … blocks; the head begins at 16,
    # within the seventh share, and the eighth stage has the loss alone.
    assert layers_by_cost(ONE_B, 8) == ((3, 3, 2, 3, 2, 3, 0, 0), 6)


def test_stages_behind_the_head_hold_nothing() -> None:
    run = nanotron(1, 8, pp=8)
    assert set(lines(run, 7)) == {"pipeline messages", "allocator", "contexts"}
    shares = virtual_stage_shares(run)
    assert [share.layers for share in shares] == [3, 3, 2, 3, 2, 3, 0, 0]
    assert [share.head for share in shares] == [False] * 6 + [True, False]
    assert fullest_and_beside_head(shares, 8, cut=True) == (3, 0)
    # Two chunks on each of two ranks: 1 + 6 layers, and 5 + 4 beside the head.
    chunked = stage_shares(ONE_B, 4, (1, 5, 6, 4))
    assert fullest_and_beside_head(chunked, 2, cut=True) == (7, 9)
    assert fullest_and_beside_head(chunked, 2, cut=False) == (9, 8)
    # A head inside, beside the fullest stage on either side.
    assert fullest_and_beside_head(stage_shares(ONE_B, 4, (1, 2, 9, 4), 1), 4, cut=True) == (9, 2)
    assert fullest_and_beside_head(stage_shares(ONE_B, 4, (9, 2, 1, 4), 1), 4, cut=True) == (9, 2)


def test_nanotron_keeps_what_its_sources_say() -> None:
    parameters = 16 * (4 * 2048**2 + 3 * 2048 * 8192 + 2 * 2048) + 131072 * 2048 + 2048
    tokens, h, f = 4096, 2048, 8192
    found = lines(nanotron(8, 32))
    assert found["weights"] == 2 * parameters
    assert found["accumulated gradients"] == 4 * parameters
    assert found["buckets of gradients"] == found["fresh gradients"] == 2 * parameters
    assert found["optimizer state"] == 12 * parameters
    # Inputs of two norms and of what reads them, queries, keys, values and the core's output;
    # gate and way up, the gate's activation, their product.
    layer = tokens * 2 * (4 * h + 4 * h + 4 * f)
    head = tokens * (8 + 2 * 2 * h + 4 * 131072)
    assert found["activations in flight"] == 16 * layer + head
    assert found["copies of logits"] == tokens * 131072 * 4
    assert "buckets of gradients" not in lines(nanotron(8, 32, zero_stage=1))
    assert "buckets of gradients" not in lines(nanotron(1, 32, tp=8))


def test_an_allocators_share_is_of_what_comes_and_goes() -> None:
    for name, framework in FRAMEWORKS.items():
        setup = replace(nanotron(8, 32), framework=name, microbatches=2)
        rank = memory(setup).ranks[0]
        moving = sum(one.bytes for one in rank.lines if one.name not in (*LASTING, *OUTSIDE))
        found = lines(setup)
        assert found["allocator"] == pytest.approx(framework.allocator_share * moving)
        assert rank.reserved_bytes - rank.allocated_bytes == pytest.approx(found["allocator"])
        assert rank.total_bytes - rank.reserved_bytes == pytest.approx(rank.outside_bytes)
        assert rank.reserved_bytes == pytest.approx(rank.total_bytes - found["contexts"])
        assert {line.part for line in rank.lines} <= set(PARTS)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_logs_print_the_first_rank_the_fullest_or_the_device(name: str) -> None:
    """The last of the stages needs most; contexts are 2 GB."""
    parallel = layout(nodes=1, gpus_per_node=8, pp=4)
    setup = TrainingSetup(
        shape=LLAMA,
        parallel=parallel,
        microbatches=1,
        sequence=8192,
        framework=name,
        layers_per_stage=(2, 9, 9, 12),
    )
    found = memory(setup)
    held = [rank.total_bytes - 2e9 for rank in found.ranks]
    assert held[3] == max(held) > 1.01 * held[0]
    printed = {"nanotron": held[0], "megatron-deepspeed": held[3] + 2e9}.get(name, held[3])
    assert found.printed_bytes == pytest.approx(printed, rel=1e-12)


def fsdp(**options: object) -> TrainingSetup:
    given = {"framework": "torchtitan", "recipe": recipe("fsdp16"), "zero_stage": 3} | options
    parallel = layout(nodes=1, gpus_per_node=8, **given.pop("sizes", {}))  # type: ignore[call-overload]
    return TrainingSetup(shape=LLAMA, parallel=parallel, microbatches=8, sequence=8192, **given)  # type: ignore[arg-type]


def test_torchtitan_keeps_every_second_product_and_what_attention_returns() -> None:
    h, f, kv = 4096, 14336, 1024
    kept = lines(fsdp(recompute="every_second_product"))["activations in flight"]
    # Input and output of a block, queries, values, what the core returns, the gate.
    layer = 8192 * 2 * (2 * h + h + kv + h + f)
    head = 8192 * (8 + 2 * 2 * h + 2 * 128256)
    assert kept == 32 * layer + head


def test_a_stage_of_torchtitan_in_a_pipeline_is_gathered_whole_and_keeps_its_outputs() -> None:
    piped = fsdp(sizes={"pp": 2})
    found, plain = lines(piped), lines(replace(piped, framework="megatron"))
    rank = memory(piped).ranks[0]
    assert found["gathered weights"] == 2 * rank.parameters
    assert found["gradients before they are scattered"] == 4 * rank.parameters
    more = found["activations in flight"] - plain["activations in flight"]
    assert more == rank.in_flight * 8192 * 4096 * 2


def test_inputs_are_kept_whole_where_nobody_gathers_them_again() -> None:
    split = fsdp(sizes={"tp": 8}, framework="fsdp")
    whole = replace(split, framework="torchtitan")
    more = lines(whole)["activations in flight"] - lines(split)["activations in flight"]
    # Two inputs of each layer and that of the head, seven eighths of which are elsewhere.
    assert more == (2 * 32 + 1) * 8192 * 4096 * 2 * 7 / 8


def test_what_does_not_fit_is_told_why_and_what_would() -> None:
    setup = TrainingSetup(
        shape=LLAMA, parallel=layout(nodes=1, gpus_per_node=8), microbatches=8, sequence=8192
    )
    found = memory(setup, capacity_bytes=79.6e9)
    assert found.fits is False
    rank = found.fullest
    assert reason(found).startswith(
        f"pipeline rank 0 needs {rank.total_bytes / 1e9:.1f} GB of 79.6"
    )
    assert "gradients" in reason(found) or "activations" in reason(found)
    words = what_fits(setup, 80e9, 2e9)
    changed = dict(word.split("=") for word in words.split(" and "))
    options = {name: int(value) if value.isdecimal() else value for name, value in changed.items()}
    assert memory(replace(setup, **options), capacity_bytes=80e9, reserve_bytes=2e9).fits
    assert what_fits(setup, 40e9, 2e9) != ""
    assert what_fits(setup, 1e9, 2e9) == ""


def test_recomputation_grows_from_cheap_to_full() -> None:
    setup = TrainingSetup(
        shape=LLAMA, parallel=layout(nodes=1, gpus_per_node=8), microbatches=8, sequence=8192
    )
    assert heavier_recomputation(setup) == ("full",)
    assert heavier_recomputation(replace(setup, recompute="full")) == ()
    mixture = catalog.model("mixtral-8x7b").shape
    assert heavier_recomputation(replace(setup, shape=mixture))[-1] == "full"
    assert len(heavier_recomputation(replace(setup, shape=mixture))) == 2


def test_every_framework_says_where_its_habits_are_read() -> None:
    assert SOURCES.keys() == FRAMEWORKS.keys()


def test_an_unknown_framework_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean nanotron"):
        framework_memory("nanotrons")


@pytest.mark.parametrize("name", [n for n, c in catalog.ACCELERATORS.items() if c.hbm_reported])
def test_devices_report_gibibytes_where_vendors_print_gigabytes(name: str) -> None:
    chip = catalog.accelerator(name)
    # The TPU's number is what its compiler gives away.
    least = 0.96 if name == "tpu-v4" else 0.98
    assert least <= chip.capacity_bytes / (chip.hbm_bytes / 1e9 * 2**30) <= 1


ORACLES = Path(__file__).parents[1] / "oracles"
TOTALS = json.loads((ORACLES / "device_totals.json").read_text(encoding="utf-8"))["totals"]


@pytest.mark.parametrize("told", TOTALS, ids=[told["accelerator"] for told in TOTALS])
def test_the_capacity_is_the_total_that_out_of_memory_messages_print(told: dict[str, Any]) -> None:
    chip = catalog.accelerator(told["accelerator"])
    # Drivers and virtual machines differ by a few thousandths.
    assert chip.capacity_bytes == pytest.approx(told["gib"] * 2**30, rel=3e-3)


def test_the_capacity_of_an_h100_is_what_its_measured_file_says() -> None:
    chip = catalog.accelerator("h100-sxm-80gb")
    assert chip.capacity_bytes == read_measured(load.content("measured-h100.json")).memory_bytes


CHEAP_TO_DEAR: list[dict[str, Any]] = [
    *({"recompute": "full"}, {"zero_stage": 2}, {"zero_stage": 3}),
    *({"zero_stage": stage, "recompute": "full"} for stage in (2, 3)),
    *({"microbatch_size": 2}, {"microbatch_size": 2, "recompute": "full"}),
    *({"microbatch_size": 1}, {"microbatch_size": 1, "recompute": "full"}),
]


@pytest.mark.parametrize("zero_stage", [1, 3])
def test_the_cheapest_change_that_fits_is_offered(zero_stage: int) -> None:
    """Every capacity between what the changes need, each tried by hand in the order of the list."""
    setup = TrainingSetup(
        shape=LLAMA,
        parallel=layout(nodes=1, gpus_per_node=8),
        microbatches=2,
        sequence=8192,
        microbatch_size=4,
        zero_stage=zero_stage,
    )
    batches = {changed.global_batch for _, changed, _ in _changes(setup)}
    assert batches == {setup.global_batch}
    needs: dict[str, float] = {}
    for change in CHEAP_TO_DEAR:
        if change.get("zero_stage", 4) > zero_stage:
            batch = 8 // change.get("microbatch_size", 4)
            found = memory(replace(setup, **change, microbatches=batch), reserve_bytes=0.0)
            words = " and ".join(f"{name}={value}" for name, value in change.items())
            needs[words] = found.fullest.total_bytes
    for capacity in (need * 1.0001 for need in needs.values()):
        first = next(words for words, need in needs.items() if need <= capacity)
        assert what_fits(setup, capacity, 0.0) == first


def _qwen_on_b200(**chosen: Any) -> MemoryEstimate:
    """Return NVIDIA's recipe of Qwen3 30B on eight B200 (Megatron-Bridge, scripts/performance)."""
    return resolve(
        scenario(
            model="qwen-3-30b-a3b",
            accelerator="b200-sxm-hgx",
            nodes=1,
            gpus_per_node=8,
            ep=8,
            etp=1,
            sequence=4096,
            microbatch_size=4,
            global_batch=512,
            zero_stage=1,
            recipe="zero16",
            **chosen,
        )
    ).memory


def test_nvidias_recipe_of_qwen3_on_eight_b200_fits_since_experts_outputs_are_not_kept() -> None:
    found, before = _qwen_on_b200(), _qwen_on_b200(software="megatron-lm 24.12")
    assert found.fits
    assert found.fullest.total_bytes == pytest.approx(180e9, rel=0.01)
    # Eight copies of every token, 48 layers, and the allocator's share of them.
    outputs = 48 * 4 * 4096 * 8 * 2048 * 2
    saved = before.fullest.total_bytes - found.fullest.total_bytes
    assert saved == pytest.approx(1.05 * outputs, rel=1e-6)


def test_fp8_keeps_copies_of_weights_so_that_it_may_need_more_than_bf16() -> None:
    """Megatron-LM issues 1236 and 1237: FP8 runs out of memory where BF16 fits."""
    job = {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8, "tp": 2, "sequence": 4096}
    wide, narrow = (
        resolve(scenario(**job, activations=kept)).memory.fullest.total_bytes
        for kept in ("16-bit", "fp8")
    )
    alone = resolve(scenario(**job, activations="fp8-weights")).memory.fullest.total_bytes
    assert alone < wide < narrow
