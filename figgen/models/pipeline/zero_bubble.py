"""Zero-bubble schedules, which split the backward and fill idle time with weight gradients."""

from __future__ import annotations

from collections.abc import Sequence

from figgen.models.pipeline.action import Action, Order
from figgen.models.pipeline.one_f_one_b import chunk_turns, microbatch_group_size
from figgen.models.pipeline.order import Schedule, check_sizes
from figgen.models.pipeline.order_phases import write_order
from figgen.models.pipeline.stage_placement import contiguous, looping, v_shape


def zb1p(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """Return ZB-H1, zero bubble with the memory of 1F1B; interleaved if `chunks` > 1.

    Rank p runs P−p−1 forwards ahead and defers p weight gradients, so that every rank keeps P
    microbatches. Interleaved, it has torch's order, with (V−1)·group more forwards ahead.
    Source: Qi et al. 2023, arXiv:2401.10241, section 2.1.
    """
    check_sizes("zb1p", stages, microbatches, chunks)
    group = microbatch_group_size(stages, microbatches)
    turns = list(chunk_turns(microbatches, chunks, group))
    orders = tuple(
        _late_weights(
            [(chunk * stages + rank, m) for chunk, m in turns],
            [((chunks - 1 - chunk) * stages + rank, m) for chunk, m in turns],
            warm_up=stages - rank - 1 + (chunks - 1) * group,
            owed=rank,
        )
        for rank in range(stages)
    )
    placement = contiguous(stages) if chunks == 1 else looping(stages, chunks)
    return Schedule(name="zb1p", placement=placement, microbatches=microbatches, orders=orders)


def zb2p(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """Return ZB-H2: twice as many forwards ahead as ZB-H1, and no idle time within a step.

    Rank p runs 2(P−p−1) forwards ahead and defers 2p weight gradients; every rank keeps 2P−1
    microbatches. Ranks end as staggered as they start, so the next step must be allowed to begin
    without a common end (`Trace.bubble_fraction_without_flush`). Needs M ≥ 2P−1 to fill.
    Source: Qi et al. 2023, arXiv:2401.10241, section 2.2.
    """
    check_sizes("zb2p", stages, microbatches, chunks, only_chunks=1)
    orders = tuple(
        _late_weights(
            [(rank, m) for m in range(microbatches)],
            [(rank, m) for m in range(microbatches)],
            warm_up=2 * (stages - rank - 1),
            owed=2 * rank,
        )
        for rank in range(stages)
    )
    return Schedule(
        name="zb2p", placement=contiguous(stages), microbatches=microbatches, orders=orders
    )


def zbv(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Return ZB-V: two chunks per rank in a V, no idle time within a step, the memory of 1F1B.

    Zero idle time (apart from the stagger of the ranks) requires equal times of F, I and W. Written
    for M ≥ 2P−1; with fewer microbatches the surplus actions are left out.
    Source: Qi et al. 2023, arXiv:2401.10241, section 6 of its first version; order as in torch.
    """
    check_sizes("zbv", stages, microbatches, chunks, only_chunks=2)
    full = max(microbatches, 2 * stages - 1)
    orders = []
    for rank in range(stages):
        to_turn = stages - rank
        steady = full - stages
        with_forward = steady - to_turn + 1
        order, _ = write_order(
            (
                ("F0", 2 * to_turn - 1),
                ("F1 F0", rank),
                ("F1 I1 W1", to_turn),
                ("F0 I0 W0 F1 I1 W1", with_forward),
                ("I0 W0 F1 I1 W1", steady - with_forward),
                ("I0 I1", rank),
                ("I0 W0", to_turn),
                ("W1", rank),
                ("W0", rank),
            ),
            stages=(rank, 2 * stages - 1 - rank),
            microbatches=microbatches,
        )
        orders.append(order)
    return Schedule(
        name="zbv", placement=v_shape(stages), microbatches=microbatches, orders=tuple(orders)
    )


Work = Sequence[tuple[int, int]]


def _late_weights(forwards: Work, backwards: Work, warm_up: int, owed: int) -> Order:
    """Return an order: forwards ahead, then F and I in turn, each W after `owed` later I."""
    order = [Action(stage, "F", m) for stage, m in forwards[:warm_up]]
    for index, (stage, microbatch) in enumerate(backwards):
        order += [Action(s, "F", m) for s, m in forwards[warm_up + index : warm_up + index + 1]]
        order.append(Action(stage, "I", microbatch))
        if index >= owed:
            late_stage, late_microbatch = backwards[index - owed]
            order.append(Action(late_stage, "W", late_microbatch))
    paid = max(0, len(backwards) - owed)
    return (*order, *(Action(stage, "W", m) for stage, m in backwards[paid:]))
