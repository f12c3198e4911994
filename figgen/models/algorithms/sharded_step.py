"""Forward and backward of fully sharded layers: the timing of work and collectives.

The compute stream runs the layers in order and back. The network stream runs one collective at
a time, in the order of issue: a layer's weights are gathered before its forward and again before
its backward, its gradient is reduce-scattered after it.
Source: Zhao et al. 2023 (PyTorch FSDP), arXiv:2304.11277, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError

COMPUTE, NETWORK = "compute", "network"
FORWARD, BACKWARD, GATHER, SCATTER = "forward", "backward", "all-gather", "reduce-scatter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedAction:
    """One layer's work or collective on a stream; `phase` is the pass that it belongs to."""

    stream: str
    kind: str
    layer: int
    phase: str
    start_s: float
    end_s: float


def sharded_step(
    layers: int,
    *,
    gather_s: float,
    forward_s: float,
    backward_s: float,
    scatter_s: float,
    prefetch: int = 1,
    reshard: bool = True,
) -> tuple[ShardedAction, ...]:
    """Return all actions of a step, in the order of their start.

    `prefetch` is how many layers ahead weights are gathered: with 0, a gather is issued when the
    layer is due; with k, when the layer k places earlier starts. Gathers that are due at the same
    moment as a reduce-scatter go first. Without `reshard`, the weights of a forward are kept for
    the backward, which gathers nothing. Raises InputError for no layers or negative times.
    """
    if layers < 1 or prefetch < 0:
        got = (layers, prefetch)
        raise InputError("layers and prefetch", expected=">= 1 and >= 0", got=got)
    if min(gather_s, forward_s, backward_s, scatter_s) < 0:
        raise InputError("times of a sharded step", expected=">= 0", got=gather_s)
    work = [(layer, FORWARD) for layer in range(layers)]
    work += [(layer, BACKWARD) for layer in reversed(range(layers))]
    found: list[ShardedAction] = []
    network = _Network(found, gather_s, scatter_s)
    done = 0.0
    for index, (layer, phase) in enumerate(work):
        network.gather(work[: index + 1], done, reshard)
        start = max(done, network.gathered[index])
        if start > done:
            network.scatter(done)
        network.gather(work[: index + prefetch + 1], start, reshard)
        network.scatter(done)
        done = start + (forward_s if phase == FORWARD else backward_s)
        found.append(
            ShardedAction(
                stream=COMPUTE, kind=phase, layer=layer, phase=phase, start_s=start, end_s=done
            )
        )
        if phase == BACKWARD:
            network.waiting.append(layer)
    network.scatter(done)
    return tuple(sorted(found, key=lambda action: (action.start_s, action.end_s)))


class _Network:
    """The network stream: what it sends, when it is free, and gradients that wait for it.

    `gathered` has, for each piece of work, when its weights were there.
    """

    def __init__(self, found: list[ShardedAction], gather_s: float, scatter_s: float) -> None:
        self.found, self.gather_s, self.scatter_s = found, gather_s, scatter_s
        self.gathered: list[float] = []
        self.waiting: list[int] = []
        self.free_at = 0.0

    def gather(self, work: list[tuple[int, str]], now: float, reshard: bool) -> None:
        """Issue the gathers of this work that were not issued yet."""
        for layer, phase in work[len(self.gathered) :]:
            kept = phase == BACKWARD and not reshard
            self.gathered.append(now if kept else self._send(GATHER, layer, phase, now))

    def scatter(self, now: float) -> None:
        """Issue the reduce-scatters that wait."""
        for layer in self.waiting:
            self._send(SCATTER, layer, BACKWARD, now)
        self.waiting = []

    def _send(self, kind: str, layer: int, phase: str, now: float) -> float:
        start = max(self.free_at, now)
        self.free_at = start + (self.gather_s if kind == GATHER else self.scatter_s)
        self.found.append(
            ShardedAction(
                stream=NETWORK,
                kind=kind,
                layer=layer,
                phase=phase,
                start_s=start,
                end_s=self.free_at,
            )
        )
        return self.free_at


def makespan_s(actions: tuple[ShardedAction, ...]) -> float:
    """Return the time at which the last action ends."""
    return max(action.end_s for action in actions)


def peak_gathered(actions: tuple[ShardedAction, ...]) -> int:
    """Return the most layers held whole at once, from a gather's start to the end of the work."""
    ends = {(a.layer, a.phase): a.end_s for a in actions if a.stream == COMPUTE}
    again = {a.layer for a in actions if a.kind == GATHER and a.phase == BACKWARD}
    changes = []
    for action in actions:
        if action.kind == GATHER:
            until = action.phase if action.layer in again else BACKWARD
            changes += [(action.start_s, 1), (ends[action.layer, until], -1)]
    held = peak = 0
    for _, change in sorted(changes):
        held += change
        peak = max(peak, held)
    return peak
