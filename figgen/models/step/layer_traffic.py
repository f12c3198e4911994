"""What a virtual stage sends for each microbatch: TP, SP, CP, EP and ETP in its layers, PP.

Source: Megatron-LM core. Left out, because they are small: the three all-reduces of one number
per token in the loss, and under sequence parallelism the all-reduce of the norms' gradients.
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
from figgen.models.shape.visited_groups import visited_groups
from figgen.models.step.step_links import NETWORK, group_link
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
    """Calls of a rank of virtual stage `stage` for one microbatch, without data parallelism."""
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


def _tensor(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Two blocks a layer, each with one exchange on its way in and one on its way out.

    Latent attention gathers its latents instead of the hidden state. Mixtures of experts have a
    second block only for shared experts. What is recomputed gathers and reduces once more; latent
    up-projections alone only gather.
    """
    shape, tp, tokens = setup.shape, setup.parallel.tp, setup.tokens
    mla, experts = shape.latent, shape.experts
    attention = shape.hidden
    if mla is not None:
        attention = (mla.query_rank or shape.hidden) + mla.kv_rank + mla.rope_head_dim
    shares_experts = experts is not None and experts.shared > 0
    forward, again = parts_of(share), repeated_parts(setup, share)
    whole = tokens * shape.hidden * ACTIVATION_BYTES
    for width, blocks, repeated, gathers in (
        (
            attention,
            forward.attention + forward.mixers,
            again.attention + again.mixers,
            again.up_projections,
        ),
        (
            shape.hidden,
            forward.dense + shares_experts * forward.shared,
            again.dense + shares_experts * again.shared,
            0,
        ),
    ):
        inward = tokens * width * ACTIVATION_BYTES
        for phase, times, more in ((FORWARD, blocks, 0), (BACKWARD, repeated, gathers)):
            if setup.sequence_parallel:
                yield Traffic(
                    axis="tp",
                    purpose=LAYERS,
                    collective=GATHER,
                    phase=phase,
                    calls=times + more,
                    buffer_bytes=inward,
                    size=tp,
                )
                yield Traffic(
                    axis="tp",
                    purpose=LAYERS,
                    collective=SCATTER,
                    phase=phase,
                    calls=times,
                    buffer_bytes=whole,
                    size=tp,
                )
            else:
                yield Traffic(
                    axis="tp",
                    purpose=LAYERS,
                    collective=REDUCE,
                    phase=phase,
                    calls=times,
                    buffer_bytes=whole,
                    size=tp,
                )
        if setup.sequence_parallel:
            yield Traffic(
                axis="tp",
                purpose=LAYERS,
                collective=GATHER,
                phase=BACKWARD,
                calls=blocks,
                buffer_bytes=whole,
                size=tp,
            )
            yield Traffic(
                axis="tp",
                purpose=LAYERS,
                collective=SCATTER,
                phase=BACKWARD,
                calls=blocks,
                buffer_bytes=inward,
                size=tp,
            )
            yield Traffic(
                axis="tp",
                purpose=AGAIN,
                collective=GATHER,
                phase=BACKWARD,
                calls=blocks,
                buffer_bytes=inward,
                size=tp,
            )
        else:
            yield Traffic(
                axis="tp",
                purpose=LAYERS,
                collective=REDUCE,
                phase=BACKWARD,
                calls=blocks,
                buffer_bytes=inward,
                size=tp,
            )


