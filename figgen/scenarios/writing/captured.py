"""CUDA graphs and overlap of the expert exchange as options of Megatron-Core, as far as it allows.

What it refuses: NVIDIA/Megatron-LM at d98e8a64, megatron/core/transformer/transformer_config.py and
megatron/training/arguments.py::validate_args.
"""

from __future__ import annotations

from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.writing.megatron_options import Option


def captured_options(setup: TrainingSetup, left_out: dict[str, str]) -> list[Option]:
    """Return the options for overlap of the expert exchange and for CUDA graphs, if chosen."""
    found: list[Option] = []
    if overlaps_experts(setup, left_out):
        found.append(("overlap_moe_expert_parallel_comm", ""))
    refused = _not_captured(setup)
    if refused:
        left_out["cuda_graphs"] = refused
    if setup.cuda_graphs == "none" or refused:
        found.append(("cuda_graph_impl", "none"))
    elif setup.cuda_graphs == "step":
        found.append(("cuda_graph_impl", "full_iteration"))
    elif setup.cuda_graphs == "layers":
        parts = ["attn", *(["moe_router", "moe_preprocess"] if setup.shape.experts else ["mlp"])]
        found.append(("cuda_graph_impl", "transformer_engine"))
        found.append(("cuda_graph_scope", " ".join(parts)))
    return found


def overlaps_experts(setup: TrainingSetup, left_out: dict[str, str]) -> bool:
    """Return whether the expert exchange runs behind computing, as the job wants it."""
    parallel = setup.parallel
    if setup.expert_overlap != "on" or parallel.ep == 1:
        return False
    if parallel.pp > 1 and setup.schedule != "interleaved-1f1b":
        left_out["expert_overlap"] = "it requires several chunks per pipeline rank"
    elif setup.recomputation.method:
        left_out["expert_overlap"] = "it excludes recomputation of whole layers"
    return "expert_overlap" not in left_out


def needs_current_scaling(setup: TrainingSetup) -> bool:
    """Return whether the job recomputes what FP8 with delayed scaling cannot."""
    again = setup.recomputation.modules
    return "layernorm" in again or "moe_act" in again


def _not_captured(setup: TrainingSetup) -> str:
    """Return why CUDA graphs can't capture what the job recomputes, or ""."""
    again = setup.recomputation
    if setup.cuda_graphs == "layers" and again.method:
        return "graphs of layers have no whole layers to recompute"
    drops = setup.dropout and any(module in again.modules for module in ("core_attn", "mlp", "moe"))
    if setup.cuda_graphs in ("layers", "step") and drops:
        return "graphs capture no dropout that is computed again"
    return ""
