"""Time of one microbatch on a virtual stage: computing, and the communication it exposes.

`rule_of` says what each call can hide behind. Tensor-parallel exchanges and all-to-alls cannot
hide, since the next operation needs their result, except for the input gathered again in backward,
which overlaps the input gradients. Each send of a key-value ring overlaps the attention of one
block. ZeRO-2 scatters in buckets behind its backward. ZeRO-3 prefetches the next layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from figgen.formulas.data_parallel import exposed_communication_time, prefetched_gather_time
from figgen.models.machine.cluster import Cluster
from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.data_traffic import GRADIENTS, TIED, WEIGHTS, stage_traffic
from figgen.models.step.layer_traffic import AGAIN, BOUNDARY, HEAD_AGAIN, KEYS, TOKENS, WITHIN
from figgen.models.step.stage_work import layer_core_flops, stage_work
from figgen.models.step.step_links import CallTime, GroupLink, call_time, group_link
from figgen.models.step.step_traffic import BACKWARD, FORWARD, START, Traffic

RINGS = ("p2p", "a2a+p2p")
"""Context-parallel exchanges in which keys and values go around a ring."""


@dataclass(frozen=True, slots=True)
class TimedTraffic:
    """Calls of a virtual stage, the link they run on, and the time of one call.

    `exposed_s` is the time that all of them add to one forward or backward. It is 0 for pipeline
    messages, which the simulator times, and for calls once per step without a prediction.
    """

    traffic: Traffic
    link: GroupLink
    call: CallTime
    exposed_s: float

    @property
    def time_s(self) -> float:
        """Time of all calls of one microbatch, or of the step."""
        return self.traffic.calls * self.call.total_s


@dataclass(frozen=True, slots=True)
class StageTime:
    """Seconds of one microbatch on a virtual stage, and its communication.

    `recomputed_s` is the forward work that backward repeats before the input gradients.
    """

    forward_s: float
    recomputed_s: float
    backward_input_s: float
    backward_weight_s: float
    traffic: tuple[TimedTraffic, ...]

    @property
    def backward_s(self) -> float:
        """Seconds of recomputation and of both gradients."""
        return self.recomputed_s + self.backward_input_s + self.backward_weight_s

    def exposed_s(self, phase: str) -> float:
        """Return the exposed communication of one forward or one backward, s."""
        return fsum(entry.exposed_s for entry in self.traffic if entry.traffic.phase == phase)


def timed_traffic(setup: TrainingSetup, stage: int, cluster: Cluster) -> tuple[TimedTraffic, ...]:
    """Return all calls of a virtual stage, timed by the links' datasheets and not yet exposed."""
    links = [(one, group_link(setup.parallel, one.axis)) for one in stage_traffic(setup, stage)]
    return tuple(
        TimedTraffic(one, link, call_time(one, link, cluster), exposed_s=0.0) for one, link in links
    )


def stage_times(setup: TrainingSetup, cluster: Cluster, efficiency: float) -> tuple[StageTime, ...]:
    """Return the times of every virtual stage if matmuls reach `efficiency` of the peak."""
    rate = cluster.peak_flops_per_s * efficiency
    stages = range(setup.placement.stages)
    return tuple(_stage_time(setup, stage, cluster, rate) for stage in stages)


def _stage_time(setup: TrainingSetup, stage: int, cluster: Cluster, rate: float) -> StageTime:
    share = virtual_stage_shares(setup)[stage]
    work = stage_work(setup, share)
    forward_s = work.forward / rate
    recomputed_s = work.recomputed / rate
    backward_input_s = work.backward_input / rate
    backward_weight_s = work.backward_weight / rate
    blocks = _ring_blocks(setup, share, rate)
    found = [
        _exposed(setup, entry, work.weights / rate, blocks)
        for entry in timed_traffic(setup, stage, cluster)
    ]
    found = _with_data(setup, found, FORWARD, forward_s)
    found = _with_data(setup, found, BACKWARD, recomputed_s + backward_input_s + backward_weight_s)
    return StageTime(forward_s, recomputed_s, backward_input_s, backward_weight_s, tuple(found))


def _ring_blocks(
    setup: TrainingSetup, share: StageShare, flops_per_s: float
) -> tuple[tuple[float, float], ...]:
    """Return rows of (share of layers, their attention to one block of keys, s).

    The rows are layers without and with a window. A window reduces the pairs in all blocks together
    but saves none of the sends.
    """
    windowed = share.windowed_layers / share.layers if share.layers else 0.0
    blocks = setup.parallel.cp / setup.traded_ranks
    return tuple(
        (part, layer_core_flops(setup, windowed=kind) / flops_per_s / blocks)
        for part, kind in ((1 - windowed, False), (windowed, True))
        if part
    )


