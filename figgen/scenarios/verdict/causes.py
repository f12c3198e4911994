"""Reasons why a job is slower than predicted: how to recognize each, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from figgen.scenarios.verdict.changed import (
    Seconds,
    TimedJob,
    fuller_pipeline,
    larger_microbatches,
    not_compiled,
    not_recomputed,
    nothing_hidden,
    on_the_cpu,
    recomputed,
    shared_each_microbatch,
    shared_once,
    slow_attention,
    slow_experts,
    slow_inside,
    slow_network,
    small_kernels,
    wide_numbers,
)

AS_PREDICTED = "as-predicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowCause:
    """A cause and how to recognize it.

    The ranking counts solved threads: `concerned` is the number of threads in which the cause was
    possible, `named` the number in which it was the answer, counting a second cause as a half.
    `mistake` gives a step's time with the cause, `choice` the time without it if the job's options
    include it, and `unseen` the factors by which it lengthens a step if no model covers it.
    """

    title: str
    tell: str
    named: float
    concerned: int
    mistake: Callable[[TimedJob], Seconds | None] | None = None
    choice: Callable[[TimedJob], float | None] | None = None
    unseen: tuple[float, float] | None = None

    @property
    def prior(self) -> float:
        """How often it is the cause where it is possible, smoothed by half of one more thread."""
        return (self.named + 0.5) / (self.concerned + 1)


CAUSES: Mapping[str, SlowCause] = MappingProxyType(
    {
        AS_PREDICTED: SlowCause(
            title="nothing is wrong: such runs take that long",
            tell="compare it with the published runs below; a faster step needs a different layout",
            named=4,
            concerned=35,
            unseen=(1.0, 1.0),
        ),
        "network": SlowCause(
            title="the network between nodes is slower than stated",
            tell="NCCL_DEBUG=INFO says NET/Socket, not NET/IB or NET/OFI; nccl-tests over two "
            "nodes stay far below the link's rate; one node alone is much faster; check "
            "whether the rate of --nic is per GPU or per node",
            named=5,
            concerned=12,
            mistake=slow_network,
        ),
        "inside-node": SlowCause(
            title="GPUs of a node reach each other over PCIe or the CPU, not over NVLink",
            tell="nvidia-smi topo -m shows PHB or SYS, not NV#; NCCL_P2P_DISABLE is set; "
            "all_reduce_perf -g 8 is slow on one node",
            named=6.5,
            concerned=28,
            mistake=slow_inside,
        ),
        "attention": SlowCause(
            title="attention is unfused, or has an explicit mask",
            tell="a profile shows separate kernels for softmax and masked_fill, not flash or "
            "fmha; set attn_implementation or --use-flash-attn, and is_causal instead of a "
            "mask",
            named=5.5,
            concerned=31,
            mistake=slow_attention,
        ),
        "fp32": SlowCause(
            title="weights and matmuls are in FP32",
            tell="the log's params_dtype says so, matmul kernels in a profile are named sgemm or "
            "tf32, and memory is twice as full; set --bf16, bf16: true or "
            "dtype=torch.bfloat16",
            named=3,
            concerned=35,
            mistake=wide_numbers,
        ),
        "recompute": SlowCause(
            title="activations are recomputed",
            tell="the log has --recompute-granularity, activation_checkpoint or "
            "gradient_checkpointing, and a profile shows forward kernels twice; recompute "
            "less, or nothing, if memory allows",
            named=2.5,
            concerned=32,
            mistake=recomputed,
            choice=not_recomputed,
        ),
        "compile": SlowCause(
            title="the model is not compiled, and every elementwise operation is a separate kernel",
            tell="a profile shows no triton kernels, but more than a hundred kernels per layer; "
            "turn compile on in the configuration",
            named=1.5,
            concerned=25,
            mistake=not_compiled,
        ),
        "sharding": SlowCause(
            title="weights or gradients are exchanged in every microbatch (ZeRO-3, FSDP, ZeRO-2)",
            tell="a profile shows AllGather and ReduceScatter in every microbatch; use larger or "
            "fewer microbatches, ZeRO-1, or sharding inside a node only (HYBRID_SHARD)",
            named=7.5,
            concerned=28,
            mistake=shared_each_microbatch,
            choice=shared_once,
        ),
        "overlap": SlowCause(
            title="messages do not hide behind computing",
            tell="a profile shows NCCL kernels alone on the timeline; set --overlap-grad-reduce, "
            "--overlap-param-gather and --tp-comm-overlap, and check "
            "CUDA_DEVICE_MAX_CONNECTIONS",
            named=1,
            concerned=22,
            mistake=nothing_hidden,
        ),
        "experts": SlowCause(
            title="experts exchange tokens or compute in a slow way",
            tell="a profile shows many small matmuls per layer, which is a loop over experts; "
            "set --moe-grouped-gemm, and --moe-token-dispatcher-type alltoall or flex "
            "(DeepEP, HybridEP)",
            named=2,
            concerned=5,
            mistake=slow_experts,
        ),
        "offload": SlowCause(
            title="the optimizer runs on the CPU",
            tell="the configuration has offload_optimizer, cpu_offload or DeepSpeedCPUAdam; GPUs "
            "are idle and CPUs busy at the end of every step",
            named=4,
            concerned=35,
            mistake=on_the_cpu,
        ),
        "small": SlowCause(
            title="too little work for a kernel: a small model, or small microbatches",
            tell="a profile shows gaps between kernels and a busy CPU; check the number of "
            "parameters in the log; use larger microbatches while they fit, compile, or use "
            "CUDA graphs",
            named=1,
            concerned=24,
            mistake=small_kernels,
            choice=larger_microbatches,
        ),
        "bubble": SlowCause(
            title="pipeline ranks are idle",
            tell="there are few microbatches per replica for so many pipeline ranks; use "
            "interleaving (--num-layers-per-virtual-pipeline-stage), more microbatches or "
            "fewer stages",
            named=0,
            concerned=3,
            choice=fuller_pipeline,
        ),
        "memory-full": SlowCause(
            title="GPU memory is full, and the allocator frees memory and retries",
            tell="torch.cuda.memory_stats()['num_alloc_retries'] grows, nvidia-smi shows nearly "
            "all memory in use, and a profile shows cudaMalloc and cudaFree; set "
            "expandable_segments:True, or use a smaller microbatch",
            named=0,
            concerned=7,
            unseen=(1.1, 6.0),
        ),
        "first-steps": SlowCause(
            title="the first steps compile, warm up and fill caches",
            tell="step times fall over the first tens of steps; take the median of later ones",
            named=0,
            concerned=0,
            unseen=(1.2, 30.0),
        ),
        "straggler": SlowCause(
            title="one GPU or host is slow, and all others wait for it",
            tell="one rank waits least in its collectives (figgen profile on several ranks); "
            "nvidia-smi -q -d PERFORMANCE shows throttling; the step is faster without that "
            "node",
            named=0,
            concerned=35,
            unseen=(1.1, 2.5),
        ),
        "data": SlowCause(
            title="GPUs wait for data",
            tell="a profile shows a gap at the start of every step, and steps with synthetic "
            "data are faster; use more workers, or tokenized data on disk",
            named=0,
            concerned=35,
            unseen=(1.1, 10.0),
        ),
    }
)
"""Causes by name."""
