"""The sizes of layers for each way of dividing them, and the stages of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from figgen.models.machine.layout import layout
from figgen.models.memory.held_sizes import LayerSizes
from figgen.models.memory.held_sizes import layer_sizes as sizes_of_layers
from figgen.models.setup.stage_layers import (
    StageShare,
    fullest_and_beside_head,
    layers_by_cost,
    stage_shares,
)
from figgen.models.setup.training_setup import TrainingSetup


@lru_cache(maxsize=4096)
def layer_sizes(setup: TrainingSetup, tp: int, etp: int, ep: int, recompute: str) -> LayerSizes:
    """Return the sizes of layers under TP, ETP, EP and a way of recomputing."""
    order = setup.parallel.order
    width = tp * etp * ep
    parallel = layout(nodes=1, gpus_per_node=width, tp=tp, etp=etp, ep=ep, order=order)
    one = replace(
        setup,
        parallel=parallel,
        microbatches=1,
        microbatch_size=1,
        schedule="1f1b",
        chunks=None,
        recompute=recompute,
    )
    return sizes_of_layers(one)


@dataclass(frozen=True, slots=True)
class StageNumbers:
    """Stages of a pipeline: shares, most layers on a rank, and layers next to the head.

    Where the framework counts the head when it cuts stages, the head's rank does not count toward
    the most layers.
    """

    shares: tuple[StageShare, ...]
    fullest_layers: int
    head_layers: float


def stage_numbers(setup: TrainingSetup, pp: int, chunks: int, pipes: int) -> StageNumbers:
    """Return the stages of `pp` ranks with `chunks` each, cut as `setup`'s framework cuts them."""
    shape, balanced = setup.shape, setup.framework_memory.balanced
    dealt = layers_by_cost(shape, pp * chunks) if balanced else ((), -1)
    shares = stage_shares(shape, pp * chunks, *dealt, setup.mtp_layers)
    cut = balanced or setup.mtp_layers > 0
    return StageNumbers(shares * pipes, *fullest_and_beside_head(shares, pp, cut=cut))
