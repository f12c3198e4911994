"""What a layer keeps for backward is coded twice: by tensor, for layouts of many GPUs, and by
operation, for one GPU.

Both must give the same bytes.
"""

from __future__ import annotations

import math

import pytest

from figgen import catalog
from figgen.models.memory.layer_tensors import layer_tensors
from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.device_step import layer_operations
from figgen.models.operations.operation import total_kept_bytes
from figgen.models.operations.stack import STACKS
from figgen.scenarios.options.resolve import training_step

SEQUENCE = 4096
NORM_BYTES = 8
"""Bytes per token of the reciprocals of two norms, which the list by tensor omits."""
SUM_BYTES = 4
"""Bytes per token and head of attention's sums of exponentials, which it omits too."""


@pytest.mark.parametrize("name", ["llama-3-1b", "llama-3-8b", "llama-3-70b", "llama-2-7b"])
@pytest.mark.parametrize(
    ("software", "compiled"), [("pytorch", False), ("torchtitan", True)], ids=["eager", "compiled"]
)
def test_a_layer_keeps_as_many_bytes_by_tensor_as_by_operation(
    name: str, software: str, compiled: bool
) -> None:
    shape = catalog.model(name).shape
    one = training_step(
        model=name, nodes=8, gpus_per_node=8, zero_stage=3, sequence=SEQUENCE, software=software
    )
    by_tensor = math.fsum(kept.bytes for kept in layer_tensors(one.setup) if not kept.core)
    job = DeviceJob(
        shape=shape,
        stack=STACKS[compiled, False],
        microbatch=1,
        microbatches=1,
        sequence=SEQUENCE,
        recomputed=False,
        lora_rank=0,
    )
    by_operation = total_kept_bytes(layer_operations(job, experts=False))
    beyond = SUM_BYTES * shape.heads + (0 if compiled else NORM_BYTES)
    if compiled:  # transformers gives attention a mask, so that each query head has its own keys
        beyond += 4 * (shape.heads - shape.kv_heads) * shape.head_dim
    assert by_operation == pytest.approx(by_tensor + beyond * SEQUENCE, rel=1e-12)
