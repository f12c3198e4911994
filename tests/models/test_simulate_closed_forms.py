"""Simulated schedules compared with closed forms and an independent simulation."""

import itertools
import json
import pathlib
from fractions import Fraction

import pytest

from figgen.models.pipeline.schedules import (
    build,
)
from figgen.models.pipeline.simulate import Durations, simulate

TIMELINES = json.loads(
    (pathlib.Path(__file__).parents[1] / "oracles" / "pipeline_orders.json").read_text("utf-8")
)["timelines"]["rows"]
UNIT = Durations(forward=2, backward_input=1, backward_weight=1)  # t_f = t_b, in halves
SMALL = list(itertools.product(range(1, 9), range(1, 17)))


def slots(trace, unit):
    """Return one word per unit of time on each rank, `.` for idle."""
    rows = []
    for lane in trace.placed:
        row = ["."] * int(trace.makespan / unit)
        for placed in lane:
            for slot in range(int(placed.start / unit), int(placed.end / unit)):
                row[slot] = f"{placed.action.kind}{placed.action.microbatch}"
        rows.append(" ".join(row))
    return rows


@pytest.mark.parametrize(
    ("timeline", "schedule", "durations"),
    [
        ("1f1b P4 M4", build("1f1b", stages=4, microbatches=4), UNIT),
        ("1f1b P4 M8", build("1f1b", stages=4, microbatches=8), UNIT),
        (
            "1f1b P4 M8 t_b=2",
            build("1f1b", stages=4, microbatches=8),
            Durations(forward=2, backward_input=2, backward_weight=2),
        ),
        (
            "interleaved-1f1b P4 M8 v2",
            build("interleaved-1f1b", stages=4, microbatches=8, chunks=2),
            UNIT,
        ),
    ],
)
def test_timeline_equals_an_independent_simulation(timeline, schedule, durations):
    assert slots(simulate(schedule, durations), 2) == TIMELINES[timeline]


def test_1f1b_p4_m8_has_makespan_22():
    assert simulate(build("1f1b", stages=4, microbatches=8), UNIT).makespan == 44


@pytest.mark.parametrize("backward", [1, 2, 3])
def test_naive_bubble_fraction_is_p_minus_1_over_p(backward):
    for stages, microbatches in SMALL:
        trace = simulate(
            build("naive", stages=stages, microbatches=microbatches),
            Durations(forward=1, backward_input=backward, backward_weight=0),
        )
        assert trace.bubble_fraction == (stages - 1) / stages
        assert trace.bubble_fraction_by_rank == ((stages - 1) / stages,) * stages


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved-1f1b"])
@pytest.mark.parametrize("backward", [1, 2])
def test_bubble_fraction_is_p_minus_1_over_vm_plus_p_minus_1(name, backward):
    for (stages, microbatches), chunks in itertools.product(SMALL, range(1, 5)):
        if chunks > 1 and (name != "interleaved-1f1b" or microbatches % stages):
            continue
        trace = simulate(
            build(name, stages=stages, microbatches=microbatches, chunks=chunks),
            Durations(forward=1, backward_input=backward, backward_weight=0),
        )
        wall = chunks * microbatches + stages - 1
        assert trace.makespan == wall * (1 + backward)
        assert trace.bubble_fraction == (stages - 1) / wall
        assert trace.bubble_fraction_by_rank == ((stages - 1) / wall,) * stages
        assert trace.bubble_overhead == (stages - 1) / (chunks * microbatches)
        assert trace.bubble_overhead_by_rank == (trace.bubble_overhead,) * stages


@pytest.mark.parametrize("backward", [1, 2])
def test_interleaving_of_any_m_takes_v_max_m_p_plus_min_m_p_minus_1(backward):
    # The closed form above needs M ≥ P only, not M % P == 0, with Megatron's rule for groups.
    # With M < P a chunk must wait P for its microbatch to come around.
    for (stages, microbatches), chunks in itertools.product(SMALL, range(1, 5)):
        trace = simulate(
            build("interleaved-1f1b", stages=stages, microbatches=microbatches, chunks=chunks),
            Durations(forward=1, backward_input=backward, backward_weight=0),
        )
        rounds = chunks * max(microbatches, stages) if chunks > 1 else microbatches
        extra = (min(microbatches, stages) if chunks > 1 else stages) - 1
        assert trace.makespan == (rounds + extra) * (1 + backward)


def test_looped_bfs_has_the_bubble_of_interleaving_and_the_memory_of_gpipe():
    for (stages, microbatches), chunks in itertools.product(SMALL, range(1, 5)):
        if microbatches < stages:
            continue
        trace = simulate(
            build("looped-bfs", stages=stages, microbatches=microbatches, chunks=chunks)
        )
        assert trace.bubble_fraction == (stages - 1) / (chunks * microbatches + stages - 1)
        assert trace.peak_in_flight == (microbatches,) * stages


def test_64_stages_512_microbatches_4_chunks():
    trace = simulate(build("interleaved-1f1b", stages=64, microbatches=512, chunks=4))
    assert trace.bubble_fraction == 63 / (4 * 512 + 63)


def test_interleaving_into_chunks_cuts_the_step_to_28_5():
    # Narayanan et al. 2021 eq. (1): (M + (P−1)/V)(t_f + t_b) with P=4, M=8, V=2, t = 3.
    schedule = build("interleaved-1f1b", stages=4, microbatches=8, chunks=2)
    assert (
        simulate(
            schedule, Durations(forward=1, backward_input=1, backward_weight=1).per_chunk(2)
        ).makespan
        == 28.5
    )


def test_peak_in_flight_has_its_closed_form():
    for stages, microbatches in SMALL:
        gpipe = simulate(build("gpipe", stages=stages, microbatches=microbatches))
        plain = simulate(build("1f1b", stages=stages, microbatches=microbatches))
        naive = simulate(build("naive", stages=stages, microbatches=microbatches))
        assert gpipe.peak_in_flight == (microbatches,) * stages
        assert naive.peak_in_flight == (1,) * stages
        assert plain.peak_in_flight == tuple(min(stages - p, microbatches) for p in range(stages))


def test_peak_in_flight_of_interleaving_is_p_times_1_plus_p_minus_1_over_pv_on_rank_0():
    for stages, chunks, rounds in itertools.product(range(1, 9), range(2, 5), range(2, 4)):
        microbatches = stages * rounds
        schedule = build(
            "interleaved-1f1b", stages=stages, microbatches=microbatches, chunks=chunks
        )
        peak = simulate(schedule).peak_in_flight[0]
        expected = stages * (1 + Fraction(stages - 1, stages * chunks))
        assert Fraction(peak).limit_denominator(chunks) == min(expected, microbatches)


@pytest.mark.parametrize(
    ("stages", "microbatches", "chunks", "peak"),
    [(4, 8, 2, 5.5), (8, 32, 4, 9.75), (8, 64, 2, 11.5), (4, 4, 2, 4.0)],
)
def test_peak_in_flight_of_interleaving_on_rank_0(stages, microbatches, chunks, peak):
    schedule = build("interleaved-1f1b", stages=stages, microbatches=microbatches, chunks=chunks)
    assert simulate(schedule).peak_in_flight[0] == peak
