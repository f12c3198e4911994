"""Layers since GPT: LLaMA's changes, and kinds of attention with their caches."""

from __future__ import annotations

from dataclasses import replace

from figgen.catalog import model
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.modern_layers import (
    gated_width,
    latent_attention_parameters,
    normalization_parameters,
    windowed_pairs,
)
from figgen.formulas.serving import (
    cache_bytes_per_token,
    latent_cache_bytes_per_token,
    windowed_cache_bytes,
)
from figgen.models.shape.transformer import flops_per_token, keys_met
from figgen.plotting.placed import headings
from figgen.plotting.words import identifier
from figgen.registry import figure


@figure("llama-changes")
def llama_changes(*, hidden: int = 8192, layers: int = 80, sequence: int = 2048) -> Table:
    """GPT's and LLaMA's parts at one size: parameters, FLOPs and kept bytes per token.

    A gated block keeps its input, the two inputs of the gate and their product, as Megatron-LM's
    fused function and compiled code do; unfused code also keeps the gate's activation.
    """
    check_between("hidden", hidden, 64, 10**6)
    check_between("layers", layers, 1, 10**4)
    f = int(gated_width(hidden, 256))
    norms = [int(normalization_parameters(layers, hidden, vectors)) for vectors in (2, 1)]
    # Parameters in the model; operations and bytes of one token in one layer. Operations of norms
    # and rotations are counted one by one, those of matrices twice their parameters.
    rows: tuple[tuple[Scalar, ...], ...] = (
        ("norms", "LayerNorm", norms[0], 2 * 7 * hidden, 4 * hidden),
        ("", "RMSNorm", norms[1], 2 * 4 * hidden, 4 * hidden),
        ("positions", "learned table", sequence * hidden, 0, 0),
        ("", "rotary", 0, 2 * 3 * hidden, 0),
        ("feed-forward", "GELU, 4h", layers * 8 * hidden**2, 16 * hidden**2, 18 * hidden),
        ("", f"SwiGLU, {f:,}", layers * 3 * hidden * f, 6 * hidden * f, 2 * hidden + 6 * f),
        ("biases", "all matrices", layers * 9 * hidden, 9 * hidden, 0),
        ("", "none", 0, 0, 0),
    )
    columns = (
        *headings("part", "kind"),
        *headings("parameters", "operations per token per layer", spec="si"),
        Column(label="kept per token per layer", unit="B", spec="bytes"),
    )
    gelu, swiglu = rows[4], rows[5]
    return Table(
        columns=columns,
        rows=rows,
        values={
            "width": Named(f),
            "norms_gpt": Named(norms[0]),
            "norms_llama": Named(norms[1]),
            "more_parameters": Named(float(swiglu[2]) / float(gelu[2]) - 1),
            "more_kept": Named(float(swiglu[4]) / float(gelu[4]) - 1),
            "more_kept_apart": Named((float(swiglu[4]) + 2 * f) / float(gelu[4]) - 1),
            "rotary_share": Named(float(rows[3][3]) / (24 * hidden**2)),
            "positions": Named(sequence * hidden),
        },
    )


def _heads_row(name: str, kv_heads: int, seen: float) -> tuple[Scalar, ...]:
    """Return a layer with this many KV heads: parameters, cache of a token and of `seen` tokens."""
    shape = model("llama-3-70b").shape
    width = shape.hidden * shape.head_dim
    cache = float(cache_bytes_per_token(1, kv_heads * shape.head_dim, 2))
    return name, 2 * width * shape.heads + 2 * width * kv_heads, cache, seen * cache, 1.0


def _latent_attention() -> tuple[int, float]:
    """Return parameters and cache per token of a layer of DeepSeek-V3."""
    shape = model("deepseek-v3").shape
    latent = shape.latent
    assert latent is not None
    parameters = latent_attention_parameters(
        shape.hidden,
        shape.heads,
        latent.query_rank,
        latent.kv_rank,
        latent.nope_head_dim,
        latent.rope_head_dim,
        latent.value_head_dim,
    )
    cache = latent_cache_bytes_per_token(1, latent.kv_rank, latent.rope_head_dim, 2)
    return int(parameters), float(cache)


