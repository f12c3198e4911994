"""Bytes of activations that a GPU keeps for backward, for one microbatch and for all in flight.

`figgen.models.memory.layer_tensors` lists the tensors that a layer keeps, with their sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from figgen.models.memory.layer_tensors import (
    MASK_BYTES,
    KeptTensor,
    column_input,
    layer_tensors,
    unread_tensors,
)
from figgen.models.memory.rank_load import kept_counts
from figgen.models.pipeline.order import Schedule
from figgen.models.setup.stage_layers import StageShare, by_stage
from figgen.models.setup.training_setup import ACTIVATION_BYTES, TrainingSetup

TOKEN_ID_BYTES = 8


def layer_bytes(setup: TrainingSetup, *, experts: bool = False) -> float:
    """Return the bytes that one layer keeps for one microbatch, after what `recompute` drops.

    If only some layers are recomputed whole, the bytes are those of the other layers.
    """
    if setup.recomputation.method == "uniform":
        return layer_input_bytes(setup)
    kept, _ = _kept_and_recomputed(setup, experts)
    return kept


def mixer_bytes(setup: TrainingSetup) -> float:
    """Return how many bytes more a layer keeps with a state-space mixer than with attention.

    The difference is often negative.
    """
    if setup.shape.state_space is None:
        return 0.0
    kept, _ = _kept_and_recomputed(setup, False, mixer=True)
    return kept - _kept_and_recomputed(setup, False)[0]


def recomputed_bytes(setup: TrainingSetup, share: StageShare) -> float:
    """Return the most bytes that backward recomputes at once, beyond what the virtual stage keeps.

    In a model with state-space layers, every layer counts as the kind that recomputes more.
    """
    again = setup.recomputation
    kinds = [experts for experts in (False, True) if _layers(share, experts)]
    if again.modules:
        # The only tensor of a mixer that a module drops is its input, which attention has too.
        made = (_kept_and_recomputed(setup, experts)[1] for experts in kinds)
        return max(made, default=0.0)
    whole = again.whole_layers(share.layers)
    each = again.number if again.method == "uniform" else 1
    mixing = (False,) if setup.shape.state_space is None else (False, True)
    layer = {
        experts: max(sum(_kept_and_recomputed(setup, experts, mixer=m)) for m in mixing)
        for experts in (kinds if whole else ())
    }
    most = 0.0
    for first in range(0, whole, each):
        layers = min(each, whole - first)
        dense = min(layers, max(0, share.dense_layers - first))
        everything = sum(
            count * layer[experts]
            for count, experts in ((dense, False), (layers - dense, True))
            if count
        )
        most = max(most, everything - layer_input_bytes(setup))
    return most


def layer_gradient_bytes(setup: TrainingSetup, share: StageShare) -> float:
    """Return the most bytes of gradients at once while backward goes through one layer.

    They are the gradients of what the feed-forward block keeps, of the attention core where it is
    stored, or of what a state-space mixer projects from its input, whichever are largest.
    """
    most = 0.0
    for experts in (False, True):
        if not _layers(share, experts):
            continue
        tensors = layer_tensors(setup, experts=experts)
        block = sum(tensor.bytes for tensor in tensors if {"mlp", "moe"} & set(tensor.modules))
        core = sum(tensor.bytes for tensor in tensors if tensor.core)
        mixers = setup.shape.state_space
        made = (
            setup.tokens * mixers.projected // setup.parallel.tp * ACTIVATION_BYTES if mixers else 0
        )
        most = max(most, block, made, 0.0 if setup.flash_attention else core)
    return most


def layer_input_bytes(setup: TrainingSetup) -> float:
    """Return the bytes of a layer's input, which is all that full recomputation keeps of it."""
    return setup.split_tokens * setup.shape.hidden * ACTIVATION_BYTES


def stage_bytes(setup: TrainingSetup, share: StageShare) -> float:
    """Bytes that a virtual stage keeps for one microbatch, its embedding or head included."""
    found = sum(count * size for _, count, size in kept_layers(setup, share))
    trained = setup.lora_rank is None
    if share.embedding:
        found += setup.tokens * TOKEN_ID_BYTES * trained
        found += setup.split_tokens * setup.shape.hidden * MASK_BYTES * setup.dropout
    if share.head:
        read = column_input(setup, "head input", setup.shape.hidden).bytes * trained
        found += setup.shape.final_norm * layer_input_bytes(setup) + read + logit_bytes(setup)
        found += share.mtp_layers * (_projection_bytes(setup) + read + logit_bytes(setup))
    elif setup.framework_memory.keeps_outputs:
        found += layer_input_bytes(setup)
    return found


