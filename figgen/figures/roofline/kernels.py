"""Costs of kernels besides FLOPs: memory passes that fusion saves, and launches."""

from __future__ import annotations

from math import fsum

from figgen.catalog import accelerator, model
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.serving import decode_reading_time
from figgen.models.shape.model_shape import ModelShape
from figgen.plotting.placed import headings
from figgen.registry import figure

# Kernels as transformers' LlamaRMSNorm, apply_rotary_pos_emb and LlamaMLP are written, each as
# bytes read and written per element; of vectors of a token or a channel kernels count, not bytes.
NORM = ((2, 4), (4, 4), (4, 0), (0, 0), (0, 0), (4, 4), (4, 2), (2, 2))
"""To FP32, squared, averaged, plus ε, its inverse root, scaled, to 16 bits, times the weight."""
ADDITION = ((4, 2),)
ROTATION = ((2, 2), (1, 1), (2, 2), (2, 2), (4, 2))
"""Times the cosine, half negated, halves joined, times the sine, summed."""
GATING = ((2, 2), (4, 2))
"""SiLU of the gate, times the other half."""

GPT_FAST = (
    ("eager PyTorch", 2.0, 25.5, "gpt-fast's first version"),
    ("compiled, CUDA graphs", 2.0, 104.9, "Base"),
    ("and weights of 8 bits", 1.0, 155.58, "8-bit"),
    ("and weights of 4 bits", 0.625, 196.80, "4-bit, groups of 32"),
)
"""Tokens/s of Llama 2 7B on an A100, one sequence: bytes of a weight, and what was measured.

A group of 32 weights of 4 bits shares a scale and a zero point of 16 bits each.
Source: pytorch-labs/gpt-fast@0f925b5d, README, Benchmarks; the first is the post it links to."""


@figure("fusion-bytes")
def fusion_bytes(
    *, model_name: str = "llama-3-8b", chip: str = "h100-sxm-80gb", tokens: int = 8192
) -> Table:
    """Kernels and bytes of a layer's forward pass without its matmuls, unfused and fused."""
    check_between("tokens", tokens, 1, 10**8)
    memory = accelerator(chip).hbm_bandwidth_bytes_per_s
    rows: list[tuple[Scalar, ...]] = []
    for name, (times, width, kernels, fused, into) in _fusions(model(model_name).shape).items():
        apart = fsum(read + written for read, written in kernels) * width * tokens
        joined = float(fused * width * tokens)
        saved = (apart - joined) / memory
        count = times * len(kernels)
        rows.append((name, count, apart, into, joined, 1 - joined / apart, saved))
    apart, joined = (fsum(float(row[at]) for row in rows) for at in (2, 4))
    counts = [sum(int(row[at]) for row in rows) for at in (1, 3)]
    saved = (apart - joined) / memory
    rows.append(("together", counts[0], apart, counts[1], joined, 1 - joined / apart, saved))
    columns = (
        *headings("operation", "kernels"),
        Column(label="they move", unit="B", spec="bytes"),
        Column(label="fused"),
        Column(label="it moves", unit="B", spec="bytes"),
        Column(label="saved", spec=".0%"),
        Column(label="which takes", unit="s", spec="time"),
    )
    values = {
        "tokens": Named(tokens),
        "kernels": Named(counts[0]),
        "fused": Named(counts[1]),
        "apart": Named(apart, "B"),
        "joined": Named(joined, "B"),
        "saved": Named(saved, "s"),
        "share": Named(1 - joined / apart),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)


def _fusions(
    shape: ModelShape,
) -> dict[str, tuple[int, int, tuple[tuple[int, int], ...], int, int]]:
    """Return the counts of each kind of operation, unfused and fused.

    They are its number, elements per token and kernels; if fused, bytes per element and kernels.
    """
    turned = (shape.heads + shape.kv_heads) * shape.head_dim
    return {
        # Reads the sum so far and what is added, writes the new sum and its norm.
        "adding and RMSNorm, twice": (2, 2 * shape.hidden, ADDITION + NORM, 4 + 4, 2),
        "rotation of queries and keys": (2, turned, ROTATION, 2 + 2, 1),
        "SwiGLU": (1, shape.ffn_hidden, GATING, 4 + 2, 1),
    }


@figure("decode-techniques")
def decode_techniques(*, model_name: str = "llama-2-7b", chip: str = "a100-sxm-80gb") -> Table:
    """Published tokens per second of one sequence, compared with reading all weights per token."""
    found, gpu = model(model_name), accelerator(chip)
    read = found.read_parameters
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    first = 1 / GPT_FAST[0][2]
    for at, (name, weight_bytes, rate, row) in enumerate(GPT_FAST):
        held = weight_bytes * read
        least = float(decode_reading_time(held, 0, 1, gpu.hbm_bandwidth_bytes_per_s))
        rows.append((name, held, least, 1 / rate, least * rate, first * rate, row))
        values |= {
            f"least_{at}": Named(least, "s"),
            f"measured_{at}": Named(1 / rate, "s"),
            f"share_{at}": Named(least * rate),
            f"rate_{at}": Named(rate, "token/s"),
        }
    waited = 1 / GPT_FAST[0][2] - 1 / GPT_FAST[1][2]
    values |= {"waited": Named(waited, "s"), "waited_layer": Named(waited / found.layers, "s")}
    columns = (
        Column(label="technique"),
        Column(label="weights read", unit="B", spec="bytes"),
        *headings("at least", "measured", unit="s", spec="time"),
        Column(label="of the bandwidth", spec=".0%"),
        Column(label="faster", spec=".1f"),
        Column(label="its name there"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
