"""Without a second buffer nothing is prefetched: the cost in time and the savings in memory."""

from __future__ import annotations

from typing import Any

import pytest

from figgen import catalog
from figgen.formulas.data_parallel import serial_gather_time
from figgen.models.machine.layout import layout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.stage_time import stage_times
from figgen.models.step.step import step
from tests.models.held_lines import buffers
from tests.models.jobs import H100


def setup(double_buffering: bool, **options: Any) -> TrainingSetup:
    sizes = {"cp": options.pop("cp", 1)}
    parallel = layout(nodes=2, gpus_per_node=8, **sizes)
    shape = catalog.model("llama-3-8b").shape
    return TrainingSetup(
        shape=shape,
        parallel=parallel,
        microbatches=1,
        sequence=8192,
        double_buffering=double_buffering,
        **options,
    )


def test_zero_3_forward_gathers_and_computes_in_turn() -> None:
    stage = stage_times(setup(False, zero_stage=3), H100, 0.5)[0]
    (gather,) = (entry for entry in stage.traffic if entry.traffic.phase == "forward")
    units = gather.traffic.calls
    expected = serial_gather_time(units, gather.call.total_s, stage.forward_s / units)
    assert stage.forward_s + stage.exposed_s("forward") == pytest.approx(expected)


def test_ring_waits_for_every_block_of_keys() -> None:
    alone, ahead = (step(setup(flag, cp=8), H100) for flag in (False, True))
    sends = sum(row.time_s for row in alone.rows if row.axis == "cp")
    assert dict(alone.exposed)["cp"] == pytest.approx(sends)
    assert dict(ahead.exposed)["cp"] < 0.1 * sends
    assert {row.rule for row in alone.rows if row.axis == "cp"} == {
        "exposed: there is no second buffer"
    }


@pytest.mark.parametrize(
    ("options", "name"),
    [({"zero_stage": 3}, "gathered weights"), ({"cp": 8}, "keys and values of other ranks")],
)
def test_one_buffer_takes_half_the_memory(options: dict[str, Any], name: str) -> None:
    assert buffers(setup(True, **options), 0)[name] == 2 * buffers(setup(False, **options), 0)[name]


def test_an_all_gather_of_keys_has_no_second_buffer_to_lose() -> None:
    both = [setup(flag, cp=8, context_exchange="all-gather") for flag in (True, False)]
    assert buffers(both[0], 0) == buffers(both[1], 0)
    assert step(both[0], H100).step_time_s == step(both[1], H100).step_time_s
