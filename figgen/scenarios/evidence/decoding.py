"""Published decoding rates, and the share of memory bandwidth that they reach."""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

from figgen.catalog import accelerator, model
from figgen.catalog.models import Model
from figgen.formulas.serving import (
    cache_bytes_per_token,
    decode_reading_time,
    latent_cache_bytes_per_token,
)

MEASURED_ON = "h100-sxm-80gb"


class Published(NamedTuple):
    """A batch of answers that were decoded together; rates are tokens/s per GPU."""

    model: str
    gpus: int
    sequences: int
    prompt: int
    answer: int
    tokens_per_s: float


TENSORRT_LLM = (
    Published("llama-2-7b", 1, 112, 128, 2048, 6818),
    Published("llama-2-7b", 1, 48, 2048, 2048, 2740),
    Published("llama-2-70b", 4, 480, 128, 2048, 1486),
    Published("llama-2-70b", 2, 64, 2048, 2048, 547),
)
"""Answers of 2,048 tokens on H100, weights and caches in FP8; the rate includes prefill.

Source: NVIDIA/TensorRT-LLM@138f96d4, docs/source/performance.md, Peak Throughput, v0.6.1."""


def token_cache_bytes(found: Model, bytes_per_element: float = 2.0) -> float:
    """Return the bytes of a model's cache per token."""
    shape = found.shape
    if shape.latent:
        return float(
            latent_cache_bytes_per_token(
                shape.layers, shape.latent.kv_rank, shape.latent.rope_head_dim, bytes_per_element
            )
        )
    width = shape.kv_heads * shape.head_dim
    return float(cache_bytes_per_token(shape.layers, width, bytes_per_element))


class DecodeStep(NamedTuple):
    """Bytes of weights and of one answer's cache, and least and measured seconds of a step."""

    held_bytes: float
    cache_bytes: float
    least_s: float
    measured_s: float


def decode_step(one: Published, memory_bytes_per_s: float) -> DecodeStep:
    """Return the mean step of a published rate; its caches hold half of the answer's tokens."""
    found = model(one.model)
    cached = (one.prompt + one.answer / 2) * token_cache_bytes(found, 1)
    held = float(found.read_parameters)
    least = float(decode_reading_time(held, cached, one.sequences, one.gpus * memory_bytes_per_s))
    return DecodeStep(held, cached, least, one.sequences / (one.gpus * one.tokens_per_s))


def decoding_share() -> float:
    """Return the mean share of memory bandwidth that a single GPU reached, without messages."""
    memory = accelerator(MEASURED_ON).hbm_bandwidth_bytes_per_s
    steps = [decode_step(one, memory) for one in TENSORRT_LLM if one.gpus == 1]
    return fsum(step.least_s / step.measured_s for step in steps) / len(steps)
