"""What a run's software fuses: whose kernels pass over its activations, and in what width it keeps
its state.

Four ways. Megatron-Core and Transformer Engine have kernels of their own for norms, activations and
loss. "eager" software calls fused kernels without a compiler (nanotron, llm-foundry). "compiled"
software leaves fusing to a compiler. "modules" runs the modules of PyTorch as they are written, one
kernel for each operator.
"""

from __future__ import annotations

import re

from figgen.models.setup.framework_memory import framework_memory
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.names import UNKNOWN_SOFTWARE
from figgen.scenarios.runs.setup import memory_framework

MEGATRON, EAGER, COMPILED, MODULES = "megatron", "eager", "compiled", "modules"

SCORE_BYTES, DROPPED_BYTES = 38.0, 10.0
"""Bytes that PyTorch's operators move for a score of attention that is written out, forward and
backward, and for one that may be dropped: products, scaling, mask and softmax, each with 16 bits in
and out (`transformer_benchmark.py` of alfredyu24/amd-mi350-benchmarks@f57fa76a)."""

FUSED_SCORE_BYTES = 30.0
"""The same where scaling, mask and softmax are one kernel, as in Megatron-LM of 2021, which drops a
tenth of the scores: 11 bytes forward (scores written and read, softmax written and read, kept ones
with their mask written, and read) and 19 backward."""

UNDROPPED_SCORE_BYTES = 22.0
"""The same where none is dropped: 8 bytes forward and 14 backward (gradients of softmax written
and read, softmax read, gradients of scores written and read twice, softmax read for values)."""

USUAL = {
    "nanotron": EAGER, "llm-foundry": EAGER, "torchtitan": COMPILED, "torchtune": COMPILED,
    "pytorch": MODULES, UNKNOWN_SOFTWARE: EAGER,
}  # fmt: skip
"""How software fuses where nobody says; all other software as Megatron-Core does. What torchtitan
and torchtune print of their speed is compiled, though neither compiles by default."""

TORCH = ("torchtitan", "torchtune", "pytorch", "fsdp")
"""Software made of PyTorch's modules, which a compiler may fuse."""

COMPILING = ("Google", "AWS", "Intel")
"""Makers of chips whose software compiles PyTorch's modules to one graph: XLA, Neuron and Gaudi's
graph compiler."""

WHOLE_GRAPH = ("maxtext", "paxml")
"""Frameworks whose step XLA compiles to one program, which the host starts once."""

OWN_KERNELS = r"(?<!un)fused|transformer engine"
"""Words of a source for kernels that somebody fused by hand."""

SIXTEEN_BITS_MOVED, USUALLY_MOVED = 20.0, 40.0
"""Bytes a parameter that clipping and PyTorch's fused Adam move: weights, gradients and moments in
16 bits, and in FP32 (`figgen.models.operations.stack`)."""


def fusing_of(run: DescribedRun) -> str:
    """How a run's software fuses, by its framework and by what its source says of it."""
    if run.accelerator.vendor in COMPILING and run.framework in (*TORCH, UNKNOWN_SOFTWARE):
        return COMPILED
    usual = USUAL.get(run.framework, MEGATRON)
    if run.framework in TORCH and run.compiled is not None:
        usual = COMPILED if run.compiled else MODULES
    if usual == MODULES and run.own_kernels:
        return MEGATRON if run.own_kernels == "transformer engine" else EAGER
    return usual


def is_one_program(run: DescribedRun) -> bool:
    """Whether a step is one program, so that the host launches no layer by itself."""
    return run.framework in WHOLE_GRAPH or run.accelerator.vendor in COMPILING


def own_kernels(words: str) -> str:
    """The first words of `OWN_KERNELS` that a source uses; empty for none."""
    found = re.search(OWN_KERNELS, words.lower())
    return found[0] if found else ""


def torch_update_bytes(run: DescribedRun) -> float:
    """Bytes a parameter that an update of PyTorch's optimizer moves, by what is kept."""
    if run.sixteen_bit_state:
        return SIXTEEN_BITS_MOVED
    recipe = framework_memory(run.habits or memory_framework(run.framework, run.version)).recipe
    return SIXTEEN_BITS_MOVED if recipe == "bf16_8" else USUALLY_MOVED
