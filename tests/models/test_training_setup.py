"""A training setup refuses what no framework could run, and counts its batch."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.setup.training_setup import TrainingSetup, sharding_of
from figgen.models.shape.model_shape import ExpertShape, ModelShape
from tests.models.jobs import small

LLAMA = small(layers=7, heads=8, kv_heads=2)
MIXTURE = small(experts=ExpertShape(count=4, top_k=2, ffn_hidden=8, shared=1, dense_layers=2))


def setup(shape: ModelShape, parallel: ParallelLayout, **options: Any) -> TrainingSetup:
    given = {"microbatches": 8, "sequence": 8} | options
    return TrainingSetup(shape=shape, parallel=parallel, **given)


def test_tokens_of_a_step_are_those_of_all_replicas() -> None:
    run = setup(LLAMA, layout(nodes=2, gpus_per_node=8, tp=2, cp=2, pp=2), microbatch_size=3)
    assert (run.tokens, run.split_tokens) == (12, 6)
    assert run.global_batch == 8 * 3 * 2
    assert run.tokens_per_step == 8 * 3 * 2 * 8
    assert (run.dense_data_axis, run.dense_shards) == ("dp-cp", 4)


@pytest.mark.parametrize(
    "given", [(), (2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)], ids=["even", "given"]
)
def test_two_ends_of_a_pipeline_may_be_empty_and_others_where_it_is_said(
    given: tuple[int, ...],
) -> None:
    parallel = layout(nodes=2, gpus_per_node=8, pp=16)
    shape = replace(LLAMA, layers=sum(given) or 14)
    assert setup(shape, parallel, layers_per_stage=given).placement.depth == 16


@pytest.mark.parametrize(
    ("shape", "sizes", "options", "message"),
    [
        (LLAMA, {"tp": 16}, {"sequence": 16}, "heads of the model: expected a multiple of tp=16"),
        (LLAMA, {"tp": 8}, {"sequence": 12}, "tokens of a context-parallel rank"),
        (LLAMA, {"cp": 2}, {"sequence": 9}, "sequence: expected a multiple of cp=2, got 9"),
        (LLAMA, {"ep": 2}, {}, "ep: expected 1, the model has no experts"),
        (MIXTURE, {"ep": 8}, {}, "experts of the model: expected a multiple of ep=8"),
        (MIXTURE, {"etp": 16}, {}, "ffn_hidden of an expert: expected a multiple of etp=16"),
        (MIXTURE, {"tp": 2}, {"sequence_parallel": False}, "sequence parallelism too"),
        (MIXTURE, {"order": "tp-cp-dp-pp"}, {}, "lays out no experts"),
        (LLAMA, {"pp": 16}, {}, "layers of the model: expected at least 14"),
        (replace(LLAMA, layers=13), {"pp": 16}, {}, "layers of the model: expected at least 14"),
        (LLAMA, {}, {"mtp_layers": -1}, "mtp_layers: expected 0 to 16, got -1"),
        (LLAMA, {}, {"mtp_layers": 17}, "mtp_layers: expected 0 to 16, got 17"),
        (LLAMA, {}, {"sequence": 2**40 + 2}, "tokens of a microbatch: expected at most 1,099"),
        (LLAMA, {}, {"microbatch_size": 2**38}, "tokens of a microbatch: expected at most 1,099"),
        (LLAMA, {}, {"lora_rank": 17}, "lora_rank: expected at most 16"),
        (LLAMA, {}, {"zero_stage": 4}, "zero_stage: expected 0 or 1 or 2 or 3, got 4"),
        (LLAMA, {}, {"recompute": "some"}, "unknown module to recompute 'some'"),
        (LLAMA, {}, {"activations": "8-bit"}, "unknown format of activations '8-bit'"),
        (LLAMA, {}, {"context_exchange": "ring"}, "context_exchange: expected p2p"),
        (LLAMA, {}, {"microbatches": 0}, "microbatches: expected a whole number"),
        (LLAMA, {}, {"buckets": 0}, "buckets: expected a whole number"),
        (replace(LLAMA, heads=12, kv_heads=3), {"tp": 2}, {}, "kv_heads of the model"),
        (replace(LLAMA, ffn_hidden=25), {"tp": 2}, {}, "ffn_hidden of the model"),
        (LLAMA, {"pp": 2}, {"layers_per_stage": (4, 4)}, "layers_per_stage: expected 2 counts"),
        (LLAMA, {"pp": 2}, {"layers_per_stage": (8, -1)}, "layers_per_stage: expected 2 counts"),
        (LLAMA, {"pp": 2}, {"layers_per_stage": (7,)}, "expected 2 counts, together 7"),
    ],
)
def test_a_setup_that_does_not_divide_is_refused(
    shape: ModelShape, sizes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    parallel = layout(nodes=2, gpus_per_node=8, **sizes)
    with pytest.raises(InputError, match=message):
        setup(shape, parallel, **options)


def test_the_largest_sizes_are_accepted() -> None:
    parallel = layout(nodes=2, gpus_per_node=8)
    largest = {
        "sequence": 2**20,
        "microbatch_size": 2**20,
        "mtp_layers": 16,
        "layers_per_stage": (7,),
    }
    assert setup(LLAMA, parallel, **largest).tokens == 2**40
    assert setup(LLAMA, parallel, lora_rank=LLAMA.hidden).lora_rank == 16
    assert setup(LLAMA, parallel, buckets=1, microbatches=1, sequence=1).split_tokens == 1


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize(
    ("zero_stage", "calls"), [(0, (0, 0)), (1, (0, 0)), (2, (0, 1)), (3, (2, 1))]
)
def test_zero_gathers_before_both_passes_and_scatters_behind_one(
    zero_stage: int, calls: tuple[int, int], piped: bool
) -> None:
    """This is so in every microbatch; torchtitan keeps a pipeline stage whole and does it once per
    step.

    To arrive early, the next layer's weights need a buffer of their own, gradients do not.
    """
    parallel = layout(nodes=2, gpus_per_node=8, pp=2 if piped else 1)
    for framework in ("megatron", "torchtitan"):
        run = setup(LLAMA, parallel, zero_stage=zero_stage, framework=framework)
        seen = (0, 0) if piped and framework == "torchtitan" else calls
        assert (run.gathers, run.scatters) == seen
        for overlap, buffers in itertools.product((True, False), repeat=2):
            one = replace(run, overlap_data_parallel=overlap, double_buffering=buffers)
            hidden = overlap and (buffers or seen[0] == 0)
            assert sharding_of(one, zero_stage, parallel.pp) == (*seen, hidden)


def test_a_cluster_has_at_most_a_million_ranks_and_no_axis_is_empty() -> None:
    assert (
        ParallelLayout(
            nodes=2**10, gpus_per_node=2**10, tp=1, cp=1, pp=1, ep=1, etp=1, order="megatron"
        ).world_size
        == 2**20
    )
    for nodes, width in ((2**10, 2**10 + 1), (2**19, 3), (2**21, 1), (1, 2**21), (0, 8), (8, 0)):
        with pytest.raises(InputError, match=r"at most 1,048,576|a whole number"):
            ParallelLayout(
                nodes=nodes, gpus_per_node=width, tp=1, cp=1, pp=1, ep=1, etp=1, order="megatron"
            )
    with pytest.raises(InputError, match=r"nodes × GPUs per node: .*, got 1,?572,?864"):
        layout(nodes=2**19, gpus_per_node=3)
    axes = ("tp", "cp", "pp", "ep", "etp")
    for axis in axes:
        sizes = dict.fromkeys(axes, 1) | {axis: 0}
        with pytest.raises(InputError, match="a whole number"):
            ParallelLayout(nodes=1, gpus_per_node=8, **sizes, order="megatron")
