"""mlsysim: roofline of a replica, exposed collectives and the bubble, by `DistributedModel`.

https://mlsysbook.ai/mlsysim. Sizes, chips, links and layout are the run's; the constant is its
`efficiency`, 0.5 by default. Gradients overlap as its documentation says Megatron-LM does.
"""

from __future__ import annotations

from typing import Any

from mlsysim.core.units import Q_
from mlsysim.hardware.types import ComputeCore, HardwareNode, MemoryHierarchy
from mlsysim.models.types import SparseTransformerWorkload, TransformerWorkload
from mlsysim.solvers import DistributedModel
from mlsysim.systems.types import Fleet, NetworkFabric, Node

from figgen.models.shape.transformer import parameter_counts
from figgen.scenarios.runs.described import DescribedRun
from tests.benchmarks.rivals.refusal import refuse

PRECISIONS = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp4": "int4", "tf32": "tf32"}
UNLIMITED = Q_("1e6 GB")
"""Every run did fit, so none is penalized for spilling to the host."""


def seconds(run: DescribedRun, constant: float) -> float:
    """Return the seconds of a step for this `efficiency`."""
    refuse(run.cp > 1, "context parallelism")
    replica = run.tp * run.pp * run.ep
    refuse(bool(run.gpus % replica), "experts spread over less than whole replicas")
    replicas = run.gpus // replica
    refuse(bool(run.global_batch % replicas), "a batch that replicas with experts do not divide")
    found = DistributedModel().solve(
        _model(run),
        _fleet(run),
        batch_size=run.global_batch,
        precision=PRECISIONS[run.dtype],
        efficiency=constant,
        tp_size=run.tp,
        pp_size=run.pp,
        ep_size=run.ep,
        v_stages=run.virtual_stages,
        microbatch_count=run.microbatches,
        zero_stage=run.zero_stage,
        activation_recomputation=run.recompute == "full",
        overlap_comm=True,
        seq_len=run.sequence,
    )
    return float(found.step_latency_total.m_as("s"))


def _model(run: DescribedRun) -> Any:
    shape = run.shape
    counts = parameter_counts(shape)
    sizes: dict[str, Any] = {
        "name": run.name,
        "architecture": "Transformer",
        "layers": shape.layers,
        "hidden_dim": shape.hidden,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "vocab_size": shape.vocab,
        "parameters": Q_(counts.total, "count"),
    }
    if shape.experts is None:
        return TransformerWorkload(**sizes)
    return SparseTransformerWorkload(
        **sizes,
        active_parameters=Q_(counts.active, "count"),
        experts=shape.experts.count,
        active_experts_per_token=shape.experts.top_k,
    )


def _fleet(run: DescribedRun) -> Fleet:
    chip = run.accelerator
    peak = Q_(chip.peak_flops_per_s(run.dtype), "flop/s")
    device = HardwareNode(
        name=chip.name,
        release_year=chip.year,
        compute=ComputeCore(peak_flops=peak, precision_flops={PRECISIONS[run.dtype]: peak}),
        memory=MemoryHierarchy(
            capacity=UNLIMITED, bandwidth=Q_(chip.hbm_bandwidth_bytes_per_s, "byte/s")
        ),
    )
    node = Node(
        name=chip.name,
        accelerator=device,
        accelerators_per_node=run.gpus_per_node,
        intra_node_bw=Q_(chip.scale_up_bandwidth_bytes_per_s, "byte/s"),
    )
    sharing = run.gpus_per_node if run.network.per == "node" else 1
    fabric = NetworkFabric(
        name=run.network.name,
        bandwidth=Q_(run.network.bandwidth_bytes_per_s / sharing, "byte/s"),
        latency=Q_(run.network.latency.value if run.network.latency else 5e-6, "s"),
    )
    return Fleet(name=run.name, node=node, count=run.gpus // run.gpus_per_node, fabric=fabric)
