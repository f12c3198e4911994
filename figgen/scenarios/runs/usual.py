"""What frameworks do where a run's record does not say."""

from __future__ import annotations

from collections.abc import Mapping

from figgen.models.shape.model_shape import ModelShape

USUAL_ZERO = {"llm-foundry": 3, "torchtitan": 3, "fsdp": 3, "maxtext": 3, "paxml": 3, "nanotron": 0}
"""What frameworks shard when nobody says; 1 for all others."""


def usual_chunks(framework: str, shape: ModelShape, pp: int) -> int:
    """Large dense models of NeMo and Megatron-LM run interleaved where nobody says how."""
    if pp == 1 or shape.experts or framework not in ("nemo", "megascale", "fsdp"):
        return 1
    return max(1, min(6, shape.layers // pp))


def usual_microbatch(framework: str, zero_stage: int, sizes: Mapping[str, int], batch: int) -> int:
    """One sequence; under ZeRO-3 without a pipeline the batch at once, at most 16 sequences.

    torchtitan cuts a replica's batch into as many microbatches as it has stages.
    """
    if framework == "torchtitan" and sizes["pp"] > 1:
        return max(1, batch // sizes["dp"] // sizes["pp"])
    if zero_stage < 3 or sizes["pp"] > 1:
        return 1
    return max(1, min(16, batch // sizes["dp"]))


def usual_recompute(framework: str, shape: ModelShape) -> str:
    """torchtitan's configurations repeat whole layers of its large models, parts of small ones."""
    if framework != "torchtitan":
        return ""
    return "full" if shape.hidden >= 8192 else "selective"


def usual_expert_tp(framework: str, shape: ModelShape, sizes: Mapping[str, int]) -> int | None:
    """1 where recipes set it, else what the framework takes (None).

    Megatron-Bridge's do for all models, NeMo's for DeepSeek-V3 and not for Grok-1, as the tables of
    NVIDIA/dgxc-benchmarking at 68eaf7e have it.
    """
    if sizes["ep"] == 1:
        return None
    fits = sizes["gpus"] % (sizes["tp"] * sizes["ep"] * sizes["pp"]) == 0
    deepseek = framework == "nemo" and shape.latent is not None
    return None if fits and not deepseek and framework != "megatron-bridge" else 1
