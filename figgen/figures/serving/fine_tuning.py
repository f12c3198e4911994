"""Fine-tuning: adapters, quantized weights, and what optimizers keep."""

from __future__ import annotations

from figgen.catalog import model
from figgen.catalog.models import Model
from figgen.charts import Axis, Bars, Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.fine_tuning import (
    adapter_parameters,
    block_bits,
    doubly_quantized_bits,
    factored_moment_numbers,
    newton_schulz_overhead,
)
from figgen.plotting.series import segments
from figgen.registry import figure

NF4_BYTES = float(doubly_quantized_bits(4, 8, 64, 32, 256)) / 8
ADAM8_BYTES = 2 * float(block_bits(8, 32, 2048)) / 8
"""Two moments of eight bits, a 32-bit scale for each 2,048."""

ADAM_BYTES = 16
"""Weights and gradients in 16 bits, master weights and two moments in 32."""


def layer_matrices(found: Model) -> tuple[tuple[int, int], ...]:
    """Rows and columns of the seven matrices of a dense, gated layer."""
    h, kv, f = found.hidden, found.kv_heads * found.head_dim, found.ffn_hidden
    q = found.heads * found.head_dim
    return ((h, q), (h, kv), (h, kv), (q, h), (h, f), (h, f), (f, h))


def adapted_parameters(found: Model, low_rank: int) -> int:
    """Parameters of adapters beside every matrix of every layer."""
    each = sum(int(adapter_parameters(*sides, low_rank)) for sides in layer_matrices(found))
    return found.layers * each


@figure("fine-tuning-memory")
def fine_tuning_memory(*, model_name: str = "llama-3-8b", low_rank: int = 16) -> Bars:
    """State of a model that is fine-tuned whole, with smaller moments, or beside frozen weights."""
    check_between("low_rank", low_rank, 1, 4096)
    found = model(model_name)
    count, extra = found.parameters, adapted_parameters(found, low_rank)
    parts = {
        "Adam, all parameters": (2 * count, 2 * count, 12 * count, 0),
        "8-bit Adam, all parameters": (2 * count, 2 * count, (4 + ADAM8_BYTES) * count, 0),
        f"LoRA, rank {low_rank}": (2 * count, 0, 0, ADAM_BYTES * extra),
        f"QLoRA, rank {low_rank}": (NF4_BYTES * count, 0, 0, ADAM_BYTES * extra),
    }
    names = ("weights", "gradients", "optimizer", "adapters and their state")
    totals = [sum(each) for each in parts.values()]
    values = {
        key: Named(total, "B")
        for key, total in zip(("adam", "adam8", "lora", "qlora"), totals, strict=True)
    }
    return Bars(
        labels=tuple(parts),
        segments=segments({
            name: [float(each[at]) for each in parts.values()] for at, name in enumerate(names)
        }),
        axis=Axis(label="model state", unit="B", low=0.0, spec="bytes"),
        values=values | {
            "trained": Named(extra), "share": Named(extra / count), "bits": Named(8 * NF4_BYTES),
        },
    )  # fmt: skip


@figure("optimizer-states")
def optimizer_states(*, model_name: str = "llama-3-8b", batch_tokens: float = 4e6) -> Table:
    """What each optimizer keeps of one model beside the weights, in 32 bits unless it says so."""
    check_between("batch_tokens", batch_tokens, 1, 1e12)
    found = model(model_name)
    count = found.parameters
    matrices = [sides for sides in layer_matrices(found) for _ in range(found.layers)]
    inner = sum(rows * columns for rows, columns in matrices)
    outer = count - inner
    factored = sum(int(factored_moment_numbers(*sides)) for sides in matrices)
    tables = 2 * int(factored_moment_numbers(found.vocab, found.hidden))
    vectors = outer - 2 * found.vocab * found.hidden
    shorter = max(min(sides) for sides in matrices)
    share = float(newton_schulz_overhead(shorter, 5, batch_tokens))
    kept = {
        "SGD": (0.0, "nothing"),
        "SGD with momentum, Lion": (4.0 * count, "nothing"),
        "Adam, AdamW": (8.0 * count, "nothing"),
        "Adam, moments in bf16": (4.0 * count, "nothing"),
        "8-bit Adam": (ADAM8_BYTES * count, "two conversions"),
        "Adafactor, no momentum": (4.0 * (factored + tables + max(0, vectors)),
                                   "row and column sums"),
        "Muon, Adam for tables and norms": (4.0 * inner + 8.0 * outer,
                                            f"{share:.1%} of the products, at most"),
    }  # fmt: skip
    rows: list[tuple[Scalar, ...]] = [
        (name, size, size / count, work) for name, (size, work) in kept.items()
    ]
    keys = ("sgd", "momentum", "adam", "adam_bf16", "adam8", "adafactor", "muon")
    values = {key: Named(size, "B") for key, (size, _) in zip(keys, kept.values(), strict=True)}
    columns = (
        Column(label="optimizer"),
        Column(label="state", unit="B", spec="bytes"),
        Column(label="bytes per parameter", spec=".3g"),
        Column(label="more work"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values | {"muon_work": Named(share)})
