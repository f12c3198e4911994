"""All stages together compute exactly what a token requires by the conventions."""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import Any

import pytest

from figgen import catalog
from figgen.models.machine.layout import layout
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.compute import training_flops_per_token
from figgen.models.step.stage_work import (
    StageWork,
    repeated_flops_per_token,
    stage_work,
    unneeded_flops_per_token,
)


def setup(model: str, **options: Any) -> TrainingSetup:
    axes = {name: options.pop(name) for name in ("tp", "pp") if name in options}
    shape = catalog.model(model).shape
    given = {"microbatches": 8, "sequence": 2048, "flash_attention": False} | options
    return TrainingSetup(shape=shape, parallel=layout(nodes=1, gpus_per_node=8, **axes), **given)


def stages(run: TrainingSetup) -> list[StageWork]:
    return [stage_work(run, share) for share in virtual_stage_shares(run)]


@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gpt-2-xl"])
@pytest.mark.parametrize("sizes", [{}, {"pp": 4}])
@pytest.mark.parametrize("lora_rank", [None, 16])
def test_stages_together_do_what_a_token_takes(
    model: str, sizes: dict[str, int], lora_rank: int | None
) -> None:
    """It is a forward and twice as much backward, minus what frozen weights save."""
    run = setup(model, lora_rank=lora_rank, **sizes)
    if lora_rank and run.shape.latent:
        return  # no convention
    flops = fsum(each.forward + each.backward_input + each.backward_weight for each in stages(run))
    needed = training_flops_per_token(run.shape, sequence=2048) - unneeded_flops_per_token(run)
    assert flops * run.parallel.tp / run.tokens == pytest.approx(needed, rel=1e-12)


def test_adapters_spare_a_third_and_add_three_times_their_own() -> None:
    """Llama 3 8B, rank 16 on all seven matrices of a layer; counted in weights."""
    hidden, keys, ffn, layers = 4096, 1024, 14336, 32
    layer = 2 * hidden**2 + 2 * hidden * keys + 3 * hidden * ffn
    first = hidden * (hidden + 2 * keys)  # needs no gradient of what it reads
    beside = 16 * (4 * 2 * hidden - 2 * hidden + 2 * keys + 3 * (hidden + ffn))
    spared = 2 * (layers * layer + 128_256 * hidden) + 2 * (first + 16 * hidden * 3)
    found = unneeded_flops_per_token(setup("llama-3-8b", lora_rank=16))
    assert found == pytest.approx(spared - 6 * layers * beside, rel=1e-3)


@pytest.mark.parametrize("model", ["llama-3-8b", "granite-4-h-small", "deepseek-v3"])
def test_what_is_computed_again_is_the_forward_of_layers_whatever_the_kernel(model: str) -> None:
    for sizes in ({}, {"pp": 2}):
        run = setup(model, recompute="full", **sizes)
        head = 2 * run.shape.vocab * run.shape.hidden
        forward = fsum(each.forward for each in stages(run)) * run.parallel.tp / run.tokens - head
        for flash in (False, True):
            again = repeated_flops_per_token(replace(run, flash_attention=flash))
            assert again == pytest.approx(forward, rel=1e-12)


def test_every_second_product_is_half_of_attention_s_and_a_third_of_a_gated_block_s() -> None:
    for model, layer in (
        ("llama-3-8b", 4096**2 + 4096 * 1024 + 4096 * 14336),
        ("gpt-2-xl", 2 * 1600**2),
    ):
        run = setup(model, recompute="every_second_product", flash_attention=True)
        found = fsum(each.recomputed for each in stages(run)) / run.tokens
        assert found == pytest.approx(2 * run.shape.layers * layer, rel=1e-12)
