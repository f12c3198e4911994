"""Figures of what recomputation saves, by hand from DeepSeek-V3's sizes."""

from __future__ import annotations

import pytest

from figgen.figures.memory.recomputation import (
    recompute_ladder,
    recompute_modules,
    recompute_published,
)
from figgen.models.shape.recomputation import MODULES, NOT_MEGATRON


def test_modules_save_and_repeat_what_the_sizes_of_deepseek_v3_say() -> None:
    values = recompute_modules().values
    tokens, hidden, heads = 4096, 7168, 128
    assert values["layernorm"].value == 2 * 2 * tokens * hidden
    assert values["mla_up_proj"].value == 2 * tokens * heads * (192 + 192 + 128)
    assert values["moe_act"].value == 2 * tokens * 8 * 2048
    assert values["moe_gate"].value == 2 * tokens * 8 * hidden
    assert values["layernorm_again"].value == values["moe_gate_again"].value == 0
    assert values["full_again"].value == 1
    up = heads * (1536 * 192 + 512 * 256)
    down = hidden * (1536 + 576) + heads * 128 * hidden
    mixture = hidden * 256 + 9 * 3 * hidden * 2048
    core = tokens * heads * (192 + 128) / 2
    whole = up + down + mixture + core
    assert values["mla_up_proj_again"].value == pytest.approx(up / whole)
    assert values["moe_again"].value == pytest.approx(mixture / whole)


# Choices of TransformerConfig.recompute_modules in Megatron-LM for transformers (its other three
# are for hyper-connections and gated delta nets).
ACCEPTED = {"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"}


def test_the_table_says_which_modules_megatron_refuses() -> None:
    assert set(MODULES) - set(NOT_MEGATRON) == ACCEPTED
    said = {row[0]: row[2] for row in recompute_modules().rows}
    assert {name for name, flag in said.items() if flag == "accepted"} <= ACCEPTED
    assert (said["latent_norm"], said["moe_gate"]) == ("no flag", "always done")


def test_printed_sums_are_met() -> None:
    assert recompute_published().values["largest"].value < 0.035


def test_each_measure_takes_deepseek_v3_closer_to_its_gpu_and_all_into_it() -> None:
    chart = recompute_ladder()
    keys = ("kept", "gates", "again", "eight_bit", "all")
    needed = [float(chart.values[key].value) for key in keys]
    assert needed == sorted(needed, reverse=True)
    assert needed[-2] > float(chart.values["capacity"].value) > needed[-1]
