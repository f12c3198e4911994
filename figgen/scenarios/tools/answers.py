"""A training step and its memory as plain data, for `--json` and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster
from figgen.models.memory.memory import MemoryEstimate
from figgen.models.memory.trained_state import trained_parameters
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.compute import CONVENTIONS
from figgen.models.step.gradient_buckets import gradient_buckets
from figgen.models.step.level_loads import level_loads
from figgen.models.step.newton_schulz import busiest_flops
from figgen.models.step.stage_time import StageTime
from figgen.models.step.step import StepEstimate, needed_utilisation

SIZES = ("nodes", "gpus_per_node", "tp", "cp", "dp", "pp", "ep", "etp", "edp")
"""Sizes of a layout; hosts that share fast links count as one node."""

LIKELY_DIGITS = 9
"""Digits of a probability that are shown; further digits depend on the system's C library."""


def setup_data(name: str, setup: TrainingSetup) -> dict[str, object]:
    """Return the setup for JSON."""
    parallel = setup.parallel
    return {
        "model": name,
        "world_size": parallel.world_size,
        **{name: getattr(parallel, name) for name in SIZES},
        "schedule": setup.schedule,
        "microbatches": setup.microbatches,
        "microbatch_size": setup.microbatch_size,
        "sequence": setup.sequence,
        "tokens_per_step": setup.tokens_per_step,
        "zero_stage": setup.zero_stage,
        "recipe": setup.recipe.name,
        "recompute": setup.recompute,
        "activations": setup.activations,
        **lora_data(setup),
    }


def lora_data(setup: TrainingSetup) -> dict[str, object]:
    """Return the adapters of frozen weights, for JSON; empty if all weights are trained."""
    if setup.lora_rank is None:
        return {}
    return {
        "lora_rank": setup.lora_rank,
        "lora_matrices": setup.lora_matrices,
        "frozen_weights": setup.frozen_weights,
        "trained_parameters": trained_parameters(setup),
    }


def step_data(
    found: StepEstimate,
    cluster: Cluster,
    compute_efficiency: float,
) -> dict[str, object]:
    """Return a step for JSON; a utilization is None if its convention does not cover the model."""
    return {
        "pipeline_rank": found.bottleneck,
        "step_time_s": found.step_time_s,
        "compute_s": found.compute_s,
        "recompute_s": found.recompute_s,
        "kinds_s": dict(found.kinds),
        "bubble_s": found.bubble_s,
        "bubble_fraction": found.bubble_fraction,
        "bubble_overhead": found.bubble_overhead,
        "exposed_s": dict(found.exposed),
        "tokens_per_s_per_gpu": found.tokens_per_s_per_gpu,
        "model_flops_utilisation": found.model_flops_utilisation,
        "hardware_flops_utilisation": found.hardware_flops_utilisation,
        "utilisation": {name: _utilisation(found, cluster, name) for name in CONVENTIONS},
        "levels": [asdict(load) for load in level_loads(found, cluster, compute_efficiency)],
        "communication": [asdict(row) | {"sent_bytes": row.sent_bytes} for row in found.rows],
    }


def buckets_data(found: StepEstimate, times: Sequence[StageTime]) -> dict[str, object] | None:
    """Return the buckets of the bottleneck's gradients for JSON; `times` has all virtual stages.

    Pages request them last, because timing the stages means simulating the whole schedule.
    """
    setup = found.setup
    stages = [times[stage] for stage in setup.placement.stages_of_rank(found.bottleneck)]
    buckets = gradient_buckets(setup, stages)
    return None if buckets is None else asdict(buckets)


def muon_data(found: StepEstimate, wide_flops_per_s: float) -> dict[str, float]:
    """Return what orthogonalizing matrices adds to a step; empty unless the optimizer is Muon.

    `wide_flops_per_s` is the rate of matmuls in 16 bits or more.
    """
    work = busiest_flops(found.setup)
    if not work:
        return {}
    added_s = work / wide_flops_per_s
    return {
        "orthogonalising_flops": work,
        "orthogonalising_s": added_s,
        "step_and_orthogonalising_s": found.step_time_s + added_s,
    }


def _utilisation(found: StepEstimate, cluster: Cluster, convention: str) -> float | None:
    try:
        return needed_utilisation(
            found.setup,
            convention,
            tokens_per_s_per_gpu=found.tokens_per_s_per_gpu,
            peak_flops_per_s=cluster.peak_flops_per_s,
        )
    except InputError:
        return None


def memory_data(found: MemoryEstimate) -> dict[str, object]:
    """Return the memory of every pipeline rank for JSON."""
    likely = found.fit_probability
    return {
        "ranks": [
            {
                "pipeline_rank": rank.pipeline_rank,
                "layers": rank.layers,
                "parameters": rank.parameters,
                "in_flight": rank.in_flight,
                "bytes": {part.name: part.bytes for part in rank.parts},
                "lines": [[line.part, line.name, line.bytes] for line in rank.lines],
                "allocated_bytes": rank.allocated_bytes,
                "reserved_bytes": rank.reserved_bytes,
                "outside_bytes": rank.outside_bytes,
                "total_bytes": rank.total_bytes,
            }
            for rank in found.ranks
        ],
        "fullest_rank": found.fullest.pipeline_rank,
        "printed_bytes": found.printed_bytes,
        "capacity_bytes": found.capacity_bytes,
        "free_bytes": found.free_bytes,
        "spread_bytes": found.spread_bytes,
        "fits": found.fits,
        "fit_probability": None if likely is None else round(likely, LIKELY_DIGITS),
    }
