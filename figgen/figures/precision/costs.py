"""Savings of narrow formats: peaks, bytes per parameter and axis, time of a layer."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog import accelerator, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Column, Named, Scalar, Table
from figgen.errors import InputError, check_between, check_share
from figgen.figures.parameters import HardwareName, ModelName
from figgen.formulas.data_parallel import zero_bytes_sent
from figgen.formulas.experts import expert_all_to_all_bytes
from figgen.formulas.placement import split_pipeline_rank_bytes
from figgen.formulas.tensor_parallel import tensor_parallel_layer_bytes
from figgen.models.shape.recipes import RECIPES, Recipe
from figgen.models.shape.transformer import dense_layer_weights
from figgen.models.step.attained import CORE_BACKWARD
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.registry import figure

TYPES = ("tf32", "bf16", "fp8", "fp4")
DISPATCHED_TOKENS = 4096


@figure("peak-by-type")
def peak_by_type(
    *,
    accelerators: tuple[str, ...] = (
        "a100-sxm-80gb",
        "h100-sxm-80gb",
        "h200-sxm-141gb",
        "b200-sxm-hgx",
        "b300-sxm-hgx",
        "mi300x",
    ),
) -> Table:
    """Dense peaks by data type, the sparse FP8 rate of datasheets, and the ratio."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in accelerators:
        found = accelerator(name)
        short = found.short_title
        rates: list[Scalar] = []
        for kind in TYPES:
            value = getattr(found, kind)
            rates.append(value.value if value is not None else "–")
            if value is not None:
                values[f"{short.lower()}_{kind}"] = Named(value.value, "FLOP/s")
        sparse = dict(found.sparse_footnote).get("fp8")
        bf16 = found.peak_flops_per_s("bf16")
        ratio: Scalar = "–" if found.fp8 is None else found.fp8.value / bf16
        rows.append((short, *rates, sparse.value if sparse else "–", ratio))
    columns = (
        Column(label="GPU"),
        *(Column(label=f"{kind.upper()}, dense", unit="FLOP/s", spec="flops.4") for kind in TYPES),
        Column(label="FP8 as printed, 2:4 sparse", unit="FLOP/s", spec="flops.4"),
        Column(label="FP8 over BF16", spec=".2f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


FP8_RECIPES = (
    # Derived: 2 + 1 + 1 bytes of weights.
    Recipe(
        name="te20",
        label="BF16 weights, two FP8 copies kept",
        weight_bytes=4,
        gradient_bytes=4,
        optimizer_bytes=12,
    ),
    # DeepSeek-V3, arXiv:2412.19437, section 3.3.
    Recipe(
        name="dsv3",
        label="DeepSeek-V3: FP8 weights, BF16 moments",
        weight_bytes=1,
        gradient_bytes=4,
        optimizer_bytes=8,
    ),
    # MS-AMP, optimization levels.
    Recipe(
        name="msamp",
        label="MS-AMP O3: FP8 nearly throughout",
        weight_bytes=1,
        gradient_bytes=1,
        optimizer_bytes=5,
    ),
)
SHOWN = ("fp32_16", "mcore20", "mcore18", "zero16")


@figure("bytes-by-recipe", explorable=True, recomputed=True)
def bytes_by_recipe(*, parameters: float = 7e9) -> Bars:
    """Bytes of weights, gradients and optimizer state by recipe, for `parameters`."""
    recipes = (*(RECIPES[name] for name in SHOWN), *FP8_RECIPES)
    values = {"parameters": Named(parameters, "param")}
    for each in recipes:
        values[f"{each.name}_each"] = Named(each.total_bytes, "B")
        values[f"{each.name}_bytes"] = Named(each.total_bytes * parameters, "B")
    parts = {
        "weights": "weight_bytes",
        "gradients": "gradient_bytes",
        "optimizer": "optimizer_bytes",
    }
    return Bars(
        labels=tuple(f"{each.label}: {each.total_bytes:g}" for each in recipes),
        segments=segments(
            {
                part: [getattr(each, field) * parameters for each in recipes]
                for part, field in parts.items()
            }
        ),
        axis=Axis(label="model state, unsharded", unit="B", low=0.0, spec="bytes"),
        values=values,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One class of traffic: its name, what it sends per byte of an element, and bytes by run."""

    key: str
    name: str
    elements: float
    bf16: float
    usual: float
    narrow: float


def _messages(model: str, tp: int, pp: int, dp: int, microbatches: int) -> tuple[Message, ...]:
    shape, experts = catalog_model(model).shape, catalog_model("deepseek-v3").shape
    if shape.experts is not None or experts.experts is None:
        raise InputError("model", expected="a dense model", got=model)
    tokens, hidden = shape.sequence, shape.hidden
    layer = tensor_parallel_layer_bytes(4, tp, 1, tokens, hidden, 1)
    tensor = layer * shape.layers / pp * microbatches
    boundary = float(split_pipeline_rank_bytes(microbatches, 1, 1, tokens, hidden, 1, tp))
    half = zero_bytes_sent(catalog_model(model).parameters / (tp * pp), 1, dp, 1) / 2
    sent = expert_all_to_all_bytes(
        passes=1,
        ep=experts.experts.count // 4,
        tokens=DISPATCHED_TOKENS,
        hidden=experts.hidden,
        top_k=experts.experts.top_k,
        bytes_per_element=1,
    )
    return (
        Message(
            key="tp",
            name="TP: activations and their gradients",
            elements=tensor,
            bf16=2,
            usual=2,
            narrow=1,
        ),
        Message(
            key="pp",
            name="PP: activations and their gradients",
            elements=boundary,
            bf16=2,
            usual=2,
            narrow=1,
        ),
        Message(
            key="grads",
            name="DP: gradients, reduce-scatter",
            elements=half,
            bf16=4,
            usual=4,
            narrow=1,
        ),
        Message(
            key="weights", name="DP: weights, all-gather", elements=half, bf16=2, usual=1, narrow=1
        ),
        Message(
            key="dispatch", name="EP: dispatch, one layer", elements=sent, bf16=2, usual=1, narrow=1
        ),
        Message(
            key="combine", name="EP: combine, one layer", elements=sent, bf16=2, usual=2, narrow=1
        ),
    )


@figure("precision-traffic")
def precision_traffic(
    *, model: str = "llama-3-70b", tp: int = 8, pp: int = 4, dp: int = 16, microbatches: int = 16
) -> Table:
    """Bytes that a rank sends per step by class of traffic: BF16, common FP8, FP8 everywhere.

    TP, PP and DP are for `model`, one sequence per microbatch; EP is for a layer of DeepSeek-V3
    with 4,096 tokens per rank over 64 ranks. Each rank of TP sends its share of a pipeline's
    message.
    """
    check_between("microbatches", microbatches, 1, 10**6)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    total = {"bf16": 0.0, "usual": 0.0, "narrow": 0.0}
    for each in _messages(model, tp, pp, dp, microbatches):
        sizes = {kind: each.elements * getattr(each, kind) for kind in total}
        if not each.name.startswith("EP"):
            total = {kind: total[kind] + size for kind, size in sizes.items()}
        rows.append(
            (
                each.name,
                f"{each.bf16:g} → {each.usual:g}",
                *sizes.values(),
                sizes["usual"] / sizes["bf16"],
            )
        )
        values[f"{each.key}_bf16"] = Named(sizes["bf16"], "B")
        values[f"{each.key}_usual"] = Named(sizes["usual"], "B")
    rows.append(("TP, PP and DP together", "", *total.values(), total["usual"] / total["bf16"]))
    values |= {f"total_{kind}": Named(size, "B") for kind, size in total.items()}
    values["dispatched"] = Named(DISPATCHED_TOKENS, "token")
    values["usual_ratio"] = Named(total["usual"] / total["bf16"])
    values["narrow_ratio"] = Named(total["narrow"] / total["bf16"])
    columns = (
        *headings("traffic", "bytes per element, BF16 run → FP8 run"),
        *headings("BF16 run", "FP8 run, as usual", "if all were FP8", unit="B", spec="bytes"),
        Column(label="usual over BF16", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("precision-layer-time", explorable=True, recomputed=True)
def precision_layer_time(
    *,
    model: ModelName = "llama-3-70b",
    preset: HardwareName = "b200-ndr",
    tp: int = 8,
    utilization: float = 0.6,
) -> Bars:
    """Forward and backward of one layer on one rank: matmuls, attention core, TP messages.

    The attention core stays in BF16. Messages run at the full rate of the scale-up link and are
    exposed. Cases: matmuls in BF16 and, if the chip supports them, FP8, FP8 with one-byte messages,
    and FP4.
    """
    check_share("utilization", utilization)
    shape, node = catalog_model(model).shape, hardware_preset(preset)
    tokens = shape.sequence
    products = 6 * dense_layer_weights(shape) * tokens / tp
    # 4·s²·a·d forward, half of it under the causal mask.
    core = (1 + CORE_BACKWARD) * 4 * tokens**2 * shape.attention_width / 2 / tp
    offered = [kind for kind in TYPES[1:] if kind in node.accelerator.peaks]
    rate = {kind: utilization * node.accelerator.peak_flops_per_s(kind) for kind in offered}
    link = node.scale_up_bandwidth_bytes_per_s
    sent = {
        b: tensor_parallel_layer_bytes(4, tp, 1, tokens, shape.hidden, b) / link for b in (2, 1)
    }
    cases = {"bf16": ("BF16", products / rate["bf16"], sent[2])}
    if "fp8" in rate:
        cases["fp8"] = ("FP8, messages in BF16", products / rate["fp8"], sent[2])
        cases["fp8_both"] = ("FP8, messages too", products / rate["fp8"], sent[1])
    if "fp4" in rate:
        cases["fp4"] = ("FP4, messages in BF16", products / rate["fp4"], sent[2])
    attention = core / rate["bf16"]
    whole = {key: work + attention + message for key, (_, work, message) in cases.items()}
    values = {"tokens": Named(tokens, "token"), "tp": Named(tp)}
    for key, (_, _, message) in cases.items():
        values[f"{key}_s"] = Named(whole[key], "s")
        values[f"{key}_sent"] = Named(message / whole[key])
        values[f"{key}_faster"] = Named(whole["bf16"] / whole[key])
    values["gpu"] = Named(node.gpu)
    lengths = {
        "matmuls": [work for _, work, _ in cases.values()],
        "attention core, BF16": [attention] * len(cases),
        "TP messages": [message for _, _, message in cases.values()],
    }
    return Bars(
        labels=tuple(title for title, *_ in cases.values()),
        segments=segments(lengths, ("forward", "backward", "exposed")),
        axis=Axis(label="time of a layer, forward and backward", unit="s", low=0.0, spec="time"),
        values=values,
    )
