"""Products of Muon's update: who makes which matrix orthogonal, and how much work that is.

With ZeRO 0 every replica does all matrices that it holds. From stage 1 on whole matrices are dealt
to the ranks that share them, the most work first, one after the other; tensor-parallel ranks
gather a matrix and each do all of it. Tables, norms and biases are Adam's; of adapters the two
factors are matrices too.
Sources: Jordan et al. 2024, Muon; NVIDIA/Megatron-LM@d98e8a64, core/optimizer/
layer_wise_optimizer.py (whole matrices on shards, by their work) and optimizer_config.py
(muon_tp_mode "duplicated"). Left out: gathering over TP, which stays inside a node; there matrices
are packed by their sizes too, which deals a little more evenly.
"""

from __future__ import annotations

from collections import Counter

from figgen.formulas.fine_tuning import newton_schulz_flops
from figgen.models.memory.trained_state import adapted
from figgen.models.setup.layer_matrices import LayerMatrix, matrices_of
from figgen.models.setup.stage_layers import shares_of_rank, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup


def update_flops(setup: TrainingSetup, pipeline_rank: int) -> float:
    """FLOPs of the GPU of `pipeline_rank` that does most; 0 with other optimizers."""
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
    """FLOPs of the GPU that does most of all; 0 with other optimizers."""
    return max(update_flops(setup, rank) for rank in range(setup.parallel.pp))


def most_dealt(works: Counter[float], ranks: int) -> float:
    """Work of the first of `ranks` to which pieces, so many of each, are dealt in turn."""
    first, total = 0, 0.0
    for work in sorted(works, reverse=True):
        after = first + works[work]
        total += work * (-(-after // ranks) - -(-first // ranks))
        first = after
    return total


def _works(setup: TrainingSetup, matrix: LayerMatrix) -> list[float]:
    """FLOPs for a matrix, or for the two factors beside it where it is frozen."""
    return [_flops(setup, pair) for pair in _sides(setup, matrix)]


def _sides(setup: TrainingSetup, matrix: LayerMatrix) -> list[tuple[int, int]]:
    """Widths of what is made orthogonal: a matrix, or the factors beside it where it is frozen."""
    if setup.lora_rank is None:
        return [(matrix.inputs, matrix.outputs)]
    if not adapted(setup, matrix):
        return []
    return [(matrix.inputs, setup.lora_rank), (setup.lora_rank, matrix.outputs)]


def _flops(setup: TrainingSetup, sides: tuple[int, int]) -> float:
    return float(newton_schulz_flops(max(sides), min(sides), setup.recipe.iterations))


def largest_sides(setup: TrainingSetup) -> tuple[int, int]:
    """Widths of the matrix that takes the most work of all."""
    sides = [
        pair
        for share in virtual_stage_shares(setup)
        for _, one in matrices_of(setup.shape, share)
        for pair in _sides(setup, one)
    ]
    return max(sides, key=lambda pair: _flops(setup, pair))
