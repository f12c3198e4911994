"""The roofline as two times: computing a microbatch, and sending its messages."""

from __future__ import annotations

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Named, Segment
from figgen.errors import check_between
from figgen.figures.parameters import HardwareName, ModelName
from figgen.formulas.compute_and_roofline import training_flops
from figgen.registry import figure

BYTES, PASSES = 2, 3  # 16-bit messages; two gathers of weights and one scatter of gradients


@figure("two-times", recomputed=True)
def two_times(
    *,
    preset: HardwareName = "h100-ndr",
    model: ModelName = "llama-3-8b",
    tokens: tuple[int, ...] = (2048, 4096, 8192, 16_384, 32_768),
) -> Bars:
    """Seconds of computing and of sending for a fully sharded microbatch, by a GPU's tokens.

    At the dense peak, through a network port of its own at full bandwidth, in a group so large
    that a GPU sends all.
    """
    for one in tokens:
        check_between("tokens", one, 1, 10**9)
    node, parameters = hardware_preset(preset), catalog_model(model).parameters
    peak = node.accelerator.peak_flops_per_s("bf16")
    sent = PASSES * BYTES * parameters
    sent_s = sent / node.network_bandwidth_bytes_per_s
    flops = {one: float(training_flops(parameters, one)) for one in tokens}
    values = {"sent": Named(sent, "B"), "sending": Named(sent_s, "s")}
    for one in tokens:
        work = flops[one] / peak
        values |= {
            f"work_{one}": Named(work, "s"),
            f"flops_{one}": Named(flops[one], "FLOP"),
            f"share_{one}": Named(work / max(work, sent_s)),
        }
    return Bars(
        labels=tuple(f"{one:,} tokens" for one in tokens),
        segments=(
            Segment(
                name="computing", role="forward", lengths=tuple(flops[one] / peak for one in tokens)
            ),
            Segment(name="sending", role="exposed", lengths=(sent_s,) * len(tokens)),
        ),
        axis=Axis(label="time of a microbatch", unit="s", low=0.0, spec="time"),
        stacked=False,
        values=values,
    )
