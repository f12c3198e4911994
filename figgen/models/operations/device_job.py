"""A training job on one device: the model, the batch, the software stack, and derived sizes."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.models.operations.stack import Stack
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import parameter_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceJob:
    """What one device computes in a step: `microbatches` of `microbatch` sequences.

    With `recomputed`, backward recomputes every layer from its input. With a `lora_rank`, only
    PEFT's adapters of that rank are trained, in FP32, one next to every matrix of the layers.
    """

    shape: ModelShape
    stack: Stack
    microbatch: int
    microbatches: int
    sequence: int
    recomputed: bool = False
    lora_rank: int = 0

    def __post_init__(self) -> None:
        if not self.lora_rank:
            return
        if self.stack.autocast or self.stack.compiled:
            expected = "eager steps in BF16 if adapters are trained"
            raise InputError("way of transformers", expected=expected, got=self.stack.name)
        if self.biased or self.shape.experts is not None:
            expected = "dense layers with gated blocks if adapters are trained"
            raise InputError("model", expected=expected, got="experts or biases")

    @property
    def tokens(self) -> int:
        """Tokens per microbatch."""
        return self.microbatch * self.sequence

    @property
    def query_width(self) -> int:
        """Channels of all query heads."""
        return self.shape.heads * self.shape.head_dim

    @property
    def key_width(self) -> int:
        """Channels of all key heads, which equal those of all value heads."""
        return self.shape.kv_heads * self.shape.head_dim

    @property
    def parameters(self) -> int:
        """Parameters of the model."""
        return parameter_counts(self.shape).total

    @property
    def adapter_parameters(self) -> int:
        """Parameters of all adapters, for dense layers with gated blocks."""
        hidden, query, key = self.shape.hidden, self.query_width, self.key_width
        attention = 2 * (hidden + query) + 2 * (hidden + key)
        ends = attention + 3 * (hidden + self.shape.ffn_hidden)
        return self.lora_rank * self.shape.layers * ends

    @property
    def trained(self) -> int:
        """Parameters that the optimizer updates."""
        return self.adapter_parameters if self.lora_rank else self.parameters

    @property
    def gradient_bytes(self) -> float:
        """Bytes of all gradients; those of adapters are FP32."""
        return (4.0 if self.lora_rank else self.stack.residual_bytes) * self.trained

    @property
    def held_bytes(self) -> float:
        """Bytes of weights and optimizer state.

        Adapters have FP32 weights and both moments; frozen weights are BF16.
        """
        if self.lora_rank:
            return 2.0 * self.parameters + 12.0 * self.trained
        return self.stack.held_bytes * self.parameters

    @property
    def logits(self) -> int:
        """Number of logits per microbatch."""
        return self.tokens * self.shape.vocab

    @property
    def first_layers_dense(self) -> int:
        """Number of layers with a dense feed-forward block: all of them if there are no experts."""
        experts = self.shape.experts
        return self.shape.layers if experts is None else experts.dense_layers

    @property
    def biased(self) -> bool:
        """Whether layers are GPT-2's: layer norms, biases, no rotation of queries and keys."""
        return self.shape.norm == "layernorm"
