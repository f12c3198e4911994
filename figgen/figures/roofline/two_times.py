"""The roofline as two times: that of the work of a microbatch, and that of its messages."""

from __future__ import annotations

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.compute_and_roofline import training_flops
from figgen.registry import figure

BYTES, PASSES = 2, 3  # 16-bit messages; two gathers of weights and one scatter of gradients


@figure("two-times")
def two_times(
    *,
    preset: str = "h100-ndr",
    model: str = "llama-3-8b",
    tokens: tuple[int, ...] = (512, 2048, 4096, 8192, 32_768),
) -> Table:
    """Seconds of computing and of sending for a fully sharded microbatch, by a GPU's tokens.

    At the dense peak and the links' full bandwidth, in a group so large that a GPU sends all.
    """
    for one in tokens:
        check_between("tokens", one, 1, 10**9)
    node, parameters = hardware_preset(preset), catalog_model(model).parameters
    peak = node.accelerator.peak_flops_per_s("bf16")
    sent = PASSES * BYTES * parameters
    alone = sent / node.network_bandwidth_bytes_per_s
    whole = sent / node.node_bandwidth_bytes_per_s
    rows: list[tuple[Scalar, ...]] = []
    values = {
        "sent": Named(sent, "B"), "alone": Named(alone, "s"), "whole": Named(whole, "s"),
    }  # fmt: skip
    for one in tokens:
        flops = float(training_flops(parameters, one))
        work = flops / peak
        rows.append((one, flops / sent, work, alone, work / max(work, alone),
                     whole, work / max(work, whole)))  # fmt: skip
        values |= {
            f"work_{one}": Named(work, "s"),
            f"flops_{one}": Named(flops, "FLOP"),
            f"alone_{one}": Named(work / max(work, alone)),
            f"whole_{one}": Named(work / max(work, whole)),
        }
    columns = (
        Column(label="tokens", spec=","),
        Column(label="FLOP per byte", spec=",.0f"),
        Column(label="computing", unit="s", spec="time"),
        Column(label="sending, one port", unit="s", spec="time"),
        Column(label="share, one port", spec=".0%"),
        Column(label="sending, whole nodes", unit="s", spec="time"),
        Column(label="share, whole nodes", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
