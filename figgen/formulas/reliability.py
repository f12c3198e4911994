"""Failures, checkpoints and goodput: the share of time that is useful when machines fail.

Failures are independent and occur at a constant rate (a Poisson process). Each one stops the job,
which loses what is not in a safe checkpoint, restarts, and repeats it.
"""

from __future__ import annotations

from figgen.equations.ops import Number, exp, log2, minimum, sqrt, where
from figgen.formulas.notation import formula

YOUNG = "Young 1974, doi:10.1145/361147.361115"
DALY = "Daly 2006, doi:10.1016/j.future.2004.11.016"
KOKOLIS = "Kokolis et al. 2024, arXiv:2410.21680"


@formula(symbol=r"T_\text{f}", unit="s", source=f"{KOKOLIS}: independent nodes in series")
def job_mtbf(gpus: Number, gpu_mtbf_s: Number) -> Number:
    """Mean time between failures of a job that any of its GPUs can stop."""
    return gpu_mtbf_s / gpus


@formula(symbol=r"S_\text{c}", unit="B", source="definition")
def checkpoint_size(
    parameters: Number, weight_bytes_per_param: Number, optimizer_bytes_per_param: Number
) -> Number:
    """Bytes of a checkpoint for resuming training: weights and optimizer, no gradients."""
    return parameters * (weight_bytes_per_param + optimizer_bytes_per_param)


@formula(symbol=r"T_\text{w}", unit="s", source="derivation: every GPU writes its own share")
def checkpoint_write_time(
    checkpoint_bytes: Number,
    gpus: Number,
    bandwidth_bytes_per_s: Number,
    storage_bandwidth_bytes_per_s: Number,
) -> Number:
    """Time to write a checkpoint divided among all GPUs, limited by their links or the storage."""
    together = gpus * bandwidth_bytes_per_s
    return checkpoint_bytes / minimum(together, storage_bandwidth_bytes_per_s)


@formula(symbol=r"T_\text{i}^*", unit="s", source=YOUNG)
def young_interval(stall_s: Number, mtbf_s: Number) -> Number:
    """Checkpoint interval that loses the least time, to first order."""
    return sqrt(2 * stall_s * mtbf_s)


@formula(symbol=r"T_\text{i}^*", unit="s", source=f"{DALY}, eq. (37)")
def daly_interval(stall_s: Number, mtbf_s: Number) -> Number:
    """Checkpoint interval that loses the least time, to higher order."""
    ratio = stall_s / (2 * mtbf_s)
    higher = sqrt(2 * stall_s * mtbf_s) * (1 + sqrt(ratio) / 3 + ratio / 9) - stall_s
    return where(stall_s < 2 * mtbf_s, higher, mtbf_s)


@formula(
    symbol=r"\text{goodput}",
    unit="1",
    where="lag_s <= interval_s + stall_s",
    source=f"derivation: renewal at every failure; {DALY}, eq. (20), for a lag of 0",
)
def goodput(
    interval_s: Number, stall_s: Number, lag_s: Number, restart_s: Number, mtbf_s: Number
) -> Number:
    """Share of the time that trains and is not repeated, if failures occur at any moment.

    A synchronous checkpoint has no lag. An asynchronous one has a short stall, and its lag is the
    time of writing.
    """
    between = exp((interval_s + stall_s) / mtbf_s) - 1
    return interval_s / (mtbf_s * between) / exp((lag_s + restart_s) / mtbf_s)


@formula(
    symbol=r"\text{lost}",
    unit="1",
    source=f"first order of goodput; {KOKOLIS}, expected effective training time ratio",
)
def lost_share(
    interval_s: Number, stall_s: Number, lag_s: Number, restart_s: Number, mtbf_s: Number
) -> Number:
    """Share of the time lost to checkpoints, repetition and restarts if failures are rare."""
    repeated = (interval_s + stall_s) / 2 + lag_s
    return stall_s / (interval_s + stall_s) + (repeated + restart_s) / mtbf_s


@formula(symbol=r"n_\text{rep}", unit="node", source="Little 1961: arrivals times stay")
def nodes_in_repair(gpus: Number, gpu_mtbf_s: Number, repair_s: Number) -> Number:
    """Average number of nodes in repair if each failure takes one node out."""
    return gpus * repair_s / gpu_mtbf_s


@formula(
    symbol=r"t_\text{IB}", unit="s", source="InfiniBand specification, 12.7.34: Local ACK Timeout"
)
def infiniband_timeout(timeout_exponent: Number) -> Number:
    """Time that an InfiniBand adapter waits for an answer before it resends a packet."""
    return 4.096e-6 * 2**timeout_exponent


@formula(
    symbol="L_0",
    unit="nat/token",
    source="definition: cross-entropy of the uniform guess",
)
def uniform_loss(vocabulary: Number) -> Number:
    """Loss of a model that finds every token of its vocabulary equally likely, ln V."""
    return 0.6931471805599453 * log2(vocabulary)
