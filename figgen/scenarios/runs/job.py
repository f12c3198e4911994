"""A described run as the job that is timed, cut into stages as its framework does."""

from __future__ import annotations

from functools import lru_cache

from figgen.models.machine.layout import layout
from figgen.models.pipeline.filling import pipeline_idle
from figgen.models.setup.framework_memory import framework_memory
from figgen.models.setup.stage_layers import (
    StageShare,
    fullest_and_beside_head,
    layers_by_cost,
    stage_shares,
)
from figgen.models.setup.training_setup import (
    CUDA_GRAPHS,
    DISPATCHERS,
    EXPERT_OVERLAPS,
    TrainingSetup,
    sharded_calls,
)
from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.job import Job, keys_apart, shape_numbers
from figgen.models.step.stage_work import repeated
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.setup import before_flash, memory_framework, recipe_of

SCATTERS_IN_16_BITS = (
    "nemo", "megatron-bridge", "megatron-lm", "llm-foundry", "fsdp", "maxtext", "paxml",
)  # fmt: skip
"""Software that scatters every microbatch's gradients in 16 bits, whatever it keeps: llm-foundry's
PURE, MaxText, recipes of Megatron-Bridge, and what Megatron-LM's user guide of Megatron-FSDP
recommends (--grad-reduce-in-bf16)."""

WITHOUT_SECOND_BUFFER = ("paxml",)
"""Software that gathers a layer's weights only after the previous layer has finished: Paxml's
recipes turn XLA's double buffering of loops off (NVIDIA/dgxc-benchmarking at 35a9aec,
paxml/configure.sh); MaxText's turn it on."""


def run_job(run: DescribedRun) -> Job:
    """Return the job of a run."""
    fullest, with_head = stages_of(run)
    layer, core = repeats_of(run)
    parts = run.gpus // run.pp
    chunks = run.virtual_stages if run.pp > 1 else 1
    ep = min(run.ep, parts)
    memory = framework_memory(memory_framework(run.framework, run.version))
    gathers, scatters = sharded_calls(run.zero_stage, memory.whole_in_pipeline and run.pp > 1)
    etp = run.etp if run.etp is not None else (run.tp if ep > 1 else 1)
    return Job(
        **shape_numbers(run.shape, run.mtp_layers),
        tp=run.tp,
        cp=run.cp,
        pp=run.pp,
        ep=ep,
        etp=etp if ep > 1 or run.etp else 1,
        gpus=run.gpus,
        gpus_per_node=run.gpus_per_node,
        chunks=chunks,
        idle=pipeline_idle(run.schedule, run.pp, run.microbatches, chunks),
        fullest_layers=fullest,
        head_layers=with_head,
        microbatch=run.microbatch,
        microbatches=run.global_batch / (run.dp * run.microbatch),
        sequence=run.sequence,
        zero_stage=run.zero_stage,
        repeats_layer=layer,
        repeats_core=core,
        quantized=float(run.dtype in ("fp8", "fp4")),
        gathers=gathers,
        scatters=scatters,
        gradient_bytes=gradient_bytes(run, scatters),
        overlapped=float(overlaps_data(run)),
        per_tensor=float(run.framework == "nanotron"),
        gathers_alone=float(run.overlap_param_gather is False),
        dispatcher=float(DISPATCHERS[run.dispatcher]),
        expert_overlap=float(EXPERT_OVERLAPS[run.expert_overlap]),
        cuda_graphs=float(CUDA_GRAPHS[run.cuda_graphs]),
        gathers_keys=float(run.context_exchange == "all-gather"),
        trades_heads=float(run.context_exchange == "all-to-all"),
        trades_in_node=float(run.context_exchange == "a2a+p2p"),
        keys_apart=keys_apart(run.shape, run.sequence, run.document_tokens),
        offloaded=run.offloaded_optimizer,
    )


def overlaps_data(run: DescribedRun) -> bool:
    """Whether weights and gradients travel behind computing, as all known software can."""
    if run.overlap_grad_reduce is not None:
        return run.overlap_grad_reduce
    return run.framework not in WITHOUT_SECOND_BUFFER


def repeats_of(run: DescribedRun) -> tuple[float, float]:
    """Return the shares of a layer and of its attention core that backward recomputes."""
    alone, recompute = _alone_of(run)
    return repeated(alone, shares_of(run)[0], recompute, cp=1)


def _alone_of(run: DescribedRun) -> tuple[TrainingSetup, str]:
    """Return the run's model on one GPU, and what is recomputed."""
    stored = before_flash(run)
    recompute = run.recompute or ("selective" if stored else "none")
    return _alone(run.shape, run.sequence, recompute, run.mtp_layers, stored), recompute


# The layout does not affect these shares.
@lru_cache(maxsize=256)
def _alone(
    shape: ModelShape, sequence: int, recompute: str, mtp_layers: int, stored: bool
) -> TrainingSetup:
    """Return a job on one GPU with the layers of a run; `stored` if it keeps attention scores."""
    return TrainingSetup(
        shape=shape,
        parallel=layout(nodes=1, gpus_per_node=1),
        microbatches=1,
        sequence=sequence,
        recompute=recompute,
        mtp_layers=mtp_layers,
        flash_attention=not stored,
    )


def gradient_bytes(run: DescribedRun, scatters: int) -> float:
    """Return the bytes of a gradient in messages.

    `scatters` is 1 if they are sent in every microbatch, 0 if once per step.
    """
    if scatters and run.framework in SCATTERS_IN_16_BITS:
        return 2
    return recipe_of(run).gradient_bytes


def stages_of(run: DescribedRun) -> tuple[int, float]:
    """Return the most layers of a pipeline rank, and the layers next to the head."""
    shares, cut = shares_of(run)
    return fullest_and_beside_head(shares, run.pp, cut=cut)


def shares_of(run: DescribedRun) -> tuple[tuple[StageShare, ...], bool]:
    """Return the share of every stage, and whether the source gives the split."""
    stages = run.pp * (run.virtual_stages if run.pp > 1 else 1)
    balanced = framework_memory(memory_framework(run.framework, run.version)).balanced
    given = run.layers_per_stage
    dealt = (given, -1) if given or not balanced else layers_by_cost(run.shape, stages)
    cut = bool(given or run.mtp_layers) or balanced
    return stage_shares(run.shape, stages, *dealt, run.mtp_layers), cut