def kept_layers(setup: TrainingSetup, share: StageShare) -> tuple[tuple[str, int, float], ...]:
    """Return what a virtual stage keeps of its layers, as (name, number of layers, bytes of each).

    The bytes are those of one microbatch. Mixers appear a second time, with what they keep beyond
    attention.
    """
    inputs, dense, experts, _, _, _, mixers = kept_counts(setup.shape, setup.recomputation, share)
    found = (
        ("inputs of layers", inputs, layer_input_bytes(setup)),
        ("layers", dense, layer_bytes(setup) if dense else 0.0),
        ("layers with experts", experts, layer_bytes(setup, experts=True) if experts else 0.0),
        ("mixers for attention", mixers, mixer_bytes(setup) if mixers else 0.0),
    )
    return tuple(one for one in found if one[1])


def _projection_bytes(setup: TrainingSetup) -> float:
    """Return what a multi-token prediction module keeps besides its layer, its head and its logits.

    These are its tokens, their embedding and, unless the module is recomputed, the two hidden
    states that its projection reads and the input of its last norm. The head keeps the hidden state
    itself.
    """
    embedded = setup.tokens * TOKEN_ID_BYTES + layer_input_bytes(setup)
    if setup.recomputation.method == "uniform":
        return embedded
    size = setup.activation_format.linear_bytes
    both = column_input(setup, "projection input", 2 * setup.shape.hidden, size=size).bytes
    return embedded + both + layer_input_bytes(setup)


def logit_bytes(setup: TrainingSetup) -> float:
    """Return the bytes that a microbatch's loss keeps for backward: logits or their softmax."""
    return _logits(setup) * setup.framework_memory.kept_logit_bytes


def loss_bytes(setup: TrainingSetup) -> float:
    """Return the bytes of copies and gradients while the loss of one microbatch runs."""
    return _logits(setup) * setup.framework_memory.loss_bytes


def _logits(setup: TrainingSetup) -> int:
    return setup.tokens * -(-setup.shape.vocab // setup.parallel.tp)


def peak_activation_bytes(setup: TrainingSetup) -> tuple[float, ...]:
    """Return the most bytes of activations that each pipeline rank holds at any point of its order.

    Activations live from their forward to the end of their backward, or to the end of the weight
    gradient where the schedule splits the backward. `peak_in_flight` counts the same in
    microbatches.
    """
    return _peaks(setup.short_order, by_stage(setup, lambda share: stage_bytes(setup, share)))


def _peaks(schedule: Schedule, stage_held: Sequence[float]) -> tuple[float, ...]:
    # Counts are whole microbatches, so that no rounding errors accumulate.
    return tuple(
        max(sum(count * stage_held[stage] for stage, count in counts) for counts in of_rank)
        for of_rank in schedule.in_flight
    )


def stored_tensors(
    setup: TrainingSetup, *, experts: bool, mixer: bool = False
) -> tuple[KeptTensor, ...]:
    """Return the tensors that a layer's kernels store, before recomputation drops some of them."""
    unread = unread_tensors(setup)
    return tuple(
        tensor
        for tensor in layer_tensors(setup, experts=experts, mixer=mixer)
        if tensor.name not in unread and not (tensor.core and setup.flash_attention)
    )


def _layers(share: StageShare, experts: bool) -> int:
    return share.expert_layers if experts else share.dense_layers


def _kept_and_recomputed(
    setup: TrainingSetup, experts: bool, *, mixer: bool = False
) -> tuple[float, float]:
    """Return the bytes that a layer keeps, and the bytes that backward recomputes of its modules.

    The experts' output is not recomputed where the gates multiply before it, since nothing reads
    it.
    """
    modules = setup.recomputation.modules
    kept = recomputed = 0.0
    for tensor in stored_tensors(setup, experts=experts, mixer=mixer):
        if modules.isdisjoint(tensor.modules):
            kept += tensor.bytes
        elif "moe_gate" not in modules or "moe_gate" not in tensor.modules:
            recomputed += tensor.bytes
    return kept, recomputed
