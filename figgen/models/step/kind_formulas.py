"""The formula of each kind of computing in a predicted step, in words."""

from __future__ import annotations

KIND_FORMULAS: dict[str, str] = {
    "matmuls": "FLOPs ÷ rate that matmuls reach + start-up time of each",
    "attention": "FLOPs without the masked half ÷ rate that attention reaches",
    "elementwise": "bytes of norms, activations, residual sums, casts, permutations and summed "
    "gradients ÷ memory bandwidth",
    "head and loss": "FLOPs ÷ rate in 16 bits + bytes of the logits ÷ memory bandwidth",
    "recomputation": "forward time of the recomputed layers, messages included",
    "waiting for the host": "launches of a layer's kernels − time on the GPU, and copies of "
    "activations that outlast it",
    "update": "bytes that the optimizer moves ÷ memory bandwidth",
    "slowest GPU": "share of the step that grows with the number of GPUs",
    "fixed cost": "constant per step",
}
"""Keyed by the names of `figgen.models.step.predicted_parts.KINDS`."""
