"""A training step as the job that is timed, with its own stages and recomputation."""

from __future__ import annotations

from figgen.models.pipeline.filling import pipeline_idle
from figgen.models.setup.stage_layers import fullest_and_beside_head, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup, sharding_of
from figgen.models.step.job import Job, away_numbers, setup_numbers, tuned_numbers
from figgen.models.step.stage_work import repeated


def step_job(setup: TrainingSetup, *, quantized: float, per_tensor: float) -> Job:
    """Return the job of a step.

    `quantized` is 1 if matmuls have fewer than 16 bits, `per_tensor` is 1 if the framework updates
    every tensor by itself; otherwise they are 0.
    """
    parallel, placement = setup.parallel, setup.placement
    fullest, beside_head = stages_of(setup)
    gathers, scatters, overlapped = sharding_of(setup, setup.zero_stage, parallel.pp)
    shares = virtual_stage_shares(setup)
    layer, core = repeated(setup, shares, setup.recompute, parallel.cp)
    chunks = placement.stages // placement.pipes // parallel.pp if parallel.pp > 1 else 1
    return Job(
        **setup_numbers(setup),
        **tuned_numbers(setup),
        **away_numbers(setup),
        tp=parallel.tp,
        cp=parallel.cp,
        pp=parallel.pp,
        ep=min(parallel.ep, parallel.world_size // parallel.pp),
        etp=parallel.etp,
        gpus=parallel.world_size,
        gpus_per_node=parallel.gpus_per_node,
        chunks=chunks,
        idle=pipeline_idle(setup.schedule, parallel.pp, setup.microbatches, chunks),
        fullest_layers=fullest,
        head_layers=beside_head,
        microbatch=setup.microbatch_size,
        microbatches=setup.microbatches,
        zero_stage=setup.zero_stage,
        repeats_layer=layer,
        repeats_core=core,
        quantized=quantized,
        gathers=gathers,
        scatters=scatters,
        overlapped=float(overlapped),
        per_tensor=per_tensor,
    )


def stages_of(setup: TrainingSetup) -> tuple[int, float]:
    """Return the most layers of a pipeline rank, and the layers next to the head."""
    shares = virtual_stage_shares(setup)[: setup.placement.depth]
    cut = bool(setup.layers_per_stage or setup.mtp_layers) or setup.framework_memory.balanced
    return fullest_and_beside_head(shares, setup.parallel.pp, cut=cut)
