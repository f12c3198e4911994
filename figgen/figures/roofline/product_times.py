"""Times of one matmul: computing, loading, and adding up if it is split."""

from __future__ import annotations

from math import inf

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.charts import Axis, Bars, Named, Segment
from figgen.errors import check_between
from figgen.figures.parameters import HardwareName
from figgen.formulas.collectives import all_reduce_bytes_sent
from figgen.registry import figure

BYTES = 2  # 16-bit entries
GPUS = 2


@figure("product-times", recomputed=True)
def product_times(
    *,
    preset: HardwareName = "h100-ndr",
    inputs: int = 14_336,
    outputs: int = 4096,
    few: int = 16,
    tokens: int = 8192,
    split: bool = False,
) -> Bars:
    """Tokens × inputs times inputs × outputs on one GPU, for few and for many tokens.

    Times are at the dense peak and full bandwidths. With `split`, the few tokens make room for the
    same matmul on two GPUs: each holds half of the inputs' rows and computes a term of every
    output; an all-reduce of tokens × outputs adds the terms, over NVLink or over the network.
    """
    for name, size in (("inputs", inputs), ("outputs", outputs), ("few", few), ("tokens", tokens)):
        check_between(name, size, 1, 2**24)
    node = hardware_preset(preset)
    gpu = node.accelerator
    one = ("one", tokens, 1, inf, "")
    rows = (one, *_halves(node, tokens)) if split else (("few", few, 1, inf, ""), one)
    labels: list[str] = []
    times: list[dict[str, float]] = []
    values = {"tokens": Named(tokens, "token"), "few": Named(few, "token")}
    for key, count, parts, bandwidth, over in rows:
        held = inputs // parts
        flops = 2.0 * count * held * outputs
        loaded = BYTES * (count * held + held * outputs + count * outputs)
        sent = float(all_reduce_bytes_sent(parts, BYTES * count * outputs))
        each = {
            "computing": flops / gpu.peak_flops_per_s("bf16"),
            "loading": loaded / gpu.hbm_bandwidth_bytes_per_s,
            "sending": sent / bandwidth,
        }
        times.append(each)
        labels.append(f"{count:,} tokens, {parts} GPU{'s' * (parts > 1)}{over}")
        values |= {f"{key}_{name}": Named(s, "s") for name, s in each.items()}
        values |= {
            f"{key}_flops": Named(flops, "FLOP"),
            f"{key}_loaded": Named(loaded, "B"),
            f"{key}_sent": Named(sent, "B"),
            f"{key}_slowest": Named(max(each.values()), "s"),
        }
        if sent:
            values[f"{key}_ratio"] = Named(flops / sent, "FLOP/B")
    roles = {"computing": "forward", "loading": "neutral"}
    if split:
        roles["sending"] = "exposed"
    return Bars(
        labels=tuple(labels),
        segments=tuple(
            Segment(name=name, role=role, lengths=tuple(each[name] for each in times))
            for name, role in roles.items()
        ),
        axis=Axis(label="time of the matmul", unit="s", low=0.0, spec="time"),
        stacked=False,
        values=values,
    )


def _halves(
    node: HardwarePreset, tokens: int
) -> tuple[tuple[str, int, int, float, str], tuple[str, int, int, float, str]]:
    """Return the two ways to split over two GPUs: key, tokens, GPUs, bandwidth in B/s, words."""
    near, far = node.scale_up_bandwidth_bytes_per_s, node.network_bandwidth_bytes_per_s
    return ("near", tokens, GPUS, near, ", NVLink"), ("far", tokens, GPUS, far, ", network")
