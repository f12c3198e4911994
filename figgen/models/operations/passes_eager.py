"""Passes over memory of each module of transformers in eager PyTorch, one per operator.

Each table lists what the dispatcher records, with bytes read and written per element, once for FP32
(the residual stream under autocast) and once for BF16. `tests/models/operations/` checks the tables
against the operators that PyTorch dispatched and the tensors that it saved. The kind of each pass
follows from the kernel that PyTorch launched for such operands in the trace of a step on an H100:
it takes 3.0 to 4.4 ps for an element of transposed 16-bit tensors, 3.6 to 4.8 ps in FP32, and 5.4
ps where it multiplies 16 by 32 bits (`elementwise_kernel`, `CatArrayBatchedCopy`).
"""

from __future__ import annotations

from figgen.models.operations.operation import (
    BROADCAST,
    CONTIGUOUS,
    COPY,
    STRIDED,
    Pass,
)

RMS_NORM_FP32: tuple[Pass, ...] = (
    ("square", CONTIGUOUS, 8), ("mean", BROADCAST, 4), ("scale", BROADCAST, 8),
    ("weight", BROADCAST, 8),
)  # fmt: skip
RMS_NORM_BF16: tuple[Pass, ...] = (
    ("to FP32", BROADCAST, 6), ("square", CONTIGUOUS, 8), ("mean", BROADCAST, 4),
    ("scale", BROADCAST, 8), ("to BF16", CONTIGUOUS, 6), ("weight", STRIDED, 4),
)  # fmt: skip
HEAD_NORM_AUTOCAST: tuple[Pass, ...] = (*RMS_NORM_BF16[:-1], ("weight", STRIDED, 6))
"""A norm of heads; its input is the BF16 output of a linear layer, its weight FP32."""

_OF_SQUARES: tuple[Pass, ...] = (
    ("input gradient", CONTIGUOUS, 12), ("scale", BROADCAST, 8), ("sum", BROADCAST, 4),
    ("expand", BROADCAST, 4), ("clone", COPY, 8), ("double", CONTIGUOUS, 8),
    ("of squares", CONTIGUOUS, 12), ("sum of gradients", CONTIGUOUS, 12),
)  # fmt: skip
RMS_NORM_FP32_BACKWARD: tuple[Pass, ...] = (
    ("weight", BROADCAST, 8), ("weight gradient", CONTIGUOUS, 12), ("sum of rows", BROADCAST, 4),
    *_OF_SQUARES,
)  # fmt: skip
RMS_NORM_BF16_BACKWARD: tuple[Pass, ...] = (
    ("weight", STRIDED, 4), ("weight gradient", CONTIGUOUS, 6), ("sum of rows", BROADCAST, 2),
    ("to FP32", BROADCAST, 6), *_OF_SQUARES, ("to BF16", CONTIGUOUS, 6),
)  # fmt: skip
RMS_NORM_FROZEN_BACKWARD: tuple[Pass, ...] = (
    ("weight", STRIDED, 4), ("to FP32", BROADCAST, 6), *_OF_SQUARES, ("to BF16", CONTIGUOUS, 6),
)  # fmt: skip
"""The backward of a BF16 RMSNorm whose weight is frozen."""
_OF_HEADS: tuple[Pass, ...] = (
    ("to FP32", BROADCAST, 6), ("input gradient", BROADCAST, 12), *_OF_SQUARES[1:-1],
    ("sum of gradients", BROADCAST, 12), ("to BF16", CONTIGUOUS, 6),
)  # fmt: skip
HEAD_NORM_AUTOCAST_BACKWARD: tuple[Pass, ...] = (
    ("weight", BROADCAST, 8), ("to BF16", CONTIGUOUS, 6), ("weight gradient", BROADCAST, 10),
    ("sum of rows", BROADCAST, 4), *_OF_HEADS,
)  # fmt: skip
HEAD_NORM_BF16_BACKWARD: tuple[Pass, ...] = (
    ("weight", STRIDED, 4), ("weight gradient", STRIDED, 6), ("sum of rows", BROADCAST, 2),
    *_OF_HEADS,
)  # fmt: skip

ROTARY_AUTOCAST: tuple[Pass, ...] = (
    ("cosine", STRIDED, 6), ("negate half", STRIDED, 2), ("concatenate", STRIDED, 4),
    ("sine", STRIDED, 6), ("sum", BROADCAST, 12), ("to BF16", CONTIGUOUS, 6),
)  # fmt: skip
"""BF16 times an FP32 table gives FP32, which attention casts back."""
ROTARY_FP32: tuple[Pass, ...] = (
    ("cosine", BROADCAST, 8), ("negate half", BROADCAST, 4), ("concatenate", BROADCAST, 8),
    ("sine", BROADCAST, 8), ("sum", BROADCAST, 12), ("to BF16", CONTIGUOUS, 6),
)  # fmt: skip
ROTARY_BF16: tuple[Pass, ...] = (
    ("cosine", STRIDED, 4), ("negate half", STRIDED, 2), ("concatenate", STRIDED, 4),
    ("sine", STRIDED, 4), ("sum", STRIDED, 6),
)  # fmt: skip
_HALVES_BF16: tuple[Pass, ...] = (
    ("negate half", STRIDED, 2), ("clear", CONTIGUOUS, 2), ("place half", STRIDED, 2),
    ("clear", CONTIGUOUS, 2), ("place half", STRIDED, 2), ("sum of halves", CONTIGUOUS, 6),
)  # fmt: skip
ROTARY_AUTOCAST_BACKWARD: tuple[Pass, ...] = (
    ("to FP32", BROADCAST, 6), ("sine", BROADCAST, 8), ("to BF16", CONTIGUOUS, 6), *_HALVES_BF16,
    ("cosine", BROADCAST, 8), ("to BF16", CONTIGUOUS, 6), ("sum", STRIDED, 6),
)  # fmt: skip
ROTARY_FP32_BACKWARD: tuple[Pass, ...] = (
    ("to FP32", BROADCAST, 6), ("sine", BROADCAST, 8),
    ("negate half", BROADCAST, 4), ("clear", CONTIGUOUS, 4), ("place half", BROADCAST, 4),
    ("clear", CONTIGUOUS, 4), ("place half", BROADCAST, 4), ("sum of halves", CONTIGUOUS, 12),
    ("cosine", BROADCAST, 8), ("sum", BROADCAST, 12),
)  # fmt: skip
ROTARY_BF16_BACKWARD: tuple[Pass, ...] = (
    ("sine", STRIDED, 4), *_HALVES_BF16, ("cosine", STRIDED, 4), ("sum", STRIDED, 6),
)  # fmt: skip

