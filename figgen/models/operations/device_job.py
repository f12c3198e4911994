"""A training job on one device: the model, the batch, the stack, and sizes that follow."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.operations.stack import Stack
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import parameter_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceJob:
    """What one device computes in a step: `microbatches` of `microbatch` sequences.

    With `recomputed`, backward computes every layer again from its input.
    """

    shape: ModelShape
    stack: Stack
    microbatch: int
    microbatches: int
    sequence: int
    recomputed: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of a microbatch."""
        return self.microbatch * self.sequence

    @property
    def query_width(self) -> int:
        """Channels of all query heads."""
        return self.shape.heads * self.shape.head_dim

    @property
    def key_width(self) -> int:
        """Channels of all key heads, and of all value heads."""
        return self.shape.kv_heads * self.shape.head_dim

    @property
    def parameters(self) -> int:
        """Parameters of the model."""
        return parameter_counts(self.shape).total

    @property
    def logits(self) -> int:
        """Logits of a microbatch."""
        return self.tokens * self.shape.vocab

    @property
    def first_layers_dense(self) -> int:
        """Layers with a plain feed-forward block: all of them without experts."""
        experts = self.shape.experts
        return self.shape.layers if experts is None else experts.dense_layers

    @property
    def biased(self) -> bool:
        """Whether layers are GPT-2's: layer norms, biases, no rotation of queries and keys."""
        return self.shape.norm == "layernorm"
