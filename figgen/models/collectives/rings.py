"""Ring reduce-scatter, all-gather and all-reduce, in the two published schedules.

Both schedules send chunk `(r − s + shift) mod n` from rank `r` in reduce-scatter step `s`, and
leave rank `r` with the whole of chunk `(r + 1 + shift) mod n`; they differ only in `shift`. NCCL
starts one chunk earlier, so that rank `r` ends with chunk `r`, as its reduce-scatter promises (NCCL
src/device/all_reduce.h, reduce_scatter.h). Most tutorials let rank `r` send chunk `r` first, which
leaves it with chunk `r + 1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from figgen.errors import check_size, unknown
from figgen.models.collectives.traces import CollectiveTrace, Round, assemble

SCHEDULES: dict[str, int] = {"nccl": -1, "textbook": 0}
"""Name of a ring schedule -> its shift."""


def reduce_rounds(
    members: Sequence[int], blocks: Sequence[tuple[int, ...]], shift: int = -1
) -> list[Round]:
    """Ring reduce-scatter among `members`, in ring order; one block of chunks per member.

    Afterward `members[i]` holds `blocks[(i + 1 + shift) % n]`, summed over the members.
    """
    n = len(members)
    return [
        [(members[i], members[(i + 1) % n], blocks[(i - step + shift) % n], True) for i in range(n)]
        for step in range(n - 1)
    ]


def gather_rounds(
    members: Sequence[int], blocks: Sequence[tuple[int, ...]], shift: int = -1
) -> list[Round]:
    """Ring all-gather among `members`; `members[i]` starts with `blocks[(i + 1 + shift) % n]`."""
    n = len(members)
    return [
        [
            (members[i], members[(i + 1) % n], blocks[(i + 1 + shift - step) % n], False)
            for i in range(n)
        ]
        for step in range(n - 1)
    ]


def single_chunks(count: int) -> list[tuple[int, ...]]:
    """Blocks of one chunk each, numbered from 0."""
    return [(chunk,) for chunk in range(count)]


PHASES: dict[str, Callable[..., list[Round]]] = {
    "reduce-scatter": reduce_rounds,
    "all-gather": gather_rounds,
}


def _ring(collective: str, phases: Iterable[str], ranks: int, schedule: str) -> CollectiveTrace:
    """Assemble the phases of a collective, one after the other around one ring of all ranks."""
    if schedule not in SCHEDULES:
        raise unknown("ring schedule", schedule, SCHEDULES)
    shift, chunks = SCHEDULES[schedule], single_chunks(check_size("ranks", ranks))
    return assemble(
        collective,
        "ring",
        ranks,
        ranks,
        [(name, PHASES[name](range(ranks), chunks, shift)) for name in phases],
        owners=[(chunk - 1 - shift) % ranks for chunk in range(ranks)],
        variant=schedule,
    )


def ring_reduce_scatter(ranks: int, *, schedule: str = "nccl") -> CollectiveTrace:
    """Each of n−1 steps passes one partly reduced chunk to the right-hand neighbor.

    `ranks` ≥ 1, `schedule` is "nccl" or "textbook" (InputError otherwise).
    """
    return _ring("reduce-scatter", ("reduce-scatter",), ranks, schedule)


def ring_all_gather(ranks: int, *, schedule: str = "nccl") -> CollectiveTrace:
    """Each of n−1 steps passes one finished chunk on; rank r starts with what it owns.

    With the textbook schedule rank r owns chunk r + 1, as after a textbook reduce-scatter.
    `ranks` ≥ 1, `schedule` is "nccl" or "textbook" (InputError otherwise).
    """
    return _ring("all-gather", ("all-gather",), ranks, schedule)


def ring_all_reduce(ranks: int, *, schedule: str = "nccl") -> CollectiveTrace:
    """Ring reduce-scatter, then ring all-gather: 2(n−1) steps of one n-th of the vector each.

    `ranks` ≥ 1, `schedule` is "nccl" or "textbook" (InputError otherwise).
    """
    return _ring("all-reduce", ("reduce-scatter", "all-gather"), ranks, schedule)
