"""Train a small network to compare the effects of summation order, seed and a bug.

Two layers with a ReLU learn the outputs of such a network with other weights, by plain gradient
descent on batches that are used once. Sums over the samples of a batch follow a layout: each rank
adds its own samples, then the sums of the ranks are added. Only elementwise multiplications,
additions and maxima are used, so that every machine computes the same bits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from figgen.errors import InputError, check_between

Array = npt.NDArray[np.float32]
INPUTS, WIDTH = 8, 16
RATE = 0.1
# As arrays, which NumPy need not make of numbers at every one of 81,000 roundings.
WIDE, ODD, HALF, UPPER = (np.array(bits, np.uint32) for bits in (16, 1, 0x7FFF, 0xFFFF0000))


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRun:
    """How a run sums its gradients and which samples it sees.

    `samples` per batch are divided over `ranks` and added in FP32 or, with `narrow`, in BF16.
    `seed` draws the batches. The rank `left_out` is not part of the sum, although the mean still
    counts it.
    """

    samples: int = 64
    ranks: int = 1
    narrow: bool = False
    seed: int = 5
    left_out: int | None = None

    def __post_init__(self) -> None:
        check_between("ranks", self.ranks, 1, self.samples)
        if self.samples % self.ranks:
            raise InputError("ranks", expected=f"a divisor of {self.samples}", got=self.ranks)


def trained(run: DriftRun, steps: int) -> Iterator[Array]:
    """Return all weights after each step, as one vector."""
    half = np.float32(0.5)
    first, second = half * drawn(1, INPUTS, WIDTH), half * drawn(2, WIDTH)
    batches = random.Random(run.seed)
    scale = np.float32(RATE / run.samples)
    for _ in range(steps):
        x, y = _batch(batches.randrange(2**30), run.samples)
        for_first, for_second = gradients(x, y, first, second)
        both = np.concatenate([for_first.reshape(run.samples, -1), for_second], axis=1)
        change = scale * summed(both, run)
        first = first - change[:-WIDTH].reshape(INPUTS, WIDTH)
        second = second - change[-WIDTH:]
        yield np.concatenate([first.ravel(), second])


def predicted(x: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return the hidden values (samples × width) and the output for every sample."""
    hidden = np.maximum(added(x.T[:, :, None] * first[:, None], narrow=False), np.float32(0))
    return hidden, added(hidden.T * second[:, None], narrow=False)


def gradients(x: Array, y: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Every sample's gradient of (predicted − y)²/2 for both layers, samples first."""
    hidden, out = predicted(x, first, second)
    error = out - y
    back = error[:, None] * second * (hidden > 0)
    return x[:, :, None] * back[:, None, :], error[:, None] * hidden


def summed(parts: Array, run: DriftRun) -> Array:
    """Add the gradients of samples rank by rank, and round every sum to the format of the run."""
    shards = parts.reshape(run.ranks, -1, *parts.shape[1:])
    sums = added(shards.swapaxes(0, 1), run.narrow)  # of all ranks at once
    kept = [r for r in range(run.ranks) if r != run.left_out]
    return added(sums[kept], run.narrow)


def added(parts: Array, narrow: bool) -> Array:
    """Add the parts one after the other in FP32, or round each sum to BF16."""
    if not narrow:
        # Rows that lie apart are added one after the other; only within a row NumPy makes pairs.
        total: Array = np.add.reduce(np.ascontiguousarray(parts), axis=0)
        return total
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
        round_to_bf16(total)
    return total


def round_to_bf16(numbers: Array) -> None:
    """Round FP32 numbers to the nearest BF16 numbers, ties to even."""
    bits = numbers.view(np.uint32)
    carry = bits >> WIDE
    carry &= ODD
    carry += HALF
    bits += carry
    bits &= UPPER


# Runs of one seed see the same batches.
@lru_cache(maxsize=2048)
def _batch(seed: int, samples: int) -> tuple[Array, Array]:
    """Return the inputs of a batch and the outputs of the network to be learned."""
    x = drawn(seed, samples, INPUTS)
    return x, predicted(x, *_learnt())[1]


@lru_cache(maxsize=1)
def _learnt() -> tuple[Array, Array]:
    """Return the weights of the network to be learned."""
    return drawn(3, INPUTS, WIDTH), drawn(4, WIDTH)


def drawn(seed: int, *shape: int) -> Array:
    """Draw numbers between −1 and 1 with Python's generator, which is the same on all machines."""
    # What its `random` makes of 8 bytes, for all at once.
    made = random.Random(seed).randbytes(8 * math.prod(shape))
    high, low = np.frombuffer(made, "<u4").reshape(-1, 2).T
    numbers = 2 * (((high >> 5) * 2.0**26 + (low >> 6)) / 2**53) - 1
    return numbers.astype(np.float32).reshape(shape)
