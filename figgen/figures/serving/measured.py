"""Published rates of decoding beside the bound of the memory."""

from __future__ import annotations

from typing import NamedTuple

from figgen.catalog import accelerator, model
from figgen.charts import Column, Named, Scalar, Table
from figgen.figures.serving.decode import token_cache_bytes
from figgen.formulas.serving import decode_reading_time
from figgen.registry import figure


class Published(NamedTuple):
    """Answers that were begun together and written to their end; tokens/s are those of a GPU."""

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
"""Answers of 2,048 tokens on H100, weights and caches in FP8; reading the prompt is in the rate.

Source: NVIDIA/TensorRT-LLM@138f96d4, docs/source/performance.md, Peak Throughput, v0.6.1."""


@figure("decode-measured")
def decode_measured(*, chip: str = "h100-sxm-80gb") -> Table:
    """Published seconds of a step against reading weights and caches once, in FP8."""
    memory = accelerator(chip).hbm_bandwidth_bytes_per_s
    rows: list[tuple[Scalar, ...]] = []
    shares: list[float] = []
    for one in TENSORRT_LLM:
        found = model(one.model)
        # Half of the answer is written when the mean token is.
        cached = (one.prompt + one.answer / 2) * token_cache_bytes(found, 1)
        held = float(found.read_parameters)
        least = float(decode_reading_time(held, cached, one.sequences, one.gpus * memory))
        measured = one.sequences / (one.gpus * one.tokens_per_s)
        shares.append(least / measured)
        rows.append((
            found.title, one.gpus, one.sequences, one.prompt, held + one.sequences * cached,
            least, measured, least / measured,
        ))  # fmt: skip
    columns = (
        Column(label="model"),
        Column(label="H100"),
        Column(label="answers at once"),
        Column(label="tokens of a prompt"),
        Column(label="read in a step", unit="B", spec="bytes"),
        Column(label="at least", unit="s", spec="time"),
        Column(label="measured", unit="s", spec="time"),
        Column(label="of the bandwidth", spec=".0%"),
    )
    (answer,) = {one.answer for one in TENSORRT_LLM}
    values = {"least": Named(min(shares)), "most": Named(max(shares)), "answer": Named(answer)}
    return Table(columns=columns, rows=tuple(rows), values=values)
