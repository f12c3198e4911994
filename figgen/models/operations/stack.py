"""A software stack as data: what it fuses, the formats it computes in, and what it keeps.

Read from the modules of transformers 5.17 to 5.24 (`modeling_llama`, `modeling_gpt2`,
`modeling_qwen3`, `modeling_mixtral`, `integrations/moe.py`) with PyTorch 2.11 on CUDA. Under
autocast, weights and residual stay FP32, each linear layer casts its own input, and the cast of a
weight is cached for one microbatch. In pure BF16 nothing is cast except inside RMSNorm.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A software stack: `autocast` around FP32 weights or pure BF16, eager or `compiled`.

    `residual_bytes` are per element of the residual stream and of weight gradients. `held_bytes`
    are weights and both moments of Adam per parameter. With `masked`, attention gets an explicit
    mask, which transformers does not omit while `torch.compile` traces
    (`_ignore_causal_mask_sdpa`). With `tf32`, matmuls of FP32 tensors may run in TF32
    (`torch.set_float32_matmul_precision("high")`, which is not PyTorch's default).
    """

    name: str
    compiled: bool
    autocast: bool
    residual_bytes: float
    held_bytes: float
    masked: bool
    tf32: bool = True


def _stack(compiled: bool, autocast: bool) -> Stack:
    way = "compiled" if compiled else "eager"
    number_format = "autocast" if autocast else "BF16"
    return Stack(
        name=f"transformers {way}, {number_format}",
        compiled=compiled,
        autocast=autocast,
        residual_bytes=4 if autocast else 2,
        held_bytes=12 if autocast else 6,
        masked=compiled,
    )


STACKS = {
    (stack.compiled, stack.autocast): stack
    for stack in (_stack(c, a) for c in (False, True) for a in (True, False))
}
"""Stacks of transformers, keyed by (compiled, autocast)."""
