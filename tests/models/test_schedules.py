"""Orders compared with Megatron's and torch's own, closed forms and exact-once counts."""

import itertools
import json
import pathlib
from collections import Counter

import pytest

from figgen.errors import InputError
from figgen.models.pipeline.schedules import (
    SCHEDULES,
    Action,
    Placement,
    bidirectional,
    build,
    build_short,
    looping,
    microbatch_group_size,
    parse_order,
    v_shape,
)

ORACLES = json.loads(
    (pathlib.Path(__file__).parents[1] / "oracles" / "pipeline_orders.json").read_text("utf-8")
)


def oracle_rows(section):
    """Return (P, M, V, rows of words) of each order in a section of the frozen file."""
    for key, rows in ORACLES[section]["orders"].items():
        sizes = [int(part[1:]) for part in key.split()[-3:] if part[0] in "PMv"]
        yield key, (*sizes, 1)[:3], rows


@pytest.mark.parametrize(("key", "sizes", "rows"), list(oracle_rows("megatron_1f1b")))
def test_1f1b_is_megatrons_order(key, sizes, rows):
    stages, microbatches, _ = sizes
    assert str(build("1f1b", stages=stages, microbatches=microbatches)).splitlines() == rows


@pytest.mark.parametrize(("key", "sizes", "rows"), list(oracle_rows("megatron_interleaved")))
def test_interleaved_1f1b_is_megatrons_order(key, sizes, rows):
    stages, microbatches, chunks = sizes
    schedule = build("interleaved-1f1b", stages=stages, microbatches=microbatches, chunks=chunks)
    assert str(schedule).splitlines() == rows


def test_gpipe_is_torchs_order():
    rows = ORACLES["torch"]["orders"]["GPipe P4 M8 v1"]
    compute = [" ".join(w for w in row.split() if "REDUCE_GRAD" not in w) for row in rows]
    assert str(build("gpipe", stages=4, microbatches=8)).splitlines() == compute


def test_looped_bfs_is_torchs_order():
    rows = ORACLES["torch"]["orders"]["LoopedBFS P4 M8 v2"]
    assert str(build("looped-bfs", stages=4, microbatches=8, chunks=2)).splitlines() == rows


def test_naive_finishes_a_microbatch_before_the_next():
    assert str(build("naive", stages=2, microbatches=2)) == "0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1"


def sizes_of(name):
    chunks = range(1, 5) if name in ("interleaved-1f1b", "looped-bfs") else range(1, 2)
    return itertools.product(range(1, 9), range(1, 17), chunks)


@pytest.mark.parametrize("name", ["naive", "gpipe", "1f1b", "interleaved-1f1b", "looped-bfs"])
def test_every_action_comes_exactly_once(name):
    for stages, microbatches, chunks in sizes_of(name):
        schedule = build(name, stages=stages, microbatches=microbatches, chunks=chunks)
        seen = Counter(str(action) for order in schedule.orders for action in order)
        assert seen == Counter(
            f"{stage}{kind}{microbatch}"
            for stage in range(stages * chunks)
            for kind in "FB"
            for microbatch in range(microbatches)
        )


