"""What a job attains, given what its software attains on its chip and what a reader gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

from figgen.errors import check_share
from figgen.models.machine.cluster import Cluster
from figgen.models.step.attained import Attained, slowed, with_latencies
from figgen.scenarios.runs.measured_rates import Measured, head_share


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """What software attains on a chip in a number format, whatever the job.

    `rates` are those of attention over heads of 128 and of a network of 1 B/s. Their matmuls and
    attention are what single kernels reach; a step sustains the four shares of it. EFA has its own
    share, `efa_share`. If attention writes every score to memory, the score and its gradient move
    `score_bytes`; otherwise that is 0. `dtype` is the number type of matmuls and `peak_flops_per_s`
    its dense peak. `stack` and `chips` are those of the class of its jobs.
    """

    rates: Attained
    peak_flops_per_s: float
    matmul_share: float
    plain_share: float
    expert_share: float
    attention_share: float
    usual_kernel: bool
    efa_share: float
    score_bytes: float
    dtype: str
    framework: str
    stack: str
    chips: str

    @property
    def quantized(self) -> float:
        """1 if matmuls have inputs of eight bits or fewer, otherwise 0."""
        return float(self.dtype in ("fp8", "fp4"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRates:
    """What a reader gives of the rates of a job; None for what is not given.

    `measured` are the rates of a machine. `latencies` are the known hardware and the same with
    other latencies. Matmuls with weights reach `compute_efficiency` of the peak, and all times are
    multiplied by `time_factor`.
    """

    measured: Measured | None = None
    latencies: tuple[Cluster, Cluster] | None = None
    compute_efficiency: float | None = None
    time_factor: float | None = None


NOTHING_GIVEN = GivenRates()


def attained_of(
    row: RateRow, head_dim: int, network: str, network_bytes_per_s: float, said: GivenRates
) -> Attained:
    """Return what a job attains whose heads have the width `head_dim`.

    `network` is the name of its network in the catalog, with its bytes per second per GPU. Raises
    InputError for a `compute_efficiency` outside 0 … 1.
    """
    known, share = row.rates, row.rates.network_bytes_per_s
    if is_efa(network):
        share = row.efa_share
    rates = replace(
        known,
        matmul_flops_per_s=known.matmul_flops_per_s * row.matmul_share,
        plain_flops_per_s=known.plain_flops_per_s * row.plain_share,
        expert_flops_per_s=known.expert_flops_per_s * row.expert_share,
        attention_flops_per_s=_attention_flops_per_s(
            row, head_dim, float(known.memory_bytes_per_s)
        ),
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


def _attention_flops_per_s(row: RateRow, head_dim: int, memory_bytes_per_s: float) -> float:
    """Return the rate of the attention core over heads of a width."""
    lone = float(row.rates.attention_flops_per_s) * row.attention_share
    if row.score_bytes == 0:
        return lone * head_share(head_dim)
    return written_flops_per_s(lone, memory_bytes_per_s, row.score_bytes, head_dim)


def written_flops_per_s(
    flops_per_s: float, memory_bytes_per_s: float, score_bytes: float, head_dim: int
) -> float:
    """Return the rate of attention that writes every score, masked ones too.

    Six matmuls over the whole square, and the memory passes over scores, take the time that seven
    matmuls over half of it would take at this rate.
    """
    score_s = 12 * head_dim / flops_per_s + score_bytes / memory_bytes_per_s
    return 7 * head_dim / score_s


def is_efa(network: str) -> bool:
    """Return whether a network of this name is Amazon's, where NCCL attains a different share."""
    return network.startswith("efa")


def on_own_chip(
    row: RateRow, peak_flops_per_s: float, memory_bytes_per_s: float, scale_up_bytes_per_s: float
) -> RateRow:
    """Return a row scaled to the peaks of a reader's own chip."""
    known = row.rates
    near = known.scale_up_bytes_per_s * scale_up_bytes_per_s
    return replace(
        row,
        peak_flops_per_s=row.peak_flops_per_s * peak_flops_per_s,
        rates=replace(
            known,
            matmul_flops_per_s=peak_flops_per_s * known.matmul_flops_per_s,
            plain_flops_per_s=peak_flops_per_s * known.plain_flops_per_s,
            expert_flops_per_s=peak_flops_per_s * known.expert_flops_per_s,
            attention_flops_per_s=peak_flops_per_s * known.attention_flops_per_s,
            memory_bytes_per_s=known.memory_bytes_per_s * memory_bytes_per_s,
            scale_up_bytes_per_s=near,
            near_shuffle_bytes_per_s=near,
        ),
    )


SIXTEEN_BITS = ("bf16", "fp16")
"""Formats with the same peak on every chip that has both."""


def as_measured(rates: Attained, row: RateRow, measured: Measured, head_dim: int) -> Attained:
    """Return the rates with `measured` ones in place of modeled ones.

    Matmuls keep the share of a measured rate that software sustains over a step, and one format of
    16 bits stands for the other. Attention keeps its rate if the software has a kernel of its own.
    Everything else is used as measured.
    """
    plain = "bf16" if "bf16" in measured else "fp16"
    dtype = plain if row.dtype in SIXTEEN_BITS and row.dtype not in measured else row.dtype
    if dtype in measured:
        rate, start_s = measured[dtype]
        rates = replace(
            rates,
            matmul_flops_per_s=rate * row.matmul_share,
            expert_flops_per_s=rate * row.expert_share,
            matmul_start_s=start_s,
        )
    if plain in measured:
        rates = replace(rates, plain_flops_per_s=measured[plain][0] * row.plain_share)
    if "attention" in measured and row.usual_kernel:
        core = measured["attention"][0] * head_share(head_dim)
        # A rate measured at the lengths of a file includes the start-up of tiles.
        rates = replace(rates, attention_flops_per_s=core, attention_start_keys=0.0)
    if "memory" in measured:
        rates = replace(rates, memory_bytes_per_s=measured["memory"][0])
        if row.score_bytes > 0:
            core = _attention_flops_per_s(row, head_dim, measured["memory"][0])
            rates = replace(rates, attention_flops_per_s=core)
    # All-to-alls that were not measured are assumed to be as fast as rings.
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
    """Return the rates with all matmuls with weights at this share of the peak.

    Raises InputError for a share outside 0 … 1.
    """
    check_share("compute_efficiency", compute_efficiency)
    rate = peak_flops_per_s * compute_efficiency
    return replace(
        rates,
        matmul_flops_per_s=rate,
        plain_flops_per_s=rate,
        unaligned_share=1.0,
        expert_flops_per_s=rate,
    )
