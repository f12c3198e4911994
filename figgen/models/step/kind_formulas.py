"""How each kind of computing in a predicted step is predicted, in words."""

from __future__ import annotations

KIND_FORMULAS: dict[str, str] = {
    "matmuls": "FLOPs ÷ rate that matmuls reach, and the start of each",
    "attention": "FLOPs without the masked half ÷ rate that attention reaches",
    "elementwise": "bytes of norms, activations, residual sums, casts, permutations and summed "
    "gradients ÷ memory bandwidth",
    "head and loss": "FLOPs ÷ rate in 16 bits + bytes of the logits ÷ memory bandwidth",
    "recomputation": "forward of the repeated layers, with its messages",
    "waiting for the host": "launches of a layer's kernels − time on the GPU, and copies of "
    "activations that outlast it",
    "update": "bytes of the optimizer ÷ memory bandwidth",
    "slowest GPU": "a share of the step that grows with the number of GPUs",
    "fixed cost": "constant per step",
}
"""By the names of `figgen.models.step.predicted_parts.KINDS`."""
