"""Which layers each pipeline stage holds, with the embedding on the first and the head on the last.

Layers are spread as evenly as they go. What does not divide goes to stages inside the pipeline
first, so that the two ends, which also hold a table, have no more layers than any other stage:
Llama 3 405B and BLOOM were trained so. A setup may say otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from figgen.models.model_shape import ModelShape
from figgen.models.training_setup import TrainingSetup


@dataclass(frozen=True, slots=True)
class StageShare:
    """What one virtual stage holds: a run of layers, and maybe the embedding or the head.

    `first_layer` counts from 0. `expert_layers` of the `layers` are mixtures of experts.
    """

    first_layer: int
    layers: int
    expert_layers: int
    embedding: bool
    head: bool

    @property
    def dense_layers(self) -> int:
        """Layers with a plain feed-forward block."""
        return self.layers - self.expert_layers


def layers_of_stages(layers: int, stages: int) -> tuple[int, ...]:
    """Number of layers of each of `stages` consecutive stages, as even as they go."""
    least, spare = divmod(layers, stages)
    inner_first = sorted(range(stages), key=lambda stage: stage in (0, stages - 1))
    fuller = set(inner_first[:spare])
    return tuple(least + (stage in fuller) for stage in range(stages))


@lru_cache(maxsize=1024)
def stage_shares(
    shape: ModelShape, stages: int, given: tuple[int, ...] = ()
) -> tuple[StageShare, ...]:
    """The share of each of `stages` stages, in the order in which a microbatch meets them.

    `given` layers of each, or as even as they go.
    """
    shares = []
    first = 0
    for stage, layers in enumerate(given or layers_of_stages(shape.layers, stages)):
        after = first + layers
        expert_layers = after - max(first, shape.dense_layers) if shape.experts else 0
        shares.append(
            StageShare(first, layers, max(0, expert_layers), stage == 0, stage == stages - 1)
        )
        first = after
    return tuple(shares)


def virtual_stage_shares(setup: TrainingSetup) -> tuple[StageShare, ...]:
    """The share of every virtual stage of the schedule; a second pipe holds a second copy."""
    placement = setup.placement
    shares = stage_shares(setup.shape, placement.depth, setup.layers_per_stage)
    return shares * placement.pipes


def shares_of_rank(setup: TrainingSetup, pipeline_rank: int) -> tuple[StageShare, ...]:
    """The shares that one pipeline rank holds."""
    shares = virtual_stage_shares(setup)
    return tuple(shares[stage] for stage in setup.placement.stages_of_rank(pipeline_rank))
