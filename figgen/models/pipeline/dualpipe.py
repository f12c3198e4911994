"""DualPipe and its halved form, which overlap forwards and backwards of opposite directions."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.models.pipeline.action import Action
from figgen.models.pipeline.order import Schedule, check_sizes
from figgen.models.pipeline.order_phases import Phase, write_order
from figgen.models.pipeline.stage_placement import bidirectional, v_shape


def dualpipe(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """Return DualPipe: two copies of the model, fed with microbatches from both ends.

    `microbatches` counts both directions: 0 … M/2−1 enter at rank 0, the rest at rank P−1. Raises
    InputError unless P is even and M an even number ≥ 2P.
    Source: DeepSeek-V3 technical report, arXiv:2412.19437, section 3.2.1; order as in
    deepseek-ai/DualPipe.
    """
    check_sizes("dualpipe", stages, microbatches, chunks, only_chunks=1)
    if stages % 2:
        raise InputError(
            "stages of schedule 'dualpipe'", expected="an even number", got=stages, key="stages"
        )
    if microbatches % 2 or microbatches < 2 * stages:
        raise InputError(
            "microbatches of schedule 'dualpipe'",
            expected=f"an even number ≥ 2 × stages = {2 * stages}",
            got=microbatches,
            key="microbatches",
        )
    half = microbatches // 2
    written = []
    for rank in range(stages):
        from_end = min(rank, stages - 1 - rank)
        held, first = (rank, 2 * stages - 1 - rank), (0, half)
        if rank >= stages // 2:
            held, first = held[::-1], first[::-1]
        written.append(write_order(_phases(from_end, stages // 2, half), held, first))
    return _schedule("dualpipe", stages, microbatches, written)


def dualpipev(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Return DualPipe cut in half: one copy of the model, two chunks per rank in a V.

    Each rank runs what the first half of DualPipe's ranks run; the turn of the V replaces the other
    half. Raises InputError unless M ≥ 2P.
    Source: deepseek-ai/DualPipe (`dualpipev.py`), after Sea AI Lab's "cut-in-half".
    """
    check_sizes("dualpipev", stages, microbatches, chunks, only_chunks=2)
    if microbatches < 2 * stages:
        raise InputError(
            "microbatches of schedule 'dualpipev'",
            expected=f"at least 2 × stages = {2 * stages}",
            got=microbatches,
            key="microbatches",
        )
    written = [
        write_order(_phases(rank, stages, microbatches), (rank, 2 * stages - 1 - rank))
        for rank in range(stages)
    ]
    return _schedule("dualpipev", stages, microbatches, written)


def _phases(from_end: int, half: int, flow: int) -> list[Phase]:
    """Return the phases of the rank `from_end` places from its end of the pipe.

    Each direction has `flow` microbatches. Side 0 comes from the near end; `half` is the distance
    of the middle from the ends.
    """
    inward = half - from_end - 1
    # The middle rank runs its first pair sequentially: it waits for nothing, and the next rank gets
    # its input sooner.
    first_pair = "F0 B1" if inward == 0 else "F0&B1"
    steady = flow - 2 * half + from_end + 1
    alternate = [f"B{side}" for side in (1, 0)] * (from_end + 1)
    late = [word.replace("B", "I") for word in alternate[from_end + 1 :]]
    return [
        ("F0", 2 * inward),
        ("F0 F1", from_end + 1),
        ("I1 W F1", inward),
        (f"{first_pair} F1&B0", 1),
        ("F0&B1 F1&B0", steady - 1),
        ("B1 F1&B0", inward),
        (" ".join(alternate[: from_end + 1] + late), 1),
        ("W I0", inward),
        ("W", from_end + 1),
    ]


def _schedule(
    name: str,
    stages: int,
    microbatches: int,
    written: list[tuple[tuple[Action, ...], frozenset[Action]]],
) -> Schedule:
    placement = bidirectional(stages) if name == "dualpipe" else v_shape(stages)
    orders = tuple(order for order, _ in written)
    overlapped = frozenset[Action]().union(*(pairs for _, pairs in written))
    return Schedule(
        name=name,
        placement=placement,
        microbatches=microbatches,
        orders=orders,
        overlapped=overlapped,
    )
