"""Defaults of frameworks for what a run's record does not give."""

from __future__ import annotations

from collections.abc import Mapping

from figgen.models.shape.model_shape import ModelShape

USUAL_ZERO = {"llm-foundry": 3, "torchtitan": 3, "fsdp": 3, "maxtext": 3, "paxml": 3, "nanotron": 0}
"""Default ZeRO stages of frameworks; others have 1."""


def usual_chunks(framework: str, shape: ModelShape, pp: int) -> int:
    """Return the default chunks per pipeline rank.

    Large dense models of NeMo and Megatron-LM are interleaved by default.
    """
    if pp == 1 or shape.experts or framework not in ("nemo", "megascale", "fsdp"):
        return 1
    return max(1, min(6, shape.layers // pp))


def usual_microbatch(framework: str, zero_stage: int, sizes: Mapping[str, int], batch: int) -> int:
    """Return the default microbatch: one sequence, or more under ZeRO-3 without a pipeline.

    ZeRO-3 then takes the whole batch, up to 16 sequences. torchtitan cuts a replica's batch into as
    many microbatches as it has stages.
    """
    if framework == "torchtitan" and sizes["pp"] > 1:
        return max(1, batch // sizes["dp"] // sizes["pp"])
    if zero_stage < 3 or sizes["pp"] > 1:
        return 1
    return max(1, min(16, batch // sizes["dp"]))


def usual_recompute(framework: str, shape: ModelShape) -> str:
    """Return the default recomputation.

    torchtitan's configurations recompute whole layers of large models and parts of small ones.
    """
    if framework != "torchtitan":
        return ""
    return "full" if shape.hidden >= 8192 else "selective"


def usual_expert_tp(framework: str, shape: ModelShape, sizes: Mapping[str, int]) -> int | None:
    """Return 1 if recipes set ETP to it, or None for the framework's default.

    Megatron-Bridge's recipes do for all models, NeMo's for DeepSeek-V3 but not for Grok-1, by the
    tables of NVIDIA/dgxc-benchmarking at 68eaf7e.
    """
    if sizes["ep"] == 1:
        return None
    fits = sizes["gpus"] % (sizes["tp"] * sizes["ep"] * sizes["pp"]) == 0
    deepseek = framework == "nemo" and shape.latent is not None
    return None if fits and not deepseek and framework != "megatron-bridge" else 1
