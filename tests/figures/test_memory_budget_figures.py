"""Memory budgets compared with the papers' formulas, printed tables and the catalog's sums."""

from __future__ import annotations

import pytest

from figgen.errors import InputError
from figgen.figures.memory.budget import (
    activation_modes,
    layer_tensors_table,
    memory_budget,
    memory_by_sequence,
    memory_choices,
    parameter_parts,
)
from figgen.scenarios.options.written import written_step


def test_modes_of_a_gpt_3_layer_follow_table_2_of_korthikanti() -> None:
    """sbh(34 + 5as/h), sbh·34, and their tensor-parallel forms, by hand."""
    s, h, a, t = 2048, 12288, 96, 8
    values = activation_modes().values
    core = 5 * a * s / h
    assert values["whole"].value == pytest.approx(s * h * (34 + core))
    assert values["core"].value == pytest.approx(s * h * 34)
    assert values["tp"].value == pytest.approx(s * h * (10 + 24 / t + core / t))
    assert values["sp"].value == pytest.approx(s * h * (34 + core) / t)
    assert values["sp_core"].value == pytest.approx(s * h * 34 / t)
    assert values["full"].value == pytest.approx(2 * s * h / t)
    assert values["all_layers"].value == pytest.approx(275.4e9, rel=1e-3)


def test_parts_of_every_model_add_up_to_all_of_it() -> None:
    chart = parameter_parts()
    for bar in range(len(chart.labels)):
        assert sum(part.lengths[bar] for part in chart.segments) == pytest.approx(1)


def test_attention_is_a_third_of_gpt_3() -> None:
    """4h² of 12h² per layer; embeddings take little of the whole."""
    values = parameter_parts().values
    assert values["gpt_3_175b_attention"].value == pytest.approx(1 / 3, rel=0.01)


def test_a_layer_of_llama_70b_keeps_what_its_matrices_read_and_no_scores() -> None:
    """By hand, in 16 bits with flash attention: every tensor's elements on one rank of TP 8."""
    tokens, hidden, ffn, kv = 8192, 8192, 28672, 1024
    table = layer_tensors_table()
    numbers = 6 * hidden + 2 * kv + 3 * ffn
    assert sum(row[1] for row in table.rows) == 2 * tokens * numbers / 8
    assert table.values["feed_forward_share"].value == pytest.approx(3 * ffn / numbers)
    assert table.values["scores"].value == 2 * tokens**2 * 64 / 8


def test_a_budget_of_8b_on_eight_gpus_is_what_the_page_adds_up() -> None:
    """18 bytes per parameter over eight GPUs; 34 per token, layer and hidden element; 6 per logit.

    Activations also include the inputs of the first layer and of the head.
    """
    step = written_step(model="llama-3-8b", sizes="nodes=1 gpus_per_node=8", options="zero_stage=3")
    chart = memory_budget(step)
    values = {name: named.value for name, named in chart.values.items()}
    state, tokens, hidden = 8030261248 / 8, 8192, 4096
    assert values["weights"] == 2 * state
    assert values["gradients"] == 4 * state
    assert values["optimizer"] == 12 * state
    kept = 34 * tokens * hidden * 32 + 6 * tokens * 128256
    assert values["activations"] + values["working"] == pytest.approx(kept, rel=5e-3)
    bars = [sum(lengths) for lengths in zip(*(s.lengths for s in chart.segments), strict=True)]
    assert bars == sorted(bars)
    assert bars[-1] == pytest.approx(values["total"])


def test_replicated_weights_and_gradients_of_a_70b_model_alone_exceed_the_gpu() -> None:
    values = memory_choices().values
    assert values["replicated"].value > 70e9 * 6
    assert values["zero3"].value < values["replicated"].value
    assert values["tp_pp_full"].value < values["tp_pp"].value < values["capacity"].value


def test_full_recomputation_fits_longer_sequences() -> None:
    values = memory_by_sequence().values
    assert values["full_fits"].value > values["selective_fits"].value > 0


def test_longest_sequence_that_is_no_power_of_two_is_refused() -> None:
    with pytest.raises(InputError, match="power of two"):
        memory_by_sequence(longest=5000)
