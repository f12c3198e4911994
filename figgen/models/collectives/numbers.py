"""A trace carried out with actual numbers instead of names of contributors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from figgen.errors import InputError
from figgen.models.collectives.traces import CollectiveTrace, destinations, origins

Buffers = tuple[Mapping[int, float], ...]
"""`buffers[rank][chunk]` is the number that a rank holds for a chunk, if it holds one."""


def carry_out(trace: CollectiveTrace, inputs: Sequence[Mapping[int, float]]) -> Buffers:
    """Return what every rank ends with, in the chunks that the collective promises it.

    `inputs[rank]` has a number for each chunk that the rank contributes to. All messages of a step
    leave before any arrives. Raises InputError if a contribution is missing or surplus.
    """
    if len(inputs) != trace.ranks:
        raise InputError("inputs", expected=f"{trace.ranks}, one per rank", got=len(inputs))
    wanted = [set[int]() for _ in range(trace.ranks)]
    for chunk in range(trace.chunk_count):
        for rank in origins(trace, chunk):
            wanted[rank].add(chunk)
    for rank, (given, due) in enumerate(zip(inputs, wanted, strict=True)):
        if set(given) != due:
            raise InputError(f"chunks of rank {rank}", expected=str(sorted(due)), got=sorted(given))
    held = [dict(given) for given in inputs]
    for sends in trace.steps:
        moving = [(s, [held[s.source][chunk] for chunk in s.chunks]) for s in sends]
        for send, numbers in moving:
            for chunk, value in zip(send.chunks, numbers, strict=True):
                kept = held[send.target].get(chunk, 0.0) if send.reduces else 0.0
                held[send.target][chunk] = kept + value
    return tuple(
        {
            chunk: held[rank][chunk]
            for chunk in range(trace.chunk_count)
            if rank in destinations(trace, chunk)
        }
        for rank in range(trace.ranks)
    )