def _exposed(
    setup: TrainingSetup,
    entry: TimedTraffic,
    matmuls_s: float,
    blocks: tuple[tuple[float, float], ...],
) -> TimedTraffic:
    """Return `entry` with the time that it adds to its forward or backward.

    Data-parallel entries stay as they are. `matmuls_s` is the time of forward's matmuls with
    weights, which equals that of their input gradients. `blocks` comes from `_ring_blocks`.
    """
    traffic = entry.traffic
    if not traffic.per_microbatch or traffic.purpose in (GRADIENTS, WEIGHTS, BOUNDARY):
        return entry
    exposed = entry.time_s
    if traffic.purpose in (AGAIN, HEAD_AGAIN):
        exposed = max(0.0, entry.time_s - matmuls_s)
    elif traffic.purpose == KEYS and _in_turns(setup):
        waits = (part * max(0.0, entry.call.total_s - block_s) for part, block_s in blocks)
        exposed = traffic.calls * fsum(waits)
    return TimedTraffic(traffic, entry.link, entry.call, exposed)


def _in_turns(setup: TrainingSetup) -> bool:
    """Whether one buffer receives a block of keys while the other is read."""
    return setup.context_exchange in RINGS and setup.double_buffering


def _with_data(
    setup: TrainingSetup, entries: list[TimedTraffic], phase: str, compute_s: float
) -> list[TimedTraffic]:
    """Return the entries with the exposed time of sharded data parallelism filled in."""
    sharded = [
        entry
        for entry in entries
        if entry.traffic.phase == phase and entry.traffic.purpose in (GRADIENTS, WEIGHTS)
    ]
    total = fsum(entry.time_s for entry in sharded)
    if not total:
        return entries
    exposed = _sharded_exposed_s(setup, sharded, compute_s)
    return [
        TimedTraffic(entry.traffic, entry.link, entry.call, exposed * entry.time_s / total)
        if entry in sharded
        else entry
        for entry in entries
    ]


def _sharded_exposed_s(
    setup: TrainingSetup, entries: Sequence[TimedTraffic], compute_s: float
) -> float:
    """Return the exposed time of ZeRO-2 or ZeRO-3 in one forward or backward of `compute_s`."""
    total = fsum(entry.time_s for entry in entries)
    if not setup.overlap_data_parallel:
        return total
    if not setup.gathers:
        return bucketed_exposed_s(entries, compute_s)
    if not setup.double_buffering:
        return total
    layers = max(entry.traffic.calls for entry in entries)
    # Holds for backward too: only its first gather and last scatter do not overlap a layer.
    return float(prefetched_gather_time(layers, total / layers, compute_s / layers)) - compute_s


def bucketed_exposed_s(entries: Sequence[TimedTraffic], compute_s: float) -> float:
    """Return the time that buckets, which become ready evenly over `compute_s`, extend it by.

    Buckets are sent one after the other.
    """
    buckets = sum(entry.traffic.calls for entry in entries)
    bytes_s = fsum(entry.traffic.calls * entry.call.bytes_s for entry in entries)
    latency_s = fsum(entry.traffic.calls * entry.call.latency_s for entry in entries)
    if not buckets:
        return 0.0
    return float(exposed_communication_time(bytes_s, compute_s, buckets, latency_s / buckets))


def overlaps(setup: TrainingSetup, traffic: Traffic) -> bool:
    """Return whether data-parallel traffic runs behind computation."""
    return setup.overlap_data_parallel and (setup.overlap_weights or traffic.phase != START)


EXPOSED = "exposed: the next operation needs it"
ALONE = "exposed: there is no second buffer"


def rule_of(setup: TrainingSetup, traffic: Traffic) -> str:
    """Return what the traffic can hide behind, in words."""
    if traffic.purpose in (AGAIN, HEAD_AGAIN):
        return "behind the gradients of inputs"
    if traffic.purpose == KEYS and setup.context_exchange in RINGS:
        return "each send behind the attention of one block" if _in_turns(setup) else ALONE
    if traffic.purpose in (TOKENS, WITHIN) and setup.overlaps:
        return "behind the other half of a forward-backward pair"
    if traffic.purpose == BOUNDARY:
        return "as far as the simulation hides it"
    if traffic.purpose in (GRADIENTS, WEIGHTS) and not overlaps(setup, traffic):
        return "exposed: overlap is off"
    if traffic.purpose in (GRADIENTS, WEIGHTS) and traffic.per_microbatch:
        if not setup.gathers:
            return "buckets behind each backward"
        return "behind the layer before it" if setup.double_buffering else ALONE
    if traffic.purpose == GRADIENTS:
        return "buckets behind the last backward, and the pipeline's drain"
    if traffic.purpose == WEIGHTS:
        return "buckets behind the first forward, and the pipeline's fill"
    return "exposed: after the last backward" if traffic.purpose == TIED else EXPOSED
