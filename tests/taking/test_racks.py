"""GPUs of a rack that share NVLink are read as the hosts that they are launched on."""

from __future__ import annotations

import pytest

from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.taking.options import options_of
from tests.taking.jobs import take

RACK = """#SBATCH -N {nodes}
#SBATCH --gres=gpu:gb200:{width}
srun torchrun --nnodes {nodes} --nproc-per-node {width} x.py --tensor-model-parallel-size 4
"""


@pytest.mark.parametrize(
    ("nodes", "node"),
    [(1, (1, 4)), (2, (1, 8)), (16, (1, 64)), (18, (1, 72)), (64, (4, 64)), (36, (2, 72))],
)
def test_hosts_of_a_rack_are_one_nvlink_domain(nodes: int, node: tuple[int, int]) -> None:
    """Trays of GB200 NVL72 have four GPUs, and all 72 of a rack share NVLink (the chip's entry)."""
    job = take(RACK.format(nodes=nodes, width=4))
    assert (job.taken["nodes"], job.taken["gpus_per_node"]) == (nodes, 4), "as launched"
    step = training_step(model="llama-3-8b", **options_of(job))
    counted = step.setup.parallel
    assert (counted.nodes, counted.gpus_per_node) == node
    assert (f"count as {node[0]} of {node[1]}" in step.hosts_said) == (nodes > 1)
