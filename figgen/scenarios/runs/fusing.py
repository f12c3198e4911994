"""How a run's software fuses kernels over its activations, and the width of its state.

There are four ways. Megatron-Core and Transformer Engine have their own kernels for norms,
activations and loss. "eager" software calls fused kernels without a compiler (nanotron,
llm-foundry). "compiled" software leaves fusing to a compiler. "modules" runs PyTorch's modules as
they are written, one kernel per operator.
"""

from __future__ import annotations

import re

from figgen.models.operations.update import FP32, moved_bytes, torch_update
from figgen.models.setup.framework_memory import framework_memory
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.names import UNKNOWN_SOFTWARE
from figgen.scenarios.runs.setup import memory_framework

MEGATRON, EAGER, COMPILED, MODULES = "megatron", "eager", "compiled", "modules"

SCORE_BYTES, DROPPED_BYTES = 38.0, 10.0
"""Bytes that PyTorch's operators move per attention score that is written to memory, forward and
backward, and for one with dropout: matmuls, scaling, mask and softmax, each with 16 bits in and
out (`transformer_benchmark.py` of alfredyu24/amd-mi350-benchmarks@f57fa76a)."""

FUSED_SCORE_BYTES = 30.0
"""Bytes per score if scaling, mask and softmax are one kernel, with dropout, as in Megatron-LM of
2021: 11 bytes forward (scores written and read, softmax written and read, kept scores and their
mask written, and read) and 19 backward."""

UNDROPPED_SCORE_BYTES = 22.0
"""Bytes per score with the same kernel and no dropout: 8 forward and 14 backward (gradients of
softmax written and read, softmax read, gradients of scores written and read twice, softmax read
for values)."""

USUAL = {
    "nanotron": EAGER, "llm-foundry": EAGER, "torchtitan": COMPILED, "torchtune": COMPILED,
    "pytorch": MODULES, UNKNOWN_SOFTWARE: EAGER,
}  # fmt: skip
"""How software fuses by default; software not listed fuses as Megatron-Core does. The speeds that
torchtitan and torchtune print are compiled, though neither compiles by default."""

TORCH = ("torchtitan", "torchtune", "pytorch", "fsdp")
"""Software built from PyTorch's modules, which a compiler may fuse."""

COMPILING = ("Google", "AWS", "Intel")
"""Vendors whose software compiles PyTorch's modules to one graph: XLA, Neuron and Gaudi's graph
compiler."""

WHOLE_GRAPH = ("maxtext", "paxml")
"""Frameworks whose step XLA compiles to one program, which the host launches once."""

LIGER = "deepspeed-liger"
"""Memory habits with Liger's kernels, which fuse norms, rotation, gates and the loss."""

OWN_KERNELS = r"(?<!un)fused|transformer engine"
"""Words of sources for hand-fused kernels."""

UNFUSED_UPDATE = 2.3
"""How many times as many bytes an unfused Adam moves, PyTorch's default: 23 reads and writes of a
parameter's numbers (decay 2, first moment 3, second 5, its root and the denominator 6, weights 4,
clipping 3; `_multi_tensor_adamw` in torch/optim/adamw.py of 2.9) for a fused one's 10."""


def fusing_of(run: DescribedRun) -> str:
    """Return how a run's software fuses, by its framework and its source."""
    if run.accelerator.vendor in COMPILING and run.framework in (*TORCH, UNKNOWN_SOFTWARE):
        return COMPILED
    usual = USUAL.get(run.framework, MEGATRON)
    if run.framework in TORCH and run.compiled is not None:
        usual = COMPILED if run.compiled else MODULES
    if usual == MODULES and run.memory_habits == LIGER:
        return EAGER
    if usual == MODULES and run.own_kernels:
        return MEGATRON if run.own_kernels == "transformer engine" else EAGER
    return usual


def pads_matmuls(run: DescribedRun) -> bool:
    """Whether matmuls of an odd width, such as GPT-2's vocabulary of 50,257, run at an even one.

    PyTorch's compiler pads them since 2.1, and tuned software pads the vocabulary; modules that run
    as they are written do not.
    """
    if run.framework not in TORCH:
        return True
    if fusing_of(run) == COMPILED:
        return run.shape_padding is not False
    return fusing_of(run) != MODULES


def is_one_program(run: DescribedRun) -> bool:
    """Return whether a step is one program, so that the host launches no single layer."""
    return run.framework in WHOLE_GRAPH or run.accelerator.vendor in COMPILING


def own_kernels(words: str) -> str:
    """Return the first of `OWN_KERNELS` that a source's words contain, or ""."""
    found = re.search(OWN_KERNELS, words.lower())
    return found[0] if found else ""


def torch_update_bytes(run: DescribedRun) -> float:
    """Return the bytes per parameter that an update of PyTorch's optimizer moves."""
    recipe = framework_memory(run.habits or memory_framework(run.framework, run.version)).recipe
    in_16_bits = run.sixteen_bit_state or recipe == "bf16_8"
    moved = moved_bytes(torch_update(1, 2 if in_16_bits else FP32))
    return moved * (UNFUSED_UPDATE if run.fused_optimizer is False else 1.0)
