"""State-space layers compared with released models, and the chunked scan with its recurrence."""

from __future__ import annotations

import numpy as np
import pytest

from figgen.catalog import model
from figgen.figures.serving.mixers import MODELS
from figgen.formulas.modern_layers import prediction_module_parameters, state_space_work
from figgen.models.shape.transformer import attention_weights, ffn_weights, weights_met
from figgen.registry import build


def test_a_module_is_worth_a_layer_of_experts_and_a_head_on_the_last_stage() -> None:
    """Of 37B parameters that a token uses, 0.6B are a layer of DeepSeek-V3 and 0.9B its head."""
    found = build("mtp-stages", {}).values
    shape = model("deepseek-v3").shape
    layer = weights_met(shape, 0, 1) * 2 * 4096
    core = 4096 * 4096 * shape.attention_width * 2
    head = 2 * 4096 * shape.vocab * shape.hidden
    added = float(found["work_1"].value) - float(found["work_0"].value)
    assert added == pytest.approx(layer + core + head + 4 * 4096 * shape.hidden**2)
    assert float(found["work_2"].value) > float(found["other_2"].value)


@pytest.mark.parametrize("name", MODELS)
def test_sums_are_the_sizes_in_the_models_names(name: str) -> None:
    found = MODELS[name]
    assert found.parameters == pytest.approx(found.printed, rel=0.008)


def test_deepseeks_module_is_what_its_weights_file_says() -> None:
    """README_WEIGHTS.md: 11.5B without the shared tables; with them and 671B, 685B in total."""
    found = model("deepseek-v3")
    shape = found.shape
    assert shape.experts is not None
    assert shape.latent is not None
    experts = (shape.experts.count + 1) * ffn_weights(shape, shape.experts.ffn_hidden)
    router = (shape.hidden + 1) * shape.experts.count
    norms = 2 * shape.hidden + shape.latent.query_rank + shape.latent.kv_rank
    layer = attention_weights(shape) + experts + router + norms
    assert layer == pytest.approx(11.5e9, rel=1e-3)
    module = prediction_module_parameters(layer, shape.hidden)
    file = found.parameters + module + 2 * shape.vocab * shape.hidden
    assert file == pytest.approx(685e9, rel=1e-3)


def test_chunks_of_the_scan_are_its_recurrence_and_cost_what_is_counted() -> None:
    """One head with a scalar decay, arXiv:2405.21060, listing 1; matmuls counted by shape."""
    rng = np.random.default_rng(3)
    tokens, chunk, width, state = 24, 8, 6, 5
    decay = rng.uniform(0.5, 1.0, tokens)
    into, out = rng.normal(size=(2, tokens, state))
    inputs = rng.normal(size=(tokens, width))
    held, plain = np.zeros((state, width)), []
    for at in range(tokens):
        held = decay[at] * held + np.outer(into[at], inputs[at])
        plain.append(out[at] @ held)

    work = 0

    def product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        nonlocal work
        work += 2 * one.shape[0] * one.shape[1] * other.shape[1]
        return one @ other

    held, found = np.zeros((state, width)), []
    for first in range(0, tokens, chunk):
        here = slice(first, first + chunk)
        passed = np.cumprod(decay[here])
        mask = np.tril(passed[:, None] / passed[None, :])
        scores = product(out[here], into[here].T) * mask
        found.append(product(scores, inputs[here]) + passed[:, None] * product(out[here], held))
        late = (passed[-1] / passed)[:, None]
        held = passed[-1] * held + product((late * into[here]).T, inputs[here])
    assert np.concatenate(found) == pytest.approx(np.array(plain))
    assert work == tokens * state_space_work(width, state, 1, chunk)
