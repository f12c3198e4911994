"""What a GPU trains and what it keeps frozen: all parameters, or adapters next to frozen matrices.

Tensor parallelism divides an adapter where it divides its matrix; the thin side of the other factor
stays whole on every rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from figgen.formulas.fine_tuning import adapter_parameters
from figgen.models.memory.rank_parameters import (
    ROUTED,
    layer_parameters,
    parameters_of,
    stage_parameters,
)
from figgen.models.setup.layer_matrices import (
    ROUTER,
    LayerMatrix,
    held_matrices,
    layer_matrices,
    matrices_of,
)
from figgen.models.setup.stage_layers import StageShare, stage_shares, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.adapters import PLAIN_BYTES
from figgen.models.shape.transformer import parameter_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Parameters that are trained and bytes that are frozen, routed experts apart.

    `quantized` are the frozen weights that a matmul cannot read as they are.
    """

    trained: int
    trained_routed: int
    frozen_bytes: float = 0.0
    frozen_routed_bytes: float = 0.0
    quantized: int = 0

    def __add__(self, other: Kept) -> Kept:
        return Kept(
            trained=self.trained + other.trained,
            trained_routed=self.trained_routed + other.trained_routed,
            frozen_bytes=self.frozen_bytes + other.frozen_bytes,
            frozen_routed_bytes=self.frozen_routed_bytes + other.frozen_routed_bytes,
            quantized=self.quantized + other.quantized,
        )

    def times(self, count: int) -> Kept:
        """Return the sum of `count` of these."""
        return Kept(
            trained=count * self.trained,
            trained_routed=count * self.trained_routed,
            frozen_bytes=count * self.frozen_bytes,
            frozen_routed_bytes=count * self.frozen_routed_bytes,
            quantized=count * self.quantized,
        )


def kept_by_layer(setup: TrainingSetup, *, experts: bool) -> Kept:
    """Return what one layer takes on one GPU."""
    held = layer_parameters(setup, experts=experts)
    routed = held.get(ROUTED, 0)
    dense = sum(held.values()) - routed
    if setup.lora_rank is None:
        return Kept(trained=dense, trained_routed=routed)
    matrices = held_matrices(setup, experts=experts)
    adapters, sizes, counts = [0, 0], [0.0, 0.0], [0, 0]
    form = setup.frozen_format
    for one in matrices:
        if one.part == ROUTER:
            continue
        at = one.part == "routed"
        counts[at] += one.weights
        sizes[at] += one.weights * form.weight_bytes
        sizes[at] += one.copies * one.outputs * form.output_bytes
        if adapted(setup, one):
            adapters[at] += one.copies * adapter_of(setup, one)
    # Biases, norms, routers.
    sizes[0] += (dense - counts[0]) * PLAIN_BYTES
    sizes[1] += (routed - counts[1]) * PLAIN_BYTES
    quantized = sum(counts) if form.quantized else 0
    return Kept(
        trained=adapters[0],
        trained_routed=adapters[1],
        frozen_bytes=sizes[0],
        frozen_routed_bytes=sizes[1],
        quantized=quantized,
    )


def kept_by_stage(setup: TrainingSetup, stage: int) -> Kept:
    """Return what a virtual stage takes on one GPU, with its tables."""
    held = stage_parameters(setup, stage)
    dense, routed = parameters_of(held, routed=False), parameters_of(held, routed=True)
    if setup.lora_rank is None:
        return Kept(trained=dense, trained_routed=routed)
    share = virtual_stage_shares(setup)[stage]
    layers = _layers(setup, share)
    inside = sum(
        count * (sum(found.values()) - found.get(ROUTED, 0))
        for count, found in (
            (share.dense_layers, layer_parameters(setup, experts=False)),
            (share.expert_layers, layer_parameters(setup, experts=True)),
        )
        if count
    )
    return layers + Kept(trained=0, trained_routed=0, frozen_bytes=(dense - inside) * PLAIN_BYTES)


def kept_by_rank(setup: TrainingSetup, pipeline_rank: int) -> Kept:
    """Return what a pipeline rank takes on one GPU."""
    return _sum(kept_by_stage(setup, s) for s in setup.placement.stages_of_rank(pipeline_rank))


