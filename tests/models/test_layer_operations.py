"""Layers as lists of operations, compared with the sums that they replaced, and counts of their
work."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from figgen import catalog
from figgen.models.operations.layer_work import layer_work
from figgen.models.operations.tuned_layer import (
    dense_operations,
    expert_operations,
    routed_operations,
)
from figgen.models.shape.transformer import attention_weights, ffn_weights, mixer_weights
from figgen.models.step.head_time import head_passes
from figgen.models.step.layer_list import ListedJob, layer_list
from figgen.models.step.layer_time import dense_layer, expert_layer
from figgen.models.step.timed_step import timed_step
from tests.models.drawn_layers import CASES, MODELS, case

RECORDED = json.loads(Path(__file__).with_name("layer_seconds.json").read_text("utf-8"))
LAYERS = {"dense": dense_layer, "expert": expert_layer}


def test_lists_take_the_seconds_of_the_sums_that_they_replaced() -> None:
    assert len(RECORDED["rows"]) == CASES
    for number, row in enumerate(RECORDED["rows"]):
        job, at = case(number)
        found = {name: layer(job, at) for name, layer in LAYERS.items()}
        for column, seconds in zip(RECORDED["columns"], row, strict=True):
            kind, _, part = column.partition(" ")
            if kind == "head_s":
                ours = head_passes(job, at).total_s
            elif kind == "total_s":
                ours = timed_step(replace(job, gathers_alone=0.0), at).total_s  # a newer option
            elif kind == "expert" and not job.expert_layers:
                continue
            else:
                ours = getattr(found[kind], part)
            assert ours == pytest.approx(seconds, rel=1e-11), (number, column)


@pytest.mark.parametrize("name", MODELS)
def test_matmuls_of_a_layer_meet_every_weight_once_in_each_phase(name: str) -> None:
    shape = catalog.model(name).shape
    share = shape.state_space_layers / shape.layers
    attention = (1 - share) * attention_weights(shape) + share * mixer_weights(shape)
    work = layer_work(dense_operations(shape, 7, 1))
    weights = attention + ffn_weights(shape, shape.ffn_hidden)
    for phase in (work.forward, work.backward, work.weight):
        assert phase.matmul_flops == pytest.approx(2 * 7 * weights, rel=1e-12)
    if shape.experts:
        one = ffn_weights(shape, shape.experts.ffn_hidden)
        whole = layer_work(expert_operations(shape, 7, 1))
        shared = attention + shape.experts.shared * one
        assert whole.backward.matmul_flops == pytest.approx(2 * 7 * shared, rel=1e-12)
        assert layer_work(routed_operations(shape, 9)).weight.matmul_flops == 2 * 9 * one


@pytest.mark.parametrize("tp", [2, 8])
def test_a_list_grows_with_tokens_and_divides_by_tensor_parallel_ranks(tp: int) -> None:
    shape = catalog.model("llama-3-70b").shape
    one, many = (layer_work(dense_operations(shape, *of)) for of in ((1, 1), (4096, tp)))
    assert many.forward.matmul_flops == pytest.approx(4096 / tp * one.forward.matmul_flops)
    assert many.backward.pass_bytes == pytest.approx(4096 / tp * one.backward.pass_bytes)
    assert many.backward.cast_bytes == pytest.approx(4096 / tp * one.backward.cast_bytes)
    assert many.forward.matmuls == one.forward.matmuls == 4


def test_passes_and_casts_of_llama_add_up_to_what_they_were_counted_as() -> None:
    """Per token and channel: 20 B for norms and sums, 4 B for the rotation, 2 B for the gate."""
    shape = catalog.model("llama-3-70b").shape
    hidden, projected, ffn = 8192, 8192 + 2 * 1024, 28672
    work = layer_work(dense_operations(shape, 1, 1))
    assert work.forward.pass_bytes == 20 * hidden + 4 * projected + 2 * 3 * ffn
    assert work.backward.pass_bytes == 2 * work.forward.pass_bytes
    assert work.forward.cast_bytes == 5 * (hidden + 8192 + hidden + ffn)
    assert work.backward.cast_bytes == 5 * (projected + hidden + 2 * ffn + hidden)
    assert work.weight.pass_bytes == work.weight.cast_bytes == 0


@pytest.mark.parametrize("number", range(0, CASES, 5))
def test_seconds_of_a_list_add_up_to_its_layer(number: int) -> None:
    job, at = case(number)
    listed = ListedJob(
        shape=catalog.model(MODELS[number % len(MODELS)]).shape,
        job=job,
        attained=at,
        peak_flops_per_s=1e15,
        peak_bytes_per_s=3e12,
    )
    step = timed_step(job, at)
    for layer, experts in ((step.dense, False), (step.expert, True)):
        if experts and not job.expert_layers:
            continue
        found = layer_list(listed, layer, experts=experts)
        assert sum(one.time_s for one in found) == pytest.approx(layer.total_s, rel=1e-9)
        for phase, seconds in (
            ("forward", layer.forward_s),
            ("backward", layer.backward_s),
            ("backward by weight", layer.weight_s),
        ):
            if not job.lora_rank:
                taken = sum(one.time_s for one in found if one.phase == phase)
                assert taken == pytest.approx(seconds, rel=1e-9), phase
        names = {one.name for one in found}
        assert ("adapters" in names) == (job.lora_rank > 0)
