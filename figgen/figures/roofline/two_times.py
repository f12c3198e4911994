"""The roofline as two times, computing and sending a microbatch, and changes that help."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Seconds of computing and of sending for a fully sharded microbatch, by tokens per GPU.

    Computing runs at the dense peak, messages at the full bandwidth of the GPU's own port, in a
    group so large that it sends all shards.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedJobChange:
    """One change of a sharded job, as factors of its previous values."""

    name: str
    label: str
    tokens: float = 1.0
    peak: float = 1.0
    bandwidth: float = 1.0
    gathered_bytes: int = BYTES
    shares_ports: bool = False


REMEDIES = (
    ShardedJobChange(name="now", label="as it is"),
    ShardedJobChange(name="gpu", label="a GPU twice as fast", peak=2),
    ShardedJobChange(name="gathers", label="weights gathered in 8 bits", gathered_bytes=1),
    ShardedJobChange(name="network", label="a network twice as fast", bandwidth=2),
    ShardedJobChange(name="tokens", label="two sequences per microbatch", tokens=2),
    ShardedJobChange(name="ports", label="eight ports for one copy", shares_ports=True),
)


@figure("two-times-remedies", recomputed=True)
def two_times_remedies(
    *, preset: HardwareName = "h100-ndr", model: ModelName = "llama-3-8b", tokens: int = 8192
) -> Bars:
    """Seconds of computing and of sending for `tokens` tokens of a sharded job, by change.

    As in `two-times`; if eight ports serve one copy, each carries its share of the bytes.
    """
    check_between("tokens", tokens, 1, 10**9)
    node, parameters = hardware_preset(preset), catalog_model(model).parameters
    computing, sending = [], []
    for one in REMEDIES:
        peak = one.peak * node.accelerator.peak_flops_per_s("bf16")
        computing.append(float(training_flops(parameters, tokens)) / peak)
        sent = ((PASSES - 1) * one.gathered_bytes + BYTES) * parameters / one.tokens
        ports = node.gpus_per_node if one.shares_ports else 1
        sending.append(sent / (one.bandwidth * node.network_bandwidth_bytes_per_s * ports))
    steps = [max(pair) for pair in zip(computing, sending, strict=True)]
    return Bars(
        labels=tuple(one.label for one in REMEDIES),
        segments=(
            Segment(name="computing", role="forward", lengths=tuple(computing)),
            Segment(name="sending", role="exposed", lengths=tuple(sending)),
        ),
        axis=Axis(label=f"time for {tokens:,} tokens", unit="s", low=0.0, spec="time"),
        stacked=False,
        values={
            **{one.name: Named(step, "s") for one, step in zip(REMEDIES, steps, strict=True)},
            "sending_ports": Named(sending[-1], "s"),
            "changes": Named(len(REMEDIES) - 1),
        },
    )
