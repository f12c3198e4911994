"""Time to cast the inputs of 8-bit and 4-bit matmuls, and the time that these save."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog import accelerator
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.compute_and_roofline import cast_break_even_width, cast_bytes_per_element
from figgen.plotting.placed import headings
from figgen.registry import figure


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRecipe:
    """How a recipe casts an element: reads, bits of element and scale, elements per scale.

    A scale for a whole tensor has 0 `elements`.
    """

    key: str
    title: str
    chip: str
    dtype: str
    reads: int
    bits: int
    scale_bits: int
    elements: int
    source: str


TE = "NVIDIA/TransformerEngine, docs, features/low_precision_training"
RECIPES = (
    CastRecipe(
        key="delayed",
        title="FP8, a scale per tensor, of the steps before",
        chip="h100-sxm-80gb",
        dtype="fp8",
        reads=1,
        bits=8,
        scale_bits=32,
        elements=0,
        source=TE,
    ),
    CastRecipe(
        key="current",
        title="FP8, a scale per tensor, of its own maximum",
        chip="h100-sxm-80gb",
        dtype="fp8",
        reads=2,
        bits=8,
        scale_bits=32,
        elements=0,
        source=TE,
    ),
    CastRecipe(
        key="blocks",
        title="FP8, 1 × 128",
        chip="h100-sxm-80gb",
        dtype="fp8",
        reads=1,
        bits=8,
        scale_bits=32,
        elements=128,
        source="DeepSeek-V3, arXiv:2412.19437, section 3.3.2",
    ),
    CastRecipe(
        key="mxfp8",
        title="MXFP8, 1 × 32",
        chip="b200-sxm-hgx",
        dtype="fp8",
        reads=1,
        bits=8,
        scale_bits=8,
        elements=32,
        source=TE,
    ),
    CastRecipe(
        key="nvfp4",
        title="NVFP4, 1 × 16 and one per tensor",
        chip="b200-sxm-hgx",
        dtype="fp4",
        reads=2,
        bits=4,
        scale_bits=8,
        elements=16,
        source=TE,
    ),
)


@figure("cast-passes")
def cast_passes(*, tokens: int = 8192, inputs: int = 4096, outputs: int = 14336) -> Table:
    """A linear layer in training: three matmuls, casts of its input and of its gradient.

    Times are minimal: matmuls at the dense peak of their type, casts at the memory's bandwidth.
    Weights are cast once per step for all its microbatches and are not in the columns.
    """
    for name, size in (("tokens", tokens), ("inputs", inputs), ("outputs", outputs)):
        check_between(name, size, 1, 10**9)
    work, elements = 3 * 2.0 * tokens * inputs * outputs, tokens * (inputs + outputs)
    rows: list[tuple[Scalar, ...]] = []
    values = {
        "tokens": Named(tokens, "token"),
        "inputs": Named(inputs),
        "outputs": Named(outputs),
        "mean": Named(2 * inputs * outputs / (inputs + outputs)),
    }
    for one in RECIPES:
        chip = accelerator(one.chip)
        wide, narrow = chip.peak_flops_per_s(), chip.peak_flops_per_s(one.dtype)
        memory = chip.hbm_bandwidth_bytes_per_s
        each = float(
            cast_bytes_per_element(
                one.reads, 16, one.bits, one.scale_bits, one.elements or tokens * inputs
            )
        )
        casts, saved = each * elements / memory, work / wide - work / narrow
        weights = each * inputs * outputs / memory
        width = float(cast_break_even_width(each, memory, wide, narrow))
        rows.append((
            one.title, chip.title, each, work / wide, work / narrow, casts, casts / saved, width,
        ))  # fmt: skip
        values |= {
            f"{one.key}_bytes": Named(each, "B"),
            f"{one.key}_casts": Named(casts, "s"),
            f"{one.key}_share": Named(casts / saved),
            f"{one.key}_width": Named(width),
            f"{one.key}_speedup": Named(work / wide / (work / narrow + casts)),
            f"{one.key}_weights": Named(weights, "s"),
            f"{one.key}_share_alone": Named((casts + weights) / saved),
        }
    columns = (
        *headings("recipe", "on"),
        Column(label="bytes moved per element", spec=".3g"),
        *headings("matmuls in BF16", "narrow matmuls", "casts", unit="s", spec="time"),
        Column(label="casts, of the time saved", spec=".0%"),
        Column(label="pays off from width", spec=",.0f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
