"""The matrices of a layer one by one, for adapters and for Muon, which orthogonalizes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from figgen.models.setup.stage_layers import StageShare
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import FFN_MATRICES, GATED, ModelShape

ROUTER = "router"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerMatrix:
    """A matrix, its two widths, and the number of such matrices.

    `part` is "attention", "dense", "routed" or "shared", as in `figgen.models.setup.layer_parts`;
    or "router", "mixer" for a state-space mixer, or "projection" for multi-token prediction.
    `from_layer` says that it reads the layer's own input, after a norm; `up` that it reads a
    latent.
    """

    name: str
    part: str
    inputs: int
    outputs: int
    copies: int = 1
    from_layer: bool = False
    up: bool = False

    @property
    def weights(self) -> int:
        """Weights of all copies."""
        return self.copies * self.inputs * self.outputs


def layer_matrices(shape: ModelShape, *, experts: bool) -> tuple[LayerMatrix, ...]:
    """Return each whole matrix of a layer with attention; of an MoE layer if `experts`."""
    return (*_attention(shape), *(_mixture(shape) if experts else _dense(shape)))


def matrices_of(shape: ModelShape, share: StageShare) -> Iterator[tuple[int, LayerMatrix]]:
    """Return each whole matrix of a stage, with the number of its layers that have it."""
    for layers, kind in (
        (share.layers - share.mixer_layers, _attention),
        (share.mixer_layers, _mixer),
        (share.dense_layers, _dense),
        (share.expert_layers, _mixture),
        (share.mtp_layers, _projection),
    ):
        for one in kind(shape) if layers else ():
            yield layers, one


def held_matrices(setup: TrainingSetup, *, experts: bool) -> tuple[LayerMatrix, ...]:
    """Return the parts of the matrices that one GPU holds under tensor and expert parallelism.

    Down-projections of latent attention and routers stay whole.
    """
    shape, parallel = setup.shape, setup.parallel
    found = []
    for one in layer_matrices(shape, experts=experts):
        inputs, outputs, copies = one.inputs, one.outputs, one.copies
        ways = parallel.etp if one.part == "routed" else parallel.tp
        if one.name in ("key", "value"):
            outputs = setup.kv_heads_per_rank * shape.head_dim
        elif one.name in ("output", "down"):
            inputs //= ways
        elif one.name not in (ROUTER, "query down", "key-value down"):
            outputs //= ways
        if one.part == "routed":
            copies //= parallel.ep
        found.append(replace(one, inputs=inputs, outputs=outputs, copies=copies))
    return tuple(found)


def _attention(shape: ModelShape) -> tuple[LayerMatrix, ...]:
    hidden, mla, part = shape.hidden, shape.latent, "attention"
    if mla is None:
        query, key_value = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        return (
            LayerMatrix(name="query", part=part, inputs=hidden, outputs=query, from_layer=True),
            LayerMatrix(name="key", part=part, inputs=hidden, outputs=key_value, from_layer=True),
            LayerMatrix(name="value", part=part, inputs=hidden, outputs=key_value, from_layer=True),
            LayerMatrix(name="output", part=part, inputs=query, outputs=hidden),
        )
    key, value = mla.nope_head_dim + mla.rope_head_dim, mla.value_head_dim
    down = mla.kv_rank + mla.rope_head_dim
    up = shape.heads * (mla.nope_head_dim + value)
    if not mla.query_rank:
        return (
            LayerMatrix(
                name="query", part=part, inputs=hidden, outputs=shape.heads * key, from_layer=True
            ),
            LayerMatrix(
                name="key-value down", part=part, inputs=hidden, outputs=down, from_layer=True
            ),
            LayerMatrix(name="key-value up", part=part, inputs=mla.kv_rank, outputs=up, up=True),
            LayerMatrix(name="output", part=part, inputs=shape.heads * value, outputs=hidden),
        )
    return (
        LayerMatrix(
            name="query down", part=part, inputs=hidden, outputs=mla.query_rank, from_layer=True
        ),
        LayerMatrix(name="key-value down", part=part, inputs=hidden, outputs=down, from_layer=True),
        LayerMatrix(
            name="query up", part=part, inputs=mla.query_rank, outputs=shape.heads * key, up=True
        ),
        LayerMatrix(name="key-value up", part=part, inputs=mla.kv_rank, outputs=up, up=True),
        LayerMatrix(name="output", part=part, inputs=shape.heads * value, outputs=hidden),
    )


def _mixer(shape: ModelShape) -> tuple[LayerMatrix, ...]:
    """Return both projections of a mixer; its convolution is not a matrix."""
    mixers, part = shape.state_space, "mixer"
    if mixers is None:
        return ()
    return (
        LayerMatrix(name="in", part=part, inputs=shape.hidden, outputs=mixers.projected),
        LayerMatrix(name="output", part=part, inputs=mixers.inner, outputs=shape.hidden),
    )


def _projection(shape: ModelShape) -> tuple[LayerMatrix, ...]:
    return (
        LayerMatrix(
            name="projection", part="projection", inputs=2 * shape.hidden, outputs=shape.hidden
        ),
    )


def _dense(shape: ModelShape) -> tuple[LayerMatrix, ...]:
    return _block(shape, "dense", shape.ffn_hidden)


def _mixture(shape: ModelShape) -> tuple[LayerMatrix, ...]:
    mixture = shape.experts
    if mixture is None:
        return _dense(shape)
    return (
        LayerMatrix(name=ROUTER, part=ROUTER, inputs=shape.hidden, outputs=mixture.count),
        *_block(shape, "routed", mixture.ffn_hidden, mixture.count),
        *(_block(shape, "shared", mixture.shared * mixture.ffn_hidden) if mixture.shared else ()),
    )


def _block(shape: ModelShape, part: str, width: int, copies: int = 1) -> tuple[LayerMatrix, ...]:
    first = ("gate", "up") if FFN_MATRICES[shape.ffn] == GATED else ("up",)
    return (
        *(
            LayerMatrix(name=name, part=part, inputs=shape.hidden, outputs=width, copies=copies)
            for name in first
        ),
        LayerMatrix(name="down", part=part, inputs=width, outputs=shape.hidden, copies=copies),
    )