def _projections(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """A module of multi-token prediction projects two hidden states to one, which is put together.

    Source: Megatron-LM core, transformer/multi_token_prediction.py, _concat_embeddings.
    """
    tp, split = setup.parallel.tp, setup.sequence_parallel
    one = setup.tokens * setup.shape.hidden * ACTIVATION_BYTES
    times, again = share.mtp_layers, repeated_parts(setup, share).projections
    for phase, calls in ((FORWARD, times), (BACKWARD, again)):
        if split:
            yield Traffic(
                axis="tp",
                purpose=LAYERS,
                collective=GATHER,
                phase=phase,
                calls=calls,
                buffer_bytes=2 * one,
                size=tp,
            )
        yield Traffic(
            axis="tp",
            purpose=LAYERS,
            collective=GATHER,
            phase=phase,
            calls=calls,
            buffer_bytes=one,
            size=tp,
        )
    if split:
        yield Traffic(
            axis="tp",
            purpose=LAYERS,
            collective=GATHER,
            phase=BACKWARD,
            calls=times,
            buffer_bytes=one,
            size=tp,
        )
        yield Traffic(
            axis="tp",
            purpose=LAYERS,
            collective=SCATTER,
            phase=BACKWARD,
            calls=times,
            buffer_bytes=2 * one,
            size=tp,
        )
        yield Traffic(
            axis="tp",
            purpose=AGAIN,
            collective=GATHER,
            phase=BACKWARD,
            calls=times,
            buffer_bytes=2 * one,
            size=tp,
        )
    else:
        yield Traffic(
            axis="tp",
            purpose=LAYERS,
            collective=REDUCE,
            phase=BACKWARD,
            calls=times,
            buffer_bytes=2 * one,
            size=tp,
        )


def _tables(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """The embedding ends in a sum over its shards, the head begins with a gather.

    Modules of multi-token prediction go through both once more.
    """
    tp = setup.parallel.tp
    whole = setup.tokens * setup.shape.hidden * ACTIVATION_BYTES
    embeddings = share.embedding + share.mtp_layers
    heads = share.head * (1 + share.mtp_layers)
    if setup.sequence_parallel:
        yield Traffic(
            axis="tp",
            purpose=TABLES,
            collective=SCATTER,
            phase=FORWARD,
            calls=embeddings,
            buffer_bytes=whole,
            size=tp,
        )
        yield Traffic(
            axis="tp",
            purpose=TABLES,
            collective=GATHER,
            phase=BACKWARD,
            calls=embeddings,
            buffer_bytes=whole,
            size=tp,
        )
        yield Traffic(
            axis="tp",
            purpose=TABLES,
            collective=GATHER,
            phase=FORWARD,
            calls=heads,
            buffer_bytes=whole,
            size=tp,
        )
        yield Traffic(
            axis="tp",
            purpose=TABLES,
            collective=SCATTER,
            phase=BACKWARD,
            calls=heads,
            buffer_bytes=whole,
            size=tp,
        )
        yield Traffic(
            axis="tp",
            purpose=HEAD_AGAIN,
            collective=GATHER,
            phase=BACKWARD,
            calls=heads,
            buffer_bytes=whole,
            size=tp,
        )
        return
    yield Traffic(
        axis="tp",
        purpose=TABLES,
        collective=REDUCE,
        phase=FORWARD,
        calls=embeddings,
        buffer_bytes=whole,
        size=tp,
    )
    yield Traffic(
        axis="tp",
        purpose=TABLES,
        collective=REDUCE,
        phase=BACKWARD,
        calls=heads,
        buffer_bytes=whole,
        size=tp,
    )


def _context(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Keys and values forward, again backward, and then their gradients.

    A ring passes blocks on, C − 1 sends a time; a gather takes the place of a round. An all-to-all
    trades tokens of queries, keys and values for heads, and those of the outputs back; so do their
    gradients. What recomputes the attention core fetches keys and values once more.
    """
    cp = setup.parallel.cp
    if cp == 1:
        return
    layers = share.layers - share.mixer_layers
    again = layers + repeated_parts(setup, share).core
    width = 2 * key_value_width(setup) * ACTIVATION_BYTES
    if setup.trades_heads:
        yield from _traded(setup, layers, again)
        return
    if setup.context_exchange == "p2p":
        block, sends = setup.tokens * width, cp - 1
        yield Traffic(
            axis="cp",
            purpose=KEYS,
            collective=SEND,
            phase=FORWARD,
            calls=layers * sends,
            buffer_bytes=block,
            size=cp,
        )
        yield Traffic(
            axis="cp",
            purpose=KEYS,
            collective=SEND,
            phase=BACKWARD,
            calls=(again + layers) * sends,
            buffer_bytes=block,
            size=cp,
        )
        return
    whole = setup.tokens * cp * width
    yield Traffic(
        axis="cp",
        purpose=KEYS,
        collective=GATHER,
        phase=FORWARD,
        calls=layers,
        buffer_bytes=whole,
        size=cp,
    )
    yield Traffic(
        axis="cp",
        purpose=KEYS,
        collective=GATHER,
        phase=BACKWARD,
        calls=again,
        buffer_bytes=whole,
        size=cp,
    )
    yield Traffic(
        axis="cp",
        purpose=KEYS,
        collective=SCATTER,
        phase=BACKWARD,
        calls=layers,
        buffer_bytes=whole,
        size=cp,
    )


def _traded(setup: TrainingSetup, layers: int, again: int) -> Iterator[Traffic]:
    """Four all-to-alls of a layer: queries, keys and values by head, outputs by token."""
    keys = 2 * traded_copies(setup) * key_value_width(setup)
    mla, heads = setup.shape.latent, setup.shape.heads // setup.parallel.tp
    outputs = heads * (setup.shape.head_dim if mla is None else mla.value_head_dim)
    for width in (query_width(setup), keys, outputs):
        for phase, calls in ((FORWARD, layers), (BACKWARD, again)):
            yield Traffic(
                axis="cp",
                purpose=TRADED,
                collective=ALL_TO_ALL,
                phase=phase,
                calls=calls,
                buffer_bytes=setup.tokens * width * ACTIVATION_BYTES,
                size=setup.parallel.cp,
            )


def _heads(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """A mixer has some heads over the whole sequence: gate, input, both maps, steps, and back.

    Where there are fewer groups than ranks, each rank gets a copy of its group's maps.
    Source: Megatron-LM core, ssm/mamba_context_parallel.py.
    """
    mixers, cp, tp = setup.shape.state_space, setup.parallel.cp, setup.parallel.tp
    if mixers is None or cp == 1:
        return
    again = share.mixer_layers + repeated_parts(setup, share).mixers
    maps = max(mixers.groups // tp, cp) * mixers.state
    for width, calls in ((mixers.inner // tp, 3), (maps, 2), (mixers.mixer_heads // tp, 1)):
        size = setup.tokens * width * ACTIVATION_BYTES
        for phase, times in ((FORWARD, share.mixer_layers), (BACKWARD, again)):
            yield Traffic(
                axis="cp",
                purpose=HEADS,
                collective=ALL_TO_ALL,
                phase=phase,
                calls=times * calls,
                buffer_bytes=size,
                size=cp,
            )


def _experts(setup: TrainingSetup, share: StageShare) -> Iterator[Traffic]:
    """Tokens to their experts and back, forward and backward, of the fullest rank.

    Every copy is sent, or one to each node that a token goes to, or to each rank of one node.

    Experts that are divided themselves gather the tokens of all their ranks and reduce what
    comes out of them.
    """
    experts, parallel = setup.shape.experts, setup.parallel
    if experts is None or not share.expert_layers:
        return
    elements = setup.split_tokens * experts.top_k * setup.shape.hidden * setup.fullest_experts
    dispatched = elements * setup.activation_format.dispatch_bytes
    returned = elements * ACTIVATION_BYTES
    sent = _copies_sent(setup, experts.top_k)
    backward = share.expert_layers + repeated_parts(setup, share).routed
    for phase, layers in ((FORWARD, share.expert_layers), (BACKWARD, backward)):
        for routed in (sent * dispatched, sent * returned):
            yield Traffic(
                axis="ep",
                purpose=TOKENS,
                collective=ALL_TO_ALL,
                phase=phase,
                calls=layers,
                buffer_bytes=routed,
                size=parallel.ep,
            )
        gathered, scattered = parallel.etp * dispatched, parallel.etp * returned
        yield Traffic(
            axis="etp",
            purpose=WITHIN,
            collective=GATHER,
            phase=phase,
            calls=layers,
            buffer_bytes=gathered,
            size=parallel.etp,
        )
        yield Traffic(
            axis="etp",
            purpose=WITHIN,
            collective=SCATTER,
            phase=phase,
            calls=layers,
            buffer_bytes=scattered,
            size=parallel.etp,
        )


def _copies_sent(setup: TrainingSetup, top_k: int) -> float:
    """The copies of a token that are sent, over its experts."""
    if not setup.sends_once:
        return 1.0
    link = group_link(setup.parallel, "ep")
    groups = -(-link.size // link.members_per_node) if link.level == NETWORK else link.size
    return float(visited_groups(groups, top_k)) / top_k


def boundary_traffic(setup: TrainingSetup, stage: int) -> Iterator[Traffic]:
    """One activation to the stage ahead and one gradient to the stage behind, if elsewhere.

    With sequence parallelism every tensor-parallel rank sends its own part, without it all.
    """
    placement, pp = setup.placement, setup.parallel.pp
    holder = placement.rank_of_stage
    whole = pipeline_boundary_bytes(1, setup.split_tokens, setup.shape.hidden, ACTIVATION_BYTES)
    if not placement.is_last(stage) and holder[stage + 1] != holder[stage]:
        yield Traffic(
            axis="pp",
            purpose=BOUNDARY,
            collective=SEND,
            phase=FORWARD,
            calls=1,
            buffer_bytes=whole,
            size=pp,
        )
    if not placement.is_first(stage) and holder[stage - 1] != holder[stage]:
        yield Traffic(
            axis="pp",
            purpose=BOUNDARY,
            collective=SEND,
            phase=BACKWARD,
            calls=1,
            buffer_bytes=whole,
            size=pp,
        )
