"""Mixtures of experts: parameters, work per byte, TP or EP, a whole step."""

from __future__ import annotations

from figgen import catalog
from figgen.catalog import Model, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Column, Named, Scalar, Segment, Table
from figgen.errors import InputError
from figgen.figures.parameters import HardwareName, ModelName
from figgen.formulas.compute_and_roofline import efficiency_without_overlap, ridge_point
from figgen.formulas.experts import (
    expert_all_to_all_bytes,
    expert_all_to_all_ccr,
    total_to_active_ratio,
)
from figgen.models.shape.model_shape import ExpertShape
from figgen.models.step.step_rows import sent_by_axis
from figgen.plotting.placed import headings
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.options.resolve import training_step

BYTES, PASSES = 2, 4
MODELS = ("mixtral-8x7b", "deepseek-v3", "qwen-3-235b-a22b", "gpt-oss-120b")


def mixture(model: Model) -> ExpertShape:
    """Return the experts of a model. Raises InputError for a dense model."""
    if model.shape.experts is None:
        raise InputError("model", expected="a mixture of experts", got=model.name)
    return model.shape.experts


@figure("moe-models")
def moe_models(
    *,
    models: tuple[str, ...] = (
        "mixtral-8x7b",
        "mixtral-8x22b",
        "deepseek-v2",
        "deepseek-v3",
        "qwen-3-30b-a3b",
        "qwen-3-235b-a22b",
        "gpt-oss-120b",
        "kimi-k2",
    ),
) -> Table:
    """Total and active parameters of published mixtures, summed from their shapes."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in models:
        found, key = catalog_model(name), identifier(name)
        experts, counts = mixture(found), found.counts
        total, active = found.parameters, found.active_parameters
        ratio = float(total_to_active_ratio(total, active))
        chosen = f"{experts.top_k} of {experts.count}" + (
            f" + {experts.shared}" if experts.shared else ""
        )
        share = counts.routed_experts / total
        rows.append((found.title, chosen, experts.ffn_hidden, total, active, ratio, share))
        values |= {
            f"{key}_total": Named(total, "param"),
            f"{key}_active": Named(active, "param"),
            f"{key}_ratio": Named(ratio),
            f"{key}_share": Named(share),
        }
    columns = (
        *headings("model", "experts per token"),
        Column(label="width of one", spec=","),
        *headings("total", "active", unit="param", spec="si"),
        Column(label="total over active", spec=".1f"),
        Column(label="in routed experts", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("moe-ccr", recomputed=True)
def moe_ccr(
    *, models: tuple[ModelName, ...] = MODELS, preset: HardwareName = "h100-ndr", ep: int = 8
) -> Bars:
    """FLOPs of experts per byte of their all-to-alls, and the share of the peak this allows.

    A group of `ep` ranks is in one node, or has a rank on each of `ep` nodes.
    """
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s()
    inside = ridge_point(peak, node.scale_up_bandwidth_bytes_per_s)
    outside = ridge_point(peak, node.network_bandwidth_bytes_per_s)
    labels, inner, outer = [], [], []
    values = {"inside_ridge": Named(inside, "FLOP/B"), "outside_ridge": Named(outside, "FLOP/B")}
    for name in models:
        found, key = catalog_model(name), identifier(name)
        width = mixture(found).ffn_hidden
        ratio = float(expert_all_to_all_ccr(width, BYTES, ep))
        shares = [float(efficiency_without_overlap(ratio, ridge)) for ridge in (inside, outside)]
        labels.append(f"{found.title}, {width:,} wide")
        inner.append(shares[0])
        outer.append(shares[1])
        values |= {
            f"{key}_ccr": Named(ratio, "FLOP/B"),
            f"{key}_inside": Named(shares[0]),
            f"{key}_outside": Named(shares[1]),
        }
    return Bars(
        labels=tuple(labels),
        segments=(
            Segment(
                name=f"EP {ep} over {node.scale_up.short_title}", role="tp", lengths=tuple(inner)
            ),
            Segment(
                name=f"EP {ep}, a rank and its NIC on each node",
                role="exposed",
                lengths=tuple(outer),
            ),
        ),
        axis=Axis(label="share of the peak without overlap", low=0.0, high=1.0, spec=".0%"),
        stacked=False,
        values=values,
    )


@figure("experts-tp-or-ep", recomputed=True)
def experts_tp_or_ep(
    *, models: tuple[ModelName, ...] = MODELS, ranks: int = 8, tokens: int = 4096
) -> Bars:
    """Bytes with whole experts spread over a group (EP), or each expert cut over it (TP)."""
    labels, by_ep, by_tp = [], [], []
    values: dict[str, Named] = {"ranks": Named(ranks, "rank"), "tokens": Named(tokens, "token")}
    for name in models:
        found, key = catalog_model(name), identifier(name)
        experts = mixture(found)
        if experts.ffn_hidden % ranks or experts.count % ranks:
            expected = f"a divisor of {experts.count} and {experts.ffn_hidden}"
            raise InputError("ranks", expected=expected, got=ranks)
        spread = float(
            expert_all_to_all_bytes(PASSES, experts.top_k, tokens, found.hidden, BYTES, ranks)
        )
        # With sequence parallelism, a gather and a scatter of all tokens each way.
        cut = float(PASSES * (ranks - 1) * tokens * found.hidden * BYTES)
        per_expert = ranks * tokens * experts.top_k / experts.count
        labels.append(f"{found.title}, {experts.top_k} of {experts.count}")
        by_ep.append(spread)
        by_tp.append(cut)
        values |= {
            f"{key}_ep": Named(spread, "B"),
            f"{key}_tp": Named(cut, "B"),
            f"{key}_ratio": Named(cut / spread),
            f"{key}_narrow": Named(experts.ffn_hidden // ranks),
            f"{key}_rows": Named(per_expert, "token"),
        }
    return Bars(
        labels=tuple(labels),
        segments=(
            Segment(name=f"EP {ranks}", role="ep", lengths=tuple(by_ep)),
            Segment(name=f"TP {ranks}", role="tp", lengths=tuple(by_tp)),
        ),
        axis=Axis(label="bytes that a rank sends per layer", unit="B", low=0.0, spec="bytes"),
        stacked=False,
        values=values,
    )


@figure("moe-step")
def moe_step(*, runs: tuple[str, ...] = ("llama-3-405b-8k-16384", "deepseek-v3")) -> Table:
    """Published runs side by side: FLOPs and bytes of one GPU per step, by axis."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in runs:
        run, key = catalog.run(name), identifier(name)
        sent = sent_by_axis(training_step(run=name).estimate.rows)
        parts = [
            sum(size for axis, size in sent.items() if axis in axes)
            for axes in (("tp", "cp"), ("ep", "etp"), ("dp", "dp-cp", "edp"), ("pp",))
        ]
        if run.global_batch is None or run.gpus is None:
            raise InputError(
                f"run {name!r}", expected="a published batch and number of GPUs", key="runs"
            )
        tokens = run.global_batch * run.sequence / run.gpus
        work = tokens * run.model.flops_per_token
        total = sum(parts)
        rows.append((run.model.title, tokens, work, *parts, work / total))
        values |= {
            f"{key}_{what}_bytes": Named(size, "B")
            for what, size in zip(("tp", "ep", "dp", "pp"), parts, strict=True)
        }
        values[f"{key}_flops"] = Named(work, "FLOP")
        values[f"{key}_ccr"] = Named(work / total, "FLOP/B")
    columns = (
        Column(label="run"),
        Column(label="tokens per GPU", spec=",.0f"),
        Column(label="work per GPU", unit="FLOP", spec="si"),
        *headings("TP, CP", "EP", "DP, EDP", "PP", unit="B", spec="si"),
        Column(label="work per byte", unit="FLOP/B", spec=",.0f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
