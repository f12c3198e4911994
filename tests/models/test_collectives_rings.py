"""Ring traces compared with a hand-checked 4-rank trace, the published index rules, and totals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.models.collectives import (
    bytes_per_link,
    bytes_received_per_rank,
    bytes_sent_per_rank,
    states,
    synchronous_time_s,
    verify,
)
from figgen.models.collectives.rings import (
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "collective_ring_4_ranks.json").read_text()
)
SCHEDULES = ("nccl", "textbook")
RANKS = range(1, 17)


def in_letters(contributors: frozenset[int], chunk: int) -> str:
    return "+".join(f"{'ABCD'[rank]}{chunk}" for rank in sorted(contributors))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_four_rank_all_reduce_passes_through_the_printed_states(schedule: str) -> None:
    printed = ORACLE[schedule]["states"]
    ours = [
        [[in_letters(held, chunk) for chunk, held in enumerate(rank)] for rank in state]
        for state in states(ring_all_reduce(4, schedule=schedule))
    ]
    assert ours == printed


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_four_rank_all_reduce_sends_the_printed_messages(schedule: str) -> None:
    ours = [
        [[send.source, send.target, *send.chunks] for send in sends]
        for sends in ring_all_reduce(4, schedule=schedule).steps
    ]
    assert ours == ORACLE[schedule]["sends"]


@pytest.mark.parametrize(
    ("ranks", "schedule", "owned"),
    [
        (4, "textbook", [1, 2, 3, 0]),
        (4, "nccl", [0, 1, 2, 3]),
        (5, "textbook", [1, 2, 3, 4, 0]),
    ],
)
def test_reduce_scatter_leaves_each_rank_with_the_published_chunk(
    ranks: int, schedule: str, owned: list[int]
) -> None:
    *_, last = states(ring_reduce_scatter(ranks, schedule=schedule))
    everyone = frozenset(range(ranks))
    whole = [[c for c in range(ranks) if last[r][c] == everyone] for r in range(ranks)]
    assert whole == [[chunk] for chunk in owned]


@pytest.mark.parametrize(("schedule", "offset"), [("nccl", -1), ("textbook", 0)])
@pytest.mark.parametrize("n", RANKS)
def test_messages_follow_the_index_rule(n: int, schedule: str, offset: int) -> None:
    steps = ring_all_reduce(n, schedule=schedule).steps
    for s in range(n - 1):
        for r, (reducing, gathering) in enumerate(zip(steps[s], steps[n - 1 + s], strict=True)):
            own = (r + 1 + offset) % n
            assert (reducing.source, reducing.target) == (r, (r + 1) % n)
            assert (gathering.source, gathering.target) == (r, (r + 1) % n)
            assert reducing.chunks == ((r - s + offset) % n,)
            assert gathering.chunks == ((own - s) % n,)
            assert (reducing.reduces, gathering.reduces) == (True, False)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("n", RANKS)
def test_every_ring_keeps_its_promise_in_n_minus_1_steps_a_phase(n: int, schedule: str) -> None:
    assert len(verify(ring_reduce_scatter(n, schedule=schedule)).steps) == n - 1
    assert len(verify(ring_all_gather(n, schedule=schedule)).steps) == n - 1
    both = verify(ring_all_reduce(n, schedule=schedule))
    assert both.phases == ("reduce-scatter",) * (n - 1) + ("all-gather",) * (n - 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("n", RANKS)
def test_a_chunk_that_arrives_in_step_s_has_s_plus_2_consecutive_contributors(
    n: int, schedule: str
) -> None:
    trace = ring_reduce_scatter(n, schedule=schedule)
    _, *after = states(trace)
    for s, (sends, state) in enumerate(zip(trace.steps, after, strict=True)):
        for send in sends:
            expected = {(send.target - back) % n for back in range(s + 2)}
            assert state[send.target][send.chunks[0]] == expected


@pytest.mark.parametrize("n", RANKS)
def test_every_rank_sends_and_receives_the_lower_bound(n: int) -> None:
    size = 16 * 9 * 5 * 7 * 11 * 13  # every n up to 16 divides it: the bytes are exact
    all_reduce = ring_all_reduce(n)
    assert bytes_sent_per_rank(all_reduce, size) == (2 * (n - 1) * size // n,) * n
    assert bytes_received_per_rank(all_reduce, size) == (2 * (n - 1) * size // n,) * n
    for half in (ring_reduce_scatter(n), ring_all_gather(n)):
        assert bytes_sent_per_rank(half, size) == ((n - 1) * size // n,) * n
        assert bytes_received_per_rank(half, size) == ((n - 1) * size // n,) * n


def test_all_reduce_of_140_gb_among_8_sends_245_gb_per_rank() -> None:
    assert bytes_sent_per_rank(ring_all_reduce(8), 140e9) == (245e9,) * 8


@pytest.mark.parametrize("n", range(2, 17))
def test_a_ring_uses_n_links_equally(n: int) -> None:
    links = bytes_per_link(ring_all_reduce(n), n)
    assert links == {(r, (r + 1) % n): 2 * (n - 1) for r in range(n)}


@pytest.mark.parametrize(
    ("build", "n", "size", "latency_s", "bandwidth", "published_s"),
    [
        (ring_all_reduce, 8, 140e9, 0, 300e9, 0.816666667),
        (ring_all_reduce, 8, 16e6, 1e-6, 300e9, 0.000107333333),
        (ring_reduce_scatter, 8, 1e9, 0, 50e9, 0.0175),
        (ring_reduce_scatter, 16, 1e6, 1e-6, 450e9, 1.70833333e-05),
        (ring_all_gather, 64, 1e9, 5e-6, 50e9, 0.0200025),
        (ring_all_gather, 8, 1e9, 5e-6, 50e9, 0.017535),
    ],
)
def test_step_by_step_time_equals_the_published_value(
    build, n, size, latency_s, bandwidth, published_s
) -> None:
    trace = build(n)
    assert synchronous_time_s(trace, size, latency_s, bandwidth) == pytest.approx(published_s)


def test_an_unknown_schedule_is_refused_with_the_one_meant() -> None:
    with pytest.raises(InputError, match="did you mean nccl"):
        ring_all_reduce(4, schedule="ncll")


@pytest.mark.parametrize("ranks", [0, -1, 2.5, True])
def test_ranks_must_be_a_positive_whole_number(ranks) -> None:
    with pytest.raises(InputError, match="whole number ≥ 1"):
        ring_all_reduce(ranks)
