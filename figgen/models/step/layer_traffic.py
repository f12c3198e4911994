"""What a virtual stage sends for each microbatch: TP, SP, CP, EP and ETP in its layers, and PP.

Source: Megatron-LM core. Two small messages are not counted: the three all-reduces of one number
per token in the loss and, with sequence parallelism, the all-reduce of the norms' gradients.
"""

from __future__ import annotations

from collections.abc import Iterator

from figgen.formulas.pipeline import pipeline_boundary_bytes
from figgen.models.memory.communication_buffers import (
    key_value_width,
    query_width,
    traded_copies,
)
from figgen.models.setup.layer_parts import parts_of, repeated_parts
from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import ACTIVATION_BYTES, TrainingSetup
from figgen.models.shape.model_shape import ExpertShape
from figgen.models.shape.visited_groups import visited_groups, within_reach
from figgen.models.step.step_links import BETWEEN_NODES, NETWORK, WITHIN_NODE, group_link
from figgen.models.step.step_traffic import BACKWARD, FORWARD, SEND, Traffic, merged

LAYERS = "layers"
AGAIN = "inputs gathered again"
TABLES = "embedding and head"
HEAD_AGAIN = "input of the head gathered again"
KEYS = "keys and values"
TRADED = "queries, keys, values, outputs"
HEADS = "heads of mixers"
TOKENS = "routed tokens"
WITHIN = "routed tokens within an expert"
BOUNDARY = "activations and gradients"

GATHER, SCATTER, REDUCE = "all-gather", "reduce-scatter", "all-reduce"
ALL_TO_ALL = "all-to-all"


def microbatch_traffic(setup: TrainingSetup, stage: int) -> tuple[Traffic, ...]:
    """Return the calls of a virtual stage's rank per microbatch, without data parallelism."""
    share = virtual_stage_shares(setup)[stage]
    return merged(
        (
            *_tensor(setup, share),
            *_projections(setup, share),
            *_tables(setup, share),
            *_context(setup, share),
            *_heads(setup, share),
            *_experts(setup, share),
            *boundary_traffic(setup, stage),
        )
    )


Group = tuple[str, int]
"""An axis and the number of ranks in a group along it."""


def _call(
    group: Group, purpose: str, collective: str, phase: str, calls: int, buffer_bytes: float
) -> Traffic:
    axis, size = group
    return Traffic(
        axis=axis,
        purpose=purpose,
        collective=collective,
        phase=phase,
        calls=calls,
        buffer_bytes=buffer_bytes,
        size=size,
    )


def _blocks(setup: TrainingSetup, share: StageShare) -> tuple[tuple[int, int, int, int], ...]:
    """Return a row each for attention and feed-forward.

    A row holds the input width, the number of blocks, the blocks that backward recomputes, and
    those whose recomputation only gathers their input.
    """
    mla, experts = setup.shape.latent, setup.shape.experts
    width = setup.shape.hidden
    if mla is not None:
        width = (mla.query_rank or width) + mla.kv_rank + mla.rope_head_dim
    shares_experts = experts is not None and experts.shared > 0
    forward, again = parts_of(share), repeated_parts(setup, share)
    attention, repeated = forward.attention + forward.mixers, again.attention + again.mixers
    dense = forward.dense + shares_experts * forward.shared
    dense_again = again.dense + shares_experts * again.shared
    return (
        (width, attention, repeated, again.up_projections),
        (setup.shape.hidden, dense, dense_again, 0),
    )


