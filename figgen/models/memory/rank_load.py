"""How many layers, tables and microbatches a pipeline rank holds at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.equations.ops import Number
from figgen.models.setup.stage_layers import StageShare
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.recomputation import Recomputation


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLoad:
    """What a pipeline rank holds at one moment of its schedule.

    Layers, plain and with experts; the embedding, the head, and `tables` where a tied head has
    none of its own. `kept_…` count how often each is in flight: `kept_inputs` layers of which the
    input alone is kept, `kept_outputs` stages without the head. Some of the layers have state-space
    `mixers` in the place of attention. Of its virtual stages some may
    have plain layers only, layers with experts only, or both: 1 if so.
    """

    dense_layers: Number
    expert_layers: Number
    embeddings: Number
    heads: Number
    tables: Number
    mixers: Number
    kept_inputs: Number
    kept_dense: Number
    kept_experts: Number
    kept_embeddings: Number
    kept_heads: Number
    kept_outputs: Number
    kept_mixers: Number
    only_dense: Number
    only_experts: Number
    both: Number


def lasting_counts(held: Sequence[StageShare], tied: bool) -> tuple[int, int, int, int, int, int]:
    """What a rank of these stages holds all the time.

    Plain layers, layers with experts, embeddings, heads, tables, mixers. Modules of multi-token
    prediction look their tokens up in a `tied` head, or in a copy of the embedding.
    """
    embeddings, heads = sum(s.embedding for s in held), sum(s.head for s in held)
    copies = heads + (not tied and any(share.mtp_layers for share in held))
    return (
        sum(share.dense_layers for share in held),
        sum(share.expert_layers for share in held),
        embeddings,
        heads,
        embeddings + ((0 if tied else heads) if embeddings else copies),
        sum(share.mixer_layers for share in held),
    )


def kinds_held(held: Sequence[StageShare]) -> tuple[bool, bool, bool]:
    """Whether some stage has plain layers only, layers with experts only, or both."""
    kinds = [(share.dense_layers > 0, share.expert_layers > 0) for share in held]
    return (True, False) in kinds, (False, True) in kinds, (True, True) in kinds


def kept_counts(
    shape: ModelShape, again: Recomputation, share: StageShare
) -> tuple[int, int, int, int, int, int, int]:
    """What a stage keeps of one microbatch, in the order of the fields of `RankLoad`.

    Inputs of layers that are recomputed whole; other layers, plain and with experts; embedding,
    head and output; mixers.
    """
    whole = again.whole_layers(share.layers)
    dense = max(0, share.dense_layers - whole)
    experts = share.layers - whole - dense
    mixers = share.mixer_layers
    if mixers:
        own = min(whole, share.layers - share.mtp_layers)
        mixers -= shape.mixer_layers(share.first_layer, own)
    inputs = again.kept_inputs(share.layers)
    head = int(share.head)
    return inputs, dense, experts, int(share.embedding), head, 1 - head, mixers
