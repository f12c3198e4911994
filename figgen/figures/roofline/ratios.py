"""FLOPs per byte sent by strategy: their value, what changes them, and the tokens needed."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Column, Curves, Named, Rule, Scalar, Segment, Table
from figgen.figures.parameters import Dtype, HardwareName, ModelName
from figgen.figures.roofline.levels import BYTES, PRESETS, levels
from figgen.formulas.compute_and_roofline import (
    critical_tokens_of_group,
    data_parallel_ccr,
    efficiency_with_overlap,
    efficiency_with_partial_overlap,
    efficiency_without_overlap,
    fsdp_ccr,
    ridge_point,
)
from figgen.models.algorithms.communication_ratio import (
    BACKWARD_SHARE,
    group_bandwidth_bytes_per_s,
    mixed_fsdp_ccr,
    pipeline_boundary_ccr,
    tensor_parallel_ccr,
)
from figgen.plotting.placed import headings
from figgen.plotting.series import doublings, line
from figgen.plotting.words import identifier
from figgen.registry import figure

MODELS = ("llama-3-8b", "llama-3-70b", "gpt-3-175b", "llama-3-405b")
FP32_BYTES, FP8_BYTES = 4, 1
ACCUMULATED = 4


def groups(node: HardwarePreset, nodes: int) -> tuple[tuple[str, str, int, float], ...]:
    """Return placements of a data-parallel group: key, words, size, and B/s of one rank."""
    per_node = node.gpus_per_node
    scale_up = node.scale_up_bandwidth_bytes_per_s
    network = node.network_bandwidth_bytes_per_s
    lent = group_bandwidth_bytes_per_s(scale_up, network, per_node)
    return (
        ("inside", "one node", per_node, scale_up),
        ("nodes", "whole nodes", nodes * per_node, lent),
        ("single", "one per node", nodes, network),
    )


@figure("critical-tokens", recomputed=True)
def critical_tokens_bars(*, nodes: int = 16, dtype: Dtype = "bf16") -> Bars:
    """Tokens per rank per microbatch at which DDP and FSDP hide, by GPU and placement.

    Both have the same limit: gradients hide behind the backward pass alone, 4 FLOPs per parameter
    and token for two passes of bytes, sharded weights behind every pass, 6 for three.
    """
    places: dict[str, list[float]] = {}
    gpus = []
    values: dict[str, Named] = {
        "nodes": Named(nodes, "node"),
    }
    for name in PRESETS:
        node = hardware_preset(name)
        peak = node.accelerator.peak_flops_per_s(dtype)
        gpus.append(node.gpu)
        for key, words, dp, bandwidth in groups(node, nodes):
            hides = critical_tokens_of_group(peak, bandwidth, BYTES, dp)
            places.setdefault(words, []).append(hides)
            values[f"{name.partition('-')[0]}_{key}"] = Named(hides, "token")
            values[f"{key}_ranks"] = Named(dp, "rank")
    return Bars(
        labels=tuple(gpus),
        segments=tuple(
            Segment(name=words, role=role, lengths=tuple(places[words]))
            for words, role in zip(places, ("tp", "dp", "exposed"), strict=True)
        ),
        axis=Axis(label="tokens per rank per microbatch", low=0.0, spec=",.0f"),
        stacked=False,
        values=values,
    )


@figure("ccr-by-batch")
def ccr_by_batch(
    *,
    preset: str = "h100-ndr",
    sequences: tuple[int, ...] = (1, 2, 4, 16, 64, 256),
    sequence_length: int = 2048,
    dp: int = 64,
) -> Table:
    """CCR of data parallelism alone over the sequences of a rank's microbatch."""
    node = hardware_preset(preset)
    ridge = ridge_point(node.accelerator.peak_flops_per_s(), node.network_bandwidth_bytes_per_s)
    rows = []
    for count in sequences:
        tokens = count * sequence_length
        ratios = (
            data_parallel_ccr(tokens, BYTES, dp),
            data_parallel_ccr(tokens, FP32_BYTES, dp),
            fsdp_ccr(tokens, BYTES, dp),
        )
        ddp = efficiency_with_partial_overlap(ratios[0], ridge, BACKWARD_SHARE)
        rows.append((count, tokens, *ratios, ddp, efficiency_with_overlap(ratios[2], ridge)))
    columns = (
        *headings("sequences", "tokens", spec=","),
        *headings("DDP, BF16", "DDP, FP32", "FSDP", unit="FLOP/B", spec=",.0f"),
        *headings("DDP, of peak", "FSDP, of peak", spec=".0%"),
    )
    values = {
        "ridge": Named(ridge, "FLOP/B"),
        "first_ddp": Named(rows[0][2], "FLOP/B"),
        "last_ddp": Named(rows[-1][2], "FLOP/B"),
        "first_ddp_share": Named(rows[0][5]),
        "first_fsdp_share": Named(rows[0][6]),
        "sequence_length": Named(sequence_length, "token"),
        "dp": Named(dp, "rank"),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("ccr-of-models")
def ccr_of_models(
    *,
    models: tuple[str, ...] = MODELS,
    tokens: int = 4096,
    dp: int = 16,
    tensor_parallel: tuple[int, ...] = (2, 4, 8),
    stage_layers: int = 8,
) -> Table:
    """CCR of every strategy for named models, each on the link that it uses."""
    rows: list[tuple[Scalar, ...]] = []
    values = {
        "tokens": Named(tokens, "token"),
        "dp": Named(dp, "rank"),
        "stage_layers": Named(stage_layers, "layer"),
    }
    for name in models:
        found, key = catalog_model(name), identifier(name)
        by_tp = {t: tensor_parallel_ccr(found.shape, tp=t) for t in tensor_parallel}
        boundary = pipeline_boundary_ccr(found.shape, stage_layers=stage_layers)
        data = (data_parallel_ccr(tokens, BYTES, dp), fsdp_ccr(tokens, BYTES, dp))
        rows.append((found.title, found.hidden, *data, *by_tp.values(), boundary))
        values |= {f"{key}_tp{t}": Named(ccr, "FLOP/B") for t, ccr in by_tp.items()}
        values[f"{key}_pp"] = Named(boundary, "FLOP/B")
        values |= {"ddp": Named(data[0], "FLOP/B"), "fsdp": Named(data[1], "FLOP/B")}
    strategies = (
        "DDP",
        "FSDP",
        *(f"TP {t}" for t in tensor_parallel),
        f"PP, {stage_layers} layers",
    )
    ratios = (Column(label=name, unit="FLOP/B", spec=",.0f") for name in strategies)
    columns = (Column(label="model"), Column(label="hidden h", spec=","), *ratios)
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("tensor-parallel-ccr", explorable=True, recomputed=True)
def tensor_parallel_ccr_curves(
    *, preset: HardwareName = "h100-ndr", models: tuple[ModelName, ...] = MODELS, most: int = 64
) -> Curves:
    """CCR of tensor parallelism over its size, one line per model, with the ridges of two links.

    The shares in the values are those without overlap. A group larger than a node fills whole nodes
    and sends over all their NICs.
    """
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s()
    _, scale_up, nic, _ = levels(node, 1)
    inside, single = (ridge_point(peak, w.bandwidth_bytes_per_s) for w in (scale_up, nic))
    lent = ridge_point(peak, groups(node, 2)[1][-1])
    sizes = doublings(most)
    series = []
    values = {"ridge_lent": Named(lent, "FLOP/B"), "ridge_single": Named(single, "FLOP/B")}
    for index, name in enumerate(models):
        found, key = catalog_model(name), identifier(name)
        y = tuple(tensor_parallel_ccr(found.shape, tp=t) for t in sizes)
        series.append(line(found.title, map(float, sizes), y, index))
        for size, ccr in zip(sizes, y, strict=True):
            ridge = inside if size <= node.gpus_per_node else lent
            values[f"{key}_tp{size}"] = Named(ccr, "FLOP/B")
            values[f"{key}_tp{size}_share"] = Named(efficiency_without_overlap(ccr, ridge))
            strided = efficiency_without_overlap(ccr, single)
            values[f"{key}_tp{size}_strided_share"] = Named(strided)
    return Curves(
        x=Axis(label="tensor-parallel size T", scale="log2", spec=","),
        y=Axis(label="FLOP per byte sent", unit="FLOP/B", scale="log10", spec="unit"),
        series=tuple(series),
        rules=(
            Rule(axis="y", at=inside, label=f"{scale_up.name} ridge {inside:,.0f}"),
            Rule(axis="y", at=single, label=f"{nic.name} ridge, 1 rank per node, {single:,.0f}"),
        ),
        values=values,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A case of `ccr-changes`: FLOP per byte of DDP and FSDP, and the ridge of the NIC."""

    words: str
    ddp: float
    fsdp: float
    ridge: float
    microbatches: int = 1

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of the peak: DDP with its last backward overlapped, FSDP with every pass."""
        behind = BACKWARD_SHARE / self.microbatches
        ddp = efficiency_with_partial_overlap(self.ddp, self.ridge, behind)
        return float(ddp), float(efficiency_with_overlap(self.fsdp, self.ridge))


def changes(node: HardwarePreset, tokens: int, dp: int) -> dict[str, Change]:
    """One change at a time to `tokens` in a microbatch of each of `dp` ranks, alone on a NIC."""
    chip, nic = node.accelerator, node.network_bandwidth_bytes_per_s
    bf16, fp8 = (ridge_point(chip.peak_flops_per_s(dtype), nic) for dtype in ("bf16", "fp8"))
    wide = f"{16 * dp:,} ranks, same tokens per rank"
    halved = f"{2 * dp:,} ranks, same global batch"
    accumulated = f"{ACCUMULATED} microbatches accumulated"
    gathered = "FP8 compute, weights gathered in FP8"
    return {
        "base": _change("no change", tokens, dp, bf16),
        "pair": _change("2 ranks", tokens, 2, bf16),
        "wide": _change(wide, tokens, 16 * dp, bf16),
        "halved": _change(halved, tokens // 2, 2 * dp, bf16),
        "larger": _change("microbatch twice as large", 2 * tokens, dp, bf16),
        "accumulated": _change(accumulated, tokens, dp, bf16, accumulated=ACCUMULATED),
        "fp32": _change("gradients in FP32", tokens, dp, bf16, reduce=FP32_BYTES),
        "fp8": _change("FP8 compute, messages in BF16", tokens, dp, fp8),
        "fp8_gather": _change(gathered, tokens, dp, fp8, gather=FP8_BYTES),
    }


def _change(
    words: str,
    tokens: int,
    dp: int,
    ridge: float,
    *,
    gather: int = BYTES,
    reduce: int = BYTES,
    accumulated: int = 1,
) -> Change:
    ddp = accumulated * float(data_parallel_ccr(tokens, reduce, dp))
    fsdp = mixed_fsdp_ccr(
        tokens, gather_bytes_per_param=gather, reduce_bytes_per_param=reduce, dp=dp
    )
    return Change(words=words, ddp=ddp, fsdp=fsdp, ridge=ridge, microbatches=accumulated)


@figure("ccr-changes", recomputed=True)
def ccr_changes(*, preset: HardwareName = "h100-ndr", tokens: int = 8192, dp: int = 64) -> Bars:
    """One change at a time: share of the peak with one NIC, for DDP and for FSDP.

    `tokens` are those of one microbatch on one rank; FSDP exchanges behind every pass, DDP once
    per step, behind the backward of the last microbatch.
    """
    cases = changes(hardware_preset(preset), tokens, dp)
    values = {
        "tokens": Named(tokens, "token"),
        "dp": Named(dp, "rank"),
        "wide": Named(16 * dp, "rank"),
    }
    for key, case in cases.items():
        ddp, fsdp = case.shares
        values |= {f"{key}_ddp": Named(ddp), f"{key}_fsdp": Named(fsdp)}
        values |= {
            f"{key}_ddp_over_ridge": Named(case.ddp / case.ridge),
            f"{key}_fsdp_over_ridge": Named(case.fsdp / case.ridge),
        }
    return Bars(
        labels=tuple(case.words for case in cases.values()),
        segments=tuple(
            Segment(
                name=name,
                role=f"series-{at + 1}",
                lengths=tuple(case.shares[at] for case in cases.values()),
            )
            for at, name in enumerate(("DDP", "FSDP"))
        ),
        axis=Axis(label="share of the peak", low=0.0, high=1.0, spec=".0%"),
        stacked=False,
        values=values,
    )