def _layers(setup: TrainingSetup, share: StageShare) -> Kept:
    kinds = ((share.dense_layers, False), (share.expert_layers, True))
    return _sum(
        kept_by_layer(setup, experts=experts).times(count) for count, experts in kinds if count
    )


def _sum(found: Iterable[Kept]) -> Kept:
    return sum(found, Kept(trained=0, trained_routed=0))


def adapted(setup: TrainingSetup, matrix: LayerMatrix) -> bool:
    """Whether a matrix has an adapter."""
    if setup.lora_rank is None or matrix.part == ROUTER:
        return False
    if setup.lora_matrices == "query-value":
        return matrix.name in ("query", "value")
    return setup.lora_matrices == "all-linear" or matrix.part == "attention"


def adapted_matrices(setup: TrainingSetup, *, experts: bool) -> int:
    """Return the adapted matrices of a layer; a matrix of all routed experts counts once."""
    shape = setup.shape
    if setup.lora_rank is None or not (shape.expert_layers if experts else shape.dense_layers):
        return 0
    return sum(adapted(setup, one) for one in layer_matrices(shape, experts=experts))


def adapter_of(setup: TrainingSetup, matrix: LayerMatrix) -> int:
    """Parameters of the adapter next to one copy of a matrix; 0 without adapters."""
    return int(adapter_parameters(matrix.inputs, matrix.outputs, setup.lora_rank or 0))


def adapter_weights(setup: TrainingSetup) -> dict[str, int]:
    """Return the adapter weights that multiply a token in each part of a layer, over all TP ranks.

    The parts are those of `figgen.models.shape.transformer.part_weights`. Weights that are whole on
    every rank count once for each. Empty without adapters.
    """
    if setup.lora_rank is None:
        return {}
    shape, parallel = setup.shape, setup.parallel
    found = dict.fromkeys(("attention", "up_projections", "dense", "routed", "shared"), 0)
    kinds = [False] * bool(shape.dense_layers) + [True] * (shape.experts is not None)
    for experts in kinds:
        for one in held_matrices(setup, experts=experts):
            if not adapted(setup, one):
                continue
            weights = adapter_of(setup, one)
            if one.part == "routed" and shape.experts is not None:
                found["routed"] += shape.experts.top_k * parallel.etp * weights
                continue
            if one.part == "attention" and experts and shape.dense_layers:
                continue  # counted with the dense layers
            found[one.part] += parallel.tp * weights
            if one.up:
                found["up_projections"] += parallel.tp * weights
    return found


def trained_parameters(setup: TrainingSetup) -> int:
    """Parameters of the whole model that are trained."""
    if setup.lora_rank is None:
        return parameter_counts(setup.shape).total
    return sum(layers * one.copies * adapter_of(setup, one) for layers, one in _matrices(setup))


def adapters_met(setup: TrainingSetup) -> int:
    """Weights of adapters that multiply one token in the whole model."""
    top_k = setup.shape.experts.top_k if setup.shape.experts else 1
    return sum(
        layers * (top_k if one.part == "routed" else 1) * adapter_of(setup, one)
        for layers, one in _matrices(setup)
    )


def _matrices(setup: TrainingSetup) -> Iterator[tuple[int, LayerMatrix]]:
    """Yield each adapted matrix of the model, with the number of layers that have it."""
    (whole,) = stage_shares(setup.shape, 1, mtp_layers=setup.mtp_layers)
    return (found for found in matrices_of(setup.shape, whole) if adapted(setup, found[1]))


def first_inputs(setup: TrainingSetup, ranks: int = 1) -> int:
    """Return the weights of the first layer that need no input gradient: nothing before it trains.

    These are the weights of its matrices that read the layer's input, and of their adapters, which
    each of `ranks` tensor-parallel ranks holds whole.
    """
    if setup.lora_rank is None:
        return 0
    reading = [one for one in layer_matrices(setup.shape, experts=False) if one.from_layer]
    rank = setup.lora_rank
    thin = sum(rank * one.inputs for one in reading if adapted(setup, one))
    return sum(one.weights for one in reading) + ranks * thin
