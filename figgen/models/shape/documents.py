"""Keys per token in a sequence of packed documents, each of which attends only to itself.

The attention core multiplies pairs within a document only. If only the mean length is known,
documents are assumed to end anywhere with equal probability, so that lengths are exponential and
a pair of tokens u apart shares a document with probability exp(−u/d).
"""

from __future__ import annotations

from math import exp

from figgen.errors import InputError


def windowed_keys(sequence: float, window: float) -> float:
    """Keys that a token meets in a windowed layer, the masked half counted as in a full square.

    Twice the mean number that the window leaves, w·(2s − w)/s, so that half of it is what causal
    attention multiplies and a window of the whole sequence has all s.
    """
    seen = min(window, sequence)
    return seen * (2 * sequence - seen) / sequence


def packed_keys(sequence: float, window: float, documents: tuple[int, ...] = ()) -> float:
    """Return the keys of a windowed layer if `documents` are packed into a sequence (() is one).

    Several are the lengths of all documents of a sequence, a single one is their mean: twice the
    integral of (s − u)·exp(−u/d) over the window, over s.
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
    """Raise InputError for lengths that are no documents of a sequence."""
    name = "document_tokens"
    if min(documents, default=1) < 1:
        expected = "lengths of 1 token or more"
        raise InputError(name, expected=expected, got=documents, key=name)
    if len(documents) > 1 and sum(documents) != sequence:
        expected = f"a mean length, or lengths that add up to {sequence:,}"
        raise InputError(name, expected=expected, got=documents, key=name)