def _tensor(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Yield the tensor-parallel calls of the layers: each block exchanges its input and its output.

    Latent attention gathers its latents instead of the hidden state. In a mixture of experts, only
    shared experts form a second block. Recomputed blocks gather and reduce again; recomputed latent
    up-projections only gather.
    """
    tp: Group = ("tp", setup.parallel.tp)
    whole = setup.tokens * setup.shape.hidden * ACTIVATION_BYTES
    for width, blocks, repeated, gathers in _blocks(setup, share):
        inward = setup.tokens * width * ACTIVATION_BYTES
        if not setup.sequence_parallel:
            yield _call(tp, LAYERS, REDUCE, FORWARD, blocks, whole)
            yield _call(tp, LAYERS, REDUCE, BACKWARD, repeated, whole)
            yield _call(tp, LAYERS, REDUCE, BACKWARD, blocks, inward)
            continue
        yield _call(tp, LAYERS, GATHER, FORWARD, blocks, inward)
        yield _call(tp, LAYERS, SCATTER, FORWARD, blocks, whole)
        yield _call(tp, LAYERS, GATHER, BACKWARD, repeated + gathers, inward)
        yield _call(tp, LAYERS, SCATTER, BACKWARD, repeated, whole)
        yield _call(tp, LAYERS, GATHER, BACKWARD, blocks, whole)
        yield _call(tp, LAYERS, SCATTER, BACKWARD, blocks, inward)
        yield _call(tp, AGAIN, GATHER, BACKWARD, blocks, inward)


def _projections(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Yield the calls of MTP modules, which project two hidden states to one and gather the result.

    Source: Megatron-LM core, transformer/multi_token_prediction.py, _concat_embeddings.
    """
    tp: Group = ("tp", setup.parallel.tp)
    split = setup.sequence_parallel
    one = setup.tokens * setup.shape.hidden * ACTIVATION_BYTES
    times, again = share.mtp_layers, repeated_parts(setup, share).projections
    for phase, calls in ((FORWARD, times), (BACKWARD, again)):
        if split:
            yield _call(tp, LAYERS, GATHER, phase, calls, 2 * one)
        yield _call(tp, LAYERS, GATHER, phase, calls, one)
    if split:
        yield _call(tp, LAYERS, GATHER, BACKWARD, times, one)
        yield _call(tp, LAYERS, SCATTER, BACKWARD, times, 2 * one)
        yield _call(tp, AGAIN, GATHER, BACKWARD, times, 2 * one)
    else:
        yield _call(tp, LAYERS, REDUCE, BACKWARD, times, 2 * one)


def _tables(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Yield the calls of the embedding, which ends in a reduction, and the head, which gathers.

    Each module of multi-token prediction uses both once more.
    """
    tp: Group = ("tp", setup.parallel.tp)
    whole = setup.tokens * setup.shape.hidden * ACTIVATION_BYTES
    embeddings = share.embedding + share.mtp_layers
    heads = share.head * (1 + share.mtp_layers)
    if setup.sequence_parallel:
        yield _call(tp, TABLES, SCATTER, FORWARD, embeddings, whole)
        yield _call(tp, TABLES, GATHER, BACKWARD, embeddings, whole)
        yield _call(tp, TABLES, GATHER, FORWARD, heads, whole)
        yield _call(tp, TABLES, SCATTER, BACKWARD, heads, whole)
        yield _call(tp, HEAD_AGAIN, GATHER, BACKWARD, heads, whole)
        return
    yield _call(tp, TABLES, REDUCE, FORWARD, embeddings, whole)
    yield _call(tp, TABLES, REDUCE, BACKWARD, heads, whole)


def _context(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Yield the calls that move keys and values forward, again in backward, and their gradients.

    A ring makes C − 1 sends for a round of blocks; a gather replaces a round. An all-to-all trades
    tokens for heads in queries, keys and values, trades the outputs back, and does the same for
    their gradients. If only the ranks of a node trade, a ring between nodes passes on their keys
    and values. Recomputing the attention core fetches keys and values again.
    """
    cp: Group = ("cp", setup.parallel.cp)
    if setup.parallel.cp == 1:
        return
    layers = share.layers - share.mixer_layers
    again = layers + repeated_parts(setup, share).core
    width = 2 * key_value_width(setup) * ACTIVATION_BYTES
    trading = setup.traded_ranks
    if trading > 1:
        yield from _traded(setup, layers, again)
    if setup.context_exchange != "all-gather":
        ring = cp if trading == 1 else (BETWEEN_NODES, setup.parallel.cp // trading)
        block, sends = traded_copies(setup) * setup.tokens * width, ring[1] - 1
        yield _call(ring, KEYS, SEND, FORWARD, layers * sends, block)
        yield _call(ring, KEYS, SEND, BACKWARD, (again + layers) * sends, block)
        return
    whole = setup.tokens * setup.parallel.cp * width
    yield _call(cp, KEYS, GATHER, FORWARD, layers, whole)
    yield _call(cp, KEYS, GATHER, BACKWARD, again, whole)
    yield _call(cp, KEYS, SCATTER, BACKWARD, layers, whole)


def _traded(setup: TrainingSetup, layers: int, again: int) -> Iterator[Traffic]:
    """Yield the all-to-alls of a layer: queries, keys and values by head, outputs by token."""
    cp: Group = ("cp" if setup.trades_heads else WITHIN_NODE, setup.traded_ranks)
    keys = 2 * traded_copies(setup) * key_value_width(setup)
    mla, heads = setup.shape.latent, setup.shape.heads // setup.parallel.tp
    outputs = heads * (setup.shape.head_dim if mla is None else mla.value_head_dim)
    for width in (query_width(setup), keys, outputs):
        size = setup.tokens * width * ACTIVATION_BYTES
        yield _call(cp, TRADED, ALL_TO_ALL, FORWARD, layers, size)
        yield _call(cp, TRADED, ALL_TO_ALL, BACKWARD, again, size)


def _heads(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Yield the all-to-alls that give each rank some heads of a mixer over the whole sequence.

    They carry the gate, the input, both maps and the steps, and the output back. If there are fewer
    groups than ranks, each rank gets a copy of its group's maps.
    Source: Megatron-LM core, ssm/mamba_context_parallel.py.
    """
    mixers, ranks, tp = setup.shape.state_space, setup.parallel.cp, setup.parallel.tp
    if mixers is None or ranks == 1:
        return
    again = share.mixer_layers + repeated_parts(setup, share).mixers
    cp: Group = ("cp", ranks)
    maps = max(mixers.groups // tp, ranks) * mixers.state
    for width, calls in ((mixers.inner // tp, 3), (maps, 2), (mixers.mixer_heads // tp, 1)):
        size = setup.tokens * width * ACTIVATION_BYTES
        for phase, times in ((FORWARD, share.mixer_layers), (BACKWARD, again)):
            yield _call(cp, HEADS, ALL_TO_ALL, phase, times * calls, size)


def _experts(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Yield the calls that send tokens to experts and back, for the rank with the most tokens.

    Depending on the dispatcher, a token is sent once per expert, once per node, or once per rank of
    a node. Experts that are sharded gather the tokens of all their ranks and reduce their outputs.
    """
    experts, parallel = setup.shape.experts, setup.parallel
    if experts is None or not share.expert_layers:
        return
    ep: Group = ("ep", parallel.ep)
    etp: Group = ("etp", parallel.etp)
    elements = setup.split_tokens * experts.top_k * setup.shape.hidden * setup.fullest_experts
    dispatched = elements * setup.activation_format.dispatch_bytes
    returned = elements * ACTIVATION_BYTES
    sent = _copies_sent(setup, experts)
    backward = share.expert_layers + repeated_parts(setup, share).routed
    for phase, layers in ((FORWARD, share.expert_layers), (BACKWARD, backward)):
        for routed in (sent * dispatched, sent * returned):
            yield _call(ep, TOKENS, ALL_TO_ALL, phase, layers, routed)
        gathered, scattered = parallel.etp * dispatched, parallel.etp * returned
        yield _call(etp, WITHIN, GATHER, phase, layers, gathered)
        yield _call(etp, WITHIN, SCATTER, phase, layers, scattered)


def _copies_sent(setup: TrainingSetup, experts: ExpertShape) -> float:
    """Return the copies of a token that are sent, divided by its experts."""
    if not setup.sends_once:
        return 1.0
    link = group_link(setup.parallel, "ep")
    groups = -(-link.size // link.members_per_node) if link.level == NETWORK else link.size
    reached = within_reach(groups, experts.groups, experts.reached)
    return float(visited_groups(reached, experts.top_k)) / experts.top_k


def boundary_traffic(setup: TrainingSetup, stage: int) -> Iterator[Traffic]:
    """Yield an activation to the next stage and a gradient to the previous one, if on other ranks.

    With sequence parallelism every tensor-parallel rank sends its own part, otherwise all of it.
    """
    placement = setup.placement
    pp: Group = ("pp", setup.parallel.pp)
    holder = placement.rank_of_stage
    whole = pipeline_boundary_bytes(1, setup.split_tokens, setup.shape.hidden, ACTIVATION_BYTES)
    if not placement.is_last(stage) and holder[stage + 1] != holder[stage]:
        yield _call(pp, BOUNDARY, SEND, FORWARD, 1, whole)
    if not placement.is_first(stage) and holder[stage - 1] != holder[stage]:
        yield _call(pp, BOUNDARY, SEND, BACKWARD, 1, whole)
