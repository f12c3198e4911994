"""The time in which a group of GPUs generates a batch of answers, token by token.

A decode step adds one token to every answer that is still being written: it reads the weights
once and the caches of those answers, and waits for its messages. An answer that ends leaves its
slot empty, or to the next in the queue; the longest decide when the batch is done.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, log

from figgen.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The cost of a decode step for one copy of the model.

    It reads `held_bytes` of weights, and `cache_bytes_per_token` for every token of every answer,
    at `bandwidth_bytes_per_s`; `latency_s` is the time of its messages.
    """

    held_bytes: float
    cache_bytes_per_token: float
    bandwidth_bytes_per_s: float
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A generated batch: its seconds by kind, and the number of unfinished answers over time.

    `alive` are pairs of a time and the number of answers from then on; the last is 0 at the end.
    """

    steps: int
    weights_s: float
    caches_s: float
    latency_s: float
    alive: tuple[tuple[float, int], ...]

    @property
    def time_s(self) -> float:
        """All seconds until the last answer is finished."""
        return self.weights_s + self.caches_s + self.latency_s


def answer_lengths(mean: float, longest: int, count: int) -> tuple[int, ...]:
    """Return lengths of `count` answers that average `mean` and end at `longest`, shortest first.

    They are the quantiles of an exponential distribution, the widest that its mean alone
    determines; longer answers stop at `longest`. Raises InputError for a mean that is not between 1
    and the longest.
    """
    if not 1 <= mean <= longest:
        raise InputError("mean", expected=f"1 to {longest}", got=mean)
    if count < 1:
        raise InputError("count", expected="1 or more", got=count)
    if mean >= longest * (1 - 1e-9):
        return (longest,) * count
    low, high = mean, 1e9 * longest
    for _ in range(200):
        scale = (low * high) ** 0.5
        if scale * (1 - exp(-longest / scale)) < mean:
            low = scale
        else:
            high = scale
    shares = ((index + 0.5) / count for index in range(count))
    return tuple(max(1, min(longest, round(-low * log(1 - share)))) for share in shares)


def rollout(decoding: Decoding, lengths: Sequence[int], *, prompt: int, slots: int) -> Rollout:
    """Return the rollout of answers of these total `lengths`, prompts included, with `slots` slots.

    Reading prompts takes no time. The longest answers begin first, as if the scheduler knew their
    lengths, so that the time is a lower bound. Raises InputError without slots or answers.
    """
    if slots < 1 or not lengths:
        raise InputError("slots and answers", expected="one at least", got=(slots, len(lengths)))
    waiting = sorted(max(1, each - prompt) for each in lengths)
    writing = [(waiting.pop(), 0) for _ in range(min(slots, len(waiting)))]
    heapq.heapify(writing)
    now, time_s, cached = 0, 0.0, float(prompt * len(writing))
    read_bytes: list[float] = []
    alive = [(0.0, len(writing))]
    while writing:
        end = writing[0][0]
        count, steps = len(writing), end - now
        tokens = steps * cached + count * steps * (steps - 1) / 2
        read = decoding.cache_bytes_per_token * tokens
        read_bytes.append(read)
        time_s += (steps * decoding.held_bytes + read) / decoding.bandwidth_bytes_per_s
        time_s += steps * decoding.latency_s
        cached += count * steps
        now = end
        while writing and writing[0][0] == now:
            _, begun = heapq.heappop(writing)
            cached -= prompt + now - begun
            if waiting:
                heapq.heappush(writing, (now + waiting.pop(), now))
                cached += prompt
        alive.append((time_s, len(writing)))
    return Rollout(
        steps=now,
        weights_s=now * decoding.held_bytes / decoding.bandwidth_bytes_per_s,
        caches_s=fsum(read_bytes) / decoding.bandwidth_bytes_per_s,
        latency_s=now * decoding.latency_s,
        alive=tuple(alive),
    )
