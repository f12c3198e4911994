"""Where the closed forms end, compared with relaxed dependencies and arithmetic by hand."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from figgen.charts import Curves, Table
from figgen.errors import InputError
from figgen.models.pipeline.schedules import build as build_schedule
from figgen.models.pipeline.schedules import peak_in_flight
from figgen.models.pipeline.simulate import Durations, simulate
from figgen.registry import build

BALANCE = {
    "model": "llama-3-8b",
    "microbatches": 16,
    "layers": [[8, 8, 8, 8], [9, 8, 8, 7], [7, 9, 9, 7]],
}


def relaxed_wall(schedule, stages, microbatches, chunks=None, *, latency=0.0, work=None):
    """Compute the wall time without a simulator, by raising every end until all
    dependencies hold."""
    order = build_schedule(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    rank_of, last = order.placement.rank_of_stage, order.placement.stages - 1
    share = work or [1.0] * (last + 1)
    ends = {action: 0.0 for actions in order.orders for action in actions}

    def starts_after(action, before):
        yield ends[before] if before else 0.0
        for other in ends:
            hop = latency if rank_of[other.stage] != rank_of[action.stage] else 0.0
            if other.microbatch != action.microbatch:
                continue
            step = other.stage - action.stage
            if action.kind == "F" and other.kind == "F" and step == -1:
                yield ends[other] + hop
            if action.kind == "B" and (other.kind, step) in {("B", 1), ("F", 0)}:
                yield ends[other] + hop

    changed = True
    while changed:
        changed = False
        for actions in order.orders:
            for before, action in zip((None, *actions), actions, strict=False):
                time = share[action.stage] * {"F": 1, "B": 2}[action.kind] / (chunks or 1)
                end = max(starts_after(action, before)) + time
                changed |= abs(end - ends[action]) > 1e-9
                ends[action] = end
    return max(ends.values())


@pytest.mark.parametrize("schedule", ["naive", "gpipe", "1f1b", "interleaved-1f1b"])
@pytest.mark.parametrize("latency", [0.0, 0.25])
def test_the_rows_of_a_critical_path_add_up_to_the_wall(schedule, latency):
    sizes = {"stages": 3, "microbatches": 6, "latency": latency}
    chart = build("critical-path", {"schedule": schedule, **sizes})
    assert isinstance(chart, Table)
    chunks = 2 if schedule == "interleaved-1f1b" else None
    wall = relaxed_wall(schedule, 3, 6, chunks, latency=latency)

    assert chart.values["makespan"].value == pytest.approx(wall)
    hops = latency * chart.values["hops"].value
    assert sum(row[4] for row in chart.rows) + hops == pytest.approx(wall)
    assert chart.rows[0][0] == "rank 0"


def test_the_path_of_1f1b_is_a_ramp_a_full_rank_and_a_ramp():
    chart = build("critical-path", {"schedule": "1f1b", "stages": 4, "microbatches": 8})

    assert [row[0] for row in chart.rows] == [f"rank {rank}" for rank in (0, 1, 2, 3, 2, 1, 0)]
    assert [row[2:] for row in chart.rows] == [
        *[(1, 0, 1.0)] * 3,
        (8, 8, 24.0),
        *[(0, 1, 2.0)] * 3,
    ]


def test_messages_delay_gpipe_by_one_ramp_each_way_however_long_they_take():
    """(M + P − 1)(t_f + t_b) + 2(P − 1)λ, and that wall time in relation to M(t_f +
    t_b) of work."""
    chart = build("pipeline-latency", {"stages": 4, "microbatches": 8, "most": 0.5, "at": 0.25})
    assert isinstance(chart, Curves)
    gpipe = chart.series[0]

    for share, idle in zip(gpipe.x, gpipe.y, strict=True):
        assert idle == pytest.approx(1 - 8 / (8 + 3 + 6 * share))
    assert chart.values["gpipe_waits"].value == 6


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_1f1b_waits_for_messages_with_every_microbatch_and_interleaving_once(stages):
    """2(P − 1) messages for every P microbatches; 2(PV − 1) if a message is shorter
    than a chunk."""
    waits = {
        m: build("pipeline-latency", {"stages": stages, "microbatches": m, "at": 0.05}).values
        for m in (16, 32)
    }
    more = waits[32]["one_f_one_b_waits"].value - waits[16]["one_f_one_b_waits"].value

    assert more == pytest.approx(16 * 2 * (stages - 1) / stages)
    for m, v in itertools.product((16, 32), (2, 4)):
        assert waits[m][f"interleaved_{v}_waits"].value == 2 * (stages * v - 1)


@pytest.mark.parametrize(
    ("index", "schedule", "chunks"), [(1, "1f1b", None), (2, "interleaved-1f1b", 2)]
)
def test_idle_share_with_slow_messages_is_that_of_relaxation(index, schedule, chunks):
    sizes = {"stages": 3, "microbatches": 6, "chunks": [2], "most": 0.3, "at": 0.3}
    chart = build("pipeline-latency", sizes)

    for share, idle in list(zip(chart.series[index].x, chart.series[index].y, strict=True))[::5]:
        wall = relaxed_wall(schedule, 3, 6, chunks, latency=3 * share)
        assert idle == pytest.approx(1 - 18 / wall)


def test_reading_outside_the_curves_is_refused():
    with pytest.raises(InputError, match=r"at: expected more than 0, at most 0\.2"):
        build("pipeline-latency", {"at": 0.3})


def test_the_output_layer_of_llama_3_8b_is_worth_nearly_two_layers():
    """V·h over the 218,103,808 weights of a layer plus its attention, 2·s·h per token."""
    chart = build("stage-balance", BALANCE)
    head = 128_256 * 4096 / (218_103_808 + 2 * 8192 * 4096)

    assert chart.values["head"].value == pytest.approx(head)
    assert chart.values["slowest_0"].value == pytest.approx(8 + head)
    for index, dealt in enumerate(BALANCE["layers"]):
        work = [*map(float, dealt[:-1]), dealt[-1] + head]
        wall = relaxed_wall("1f1b", 4, 16, work=work)
        even = (32 + head) / 4 * 3 * 19
        assert chart.values[f"over_even_{index}"].value == pytest.approx(wall / even)
        assert chart.values[f"bubble_fraction_{index}"].value == pytest.approx(
            1 - 16 * 3 * sum(work) / (4 * wall)
        )


@pytest.mark.parametrize("dealt", [[8, 8, 8, 9], [16, 16, 0]])
def test_layers_that_do_not_make_the_model_are_refused(dealt):
    with pytest.raises(InputError, match="layers: expected at least 1 on each stage, 32 in all"):
        build("stage-balance", BALANCE | {"layers": [dealt]})


def test_interleaving_keeps_the_closed_form_from_m_equal_p_on_and_pays_in_memory():
    many = list(range(4, 25))
    chart = build("interleaved-groups", {"microbatches": many, "stages": 4, "chunks": 2})
    assert isinstance(chart, Table)

    for m, group, simulated, closed, peak, plain in chart.rows:
        assert simulated == pytest.approx(closed)
        assert (group == 4) == (m % 4 == 0)
        assert plain == 4
        assert peak == min(m, 5.5 + (group - 4) / 2)


@pytest.mark.parametrize("microbatches", [2, 6, 7])
def test_the_simulated_share_of_a_group_is_that_of_relaxation(microbatches):
    sizes = {"microbatches": [microbatches], "stages": 4, "chunks": 2}
    row = build("interleaved-groups", sizes).rows[0]
    wall = relaxed_wall("interleaved-1f1b", 4, microbatches, 2)

    assert row[2] == pytest.approx(1 - 3 * microbatches / wall)
    assert (row[2] > row[3] + 1e-9) == (microbatches < 4)


@pytest.mark.parametrize(("microbatches", "chunks"), [(8, 2), (12, 2), (8, 3)])
def test_half_of_megatrons_head_start_is_as_fast_without_messages_and_holds_p(microbatches, chunks):
    """This is what the page says that interleaving gains with its (P − 1)/V more microbatches."""
    stages = 4
    usual = build_schedule(
        "interleaved-1f1b", stages=stages, microbatches=microbatches, chunks=chunks
    )
    orders = []
    for rank, order in enumerate(usual.orders):
        forwards = [action for action in order if action.kind == "F"]
        backwards = [action for action in order if action.kind == "B"]
        ahead = (stages - rank - 1) + (chunks - 1) * stages
        pairs = itertools.chain(*zip(forwards[ahead:], backwards, strict=False))
        orders.append((*forwards[:ahead], *pairs, *backwards[len(forwards) - ahead :]))
    lean = dataclasses.replace(usual, orders=tuple(orders))

    def wall(schedule, latency):
        return simulate(schedule, Durations(latency=latency).per_chunk(chunks)).makespan

    assert wall(lean, 0.0) == pytest.approx(wall(usual, 0.0))
    assert peak_in_flight(lean)[0] == stages
    assert peak_in_flight(usual)[0] == pytest.approx(min(stages + 3 / chunks, microbatches))
    assert wall(lean, 0.1) > wall(usual, 0.1)


UNEVEN = [
    ("1f1b", None, (8, 8, 8, 10)), ("gpipe", None, (9, 9, 9, 5)), ("naive", None, (1, 2, 3, 4)),
    ("interleaved-1f1b", 2, (9, 9, 9, 5)), ("interleaved-1f1b", 2, (4, 4, 4, 4, 4, 4, 4, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "chunks", "layers"), UNEVEN)
def test_timelines_take_unequal_stages(schedule, chunks, layers):
    """Work is in units of an average rank's; idle time is the rest of the wall time."""
    arguments = {"schedule": schedule, "stages": 4, "microbatches": 8, "chunks": chunks}
    chart = build("pipeline-timeline", arguments | {"layers_per_stage": layers})
    placed = build_schedule(schedule, stages=4, microbatches=8, chunks=chunks).placement
    each = (
        layers
        if len(layers) == placed.stages
        else [layers[r] / placed.chunks for r in placed.rank_of_stage]
    )
    work = [share * placed.chunks * 4 / sum(layers) for share in each]
    wall = relaxed_wall(schedule, 4, 8, chunks, work=work)

    assert chart.values["makespan"].value == pytest.approx(wall)
    assert chart.values["bubble_fraction"].value == pytest.approx(1 - 4 * 8 * 3 / (4 * wall))
    alike = build("pipeline-timeline", arguments | {"layers_per_stage": (2, 2, 2, 2)})
    assert alike.end == pytest.approx(build("pipeline-timeline", arguments).end)


def test_schedules_under_each_other_end_when_their_own_work_does_and_say_what_they_hold():
    chart = build("schedules-compared", {"schedules": ["naive", "gpipe", "1f1b"]})
    naive, gpipe, ours = chart.ends[::4]
    assert naive == chart.end == pytest.approx(4 * 8 * 30e-3)
    assert gpipe == pytest.approx(ours) == pytest.approx((8 + 4 - 1) * 30e-3)
    held = [chart.values[f"{name}_held"].value for name in ("naive", "gpipe", "one_f_one_b")]
    assert held == [1, 8, 4]


def test_schedules_under_each_other_take_unequal_stages():
    uneven = {"schedules": ["1f1b", "gpipe"], "stages": 2, "layers_per_stage": (1, 3)}
    chart = build("schedules-compared", uneven)

    # The slow stage, half as much again as the average, is never without work after its first.
    assert chart.values["gpipe_time"].value == pytest.approx(
        (0.5 * 10e-3 + 1.5 * 8 * 30e-3) + 0.5 * 20e-3
    )
    with pytest.raises(InputError, match="number of layers"):
        build("schedules-compared", uneven | {"stages": 3})
