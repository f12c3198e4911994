"""Bytes per element of each activation that is kept for the backward pass.

Matmuls in 8 bits halve the tensors that only they read: the inputs of linear layers. The residual
stream, norms, the attention core, the router and outputs of experts stay in 16 bits, logits in 32.
Sources: DeepSeek-V3, arXiv:2412.19437, section 3.3.3; Yan et al. 2026, arXiv:2603.07685.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from figgen.errors import unknown

SCALE_BYTES = 4 / 128
"""An FP32 scale per tile of 1 × 128 elements;

MXFP8 has one byte per 32 elements, which is the same.
"""

FP8_BYTES = 1 + SCALE_BYTES
E5M6_BYTES = 1.5 + SCALE_BYTES
"""DeepSeek-V3's own 12-bit format for the output of attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationFormat:
    """Bytes per element of activations that are not always 16 bits wide.

    `linear_bytes` are those of inputs that only matmuls read, `gated_bytes` of the inputs of the
    experts' activation, `attention_bytes` of attention's output. `dispatch_bytes` are those of
    tokens sent to their experts, and of the gradients that take the same path in backward; results
    are always 16 bits wide. `cast_weight_bytes` are those of 8-bit copies, plain and transposed,
    that exist in addition to each 16-bit weight of a layer.
    """

    label: str
    linear_bytes: float = 2
    gated_bytes: float = 2
    attention_bytes: float = 2
    dispatch_bytes: float = 2
    cast_weight_bytes: float = 0

    @property
    def eight_bit(self) -> bool:
        """Return whether matmuls read 8 bits, from a separate copy for each linear layer."""
        return self.linear_bytes < 2


FORMATS: Mapping[str, ActivationFormat] = MappingProxyType(
    {
        "16-bit": ActivationFormat(label="all in 16 bits"),
        "fp8": ActivationFormat(
            label="inputs of linear layers in FP8", linear_bytes=FP8_BYTES, cast_weight_bytes=2
        ),
        "fp8-weights": ActivationFormat(
            label="inputs and weights of linear layers in FP8", linear_bytes=FP8_BYTES
        ),
        "fp8-deepseek": ActivationFormat(
            label="inputs of linear layers and of SwiGLU in experts in FP8, "
            "attention outputs in E5M6",
            linear_bytes=FP8_BYTES,
            gated_bytes=FP8_BYTES,
            attention_bytes=E5M6_BYTES,
            dispatch_bytes=FP8_BYTES,
        ),
    }
)
"""Formats by name: "fp8" is Transformer Engine's default, with additional 8-bit copies of weights
(Megatron-LM issues 1236, 1237); "fp8-weights" has no other copy of the weights (Megatron-LM's
`--fp8-param-gather`), and two 8-bit copies equal one in 16 bits; "fp8-deepseek" is as in DeepSeek's
report.
"""


def activation_format(name: str) -> ActivationFormat:
    """Return the format `name`. Raises InputError, with the nearest names, if it is unknown."""
    if name not in FORMATS:
        raise unknown("format of activations", name, FORMATS)
    return FORMATS[name]
