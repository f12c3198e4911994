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
    """Yield the entries of a pipeline that may fit in some mode, for each stage of ZeRO.

    The others are counted as `left_out`. Each of them overflows and needs more bytes than the
    smallest layout.
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
        held, reason = over(
            found.modes,
            (zero,),
            entries,
            lambda mode, zero, entry: _least_bytes(found, mode, zero, entry),
        )
        count = len(entries)
        kept = {int(place) % count: True for place in between(held, -inf, most)}
        left_out = [0 for _ in REASONS]
        left_out[0] = (len(found.entries) - count) * len(found.modes)
        for place in range(len(reason)):
            if place % count not in kept:
                left_out[int(reason[place])] += 1
        yield replace(
            found,
            zeros=(zero,),
            entries=tuple(entry for place, entry in enumerate(entries) if place in kept),
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
