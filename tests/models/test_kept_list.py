"""Every byte that a layer keeps for backward belongs to an operation of its list."""

from __future__ import annotations

import random
from typing import Any

import pytest

from figgen import catalog
from figgen.commands.step_operations import listed_operations
from figgen.errors import InputError
from figgen.models.memory.activations import layer_bytes, mixer_bytes
from figgen.models.memory.layer_tensors import layer_tensors
from figgen.models.setup.framework_memory import FRAMEWORKS
from figgen.models.shape.recomputation import MODULES
from figgen.models.step.kept_list import KEPT_BY, kept_by
from figgen.scenarios.options.resolve import TrainingStep, training_step
from tests import thorough

MATMULS = ("matmul", "grouped matmul")


def drawn_step(number: int) -> TrainingStep | None:
    """Return a random job on one node, or None if its options contradict each other."""
    rng = random.Random(number)
    names = list(catalog.MODELS)
    job: dict[str, Any] = {
        "model": names[number % len(names)],
        "nodes": 1,
        "gpus_per_node": 8,
        "sequence": 1024,
        "tp": rng.choice((1, 1, 2)),
        "accelerator": "b200-sxm-hgx",
    }
    for name, values in {
        "recompute": ("none", "full", "block:1", *MODULES, "layernorm,moe_act,mla_up_proj,mlp"),
        "activations": ("fp8", "fp8-deepseek"),
        "software": tuple(FRAMEWORKS),
        "flash_attention": (False,),
        "dropout": (True,),
        "lora_rank": (8,),
        "lora_matrices": ("all-linear", "query-value"),
        "sequence_parallel": (False,),
        "expert_skew": (2.0,),
    }.items():
        if rng.random() < 0.4:
            job[name] = rng.choice(values)
    try:
        return training_step(**job)
    except InputError:
        return None


STEPS = [found for number in range(thorough.drawn(150, 1_500)) if (found := drawn_step(number))]
# Draws are rarely of the software that alone casts routed tokens to FP32.
STEPS += [
    training_step(
        model="mixtral-8x7b", nodes=1, gpus_per_node=8, sequence=1024, software="prime-rl"
    )
]


def test_every_tensor_that_some_layer_keeps_has_its_operation_and_no_other_has_one() -> None:
    assert len(STEPS) > 80
    seen = {
        tensor.name
        for asked in STEPS
        for experts in (False, True)
        for mixer in (False, True)
        for tensor in layer_tensors(asked.setup, experts=experts, mixer=mixer)
        if not tensor.name.startswith("adapter of")
    }
    assert seen == KEPT_BY.keys()


def test_what_the_operations_of_a_layer_keep_is_what_the_memory_model_counts() -> None:
    kinds = set()
    for asked in STEPS:
        setup = asked.setup
        share = setup.shape.state_space_layers / setup.shape.layers
        for kind, found in listed_operations(asked):
            kept = sum(one.kept_bytes + one.kept_for_weights_bytes for one in found)
            counted = 0.0
            if kind != "update":
                mixers = 0.0 if setup.recomputation.method == "uniform" else mixer_bytes(setup)
                counted = layer_bytes(setup, experts=kind == "experts") + share * mixers
            assert kept == pytest.approx(counted, rel=1e-12), (asked.model.name, setup.recompute)
            kinds.add((kind, setup.recomputation.method, bool(share), setup.lora_rank is None))
    assert len(kinds) > 12


def test_what_waits_for_gradients_of_weights_is_the_input_of_a_matrix() -> None:
    """A schedule with a split backward frees everything else before it."""
    for asked in STEPS:
        for _, found in listed_operations(asked):
            matmuls = {one.name for one in found if one.kind in MATMULS} | {"sorting tokens"}
            for one in found:
                assert not one.kept_for_weights_bytes or one.name in matmuls, one
                assert one.phase == "forward" or not one.kept_bytes + one.kept_for_weights_bytes


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        # 34·s·b·h bytes of Korthikanti et al. 2022, arXiv:2205.05198, section 4.1, by operation.
        ("norm before attention", 2),
        ("query, key and value", 2),
        ("attention core", 6),
        ("output", 2),
        ("residual sum after attention", 1),
        ("norm before feed-forward", 2),
        ("up", 2),
        ("activation", 8),
        ("down", 8),
        ("residual sum after feed-forward", 1),
    ],
)
def test_a_layer_of_gpt_3_keeps_by_operation_what_its_paper_lists(name: str, kept: int) -> None:
    asked = training_step(
        model="gpt-3-175b",
        nodes=1,
        gpus_per_node=8,
        sequence=2048,
        dropout=True,
        recompute="none",
    )
    ((_, found), _) = listed_operations(asked)
    (one,) = (one for one in found if one.name == name and one.phase == "forward")
    size = one.kept_bytes + one.kept_for_weights_bytes
    assert size == pytest.approx(kept * 2048 * 12288)


def test_tensors_between_the_factors_of_an_adapter_are_kept_by_it() -> None:
    asked = training_step(model="llama-3-8b", nodes=1, gpus_per_node=8, lora_rank=8)
    names = {kept_by(one)[0] for one in layer_tensors(asked.setup)}
    assert "adapters" in names
