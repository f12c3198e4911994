"""Draws layers of published models with random layouts and rates, for 300 reproducible cases.

Every number is drawn from a seed of its field's name and its case, so that adding a field leaves
the others unchanged.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from figgen import catalog
from figgen.models.pipeline.filling import idle_for
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job, shape_numbers

CASES = 300
MODELS = (
    "llama-3-70b", "gpt-3-175b", "mixtral-8x7b", "deepseek-v3", "qwen-3-235b-a22b", "gpt-oss-120b",
    "gemma-3-27b", "nemotron-4-340b", "granite-4-h-small", "mamba-2-hybrid-8b", "deepseek-v2",
)  # fmt: skip
COUNTED = ("loss_bytes", "accumulate_bytes", "elementwise", "cast", "permutation")
DOES = {"dispatcher": 3, "expert_overlap": 2, "cuda_graphs": 3}
HOST = ("host_layer_s", "host_expert_layer_s")
RECORDED_AS = {
    "matmul_flops_per_s": "product_flops_per_s",
    "matmul_start_s": "product_start_s",
}
"""Names under which rates were drawn when `layer_seconds.json` was recorded."""


def case(number: int) -> tuple[Job, Attained]:
    """Return one layer's job and rates."""

    def draw(name: str) -> random.Random:
        return random.Random(f"{number} {name}")

    shape = catalog.model(MODELS[number % len(MODELS)]).shape
    rates = {
        name: _rate(name, draw(RECORDED_AS.get(name, name)))
        for name in Attained.__dataclass_fields__
    }
    # The sums ran odd widths as fast as even ones, and had no tiles of attention that begin.
    rates["unaligned_share"] = 1.0
    rates["attention_start_keys"] = 0.0
    if shape.latent:
        # The sums took latent attention for two matmuls, which are five.
        rates["matmul_start_s"] = 0.0
    job = Job(**shape_numbers(shape, 0), **_layout(draw))
    # The sums cast as many outputs of a mixer as attention has.
    return (replace(job, quantized=0.0) if shape.state_space else job), Attained(**rates)


def _rate(name: str, draw: random.Random) -> float:
    """Return a rate of the order of magnitude that chips attain."""
    if name in DOES:
        return draw.randint(1, DOES[name])
    if name.endswith("flops_per_s"):
        return draw.uniform(2e14, 2e15)
    if name.endswith("bytes_per_s"):
        return draw.uniform(3e12, 8e12) if name.startswith("memory") else draw.uniform(2e10, 9e11)
    if name in HOST:
        return draw.uniform(1e-5, 1e-3)
    if name.endswith("_s"):
        return draw.uniform(1e-7, 1e-4)
    return draw.uniform(1, 9) if name in COUNTED else draw.uniform(0.05, 0.9)


def _layout(draw: Any) -> dict[str, Any]:
    def one(name: str, *among: float) -> float:
        return float(draw(name).choice(among))

    sizes = {axis: one(axis, 1, 1, 2, 4, 8) for axis in ("tp", "cp", "pp", "ep")}
    rank = one("lora_rank", 0, 0, 0, 16)
    tuned = {
        name: draw(name).randint(1, 9) * 1e6 * (rank > 0)
        for name in ("tuned_dense", "tuned_experts", "tuned_routed", "adapters", "expert_adapters")
    }
    flags = (
        "repeats_core", "overlapped", "per_tensor", "gathers_alone", "gathers_keys",
        "trades_heads", "in_order",
    )  # fmt: skip
    return {
        **sizes, **tuned, **{flag: one(flag, 0, 1) for flag in flags},
        "lora_rank": rank, "frozen_bytes": one("frozen_bytes", 2, 1, 0.5),
        "etp": one("etp", 1, 1, 2), "gpus_per_node": one("gpus_per_node", 4, 8),
        "gpus": sizes["tp"] * sizes["cp"] * sizes["pp"] * sizes["ep"] * 8,
        "chunks": 1.0, "idle": idle_for(3.0), "fullest_layers": 4.0, "head_layers": 3.0,
        "microbatch": one("microbatch", 1, 2, 4), "microbatches": 8.0,
        "sequence": one("sequence", 2048, 4096, 8192, 32768), "zero_stage": 1.0,
        "repeats_layer": one("repeats_layer", 0, 0.3, 1), "quantized": one("quantized", 0, 1),
        "gathers": 0.0, "scatters": 0.0, "gradient_bytes": 4.0,
        "keys_in_turns": one("keys_in_turns", 0, 1), "dispatcher": one("dispatcher", 0, 1, 2, 3),
        "expert_overlap": one("expert_overlap", 0, 1, 2), "cuda_graphs": one("graphs", 0, 1, 2, 3),
        "expert_skew": one("expert_skew", 1, 1.5),
    }  # fmt: skip
