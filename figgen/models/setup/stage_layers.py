"""The layers of each pipeline stage, with the embedding on the first and the head on the last.

Layers are spread as evenly as possible. A remainder goes to stages inside the pipeline first, so
that the two ends, which also hold a table, have no more layers than any other stage; Llama 3 405B
and BLOOM were trained this way. A stage with modules of multi-token prediction has fewer
(`layers_beside_mtp`). A setup may override this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import FFN_MATRICES, ModelShape

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageShare:
    """The consecutive layers of one virtual stage, with the embedding or the head if it has them.

    `first_layer` counts from 0. `expert_layers` of the `layers` are mixtures of experts, and
    `windowed_layers` only see a window. The last `mtp_layers` of them belong to modules of
    multi-token prediction, which have attention over all tokens and the feed-forward part of the
    last layer. `mixer_layers` have a state-space mixer instead of attention.
    """

    first_layer: int
    layers: int
    expert_layers: int
    embedding: bool
    head: bool
    windowed_layers: int = 0
    mtp_layers: int = 0
    mixer_layers: int = 0

    @property
    def dense_layers(self) -> int:
        """Layers with a plain feed-forward block."""
        return self.layers - self.expert_layers

    @property
    def anywhere(self) -> StageShare:
        """Return a key that is equal for stages with equal contents, wherever they are.

        If only some layers have mixers or windows, the stage's position determines which.
        """
        fixed = self.mixer_layers or self.windowed_layers or not self.first_layer
        return self if fixed else replace(self, first_layer=0)


def by_stage(setup: TrainingSetup, make: Callable[[StageShare], Thing]) -> tuple[Thing, ...]:
    """Return the result of `make` for each virtual stage, computed once for equal shares."""
    shares = [share.anywhere for share in virtual_stage_shares(setup)]
    found = {share: make(share) for share in set(shares)}
    return tuple(found[share] for share in shares)


def layers_of_stages(layers: int, stages: int) -> tuple[int, ...]:
    """Return the number of layers of each of `stages` stages, spread as evenly as possible."""
    least, spare = divmod(layers, stages)
    inner_first = sorted(range(stages), key=lambda stage: stage in (0, stages - 1))
    fuller = set(inner_first[:spare])
    return tuple(least + (stage in fuller) for stage in range(stages))


def layers_beside_mtp(layers: int, stages: int) -> tuple[int, ...]:
    """Return layers per stage if multi-token prediction modules are on the head's stage.

    All other stages have as many layers as the largest of an even division, and this stage has the
    rest. Source: NVIDIA-NeMo/Megatron-Bridge, recipes/deepseek/deepseek_v3.py, which lays out 61
    layers on 4, 8 and 16 stages this way.
    """
    last = max(0, layers - -(-layers // stages) * (stages - 1))
    if stages == 1:
        return (layers,)
    return (*layers_of_stages(layers - last, stages - 1), last)


@lru_cache(maxsize=1024)
def layers_by_cost(shape: ModelShape, stages: int) -> tuple[tuple[int, ...], int]:
    """Return layers per stage, and the head's stage, if blocks are dealt out by cost.

    A layer costs its matrices, ignoring grouped queries, the head costs its table, everything else
    nothing. A stage ends with the block that exceeds its share, and the next stage begins. Stages
    after the head may therefore be empty. Source: huggingface/nanotron@67c5ebb6, models/base.py,
    build_model.
    """
    width = shape.heads * shape.head_dim
    layer = 4 * width * shape.hidden + FFN_MATRICES[shape.ffn] * shape.ffn_hidden * shape.hidden
    whole = shape.layers * layer + shape.vocab * shape.hidden

    def passed(blocks: int, stage: int) -> int:
        # Never beyond the last stage, since the head costs something too.
        return stage + (blocks * layer * stages > whole * (stage + 1))

    dealt, stage = [0] * stages, 0
    for index in range(shape.layers):
        dealt[stage] += 1
        stage = passed(index + 1, stage)
    # The last norm costs nothing, but after a layer of several shares it may begin another stage.
    return tuple(dealt), passed(shape.layers, stage)


@lru_cache(maxsize=1024)
def stage_shares(
    shape: ModelShape,
    stages: int,
    given: tuple[int, ...] = (),
    head: int = -1,
    mtp_layers: int = 0,
) -> tuple[StageShare, ...]:
    """Return the share of each of `stages` stages, in the order that a microbatch visits them.

    The layers are `given` or spread evenly. The `head` is on one of the stages, usually the last
    (-1), together with the modules that predict more tokens, as in Megatron-LM.
    """
    shares = []
    first = 0
    usual = layers_beside_mtp if mtp_layers else layers_of_stages
    for stage, layers in enumerate(given or usual(shape.layers, stages)):
        after = first + layers
        expert_layers = after - max(first, shape.dense_layers) if shape.experts else 0
        windowed = shape.windowed_layers(first, layers)
        has_head = stage == head % stages
        more = mtp_layers if has_head else 0
        expert_layers = max(0, expert_layers) + (more if shape.experts else 0)
        mixers = shape.mixer_layers(first, layers)
        shares.append(
            StageShare(
                first_layer=first,
                layers=layers + more,
                expert_layers=expert_layers,
                embedding=stage == 0,
                head=has_head,
                windowed_layers=windowed,
                mtp_layers=more,
                mixer_layers=mixers,
            )
        )
        first = after
    return tuple(shares)


def fullest_and_beside_head(
    shares: Sequence[StageShare], ranks: int, *, cut: bool
) -> tuple[int, float]:
    """Return the most layers of a pipeline rank, and those on the head's rank without MTP layers.

    If the stages are `cut` explicitly, the head's rank is counted separately from the others.
    Otherwise the head is assumed to be on a stage like any other.
    """
    counts = [share.layers - share.mtp_layers for share in shares]
    held = [sum(counts[rank::ranks]) for rank in range(ranks)]
    if not cut or ranks == 1:
        return max(held), sum(held) / ranks
    rank = next(stage for stage, share in enumerate(shares) if share.head) % ranks
    return max(held[:rank] + held[rank + 1 :]), held[rank]


def virtual_stage_shares(setup: TrainingSetup) -> tuple[StageShare, ...]:
    """Return the share of every virtual stage of the schedule; a second pipe is a second copy."""
    placement, given, head = setup.placement, setup.layers_per_stage, -1
    if not given and setup.framework_memory.balanced:
        given, head = layers_by_cost(setup.shape, placement.depth)
    shares = stage_shares(setup.shape, placement.depth, given, head, setup.mtp_layers)
    return shares * placement.pipes


def shares_of_rank(setup: TrainingSetup, pipeline_rank: int) -> tuple[StageShare, ...]:
    """Return the shares that one pipeline rank holds."""
    shares = virtual_stage_shares(setup)
    return tuple(shares[stage] for stage in setup.placement.stages_of_rank(pipeline_rank))
