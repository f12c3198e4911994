"""What a trace costs: bytes per rank, per link and per step, and time if every step waits.

`message_bytes` is the largest buffer of any one rank, see `figgen.models.collectives.traces`.
"""

from __future__ import annotations

from collections import Counter

from figgen.models.collectives.traces import CollectiveTrace


def chunks_sent_per_rank(trace: CollectiveTrace) -> tuple[int, ...]:
    """Number of chunks that each rank sends, counted once per message that carries it."""
    sent = [0] * trace.ranks
    for sends in trace.steps:
        for send in sends:
            sent[send.source] += len(send.chunks)
    return tuple(sent)


def chunks_received_per_rank(trace: CollectiveTrace) -> tuple[int, ...]:
    """Number of chunks that each rank receives, counted once per message that carries it."""
    received = [0] * trace.ranks
    for sends in trace.steps:
        for send in sends:
            received[send.target] += len(send.chunks)
    return tuple(received)


def bytes_sent_per_rank(trace: CollectiveTrace, message_bytes: float) -> tuple[float, ...]:
    """Bytes that each rank puts on the wire."""
    chunks = trace.message_chunks
    return tuple(count * message_bytes / chunks for count in chunks_sent_per_rank(trace))


def bytes_received_per_rank(trace: CollectiveTrace, message_bytes: float) -> tuple[float, ...]:
    """Bytes that each rank takes from the wire."""
    chunks = trace.message_chunks
    return tuple(count * message_bytes / chunks for count in chunks_received_per_rank(trace))


def bytes_per_link(trace: CollectiveTrace, message_bytes: float) -> dict[tuple[int, int], float]:
    """Bytes from each source to each target, for the pairs that exchange anything."""
    sent: Counter[tuple[int, int]] = Counter()
    for sends in trace.steps:
        for send in sends:
            sent[send.source, send.target] += len(send.chunks)
    return {pair: n * message_bytes / trace.message_chunks for pair, n in sorted(sent.items())}


def largest_message_per_step(trace: CollectiveTrace, message_bytes: float) -> tuple[float, ...]:
    """Return the largest message of each step in bytes; it sets the step's time on equal links."""
    chunks = trace.message_chunks
    return tuple(
        max(len(send.chunks) for send in sends) * message_bytes / chunks for sends in trace.steps
    )


def synchronous_time_s(
    trace: CollectiveTrace, message_bytes: float, latency_s: float, bandwidth_bytes_per_s: float
) -> float:
    """Return the time (s) on equal links if no step starts before the previous one has ended.

    Each step costs `latency_s` (the α of the Hockney model, per step) plus its largest message
    divided by `bandwidth_bytes_per_s` (per direction). Reductions take no time.
    """
    largest = largest_message_per_step(trace, message_bytes)
    return len(largest) * latency_s + sum(largest) / bandwidth_bytes_per_s
