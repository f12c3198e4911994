"""What a job attains, from what its software attains on its chip and from what a reader says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from figgen.errors import check_share
from figgen.models.machine.cluster import Cluster
from figgen.models.step.attained import Attained, slowed, with_latencies
from figgen.scenarios.runs.measured_rates import Measured, head_share


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """What software attains on a chip in a number format, whatever the job.

    `rates` are those of attention over heads of 128 and of a network of 1 B/s; matmuls and
    attention have there what lone kernels reach, of which a step sustains the four shares. EFA has
    a share of its own, `efa_share`. Where attention writes every score to memory, it and its
    gradient move `score_bytes`, 0 elsewhere. `dtype` is the format that is multiplied and
    `peak_flops_per_s` its dense peak. `framework_class` and `dense_class` are as `residual_class`
    takes them.
    """

    rates: Attained
    peak_flops_per_s: float
    product_share: float
    plain_share: float
    expert_share: float
    attention_share: float
    efa_share: float
    score_bytes: float
    dtype: str
    framework: str
    framework_class: str
    dense_class: str

    @property
    def quantized(self) -> float:
        """1 where matmuls have inputs of eight bits or less, otherwise 0."""
        return float(self.dtype in ("fp8", "fp4"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidRates:
    """What a reader says of the rates of a job, None where nothing is said.

    `measured` are the rates of a machine, `latencies` the known hardware and the same with other
    latencies; matmuls with weights reach `compute_efficiency` of the peak, and all times are
    `time_factor` times as long.
    """

    measured: Measured | None = None
    latencies: tuple[Cluster, Cluster] | None = None
    compute_efficiency: float | None = None
    time_factor: float | None = None


NOTHING_SAID = SaidRates()


def attained_of(
    row: RateRow, head_dim: int, network: str, network_bytes_per_s: float, said: SaidRates
) -> Attained:
    """Return what a job attains whose heads have a width of `head_dim`.

    Its network has a name in the catalog and so many bytes per second for one GPU.
    Raises InputError for a `compute_efficiency` outside 0 … 1.
    """
    known, share = row.rates, row.rates.network_bytes_per_s
    if is_efa(network):
        share = row.efa_share
    rates = replace(
        known,
        product_flops_per_s=known.product_flops_per_s * row.product_share,
        plain_flops_per_s=known.plain_flops_per_s * row.plain_share,
        expert_flops_per_s=known.expert_flops_per_s * row.expert_share,
        attention_flops_per_s=_attention_flops_per_s(row, head_dim),
        network_bytes_per_s=network_bytes_per_s * share,
        shuffle_bytes_per_s=network_bytes_per_s * known.shuffle_bytes_per_s,
    )
    if said.measured is not None:
        rates = as_measured(rates, row, said.measured, head_dim)
    if said.latencies is not None:
        rates = with_latencies(rates, said.latencies[0], said.latencies[1])
    if said.compute_efficiency is not None:
        rates = at_share(rates, row.peak_flops_per_s, said.compute_efficiency)
    return rates if said.time_factor is None else slowed(rates, said.time_factor)


def _attention_flops_per_s(row: RateRow, head_dim: int) -> float:
    """The rate of attention's core over heads of a width."""
    lone, moving = float(row.rates.attention_flops_per_s), float(row.rates.memory_bytes_per_s)
    if row.score_bytes == 0:
        return lone * head_share(head_dim) * row.attention_share
    return written_flops_per_s(lone * row.attention_share, moving, row.score_bytes, head_dim)


def written_flops_per_s(
    flops_per_s: float, memory_bytes_per_s: float, score_bytes: float, head_dim: int
) -> float:
    """Return the rate of attention that writes every score, masked ones too.

    Six products of the whole square, and what passes over scores move, take the time of seven
    products of half of it.
    """
    score_s = 12 * head_dim / flops_per_s + score_bytes / memory_bytes_per_s
    return 7 * head_dim / score_s


def is_efa(network: str) -> bool:
    """Whether a network of this name is Amazon's, of which NCCL reaches another share."""
    return network.startswith("efa")


def on_own_chip(
    row: RateRow, peak_flops_per_s: float, memory_bytes_per_s: float, scale_up_bytes_per_s: float
) -> RateRow:
    """Return a row whose rates were shares of these numbers of a reader's own chip."""
    known = row.rates
    near = known.scale_up_bytes_per_s * scale_up_bytes_per_s
    return replace(
        row,
        peak_flops_per_s=row.peak_flops_per_s * peak_flops_per_s,
        rates=replace(
            known,
            product_flops_per_s=peak_flops_per_s * known.product_flops_per_s,
            plain_flops_per_s=peak_flops_per_s * known.plain_flops_per_s,
            expert_flops_per_s=peak_flops_per_s * known.expert_flops_per_s,
            attention_flops_per_s=peak_flops_per_s * known.attention_flops_per_s,
            memory_bytes_per_s=known.memory_bytes_per_s * memory_bytes_per_s,
            scale_up_bytes_per_s=near,
            near_shuffle_bytes_per_s=near,
        ),
    )


def as_measured(rates: Attained, row: RateRow, measured: Measured, head_dim: int) -> Attained:
    """Return the rates with those in their places that were measured.

    Matmuls keep the share of a measured rate that software sustains over a step; everything else
    is measured as it is used.
    """
    plain = "bf16" if "bf16" in measured else "fp16"
    if row.dtype in measured:
        rate, start_s = measured[row.dtype]
        rates = replace(
            rates,
            product_flops_per_s=rate * row.product_share,
            expert_flops_per_s=rate * row.expert_share,
            product_start_s=start_s,
        )
    if plain in measured:
        rates = replace(rates, plain_flops_per_s=measured[plain][0] * row.plain_share)
    if "attention" in measured:
        core = measured["attention"][0] * head_share(head_dim)
        # Its starts are in a rate that was measured at the lengths of a file.
        rates = replace(rates, attention_flops_per_s=core, attention_start_keys=0.0)
    if "memory" in measured:
        rates = replace(rates, memory_bytes_per_s=measured["memory"][0])
    # All-to-alls that nobody measured are taken for as fast as rings.
    if "near" in measured:
        rate, start_s = measured["near"]
        rates = replace(
            rates,
            scale_up_bytes_per_s=rate,
            near_shuffle_bytes_per_s=rate,
            near_latency_s=start_s,
        )
    if "far" in measured:
        rate, start_s = measured["far"]
        rates = replace(
            rates, network_bytes_per_s=rate, shuffle_bytes_per_s=rate, latency_s=start_s
        )
    if "nearshuffle" in measured:
        rates = replace(rates, near_shuffle_bytes_per_s=measured["nearshuffle"][0])
    if "farshuffle" in measured:
        rates = replace(rates, shuffle_bytes_per_s=measured["farshuffle"][0])
    return rates


def at_share(rates: Attained, peak_flops_per_s: float, compute_efficiency: float) -> Attained:
    """Return the rates where all matmuls with weights reach this share of the peak.

    Raises InputError for a share outside 0 … 1.
    """
    check_share("compute_efficiency", compute_efficiency)
    rate = peak_flops_per_s * compute_efficiency
    return replace(rates, product_flops_per_s=rate, plain_flops_per_s=rate, expert_flops_per_s=rate)