@pytest.mark.parametrize(
    ("name", "stages", "microbatches", "warm_up"),
    [
        ("1f1b", 4, 8, [3, 2, 1, 0]),
        ("1f1b", 8, 4, [4, 4, 4, 4, 3, 2, 1, 0]),
        ("interleaved-1f1b", 4, 8, [10, 8, 6, 4]),
        ("interleaved-1f1b", 8, 8, [16, 16, 16, 16, 14, 12, 10, 8]),
    ],
)
def test_warm_up_forwards_are_megatrons(name, stages, microbatches, warm_up):
    for order, ahead in zip(
        build(name, stages=stages, microbatches=microbatches).orders, warm_up, strict=True
    ):
        leading = len(list(itertools.takewhile(lambda action: action.kind == "F", order)))
        # One more forward pairs with the first backward, unless all were run ahead.
        assert leading == min(ahead + 1, len(order) // 2)


@pytest.mark.parametrize(
    ("stages", "microbatches", "group"),
    # Megatron: M mod N is 0 or ≥ P. torch: M / (M // P) where that is whole.
    [(4, 8, 4), (4, 7, 7), (4, 10, 5), (4, 9, 5), (4, 11, 6), (4, 14, 5), (8, 20, 10), (4, 3, 3)],
)
def test_group_size_when_p_does_not_divide_m(stages, microbatches, group):
    assert microbatch_group_size(stages, microbatches) == group


def test_looping_places_24_layers_as_megatron_documents():
    first_layers = first_layer_of_chunks(looping(4, 2), layers=24)
    assert first_layers == {0: [1, 13], 1: [4, 16], 2: [7, 19], 3: [10, 22]}


def test_v_shape_places_24_layers_down_and_up():
    assert first_layer_of_chunks(v_shape(4), 24) == {
        0: [1, 22],
        1: [4, 19],
        2: [7, 16],
        3: [10, 13],
    }


def first_layer_of_chunks(placement, layers):
    per_stage = layers // placement.stages
    return {
        rank: [stage * per_stage + 1 for stage in placement.stages_of_rank(rank)]
        for rank in range(placement.ranks)
    }


def test_bidirectional_gives_each_rank_a_stage_of_both_pipes():
    placement = bidirectional(4)
    assert [placement.stages_of_rank(rank) for rank in range(4)] == [(0, 7), (1, 6), (2, 5), (3, 4)]
    assert [stage for stage in range(8) if placement.is_first(stage)] == [0, 4]
    assert [stage for stage in range(8) if placement.is_last(stage)] == [3, 7]


def test_action_prints_as_it_parses():
    assert [str(a) for a in parse_order("2F0 11B15 0I3 0W3")] == ["2F0", "11B15", "0I3", "0W3"]
    assert Action.parse("2F0") == Action(2, "F", 0)


@pytest.mark.parametrize("text", ["F0", "2X0", "2F", "2f0", "", "2F0 "])
def test_action_of_another_form_is_refused(text):
    with pytest.raises(InputError, match="cannot read action"):
        Action.parse(text)


def test_unknown_schedule_suggests_a_name():
    with pytest.raises(InputError, match=r"did you mean interleaved-1f1b"):
        build("interleaved1f1b", stages=2, microbatches=2)


@pytest.mark.parametrize("name", sorted(SCHEDULES))
@pytest.mark.parametrize(
    "sizes", [(0, 4, None), (4, 0, None), (4, 8, 0), (4, 8, 2.0), (True, 8, None)]
)
def test_impossible_sizes_are_refused(name, sizes):
    stages, microbatches, chunks = sizes
    with pytest.raises(InputError, match="expected"):
        build(name, stages=stages, microbatches=microbatches, chunks=chunks)


@pytest.mark.parametrize(
    ("name", "only"),
    [
        *((name, 1) for name in ("naive", "gpipe", "1f1b", "zb2p", "dualpipe")),
        *((name, 2) for name in ("zbv", "v-half", "v-min", "dualpipev")),
    ],
)
def test_chunks_that_a_schedule_cannot_have_are_refused(name, only):
    with pytest.raises(InputError, match=rf"chunks of schedule .* expected {only}, got 3"):
        build(name, stages=4, microbatches=8, chunks=3)


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_default_chunks_are_those_of_the_placement(name):
    schedule = build(name, stages=4, microbatches=8)
    held = {len(schedule.placement.stages_of_rank(rank)) for rank in range(4)}
    assert schedule.name == name
    assert held == {schedule.placement.chunks * schedule.placement.pipes}


def test_placement_with_unequal_ranks_is_refused():
    with pytest.raises(InputError, match="uneven placement"):
        Placement("odd", (0, 1, 1))


def test_no_group_of_microbatches_is_shorter_than_the_pipeline_and_none_longer_than_needed() -> (
    None
):
    for stages, microbatches in itertools.product(range(1, 8), range(1, 40)):
        fitting = [
            size
            for size in range(stages, max(stages, microbatches) + 1)
            if all(
                min(size, microbatches - first) >= stages for first in range(0, microbatches, size)
            )
        ]
        expected = min(fitting, default=microbatches)
        assert microbatch_group_size(stages, microbatches) == expected


@pytest.mark.parametrize(
    ("name", "chunks"), [("1f1b", 1), *(("interleaved-1f1b", v) for v in (1, 2, 5))]
)
def test_a_short_order_holds_what_the_whole_one_holds(name: str, chunks: int) -> None:
    for stages, microbatches in itertools.product(range(1, 8), range(1, 41)):
        sizes = {"stages": stages, "microbatches": microbatches, "chunks": chunks}
        whole, short = build(name, **sizes), build_short(name, **sizes)
        assert short.placement == whole.placement
        assert short.in_flight == whole.in_flight, sizes
        assert short.most_in_flight == whole.most_in_flight
    # So what a reader's cluster asks for is a few actions, however many microbatches it has.
    assert build_short(name, stages=8, microbatches=1024, chunks=chunks).microbatches <= 24
    with pytest.raises(InputError, match="at most 131,072"):
        build_short(name, stages=64, microbatches=2**17, chunks=chunks)