ADAPTER_INPUT: tuple[Pass, ...] = (("to FP32", BROADCAST, 6), ("down", CONTIGUOUS, 4))
ADAPTER_OUTPUT: tuple[Pass, ...] = (
    ("up", CONTIGUOUS, 4), ("scale", CONTIGUOUS, 8), ("sum", BROADCAST, 10),
    ("to BF16", CONTIGUOUS, 6),
)  # fmt: skip
"""What PEFT adds to a matrix per channel of its input and output (`lora/layer.py`,
`Linear.forward`). Adapters are FP32, so their input is cast and their FP32 sum is cast back. The
two thin matmuls take as long as reading or writing their wide tensor."""
ADAPTER_OUTPUT_BACKWARD: tuple[Pass, ...] = (
    ("to FP32", BROADCAST, 6), ("to BF16", CONTIGUOUS, 6), ("scale", CONTIGUOUS, 8),
    ("up weight", CONTIGUOUS, 4), ("up input", CONTIGUOUS, 4),
)  # fmt: skip
ADAPTER_INPUT_BACKWARD: tuple[Pass, ...] = (
    ("down weight", CONTIGUOUS, 4), ("down input", CONTIGUOUS, 4), ("to BF16", CONTIGUOUS, 6),
    ("sum of gradients", CONTIGUOUS, 6),
)  # fmt: skip

SWIGLU: tuple[Pass, ...] = (("SiLU", CONTIGUOUS, 4), ("gate", CONTIGUOUS, 6))
SWIGLU_BACKWARD: tuple[Pass, ...] = (
    ("gate gradient", CONTIGUOUS, 6), ("up gradient", CONTIGUOUS, 6), ("SiLU", CONTIGUOUS, 6),
)  # fmt: skip

GELU_NEW_AUTOCAST: tuple[Pass, ...] = (
    ("half", CONTIGUOUS, 4), ("to FP32", BROADCAST, 6), ("cube", CONTIGUOUS, 8),
    ("scale", CONTIGUOUS, 8), ("sum", BROADCAST, 10), ("scale", CONTIGUOUS, 8),
    ("tanh", CONTIGUOUS, 8), ("plus one", CONTIGUOUS, 8), ("product", BROADCAST, 10),
    ("to BF16", CONTIGUOUS, 6),
)  # fmt: skip
"""Autocast computes the power and everything after it in FP32."""
GELU_NEW_AUTOCAST_BACKWARD: tuple[Pass, ...] = (
    ("to FP32", BROADCAST, 6), ("product", BROADCAST, 10), ("product", CONTIGUOUS, 12),
    ("to BF16", CONTIGUOUS, 6), ("tanh", CONTIGUOUS, 12), ("scale", CONTIGUOUS, 8),
    ("to BF16", CONTIGUOUS, 6), ("scale", CONTIGUOUS, 8), ("square", CONTIGUOUS, 8),
    ("triple", CONTIGUOUS, 8), ("cube", CONTIGUOUS, 12), ("to BF16", CONTIGUOUS, 6),
    ("half", CONTIGUOUS, 4), ("sum", CONTIGUOUS, 6), ("sum", CONTIGUOUS, 6),
)  # fmt: skip
GELU_NEW_BF16: tuple[Pass, ...] = (
    ("half", CONTIGUOUS, 4), ("cube", CONTIGUOUS, 4), ("scale", CONTIGUOUS, 4),
    ("sum", CONTIGUOUS, 6), ("scale", CONTIGUOUS, 4), ("tanh", CONTIGUOUS, 4),
    ("plus one", CONTIGUOUS, 4), ("product", CONTIGUOUS, 6),
)  # fmt: skip
GELU_NEW_BF16_BACKWARD: tuple[Pass, ...] = (
    ("product", CONTIGUOUS, 6), ("product", CONTIGUOUS, 6), ("tanh", CONTIGUOUS, 6),
    ("scale", CONTIGUOUS, 4), ("scale", CONTIGUOUS, 4), ("square", CONTIGUOUS, 4),
    ("triple", CONTIGUOUS, 4), ("cube", CONTIGUOUS, 6), ("sum", CONTIGUOUS, 6),
    ("half", CONTIGUOUS, 4), ("sum", CONTIGUOUS, 6),
)  # fmt: skip
