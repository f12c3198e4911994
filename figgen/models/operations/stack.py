"""A software stack as data: what it fuses, in what format it computes, and what it keeps.

Read off the modules of transformers 5.17 to 5.24 (`modeling_llama`, `modeling_gpt2`,
`modeling_qwen3`, `modeling_mixtral`, `integrations/moe.py`) with PyTorch 2.11 on CUDA. Under
autocast weights and residual stay in FP32, each linear layer casts its own input, and a cast of a
weight is cached for one microbatch; in pure BF16 nothing is cast but the inside of RMSNorm.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One stack: `autocast` around FP32 weights or pure BF16, run eagerly or `compiled`.

    `residual_bytes` are those of an element of the residual stream and of the gradients of
    weights; `held_bytes` are weights and both moments of Adam, a parameter. The optimizer moves
    `update_bytes` a parameter, clipping included. `masked` says that attention is given an explicit
    mask: while `torch.compile` traces, transformers does not leave it out
    (`_ignore_causal_mask_sdpa`). `tf32` says that matmuls of FP32 tensors may run in TF32
    (`torch.set_float32_matmul_precision("high")`, which is not PyTorch's default).
    """

    name: str
    compiled: bool
    autocast: bool
    residual_bytes: float
    held_bytes: float
    update_bytes: float
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
        update_bytes=40 if autocast else 20,
        masked=compiled,
    )


STACKS = {
    (stack.compiled, stack.autocast): stack
    for stack in (_stack(c, a) for c in (False, True) for a in (True, False))
}
"""The stacks of transformers by whether they compile and whether they run under autocast."""
