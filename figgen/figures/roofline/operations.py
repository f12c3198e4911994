"""Every operation of one layer on the memory roofline."""

from __future__ import annotations

from math import fsum

from figgen.catalog import accelerator, model
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.formulas.compute_and_roofline import attainable_flops
from figgen.formulas.modern_layers import product_intensity
from figgen.models.shape.model_shape import ModelShape
from figgen.registry import figure


@figure("layer-operations")
def layer_operations(
    *, model_name: str = "llama-3-8b", chip: str = "h100-sxm-80gb", tokens: int = 8192
) -> Table:
    """Forward of a dense, gated layer, one sequence: FLOPs, bytes, intensity and least time.

    Tensors are 16-bit and move once in and once out; the attention core keeps its scores on chip.
    """
    check_between("tokens", tokens, 1, 10**8)
    shape, gpu = model(model_name).shape, accelerator(chip)
    if shape.experts or shape.latent:
        raise InputError("model", expected="a dense one with grouped heads", got=model_name)
    peak, memory = gpu.peak_flops_per_s(), gpu.hbm_bandwidth_bytes_per_s
    found = _operations(shape, tokens)
    times = {
        name: work / float(attainable_flops(peak, memory, work / moved))
        for name, (work, moved) in found.items()
    }
    total, work = fsum(times.values()), fsum(each for each, _ in found.values())
    bound = {name for name, (ops, moved) in found.items() if ops / moved < peak / memory}
    thin = fsum(times[name] for name in bound)
    rows: list[tuple[Scalar, ...]] = [
        (
            name,
            ops,
            moved,
            ops / moved,
            times[name],
            times[name] / total,
            "memory" if name in bound else "arithmetic",
        )
        for name, (ops, moved) in found.items()
    ]
    rows.append(("the layer", work, fsum(m for _, m in found.values()), "", total, 1.0, ""))
    columns = (
        Column(label="operation"),
        Column(label="work", unit="FLOP", spec="flops"),
        Column(label="moves", unit="B", spec="bytes"),
        Column(label="FLOP/B", spec="unit"),
        Column(label="at least", unit="s", spec="time"),
        Column(label="share", spec=".1%"),
        Column(label="bound by"),
    )
    return Table(
        columns=columns,
        rows=tuple(rows),
        values={
            "total": Named(total, "s"),
            "ridge": Named(peak / memory, "FLOP/B"),
            "thin_time": Named(thin / total),
            "thin_work": Named(fsum(found[name][0] for name in bound) / work),
            "peak_share": Named(work / total / peak),
            "tokens": Named(tokens),
        },
    )


def _operations(shape: ModelShape, tokens: int) -> dict[str, tuple[float, float]]:
    """Return FLOPs and bytes of each operation; all but matmuls are counted per element."""
    h, q, kv, f = (
        shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim,
        shape.ffn_hidden,
    )  # fmt: skip

    def product(rows: int, columns: int) -> tuple[float, float]:
        work = 2.0 * tokens * rows * columns
        return work, work / float(product_intensity(tokens, rows, columns, 2))

    return {
        "norm, twice": (2 * 4.0 * tokens * h, 2 * 2 * 2.0 * tokens * h),
        "queries, keys, values": product(h, q + 2 * kv),
        "rotation": (3.0 * tokens * (q + kv), 2 * 2.0 * tokens * (q + kv)),
        "attention core, causal": (2.0 * tokens * tokens * q, 2.0 * tokens * (2 * q + 2 * kv)),
        "way out of attention": product(q, h),
        "adding, twice": (2.0 * tokens * h, 2 * 3 * 2.0 * tokens * h),
        "gate and up": product(h, 2 * f),
        "SwiGLU": (5.0 * tokens * f, 3 * 2.0 * tokens * f),
        "down": product(f, h),
    }
