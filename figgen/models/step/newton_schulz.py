"""Matmuls of Muon's update: which rank orthogonalizes which matrix, and the FLOPs that takes.

With ZeRO-0 every replica orthogonalizes all matrices that it holds. From ZeRO-1 on, whole matrices
are dealt out to the ranks that share them, in order of decreasing work. Tensor-parallel ranks
gather a matrix, and each orthogonalizes all of it. Adam updates tables, norms and biases. The two
factors of an adapter are matrices too.
Sources: Jordan et al. 2024, Muon; NVIDIA/Megatron-LM@d98e8a64, core/optimizer/
layer_wise_optimizer.py (whole matrices on shards, by their work) and optimizer_config.py
(muon_tp_mode "duplicated"). Two things are not modeled: gathering over TP, which stays inside a
node, and packing matrices there by size, which balances them slightly better.
"""

from __future__ import annotations

from collections import Counter

from figgen.formulas.fine_tuning import newton_schulz_flops
from figgen.models.memory.trained_state import adapted
from figgen.models.setup.layer_matrices import LayerMatrix, matrices_of
from figgen.models.setup.stage_layers import shares_of_rank, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup


def update_flops(setup: TrainingSetup, pipeline_rank: int) -> float:
    """Return the update FLOPs of the busiest GPU of `pipeline_rank`; 0 without Muon."""
    if not setup.recipe.iterations:
        return 0.0
    dense, routed = Counter[float](), Counter[float]()
    for share in shares_of_rank(setup, pipeline_rank):
        for layers, one in matrices_of(setup.shape, share):
            many = one.part == "routed"
            copies = one.copies // setup.parallel.ep if many else 1
            for work in _works(setup, one):
                (routed if many else dense)[work] += layers * copies
    sharded = setup.zero_stage >= 1
    return most_dealt(dense, setup.dense_shards if sharded else 1) + most_dealt(
        routed, setup.parallel.edp if sharded else 1
    )


def busiest_flops(setup: TrainingSetup) -> float:
    """Return the update FLOPs of the busiest GPU of all; 0 without Muon."""
    return max(update_flops(setup, rank) for rank in range(setup.parallel.pp))


def most_dealt(works: Counter[float], ranks: int) -> float:
    """Return the work of the rank that gets the most when pieces are dealt to `ranks` in turn.

    `works` counts the pieces of each amount of work; the largest are dealt first.
    """
    first, total = 0, 0.0
    for work in sorted(works, reverse=True):
        after = first + works[work]
        total += work * (-(-after // ranks) - -(-first // ranks))
        first = after
    return total


def _works(setup: TrainingSetup, matrix: LayerMatrix) -> list[float]:
    """Return the FLOPs for a matrix, or for each of its adapter's two factors if it is frozen."""
    return [_flops(setup, pair) for pair in _sides(setup, matrix)]


def _sides(setup: TrainingSetup, matrix: LayerMatrix) -> list[tuple[int, int]]:
    """Return the sizes of what is orthogonalized: a matrix, or its adapter's factors."""
    if setup.lora_rank is None:
        return [(matrix.inputs, matrix.outputs)]
    if not adapted(setup, matrix):
        return []
    return [(matrix.inputs, setup.lora_rank), (setup.lora_rank, matrix.outputs)]


def _flops(setup: TrainingSetup, sides: tuple[int, int]) -> float:
    return float(newton_schulz_flops(max(sides), min(sides), setup.recipe.iterations))


def largest_sides(setup: TrainingSetup) -> tuple[int, int]:
    """Return the sizes of the matrix that takes the most work."""
    sides = [
        pair
        for share in virtual_stage_shares(setup)
        for _, one in matrices_of(setup.shape, share)
        for pair in _sides(setup, one)
    ]
    return max(sides, key=lambda pair: _flops(setup, pair))
