"""The first sentences of tools and commands follow from facts that are counted by hand."""

from __future__ import annotations

import pytest

from figgen.models.collectives.measured_words import full_bus_bandwidth
from figgen.models.machine.placement_words import placement_sentence
from figgen.models.pipeline.schedule_words import (
    CarriedOut,
    idle_shares,
    schedules_sentence,
)
from figgen.models.pipeline.schedules import build, schedule_title
from figgen.models.pipeline.simulate import simulate
from figgen.models.step.step_words import largest_loss, step_sentence
from figgen.scenarios.options.resolve import parallel_layout


def test_ranks_of_1f1b_idle_before_between_and_after_as_counted_by_hand() -> None:
    """Rank r starts at r and ends 2r before the end; each idles 9 of 33 units of time."""
    trace = simulate(build("1f1b", stages=4, microbatches=8))
    idle = idle_shares(trace)
    assert (idle.filling, idle.draining) == pytest.approx((1.5 / 33, 3 / 33))
    assert idle.between == pytest.approx(4.5 / 33)
    gpipe = simulate(build("gpipe", stages=4, microbatches=8))
    one, other = (
        CarriedOut(title=t, trace=r, held="rank 0 holds 4") for t, r in (("A", trace), ("B", gpipe))
    )
    assert schedules_sentence([one, other], "{:g}".format) == (
        "A is fastest: it takes 33 and is idle for 27.3% of it (4.5% before a rank's first action, "
        "13.6% between actions, 9.1% after the last); rank 0 holds 4. B takes as long."
    )


def test_ranks_that_never_wait_between_actions_are_told_what_bounds_their_idle_time() -> None:
    """ZB2P of Qi et al.: the last of P ranks starts after P − 1 forwards, and works 3·M units."""
    trace = simulate(build("zb2p", stages=4, microbatches=8))
    assert trace.makespan == 3 + 3 * 8
    said = schedules_sentence(
        [CarriedOut(title="ZB2P", trace=trace, held="rank 0 holds 7")], "{:g}".format
    )
    assert "No rank of ZB2P waits between its actions" in said
    longer = simulate(build("zb2p", stages=4, microbatches=16))
    assert longer.bubble_fraction < trace.bubble_fraction


def test_a_schedule_that_more_chunks_make_another_is_named_so() -> None:
    assert schedule_title("zb1p", 1) == "ZB1P (ZB-H1)"
    assert schedule_title("zb1p", 2) == "interleaved ZB1P (ZB-H1)"
    assert schedule_title("zbv", 2) == "ZBV"


def test_groups_inside_and_between_nodes_are_told_apart() -> None:
    """Of four groups of six ranks on nodes of eight, the second and the third leave their node."""
    told = placement_sentence(parallel_layout(nodes=3, gpus_per_node=8, tp=6))
    assert told == (
        "On 24 GPUs in 3 nodes, groups of TP 6 (ranks 0 to 5) in 2 of 4 groups and DP 4 "
        "(ranks 0, 6, 12 and 18) send between nodes."
    )
    assert "alone" in placement_sentence(parallel_layout(nodes=1, gpus_per_node=1))
    told = placement_sentence(parallel_layout(nodes=1, gpus_per_node=8, tp=2))
    assert told.endswith("TP 2 (ranks 0 and 1) and DP 4 (ranks 0, 2, 4 and 6) stay inside a node.")


def test_links_are_full_at_the_rate_of_all_ports_or_of_the_part_that_leaves() -> None:
    sizes = {"ranks": 16, "gpus_per_node": 8, "line_rate": 50e9}
    assert full_bus_bandwidth(collective="all-reduce", ports=8, **sizes) == 400e9
    # Of 15 parts of a rank, 8 leave the node, through a port of its own: busbw is 15/8 of its rate.
    assert full_bus_bandwidth(collective="all-to-all", ports=8, **sizes) == pytest.approx(93.75e9)
    assert full_bus_bandwidth(collective="all-reduce", ports=None, **sizes) == 50e9


def test_small_losses_are_not_called_the_largest() -> None:
    assert largest_loss(10, 0.1, 0.15, [("tp", 0.19)])[0] == "compute"
    loss = largest_loss(10, 0.5, 0.5, [("tp", 1.0), ("dp", 0.9)])
    said = step_sentence(
        model="A model", gpus=1024, chip="H100", step_time_s=10, interval_s=(), utilisation=0.4,
        fit_probability=None, free_bytes=None, loss=loss,
    )  # fmt: skip
    assert said == (
        "A model on 1,024 × H100 takes 10\u00a0s a step at an MFU of 40.0%. The largest loss "
        "is exposed TP: 10.0% of the step."
    )
