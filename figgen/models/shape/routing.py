"""Routing of tokens to experts: choices, balance, overflow, and balancing by a bias.

Sources: Shazeer et al. 2017, arXiv:1701.06538 (top-k gating); Fedus et al. 2021 (Switch),
arXiv:2101.03961, section 2.2 (capacity, auxiliary loss); Wang et al. 2024, arXiv:2408.15664
(bias instead of a loss).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from figgen.errors import InputError

Matrix = NDArray[np.float64]
Choices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Routing:
    """A router's output: probabilities (tokens × experts), choices and gates (tokens × k).

    Choices are in descending order of score; gates are those of the choices, scaled to sum to one.
    """

    probabilities: Matrix
    choices: Choices
    gates: Matrix

    @property
    def loads(self) -> tuple[int, ...]:
        """Token copies that each expert gets."""
        experts = self.probabilities.shape[1]
        return tuple(int(n) for n in np.bincount(self.choices.ravel(), minlength=experts))


def route(logits: Matrix, top_k: int, *, bias: Matrix | None = None) -> Routing:
    """Return softmax over the experts, the `top_k` largest, and gates that sum to one.

    A `bias` per expert is added to the scores only for choosing, not to the gates. Raises
    InputError if `top_k` exceeds the experts.
    """
    experts = logits.shape[1]
    if not 1 <= top_k <= experts:
        raise InputError("top_k", expected=f"1 to {experts}", got=top_k)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    scores = probabilities if bias is None else probabilities + bias
    choices = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    chosen = np.take_along_axis(probabilities, choices, axis=1)
    return Routing(probabilities, choices, chosen / chosen.sum(axis=1, keepdims=True))


def load_balance_loss(probabilities: Matrix, choices: Choices) -> float:
    """Return E·Σ f·P: shares of token copies times mean probabilities, 1 if all are even."""
    experts = probabilities.shape[1]
    shares = np.bincount(choices.ravel(), minlength=experts) / choices.size
    return float(experts * (shares * probabilities.mean(axis=0)).sum())


def expected_overflow(tokens: int, share: float, capacity: int) -> float:
    """Return the expected copies beyond `capacity` if `tokens` tokens choose an expert by `share`.

    It is exact, from the binomial distribution: Σ (x − capacity)·P(x).
    """
    if not 0 < share < 1:
        raise InputError("share", expected="between 0 and 1", got=share)
    odds = math.log(share) - math.log1p(-share)
    log = tokens * math.log1p(-share)
    beyond: list[float] = []
    for x in range(1, tokens + 1):
        log += math.log((tokens - x + 1) / x) + odds
        if x > capacity:
            beyond.append((x - capacity) * math.exp(log))
    return math.fsum(beyond)


def expected_groups(experts: int, groups: int, top_k: int) -> float:
    """Return the expected number of groups that `top_k` different, equally likely experts lie in.

    A group (a node) is missed if all choices fall into the others.
    """
    if groups < 1 or experts % groups:
        raise InputError("groups", expected=f"a divisor of {experts} experts", got=groups)
    others = experts - experts // groups
    missed = math.comb(others, top_k) / math.comb(experts, top_k)
    return groups * (1 - missed)


def bias_balancing(
    *, experts: int, top_k: int, tokens: int, steps: int, rate: float, seed: int = 0
) -> tuple[float, ...]:
    """Return the largest load over the mean after each step of a router with preferences.

    After each step the bias of every expert moves by `rate`: up if its load was below the mean, and
    down if it was above; 0 leaves the router alone.
    """
    random = np.random.default_rng(seed)
    taste = 0.7 * random.standard_normal(experts)
    bias = np.zeros(experts)
    found = []
    for _ in range(steps):
        scores = 1 / (1 + np.exp(-(random.standard_normal((tokens, experts)) + taste)))
        choices = np.argsort(-(scores + bias), axis=1, kind="stable")[:, :top_k]
        loads = np.bincount(choices.ravel(), minlength=experts)
        mean = tokens * top_k / experts
        found.append(float(loads.max() / mean))
        bias += rate * np.sign(mean - loads)
    return tuple(found)
