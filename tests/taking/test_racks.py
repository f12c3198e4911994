"""GPUs of a rack that share NVLink are read as one node."""

from __future__ import annotations

import pytest

from figgen import catalog
from figgen.scenarios.taking.cluster import CHIPS, DOMAINS, USUAL_WIDTH
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
    assert (job.taken["nodes"], job.taken["gpus_per_node"]) == node
    assert any("share NVLink" in note for note in job.notes) == (nodes > 1)


def test_domains_are_those_of_the_catalog() -> None:
    wide = {
        name: chip.scale_up_domain
        for name, chip in catalog.ACCELERATORS.items()
        if name in dict.fromkeys(known for _, known in CHIPS) and chip.scale_up_domain > USUAL_WIDTH
    }
    assert wide == DOMAINS
