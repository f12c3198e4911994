"""How context ranks exchange keys and heads, compared with steps timed in each way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figgen.catalog.options_timed import TimedOption, timed_options
from figgen.errors import InputError
from figgen.models.algorithms.context_exchange import ulysses_bytes
from figgen.models.memory.communication_buffers import traded_copies
from figgen.models.step.axis_traffic import axis_traffic
from figgen.models.step.data_traffic import stage_traffic
from figgen.models.step.layer_traffic import TRADED
from figgen.models.step.step import needed_utilisation
from figgen.models.step.step_traffic import FORWARD
from figgen.scenarios.options.resolve import TrainingStep, training_step

MEASURED = json.loads(
    (Path(__file__).parents[1] / "oracles" / "context_exchange.json").read_text("utf-8")
)
PUBLISHED_GRIDS = MEASURED["grids"]
ON_TPUS = timed_options("context_exchange")
"""Steps of MaxText on 64 v5p, whose ring does not overlap with attention."""
# huggingface.co/zai-org/GLM-4.5-Air, config.json
GLM_45_AIR = {
    "model_type": "glm4_moe", "hidden_size": 4096, "num_hidden_layers": 46,
    "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 10944, "vocab_size": 151552, "moe_intermediate_size": 1408,
    "n_routed_experts": 128, "num_experts_per_tok": 8, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "tie_word_embeddings": False, "attention_bias": True,
    "use_qk_norm": False, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "max_position_embeddings": 131072,
}  # fmt: skip


def times_of(timed: TimedOption) -> dict[str, float]:
    return {
        way: training_step(**timed.job, context_exchange=way).predicted.step_time_s
        for way in timed.seconds
    }


def test_a_torus_makes_the_ring_slow_and_gather_and_all_to_all_alike() -> None:
    """A neighbor is reached by one of six links; the other two exchanges use them all."""
    timed, times = ON_TPUS[0], times_of(ON_TPUS[0])
    for way, tolerance in (("p2p", 0.08), ("all-to-all", 0.05)):
        assert times[way] / times["all-gather"] == pytest.approx(
            timed.seconds[way] / timed.seconds["all-gather"], rel=tolerance
        )


@pytest.mark.parametrize("timed", ON_TPUS[1:], ids=lambda timed: str(timed.job["sequence"]))
def test_a_ring_of_64_adds_what_was_measured(timed: TimedOption) -> None:
    times = times_of(timed)
    added_s = times["p2p"] - times["all-gather"]
    measured_s = timed.seconds["p2p"] - timed.seconds["all-gather"]
    assert added_s == pytest.approx(measured_s, rel=0.3)


def test_a_ring_cut_in_order_waits_for_its_last_rank(tmp_path: Path) -> None:
    """prime-rl cuts sequences in order; compared by how many points of throughput CP changes."""
    model = tmp_path / "config.json"
    model.write_text(json.dumps(GLM_45_AIR), encoding="utf-8")
    measured = MEASURED["prime_rl_2418_glm_4_5_air_64k_8_h200_tokens_per_s"]

    def tokens_per_s(cp: int, exchange: str) -> float:
        step = training_step(
            model=str(model),
            accelerator="h200-sxm-141gb",
            software="torchtitan",
            nodes=1,
            gpus_per_node=8,
            zero_stage=3,
            recompute="full",
            cp=cp,
            sequence=65_536,
            microbatches=cp,
            context_exchange=exchange,
            zigzag=False,
        )
        return 8 * step.predicted.tokens_per_s_per_gpu

    alone = tokens_per_s(1, "p2p")
    for cp in (2, 4):
        for way, rate in measured[str(cp)].items():
            change, expected = tokens_per_s(cp, way) / alone, rate / measured["1"]
            assert change == pytest.approx(expected, abs=0.08), (cp, way)


def h100s(**options: Any) -> TrainingStep:
    return training_step(
        model="llama-3-8b", nodes=1, gpus_per_node=8, cp=8, sequence=131_072, **options
    )


def test_every_way_has_its_own_messages_memory_and_time() -> None:
    ways: list[dict[str, Any]] = [
        {"context_exchange": "p2p"},
        {"context_exchange": "p2p", "double_buffering": False},
        {"context_exchange": "p2p", "zigzag": False},
        {"context_exchange": "all-gather"},
        {"context_exchange": "all-to-all"},
    ]
    steps = [h100s(**way) for way in ways]
    assert len({step.predicted.step_time_s for step in steps}) == len(ways) - 1  # a gather hides
    assert len({step.memory.fullest.bytes_of("communication") for step in steps}) == 4
    once = h100s(double_buffering=False).predicted.step_time_s
    assert once > h100s().predicted.step_time_s


def test_an_all_to_all_sends_what_ulysses_says() -> None:
    found = h100s(context_exchange="all-to-all")
    setup = found.setup
    sent = sum(
        entry.calls * entry.sent_bytes
        for entry in stage_traffic(setup, 0)
        if entry.purpose == TRADED and entry.phase == FORWARD
    )
    assert sent == 32 * ulysses_bytes(setup.shape, cp=8, tokens=131_072 // 8)
    assert found.memory.ranks[0].trades_heads


def test_an_all_to_all_over_ranks_that_do_not_divide_the_heads_is_refused() -> None:
    with pytest.raises(InputError, match="heads of a tensor-parallel rank: expected a multiple"):
        training_step(
            model="llama-3-8b", nodes=8, gpus_per_node=8, cp=64, context_exchange="all-to-all"
        )


def over_nodes(exchange: str, sequence: int, **options: Any) -> TrainingStep:
    return training_step(
        model="llama-2-7b",
        accelerator="a100-sxm-80gb",
        nic="ib-hdr",
        nodes=8,
        cp=64,
        sequence=sequence,
        recompute="full",
        microbatches=1,
        context_exchange=exchange,
        **options,
    )


def test_a_ring_between_nodes_beats_a_ring_over_all_ranks_and_less_so_on_long_sequences() -> None:
    """LoongTrain's MFU was up to this many times that of rings alone and of all-to-alls alone."""
    most = PUBLISHED_GRIDS["loongtrain_most_times"]
    gains = [
        over_nodes("p2p", tokens).predicted.step_time_s
        / over_nodes("a2a+p2p", tokens).predicted.step_time_s
        for tokens in (262_144, 524_288, 1_048_576)
    ]
    assert gains == sorted(gains, reverse=True)
    assert 1 < gains[-1] < gains[-2] < most
    with pytest.raises(InputError, match="heads of a tensor-parallel rank"):
        over_nodes("all-to-all", 1_048_576)  # 32 heads on 64 ranks, for which the grid is made


