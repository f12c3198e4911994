"""Bytes of memory that communication itself takes on a GPU: messages under way, gathered shards.

What the collective libraries allocate for themselves, and what an allocator wastes, are lines of
their own in `figgen.models.memory.memory_lines`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from figgen.formulas.context_parallel import kv_ring_buffer_bytes
from figgen.models.memory.activations import layer_input_bytes
from figgen.models.memory.rank_parameters import attention_held, mixer_held, table_held
from figgen.models.memory.trained_state import Kept, kept_by_layer, kept_by_rank
from figgen.models.setup.stage_layers import StageShare, shares_of_rank
from figgen.models.setup.training_setup import ACTIVATION_BYTES, TrainingSetup
from figgen.models.shape.adapters import PLAIN_BYTES


@dataclass(frozen=True, slots=True)
class CommunicationBuffer:
    """Bytes of one kind of buffer on one GPU."""

    name: str
    bytes: float


def communication_buffers(
    setup: TrainingSetup, pipeline_rank: int
) -> tuple[CommunicationBuffer, ...]:
    """Buffers of a GPU of `pipeline_rank`, only those that its layout needs."""
    parallel, hidden = setup.parallel, setup.shape.hidden
    found = {}
    if parallel.pp > 1:
        # One activation and one gradient arriving; what is sent is an activation already kept.
        found["pipeline messages"] = 2 * layer_input_bytes(setup)
    if parallel.tp > 1 and setup.sequence_parallel:
        # Two of each: a tensor of a collective is given back only when its stream is done.
        found["gathered layer inputs"] = 2 * setup.tokens * hidden * ACTIVATION_BYTES
        found["gathered layer gradients"] = 2 * setup.tokens * hidden * ACTIVATION_BYTES
    if parallel.cp > 1 and setup.shape.attention_layers:
        if setup.trades_heads:
            width = query_width(setup) + 2 * traded_copies(setup) * key_value_width(setup)
            found["queries, keys and values of some heads"] = (
                width * setup.tokens * ACTIVATION_BYTES
            )
        else:
            found["keys and values of other ranks"] = _key_value_bytes(setup)
    experts = setup.shape.experts
    if experts is not None and parallel.ep * parallel.etp > 1:
        routed = setup.split_tokens * experts.top_k * parallel.etp * hidden
        each = setup.activation_format.dispatch_bytes + ACTIVATION_BYTES
        found["routed tokens"] = routed * each
    if setup.zero_stage >= 2 and setup.dense_shards > 1:
        found |= _sharded_state(setup, pipeline_rank)
    return tuple(CommunicationBuffer(name, size) for name, size in found.items())


def key_value_width(setup: TrainingSetup) -> float:
    """Mean width of keys and values of one tensor-parallel rank: elements per token and tensor."""
    mla = setup.shape.latent
    if mla is None:
        return setup.kv_heads_per_rank * setup.shape.head_dim
    width = mla.nope_head_dim + mla.rope_head_dim + mla.value_head_dim
    return setup.shape.heads // setup.parallel.tp * width / 2


def query_width(setup: TrainingSetup) -> float:
    """Width of the queries of one tensor-parallel rank: elements per token."""
    mla, heads = setup.shape.latent, setup.shape.heads // setup.parallel.tp
    head = setup.shape.head_dim if mla is None else mla.nope_head_dim + mla.rope_head_dim
    return heads * head


def traded_heads(setup: TrainingSetup) -> int:
    """Key and value heads of a tensor-parallel rank, as many as query heads in latent attention."""
    if setup.shape.latent is None:
        return setup.kv_heads_per_rank
    return setup.shape.heads // setup.parallel.tp


def traded_copies(setup: TrainingSetup) -> float:
    """Copies of every key and value that an all-to-all hands out: context ranks over their heads.

    Source: Jacobs et al. 2023 (DeepSpeed Ulysses), arXiv:2309.14509, with grouped heads.
    """
    return max(1.0, setup.parallel.cp / traded_heads(setup))


def _key_value_bytes(setup: TrainingSetup) -> float:
    """A ring needs two blocks in turn; an all-gather holds the whole sequence."""
    width, size = key_value_width(setup), setup.microbatch_size
    if setup.context_exchange == "all-gather":
        return 2 * size * setup.sequence * width * ACTIVATION_BYTES
    cp = setup.parallel.cp
    both = float(kv_ring_buffer_bytes(size, setup.sequence, cp, width, ACTIVATION_BYTES))
    return both if setup.double_buffering else both / 2


def _sharded_state(setup: TrainingSetup, pipeline_rank: int) -> dict[str, float]:
    """Whole weights and gradients where ZeRO keeps only shards: of a layer, or of a whole stage."""
    if setup.framework_memory.whole_in_pipeline and setup.parallel.pp > 1:
        weights, gradients = _whole(setup, kept_by_rank(setup, pipeline_rank))
    else:
        units = tuple(_units(setup, shares_of_rank(setup, pipeline_rank)))
        # This layer's weights, and the next one's on their way.
        times = 2 if setup.double_buffering else 1
        weights = times * max((size for size, _ in units), default=0)
        gradients = max((size for _, size in units), default=0)
    found = {"gradients before they are scattered": gradients}
    if setup.zero_stage == 3:
        found["gathered weights"] = weights
    return found


def _units(setup: TrainingSetup, shares: tuple[StageShare, ...]) -> Iterator[tuple[float, float]]:
    """Bytes of weights and gradients of what is gathered at once: layers and tables.

    A projection of multi-token prediction stands beside both, and is smaller.
    """
    # A layer with a state-space mixer instead of attention may hold so many parameters more.
    more = mixer_held(setup) - attention_held(setup) if setup.shape.state_space else 0
    wider = Kept(trained=max(0, more), trained_routed=0)
    for share in shares:
        for layers, experts in ((share.dense_layers, False), (share.expert_layers, True)):
            if layers:
                yield _whole(setup, kept_by_layer(setup, experts=experts) + wider)
        if share.embedding or share.head:
            frozen = Kept(trained=0, trained_routed=0, frozen_bytes=table_held(setup) * PLAIN_BYTES)
            yield _whole(
                setup,
                Kept(trained=table_held(setup), trained_routed=0)
                if setup.lora_rank is None
                else frozen,
            )


def _whole(setup: TrainingSetup, kept: Kept) -> tuple[float, float]:
    """Bytes of weights and gradients of what is kept."""
    trained = kept.trained + kept.trained_routed
    frozen = kept.frozen_bytes + kept.frozen_routed_bytes
    return trained * setup.recipe.weight_bytes + frozen, trained * setup.recipe.gradient_bytes
