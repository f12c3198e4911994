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
    """Counts of what a pipeline rank holds at one moment of its schedule.

    They are plain layers, layers with experts, embeddings, heads, `tables` (fewer where a tied head
    shares the embedding's table), and state-space `mixers`, which take the place of attention in
    some of the layers. The `kept_…` fields count how often each is in flight: `kept_inputs` are
    layers that keep only their input, and `kept_outputs` are stages without the head. The last
    three are 1 if some virtual stage of the rank has plain layers only, layers with experts only,
    or both.
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
    """Return what a rank of these stages holds all the time.

    The counts are plain layers, layers with experts, embeddings, heads, tables and mixers. Modules
    of multi-token prediction look their tokens up in a `tied` head, or in a copy of the embedding.
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
    """Return whether some stage has plain layers only, layers with experts only, or both."""
    kinds = [(share.dense_layers > 0, share.expert_layers > 0) for share in held]
    return (True, False) in kinds, (False, True) in kinds, (True, True) in kinds


def kept_counts(
    shape: ModelShape, again: Recomputation, share: StageShare
) -> tuple[int, int, int, int, int, int, int]:
    """Return what a stage keeps of one microbatch, in the order of the fields of `RankLoad`.

    The counts are inputs of layers that are recomputed whole; other layers, plain and with experts;
    embedding, head and output; mixers.
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
