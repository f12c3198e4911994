"""A training run with everything that determines its time and memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from figgen.catalog.hardware import Accelerator, Link
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.recipes import Recipe
from figgen.scenarios.runs.names import DTYPE_OF


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedRun:
    """A run with everything that determines its time, and what its source measured.

    `gpus_per_node` is the part of a scale-up domain that the run fills, `gpus_per_host` that of a
    host, which shares its network (None: a host is a whole node). `number_format` is the recipe
    ("bf16", "fp8", "mxfp8" …), `dtype` the type whose peak its matmuls have. `layers_per_stage` is
    empty if layers are spread evenly; `mtp_layers` modules of multi-token
    prediction are next to the head. `step_time_s` and `peak_memory_bytes` are measured, or None if
    the source does not give them.

    `stack` is the software stack that a source or a reader names, empty if it is that of the
    `framework`. `habits` names software of which only the memory is modeled, if it differs from
    the `framework` that is timed; `memory_habits` is the software whose habits fill the memory. Its
    attention
    `stores_scores`, with `dropout`, if its source says so. `flash_attention` is the version of
    FlashAttention, 0 for none. `dispatcher`, `expert_overlap`, `cuda_graphs`, `context_exchange`
    and `document_tokens` are those of a `TrainingSetup`. `offloaded_optimizer` and
    `offloaded_activations` are the shares of optimizer state and activations in the host's memory.
    `stated_recipe` holds bytes per parameter if the source gives others than its software usually
    has. `compiled` tells whether a compiler fuses its kernels (None: unknown), and `own_kernels` is
    the source's word for hand-fused kernels, if any. With `sixteen_bit_state`, weights and moments
    have 16 bits. `overlap_grad_reduce` tells whether gradients travel behind backward,
    `overlap_param_gather` whether weights that are gathered once per step travel behind forward,
    `shape_padding` whether the compiler pads matmuls to widths that tensor cores like, and
    `fused_optimizer` whether one kernel updates a parameter (None: as usual). `fused_loss` is
    "native" or "te" if Megatron-Core's own kernels or Transformer Engine's compute the loss.
    """

    name: str
    shape: ModelShape
    accelerator: Accelerator
    network: Link
    gpus: int
    gpus_per_node: int
    tp: int
    cp: int
    pp: int
    ep: int
    etp: int | None
    schedule: str
    virtual_stages: int
    microbatch: int
    global_batch: int
    sequence: int
    zero_stage: int
    number_format: str
    recompute: str
    framework: str
    release: str
    version: float | None
    layers_per_stage: tuple[int, ...]
    mtp_layers: int
    step_time_s: float | None
    peak_memory_bytes: float | None
    suspect: bool
    group: str
    source: str
    config_key: str
    stack: str = ""
    habits: str | None = None
    memory_habits: str = "megatron"
    stores_scores: bool = False
    dropout: bool = False
    flash_attention: int = 0
    dispatcher: str = "usual"
    expert_overlap: str = "usual"
    cuda_graphs: str = "usual"
    context_exchange: str = "p2p"
    document_tokens: tuple[int, ...] = ()
    offloaded_optimizer: float = 0.0
    offloaded_activations: float = 0.0
    stated_recipe: Recipe | None = None
    compiled: bool | None = None
    sixteen_bit_state: bool = False
    own_kernels: str = ""
    overlap_grad_reduce: bool | None = None
    overlap_param_gather: bool | None = None
    shape_padding: bool | None = None
    fused_optimizer: bool | None = None
    fused_loss: str = ""
    gpus_per_host: int | None = None

    @property
    def network_bytes_per_s(self) -> float:
        """Bandwidth of the network for a GPU, B/s."""
        sharing = self.gpus_per_host or self.gpus_per_node if self.network.per == "node" else 1
        return self.network.bandwidth_bytes_per_s / sharing

    @property
    def dtype(self) -> str:
        """The number type of most matmuls."""
        return DTYPE_OF[self.number_format]

    @property
    def dp(self) -> int:
        """Number of replicas of the dense layers."""
        return self.gpus // (self.tp * self.cp * self.pp)

    @property
    def microbatches(self) -> int:
        """Microbatches of a replica per step; the last one is partial if the batch is uneven."""
        return ceil(self.global_batch / (self.dp * self.microbatch))

    @property
    def tokens_per_s_per_gpu(self) -> float | None:
        """Measured throughput in tokens/s per GPU, or None."""
        if self.step_time_s is None:
            return None
        return self.global_batch * self.sequence / self.step_time_s / self.gpus


def domain_width(chip: Accelerator, gpus: int) -> int:
    """Return the GPUs per node: the scale-up domain, or the widest power of two that divides."""
    width = chip.scale_up_domain
    if gpus < width:
        return gpus
    while gpus % width:
        width = 2 ** ((width - 1).bit_length() - 1)
    return width
