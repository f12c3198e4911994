"""The kind of a layout: which axes it uses, and whether ZeRO gathers its weights."""

from __future__ import annotations


def layout_kind(*, tp: int, cp: int, pp: int, ep: int, zero_stage: int) -> int:
    """Return a number with a bit for each of TP, CP, PP, EP and ZeRO-3 that a layout uses."""
    used = (tp > 1, cp > 1, pp > 1, ep > 1, zero_stage == 3)
    return sum([2**place for place, one in enumerate(used) if one])
