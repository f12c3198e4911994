"""DualPipe and DualPipeV compared with their authors' orders and published idle time."""

import itertools
import json
import pathlib

import pytest

from figgen.errors import InputError
from figgen.models.pipeline.schedules import build
from figgen.models.pipeline.simulate import Durations, simulate

ORACLES = json.loads(
    (pathlib.Path(__file__).parents[1] / "oracles" / "pipeline_orders.json").read_text("utf-8")
)


def words(schedule):
    """Return orders in the notation of the frozen file: kind, direction or chunk, its
    microbatch."""
    placement = schedule.placement
    rows = []
    for order in schedule.orders:
        row, joined = [], False
        for action in order:
            side = action.stage // placement.ranks
            first = schedule.microbatches_of(action.stage).start
            where = f"{side}.{action.microbatch - first}"
            if action in schedule.overlapped:
                row.append(f"FB{where}")
            elif joined:
                row[-1] += f",{where}"
            else:
                row.append(f"{action.kind}{where}")
            joined = action in schedule.overlapped
        rows.append(" ".join(row))
    return rows


@pytest.mark.parametrize("key", sorted(ORACLES["dualpipe"]["orders"]))
def test_order_is_deepseeks(key):
    title, stages, microbatches = key.split()
    schedule = build(title.lower(), stages=int(stages[1:]), microbatches=int(microbatches[1:]))
    assert words(schedule) == ORACLES["dualpipe"]["orders"][key]


SIZES = [
    (name, stages, microbatches)
    for name in ("dualpipe", "dualpipev")
    for stages in (2, 4, 6, 8)
    for microbatches in (2 * stages, 2 * stages + 2, 3 * stages)
]


def published(title, forward_and_backward, backward, weights, stages):
    """Return idle time and activations of a row of the table, for PP stages."""
    rows = {row[0]: row[1:] for row in ORACLES["published"]["dualpipe_bubble"]["rows"]}
    formula, _, activations = rows[title]
    assert (formula, activations) == ("(PP/2-1)(F&B+B-3W)", "PP+1")
    return (stages // 2 - 1) * (forward_and_backward + backward - 3 * weights), stages + 1


@pytest.mark.parametrize(("name", "ranks", "microbatches"), SIZES)
def test_idle_time_is_published_where_f_equals_i(name, ranks, microbatches):
    # Exact on the rank that waits longest, for F = I ≥ W; F&B from no overlap to all hidden.
    title, stages = ("DualPipe", ranks) if name == "dualpipe" else ("DualPipeV", 2 * ranks)
    schedule = build(name, stages=ranks, microbatches=microbatches)
    for forward, weights in ((2, 1), (2, 2), (4, 1), (4, 3)):
        backward = forward + weights
        for pair in (backward, backward + forward / 2, backward + forward):
            trace = simulate(
                schedule,
                Durations(
                    forward=forward,
                    backward_input=forward,
                    backward_weight=weights,
                    overlapped_pair=pair,
                ),
            )
            idle, _ = published(title, pair, backward, weights, stages)
            assert max(trace.makespan - busy for busy in trace.busy) == idle


@pytest.mark.parametrize(("name", "ranks", "microbatches"), SIZES)
def test_idle_time_depends_on_f_where_the_table_has_i(name, ranks, microbatches):
    # With I < F the simulated idle time is (PP/2−1)(F&B + F − 2W); the table has I for this F.
    stages = ranks if name == "dualpipe" else 2 * ranks
    schedule = build(name, stages=ranks, microbatches=microbatches)
    for forward, inputs, weights in ((3, 2, 1), (4, 2, 2), (4, 3, 1)):
        pair = forward + inputs + weights
        trace = simulate(
            schedule, Durations(forward=forward, backward_input=inputs, backward_weight=weights)
        )
        idle = max(trace.makespan - busy for busy in trace.busy)
        assert idle == (stages // 2 - 1) * (pair + forward - 2 * weights)


@pytest.mark.parametrize(("name", "ranks", "microbatches"), SIZES)
def test_peak_in_flight_is_published(name, ranks, microbatches):
    title, stages = ("DualPipe", ranks) if name == "dualpipe" else ("DualPipeV", 2 * ranks)
    trace = simulate(build(name, stages=ranks, microbatches=microbatches))
    # The table counts stages of the model; a DualPipeV rank is two of them wide.
    _, activations = published(title, 0, 0, 0, stages)
    assert trace.peak_in_flight == (activations / (stages // ranks),) * ranks


@pytest.mark.parametrize(("name", "ranks", "microbatches"), SIZES)
def test_every_stage_runs_each_of_its_microbatches_once(name, ranks, microbatches):
    schedule = build(name, stages=ranks, microbatches=microbatches)
    done = sorted(
        (action.stage, kind, action.microbatch)
        for order in schedule.orders
        for action in order
        for kind in ("IW" if action.kind == "B" else action.kind)
    )
    half = microbatches // 2
    runs = [range(half), range(half, microbatches)]
    if name == "dualpipev":
        runs = [range(microbatches)] * 2
    assert done == [
        (stage, kind, microbatch)
        for stage, kind in itertools.product(range(2 * ranks), "FIW")
        for microbatch in runs[stage // ranks]
    ]


def test_overlap_hides_time():
    schedule = build("dualpipe", stages=8, microbatches=20)
    apart = simulate(schedule, Durations(forward=1, backward_input=1, backward_weight=1))
    hidden = simulate(
        schedule, Durations(forward=1, backward_input=1, backward_weight=1, overlapped_pair=2)
    )
    assert hidden.makespan < apart.makespan
    assert hidden.busy[0] == apart.busy[0] - sum(
        placed.overlapped and placed.action.kind == "F" for placed in hidden.placed[0]
    )


@pytest.mark.parametrize(
    ("name", "ranks", "microbatches", "message"),
    [
        ("dualpipe", 3, 8, "stages .* expected an even number, got 3"),
        ("dualpipe", 4, 9, "expected an even number ≥ 2 × stages = 8, got 9"),
        ("dualpipe", 4, 6, "expected an even number ≥ 2 × stages = 8, got 6"),
        ("dualpipev", 4, 7, "expected at least 2 × stages = 8, got 7"),
    ],
)
def test_sizes_that_dualpipe_cannot_have_are_refused(name, ranks, microbatches, message):
    with pytest.raises(InputError, match=message):
        build(name, stages=ranks, microbatches=microbatches)


def test_chunks_together_take_what_the_whole_took() -> None:
    whole = Durations(
        forward=3, backward_input=(1, 4), backward_weight=2, latency=0.5, overlapped_pair=7
    )
    each = whole.per_chunk(2)
    assert (each.forward, each.backward_input, each.backward_weight) == (1.5, (0.5, 2), 1)
    assert (each.latency, each.overlapped_pair) == (0.5, 3.5)
    assert Durations().per_chunk(2).overlapped_pair is None
    assert Durations(overlapped_pair=(7, 8)).per_chunk(2).overlapped_pair == (3.5, 4)