def test_llama_at_208k_on_two_nodes_reaches_the_published_share_of_the_peak() -> None:
    """The share counts the causal half of attention; with the whole square it would be 84%."""
    published = PUBLISHED_GRIDS["usp_llama_3_8b_208k_16_a800_mfu"]
    shares = {}
    for exchange in ("p2p", "a2a+p2p"):
        found = training_step(
            model="llama-3-8b",
            accelerator="a800-sxm-80gb",
            nodes=2,
            cp=16,
            sequence=212_992,
            recompute="full",
            zero_stage=3,
            microbatches=1,
            software="torchtitan",
            context_exchange=exchange,
        )
        shares[exchange] = needed_utilisation(
            found.setup,
            "causal",
            tokens_per_s_per_gpu=found.estimate.tokens_per_s_per_gpu,
            peak_flops_per_s=found.cluster.peak_flops_per_s,
        )
    assert shares["a2a+p2p"] == pytest.approx(published, abs=0.02)
    assert shares["a2a+p2p"] > shares["p2p"]


def test_a_grid_of_one_node_is_an_all_to_all_and_of_single_gpus_a_ring() -> None:
    def both(one: str, **options: Any) -> tuple[TrainingStep, TrainingStep]:
        job = {"model": "llama-3-8b", "sequence": 131_072} | options
        return training_step(**job, context_exchange=one), training_step(
            **job, context_exchange="a2a+p2p"
        )

    alike = [
        both("all-to-all", nodes=1, gpus_per_node=8, cp=8),
        both("p2p", nodes=4, gpus_per_node=8, tp=8, cp=4),
    ]
    for one, grid in alike:
        assert grid.predicted.step_time_s == one.predicted.step_time_s
        assert grid.memory.fullest.total_bytes == one.memory.fullest.total_bytes
        sent = [sum(row.sent_bytes for row in each.estimate.rows) for each in (grid, one)]
        assert sent[0] == sent[1]


def test_a_grid_sends_heads_inside_a_node_and_keys_between_nodes() -> None:
    found = over_nodes("a2a+p2p", 131_072)
    setup, shape = found.setup, found.setup.shape
    tokens, width = 131_072 // 64, shape.heads * shape.head_dim
    forward = {
        axis: sum(
            entry.calls * entry.sent_bytes
            for entry in stage_traffic(setup, 0)
            if entry.axis == axis and entry.phase == FORWARD
        )
        for axis in ("cp-within", "cp-between")
    }
    # Eight of a node trade four tensors, 32 heads for 4; then seven sends of their keys and values.
    assert forward["cp-within"] == 32 * 4 * tokens * width * 2 * 7 / 8
    assert forward["cp-between"] == 32 * 7 * 2 * tokens * width * 2
    leaving = {one.communicator: one.leaving_bytes for one in axis_traffic(setup)}
    sent = {one.communicator: one.sent_bytes for one in axis_traffic(setup)}
    assert leaving["cp-within"] == 0
    assert leaving["cp-between"] == pytest.approx(sent["cp-between"])
    # Llama 3.1 has eight key and value heads, one for each rank of a node: none is copied.
    grouped = training_step(model="llama-3-8b", nodes=2, cp=16, context_exchange="a2a+p2p")
    assert traded_copies(grouped.setup) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": 3, "gpus_per_node": 8, "cp": 12, "sequence": 12288}, "cp: expected a multiple"),
        ({"model": "gpt-2-xl", "nodes": 2, "cp": 16}, "heads of a tensor-parallel rank"),
        ({"nodes": 2, "cp": 16, "zigzag": False}, "zigzag: expected on with a2a"),
    ],
)
def test_grids_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        training_step(**{"model": "llama-3-8b"} | options, context_exchange="a2a+p2p")
