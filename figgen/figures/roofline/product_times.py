"""One matrix product as times: of its work, of loading it, and of adding up where it is split."""

from __future__ import annotations

from figgen.catalog import hardware_preset
from figgen.charts import Axis, Bars, Named, Segment
from figgen.errors import check_between
from figgen.formulas.collectives import all_reduce_bytes_sent
from figgen.registry import figure

BYTES = 2  # 16-bit entries
GPUS = 2


@figure("product-times")
def product_times(
    *,
    preset: str = "h100-ndr",
    inputs: int = 14_336,
    outputs: int = 4096,
    few: int = 16,
    tokens: int = 8192,
) -> Bars:
    """Tokens × inputs times inputs × outputs on one GPU, and with the inputs split over two.

    At the dense peak and full bandwidths; each of the two holds half of the inputs' rows and finds
    a term of every output, so that an all-reduce of tokens × outputs adds them up.
    """
    for name, size in (("inputs", inputs), ("outputs", outputs), ("few", few), ("tokens", tokens)):
        check_between(name, size, 1, 2**24)
    node = hardware_preset(preset)
    gpu = node.accelerator
    links = {
        "": 0.0,
        "NVLink": node.scale_up_bandwidth_bytes_per_s,
        "network": node.network_bandwidth_bytes_per_s,
    }
    rows = (("few", few, 1, ""), ("one", tokens, 1, ""), ("near", tokens, GPUS, "NVLink"),
            ("far", tokens, GPUS, "network"))  # fmt: skip
    times: dict[str, list[float]] = {"computing": [], "loading": [], "sending": []}
    values = {"tokens": Named(tokens, "token"), "few": Named(few, "token")}
    labels = []
    for key, count, parts, link in rows:
        held = inputs // parts
        flops = 2.0 * count * held * outputs
        loaded = BYTES * (count * held + held * outputs + count * outputs)
        sent = float(all_reduce_bytes_sent(parts, BYTES * count * outputs)) if link else 0.0
        each = (
            flops / gpu.peak_flops_per_s("bf16"),
            loaded / gpu.hbm_bandwidth_bytes_per_s,
            sent / links[link] if link else 0.0,
        )
        words = f"{count:,} tokens, {parts} GPU{'s' * (parts > 1)}"
        labels.append(words + (f", {link}" if link else ""))
        for name, time in zip(times, each, strict=True):
            times[name].append(time)
        values |= {f"{key}_{name}": Named(s, "s") for name, s in zip(times, each, strict=True)}
        values |= {
            f"{key}_flops": Named(flops, "FLOP"),
            f"{key}_loaded": Named(loaded, "B"),
            f"{key}_sent": Named(sent, "B"),
            f"{key}_slowest": Named(max(each), "s"),
        }
        if sent:
            values[f"{key}_ratio"] = Named(flops / sent, "FLOP/B")
    roles = ("forward", "neutral", "exposed")
    return Bars(
        labels=tuple(labels),
        segments=tuple(
            Segment(name=name, role=role, lengths=tuple(times[name]))
            for name, role in zip(times, roles, strict=True)
        ),
        axis=Axis(label="time of the product", unit="s", low=0.0, spec="time"),
        stacked=False,
        values=values,
    )
