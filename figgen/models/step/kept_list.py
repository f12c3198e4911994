"""Which operation of a layer keeps which tensor for backward, and until which pass.

The bytes are those of `figgen.models.memory.layer_tensors`, from which activation memory is summed,
so that a list of operations and the memory of a job have one source. Kernels that the list omits,
because the fitted rates contain their time, keep their tensors under the operation beside them:
norms of queries and keys under the rotation, norms of latents under the projection up, the router
under sorting, and the activation of shared experts under their projection down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from figgen.models.memory.activations import layer_input_bytes, stored_tensors
from figgen.models.memory.layer_tensors import KeptTensor
from figgen.models.operations.operation import BACKWARD, FORWARD, WEIGHT
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.layer_list import TimedOperation

NORM, SUM = "norm before attention", "residual sum after attention"
IN_BLOCKS = {NORM: "norm before feed-forward", SUM: "residual sum after feed-forward"}
"""Operations of which a layer has two; each keeps half of what the layer keeps for them."""

KEPT_BY: Mapping[str, tuple[str, str]] = {
    "norm inputs": (NORM, BACKWARD),
    "attention input": ("query", WEIGHT),
    "latents and rotary keys": ("key-value up", BACKWARD),
    "normed latents": ("key-value up", WEIGHT),
    "query and key norm inputs": ("rotation", BACKWARD),
    "queries": ("attention core", BACKWARD),
    "keys": ("attention core", BACKWARD),
    "values": ("attention core", BACKWARD),
    "attention probabilities": ("attention core", BACKWARD),
    "probabilities after dropout, with mask": ("attention core", BACKWARD),
    "attention output": ("output", WEIGHT),
    "mixer input": ("mixer in", WEIGHT),
    "gates, inputs, maps and steps": ("convolution and gate", BACKWARD),
    "outputs of the scan": ("convolution and gate", BACKWARD),
    "gated outputs": ("mixer out", BACKWARD),
    "normed outputs": ("mixer out", WEIGHT),
    "dropout masks": (SUM, BACKWARD),
    "ffn input": ("up", WEIGHT),
    "ffn activation inputs": ("activation", BACKWARD),
    "ffn inputs of the gate": ("activation", BACKWARD),
    "ffn gates": ("activation", BACKWARD),
    "ffn products": ("down", WEIGHT),
    "router input": ("sorting tokens", WEIGHT),
    "router logits": ("sorting tokens", BACKWARD),
    "routed inputs": ("expert up", WEIGHT),
    "routed activation inputs": ("expert activation", BACKWARD),
    "routed products": ("expert down", WEIGHT),
    "routed tokens in FP32": ("sorting tokens", BACKWARD),
    "routed outputs": ("sorting tokens", BACKWARD),
    "shared expert input": ("shared up", WEIGHT),
    "shared activation inputs": ("shared down", BACKWARD),
    "shared products": ("shared down", WEIGHT),
}
"""The operation that keeps a tensor, without "gate and", and the last pass that reads it. Inputs of
matrices stay for the gradients of weights, everything else for those of inputs."""
OF_ADAPTERS = ("adapters", WEIGHT)
"""The same for what adapters keep between their two factors."""


def with_kept(
    found: tuple[TimedOperation, ...], setup: TrainingSetup, *, experts: bool
) -> tuple[TimedOperation, ...]:
    """Return the operations of a layer with what each keeps; it adds up to what the layer keeps.

    If some layers have a state-space mixer, the layer is a mean one, as its operations are. A layer
    that is recomputed whole keeps its input.
    """
    keeping = list(found)
    for (name, until), size in _kept(setup, experts=experts).items():
        at = next(at for at, one in enumerate(found) if one.phase == FORWARD and _is(one, name))
        one = keeping[at]
        keeping[at] = (
            replace(one, kept_bytes=one.kept_bytes + size)
            if until == BACKWARD
            else replace(one, kept_for_weights_bytes=one.kept_for_weights_bytes + size)
        )
    return tuple(keeping)


def _is(one: TimedOperation, name: str) -> bool:
    """Whether an operation has this name, which for the matmul of queries is its first word."""
    plain = one.name.replace("gate and ", "")
    return plain == name or plain.startswith((f"{name} down", f"{name}, "))


def _kept(setup: TrainingSetup, *, experts: bool) -> dict[tuple[str, str], float]:
    """Return the bytes that a layer keeps by operation and last pass."""
    if setup.recomputation.method == "uniform":
        return {(NORM, BACKWARD): layer_input_bytes(setup)}
    share = setup.shape.state_space_layers / setup.shape.layers
    kept: dict[tuple[str, str], float] = {}
    for mixer, weight in ((False, 1 - share), (True, share)):
        for tensor in stored_tensors(setup, experts=experts, mixer=mixer) if weight else ():
            if setup.recomputation.modules.isdisjoint(tensor.modules):
                name, until = kept_by(tensor)
                parts = (name, IN_BLOCKS[name]) if name in IN_BLOCKS else (name,)
                for part in parts:
                    size = weight * tensor.bytes / len(parts)
                    kept[part, until] = kept.get((part, until), 0.0) + size
    return kept


def kept_by(tensor: KeptTensor) -> tuple[str, str]:
    """Return the operation that keeps a tensor, and the last pass that reads it."""
    return OF_ADAPTERS if tensor.name.startswith("adapter of") else KEPT_BY[tensor.name]
