"""The list of matrices compared with checkpoints' sizes and the count of weights that a
token uses."""

from __future__ import annotations

import pytest

from figgen import catalog
from figgen.models.setup.layer_matrices import matrices_of
from figgen.models.setup.stage_layers import stage_shares
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import matmul_parameters, module_parameters


def weights(shape: ModelShape, stages: int = 1, mtp_layers: int = 0) -> int:
    shares = stage_shares(shape, stages, mtp_layers=mtp_layers)
    return sum(
        layers * one.weights for share in shares for layers, one in matrices_of(shape, share)
    )


@pytest.mark.parametrize(
    ("model", "checkpoint_bytes"),
    [
        ("llama-3-8b", 16_060_522_496),
        ("llama-3-70b", 141_107_412_992),
        ("mixtral-8x7b", 93_405_585_408),
    ],
)
def test_matrices_tables_and_norms_are_all_of_a_checkpoint(
    model: str, checkpoint_bytes: int
) -> None:
    """`total_size` in model.safetensors.index.json of the released checkpoints, at 16 bits each."""
    shape = catalog.model(model).shape
    vectors = 2 * shape.layers + 1
    assert 2 * (weights(shape) + (2 * shape.vocab + vectors) * shape.hidden) == checkpoint_bytes


@pytest.mark.parametrize("name", sorted(catalog.load.models.names()))
def test_a_token_meets_the_matrices_of_all_layers_and_the_head(name: str) -> None:
    shape = catalog.model(name).shape
    top_k = shape.experts.top_k if shape.experts else 1
    met = 0
    for layers, one in matrices_of(shape, *stage_shares(shape, 1)):
        met += layers * (one.weights // one.copies) * (top_k if one.part == "routed" else 1)
    assert met + shape.vocab * shape.hidden == matmul_parameters(shape)


@pytest.mark.parametrize("name", ["llama-3-8b", "deepseek-v3", "mamba-2-hybrid-8b"])
@pytest.mark.parametrize("stages", [2, 4])
def test_stages_have_the_matrices_of_the_model_between_them(name: str, stages: int) -> None:
    shape = catalog.model(name).shape
    assert weights(shape, stages) == weights(shape)


def test_a_module_of_multi_token_prediction_has_a_layer_and_a_projection() -> None:
    shape = catalog.model("deepseek-v3").shape
    more = weights(shape, mtp_layers=1) - weights(shape)
    vectors = sum(module_parameters(shape)) - more
    # Two norms of the layer and three of the module, and those of both latents.
    assert shape.latent is not None
    assert vectors == 5 * shape.hidden + shape.latent.query_rank + shape.latent.kv_rank
