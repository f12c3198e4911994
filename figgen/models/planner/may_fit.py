"""The layouts of a pipeline that may fit, found without computing every byte of the others.

Most layouts of a large model overflow with their state alone, or with their activations. State is
the same for all microbatch sizes and for all ways to recompute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from figgen.equations.columns import between, equal_to, least, listed, over
from figgen.equations.ops import Number, maximum, where
from figgen.models.memory.rank_bytes import StateBytes, activation_bytes, state_bytes
from figgen.models.planner.plan import (
    REASONS,
    MeshEntry,
    Mode,
    Pipeline,
    Zero,
    held_bytes,
    held_sizes,
    layout_most_bytes,
)


def may_fit(found: Pipeline) -> Iterator[Pipeline]:
    """Yield the entries of a pipeline that may fit, for each stage of ZeRO and each mode with some.

    The others of a stage are counted as `left_out` of its first mode. Each of them overflows and
    needs more bytes than the smallest layout.
    """
    firsts: list[MeshEntry] = []
    meshes: list[int] = []
    for entry in found.entries:
        if not firsts or firsts[-1].mesh != entry.mesh:
            firsts.append(entry)
        meshes.append(len(firsts) - 1)
    for zero in found.zeros:
        (state,) = over(
            found.modes[:1],
            (zero,),
            firsts,
            lambda mode, zero, entry: (_lasting_bytes(found, mode, zero, entry),),
        )
        smallest = firsts[int(equal_to(state, least(state))[0])]
        (whole,) = over(
            found.modes,
            (zero,),
            (smallest,),
            lambda mode, zero, entry: (held_bytes(found, mode, zero, entry)[0],),
        )
        most = max(found.most_bytes, least(whole))
        entries = tuple(
            entry for entry, mesh in zip(found.entries, meshes, strict=True) if state[mesh] <= most
        )
        parts = [_of_mode(found, mode, zero, entries, most) for mode in found.modes]
        left_out = tuple(sum(one.left_out[at] for one in parts) for at in range(len(REASONS)))
        for one in parts:
            if one.entries:
                yield replace(one, left_out=left_out)
                left_out = (0, 0, 0, 0)


def _of_mode(
    found: Pipeline, mode: Mode, zero: Zero, entries: tuple[MeshEntry, ...], most: float
) -> Pipeline:
    """Return the entries that may need at most `most` bytes; all but `entries` overflow."""
    held, reason = over(
        (mode,),
        (zero,),
        entries,
        lambda mode, zero, entry: _least_bytes(found, mode, zero, entry),
    )
    left_out = [0 for _ in REASONS]
    left_out[0] = len(found.entries) - len(entries)
    for place in between(held, most, inf):
        left_out[int(reason[place])] += 1
    kept = between(held, -inf, most)
    return replace(
        found,
        modes=(mode,),
        zeros=(zero,),
        entries=tuple(entries[int(place)] for place in kept),
        left_out=tuple(left_out),
    )


def _lasting_bytes(found: Pipeline, mode: Mode, zero: Zero, entry: MeshEntry) -> Number:
    """Return the least bytes of the fullest rank's state, whatever the microbatches."""
    held, most = held_sizes(found, mode, zero, entry), 0.0
    for load in listed(found.loads, mode.loads, entry.number):
        state = state_bytes(load, held)
        most = maximum(most, state.lasting - _freed(found, state))
    return most + found.job_memory.contexts


def _freed(found: Pipeline, state: StateBytes) -> Number:
    """Return the bytes of gradients that a rank may not hold at its peak."""
    return where(found.job_memory.frees_gradients > 0, state.gradients, 0)


def _least_bytes(
    found: Pipeline, mode: Mode, zero: Zero, entry: MeshEntry
) -> tuple[Number, Number]:
    """Return bytes that the fullest rank exceeds, and the part with which these overflow.

    These are the bytes of state and activations, or 0 where the first of `REASONS` is uncertain:
    activations may be gone when the update needs most, and gradients that are not kept may be
    state or not.
    """
    held = held_sizes(found, mode, zero, entry)
    most, contexts = layout_most_bytes(found, held), held.job.contexts
    least_state, most_state, active = 0.0, 0.0, 0.0
    for load in listed(found.loads, mode.loads, entry.number):
        state, kept = state_bytes(load, held), activation_bytes(load, held)
        lasting = state.lasting - _freed(found, state)
        there = where((kept >= state.copies) & (held.job.frees_gradients == 0), kept, 0)
        least_state = maximum(least_state, lasting + contexts)
        most_state = maximum(most_state, state.lasting + state.fresh + contexts)
        active = maximum(active, lasting + there + contexts)
    certain = where(least_state > most, active, where(most_state > most, 0.0, active))
    return certain, where(least_state > most, 0, 1)
