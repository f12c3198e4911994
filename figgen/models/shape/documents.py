"""Keys per token in a sequence of packed documents, each of which attends only to itself.

The attention core multiplies pairs within a document only. If only the mean length is known,
documents are assumed to end anywhere with equal probability, so that lengths are exponential and
a pair of tokens u apart shares a document with probability exp(−u/d).
"""

from __future__ import annotations

from math import exp

from figgen.errors import InputError


def windowed_keys(sequence: float, window: float) -> float:
    """Return the keys per token in a windowed layer, counting the masked half as a full square.

    It is twice the mean number in the window, w·(2s − w)/s. Half of it is therefore the causal
    work, and a window of the whole sequence has all s keys.
    """
    seen = min(window, sequence)
    return seen * (2 * sequence - seen) / sequence


def packed_keys(sequence: float, window: float, documents: tuple[int, ...] = ()) -> float:
    """Return the keys per token of a windowed layer if `documents` share a sequence (() is one).

    Several numbers are the lengths of all documents of a sequence. A single number is their mean,
    for which the result is twice the integral of (s − u)·exp(−u/d) over the window, divided by s.
    """
    whole = windowed_keys(sequence, window)
    if not documents:
        return whole
    if len(documents) > 1:
        met = sum(length * windowed_keys(length, window) for length in documents)
        return met / sequence
    mean, seen = documents[0], min(window, sequence)
    pairs = mean * (sequence - mean) + exp(-seen / mean) * mean * (mean - sequence + seen)
    return min(whole, 2 * pairs / sequence)


def check_documents(documents: tuple[int, ...], sequence: int) -> None:
    """Raise InputError for lengths that cannot be those of a sequence's documents."""
    name = "document_tokens"
    if min(documents, default=1) < 1:
        expected = "lengths of 1 token or more"
        raise InputError(name, expected=expected, got=documents, key=name)
    if len(documents) > 1 and sum(documents) != sequence:
        expected = f"a mean length, or lengths that add up to {sequence:,}"
        raise InputError(name, expected=expected, got=documents, key=name)