@figure("attention-kinds")
def attention_kinds(*, context: int = 131072, window: int = 4096, windowed: int = 5) -> Table:
    """One layer's attention in several kinds: parameters, cache, and pairs of query and key.

    Of `windowed` + 1 layers one sees everything. Widths are those of Llama 3.1 70B, and of
    DeepSeek-V3 for latent attention.
    """
    check_between("context", context, window, 10**9)
    check_between("windowed", windowed, 0, 1000)
    full_pairs = float(windowed_pairs(context, context))
    some = (full_pairs + windowed * float(windowed_pairs(context, window))) / (windowed + 1)
    seen = (context + windowed * window) / (windowed + 1)
    kv_heads = model("llama-3-70b").shape.kv_heads
    mla, small = _latent_attention()
    grouped = f"grouped, {windowed} of {windowed + 1} in a window"
    rows: tuple[tuple[Scalar, ...], ...] = (
        _heads_row("all heads", model("llama-3-70b").shape.heads, context),
        _heads_row(f"grouped, {kv_heads} heads", kv_heads, context),
        _heads_row("one key head", 1, context),
        (*_heads_row(grouped, kv_heads, seen)[:-1], some / full_pairs),
        ("latent (DeepSeek-V3)", mla, small, context * small, 1.0),
    )
    keys = ("all", "grouped", "one", "windowed", "latent")
    values = {
        f"{key}_cache": Named(float(row[3]), "B") for key, row in zip(keys, rows, strict=True)
    }
    columns = (
        Column(label="attention of one layer"),
        Column(label="parameters", spec="si"),
        *headings("cache per token", f"cache of {context:,} tokens", unit="B", spec="bytes"),
        Column(label="pairs of causal attention", spec=".1%"),
    )
    return Table(
        columns=columns,
        rows=rows,
        values=values | {"pairs": Named(some / full_pairs), "latent_parameters": Named(mla)},
    )


@figure("windowed-models")
def windowed_models(
    *,
    models: tuple[str, ...] = ("mistral-7b", "gemma-3-27b", "gpt-oss-120b"),
    sequence: int = 32768,
    context: int = 131072,
) -> Table:
    """Models with windows: FLOPs of a step over `sequence` tokens, cache of `context` tokens."""
    check_between("sequence", sequence, 1, 10**9)
    check_between("context", context, 1, 10**9)
    rows: list[tuple[Scalar, ...]] = []
    values = {"sequence": Named(sequence, "token"), "context": Named(context, "token")}
    for name in models:
        found, shape = model(name), model(name).shape
        windowed = shape.windowed_layers(0, shape.layers)
        attention = keys_met(shape, sequence) / (shape.layers * sequence)
        bare = flops_per_token(
            replace(shape, window=0, full_every=0), sequence=sequence, causal=True
        )
        work = flops_per_token(shape, sequence=sequence, causal=True) / bare
        width = shape.kv_heads * shape.head_dim
        cache = float(windowed_cache_bytes(shape.layers, windowed, shape.window, context, width, 2))
        whole = float(windowed_cache_bytes(shape.layers, 0, shape.window, context, width, 2))
        rows.append(
            (
                found.title,
                f"{windowed} of {shape.layers}",
                shape.window,
                attention,
                work,
                cache,
                whole,
            )
        )
        key = identifier(name)
        values |= {
            f"{key}_attention": Named(attention),
            f"{key}_work": Named(work),
            f"{key}_cache": Named(cache, "B"),
            f"{key}_whole": Named(whole, "B"),
        }
    columns = (
        *headings("model", "layers with a window"),
        Column(label="window", unit="token", spec=","),
        *headings(f"attention at {sequence:,}", f"all matmuls at {sequence:,}", spec=".0%"),
        *headings(f"cache of {context:,}", "without windows", unit="B", spec="bytes"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
