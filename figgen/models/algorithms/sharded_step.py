"""One forward and backward of fully sharded layers: what runs when on two streams.

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
    """All actions of a step, in the order of their start.

    `prefetch` is how many layers ahead weights are gathered: with 0 a gather is issued when the
    layer is due, with k when the layer k places earlier starts. Gathers that are due at the same
    moment as a reduce-scatter go first. Without `reshard` the weights of a forward are kept for the
    backward, which gathers nothing. Raises InputError for no layers or negative times.
    """
    if layers < 1 or prefetch < 0:
        got = (layers, prefetch)
        raise InputError("layers and prefetch", expected=">= 1 and >= 0", got=got)
    if min(gather_s, forward_s, backward_s, scatter_s) < 0:
        raise InputError("times of a sharded step", expected=">= 0", got=gather_s)
    work = [(layer, FORWARD) for layer in range(layers)]
    work += [(layer, BACKWARD) for layer in reversed(range(layers))]
    found: list[ShardedAction] = []
    gathered: list[float] = []
    waiting: list[int] = []
    free_at = done = 0.0

    def send(kind: str, layer: int, phase: str, now: float, takes_s: float) -> float:
        nonlocal free_at
        start = max(free_at, now)
        free_at = start + takes_s
        found.append(
            ShardedAction(
                stream=NETWORK, kind=kind, layer=layer, phase=phase, start_s=start, end_s=free_at
            )
        )
        return free_at

    def gather(upto: int, now: float) -> None:
        while len(gathered) <= min(upto, len(work) - 1):
            layer, phase = work[len(gathered)]
            kept = phase == BACKWARD and not reshard
            gathered.append(now if kept else send(GATHER, layer, phase, now, gather_s))

    def scatter(now: float) -> None:
        for layer in waiting:
            send(SCATTER, layer, BACKWARD, now, scatter_s)
        waiting.clear()

    for index, (layer, phase) in enumerate(work):
        gather(index, done)
        start = max(done, gathered[index])
        if start > done:
            scatter(done)
        gather(index + prefetch, start)
        scatter(done)
        took = forward_s if phase == FORWARD else backward_s
        done = start + took
        found.append(
            ShardedAction(
                stream=COMPUTE, kind=phase, layer=layer, phase=phase, start_s=start, end_s=done
            )
        )
        if phase == BACKWARD:
            waiting.append(layer)
    scatter(done)
    return tuple(sorted(found, key=lambda action: (action.start_s, action.end_s)))


def makespan_s(actions: tuple[ShardedAction, ...]) -> float:
    """Time of the last action's end."""
    return max(action.end_s for action in actions)


def peak_gathered(actions: tuple[ShardedAction, ...]) -> int:
    """Most layers whose whole weights are held at once, from a gather's start to the work's end."""
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
