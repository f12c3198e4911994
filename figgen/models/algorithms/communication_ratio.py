"""Work per byte sent (CCR) where it depends on a model's shape or on the placement of a group.

All ratios are in FLOP/B of one rank, for forward and backward together, without recomputation.
The ratios of plain data parallelism are in `figgen.formulas`.
"""

from __future__ import annotations

from figgen.errors import InputError
from figgen.formulas.pipeline import pipeline_boundary_bytes
from figgen.formulas.tensor_parallel import tensor_parallel_layer_bytes
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import dense_layer_weights

# Megatron's f and g: two all-reduces of a layer's activations in forward and two in backward.
ALL_REDUCES = 4

BACKWARD_SHARE = 2 / 3
"""Share of forward and backward that gradients may hide behind: 4 of 6 FLOP per parameter."""


def layer_training_flops_per_token(shape: ModelShape, *, sequence: int | None = None) -> int:
    """FLOP of one layer for one token, forward and backward, with full (unmasked) attention.

    It is 6 per weight and 12·s·(a·d) for the two matmuls of attention: three times
    `layer_forward_flops` per token for a layer with a 4h MLP. Source: PaLM, arXiv:2204.02311,
    appendix B. Raises InputError for a mixture of experts, whose layers differ.
    """
    length = shape.sequence if sequence is None else sequence
    return 6 * dense_layer_weights(shape) + 12 * length * shape.attention_width


def tensor_parallel_ccr(
    shape: ModelShape,
    *,
    tp: int,
    bytes_per_element: float = 2,
    all_reduces: int = ALL_REDUCES,
    sequence: int | None = None,
) -> float:
    """FLOP of one rank per byte that it sends for tensor parallelism, the same for every layer.

    Work and bytes both grow with the microbatch, which therefore cancels; the ratio is
    about 9h/((T − 1)·bytes) for a 4h MLP. With sequence parallelism a layer gathers two inputs
    again, as many bytes as one more of the `all_reduces`.
    Raises InputError for `tp` below 2 (a rank alone sends nothing).
    """
    if tp < 2:
        raise InputError("tp", expected="at least 2 ranks, to have something to send", got=tp)
    work = layer_training_flops_per_token(shape, sequence=sequence) / tp
    sent = tensor_parallel_layer_bytes(all_reduces, tp, 1, 1, shape.hidden, bytes_per_element)
    return float(work / sent)


def pipeline_boundary_ccr(
    shape: ModelShape, *, stage_layers: int, sequence: int | None = None
) -> float:
    """FLOP per 16-bit byte that an interior stage of `stage_layers` layers sends, without chunks.

    One activation goes to the next stage and one gradient to the previous one. Tensor
    parallelism divides work and, with scatter and gather, bytes alike.
    """
    if stage_layers < 1:
        raise InputError("stage_layers", expected="at least 1", got=stage_layers)
    work = stage_layers * layer_training_flops_per_token(shape, sequence=sequence)
    return float(work / (2 * pipeline_boundary_bytes(1, 1, shape.hidden, 2)))


def mixed_fsdp_ccr(
    tokens: float, *, gather_bytes_per_param: float, reduce_bytes_per_param: float, dp: int
) -> float:
    """FLOP per byte sent of FSDP whose weights and gradients travel in different precisions.

    Two all-gathers and one reduce-scatter per microbatch of `tokens`; `fsdp_ccr` when both
    take the same bytes.
    """
    if dp < 2:
        raise InputError("dp", expected="at least 2 ranks, to have something to send", got=dp)
    per_param = 2 * gather_bytes_per_param + reduce_bytes_per_param
    return 6 * tokens / per_param * dp / (dp - 1)


def group_bandwidth_bytes_per_s(
    scale_up_bytes_per_s: float, network_bytes_per_s: float, members_per_node: int
) -> float:
    """Bandwidth at which a rank of a group that spans nodes can send around its rings, B/s.

    Every ring enters and leaves a node once, so the `members_per_node` ranks that a node
    contributes lend each other their network ports; inside the node each rank still has to
    forward everything over its own scale-up link.
    """
    if members_per_node < 1:
        raise InputError("members_per_node", expected="at least 1", got=members_per_node)
    return min(scale_up_bytes_per_s, members_per_node * network_bytes_per_s)
