"""Layers, messages and microbatches of a pipeline, compared with printed tables and the
simulator."""

from __future__ import annotations

import pytest

from figgen.errors import InputError
from figgen.figures.pipeline.timelines import simulated
from figgen.figures.pipeline.zero_bubble import messages
from figgen.registry import build

GPT_3: dict[str, object] = {
    "stages": (4, 8, 8),
    "chunks": (1, 1, 2),
    "microbatches": 32,
    "microbatch_size": 1,
    "sequence": 2048,
    "hidden": 12288,
}


def test_layers_of_rank_0_are_those_of_megatron_and_of_the_v() -> None:
    values = build("layer-map", {}).values
    assert values["first_interleaved"].value == "layers 1–3 and layers 13–15"
    assert values["first_v"].value == "layers 1–3 and layers 22–24"


@pytest.mark.parametrize("layers", [20, 12])
def test_layers_that_do_not_divide_are_refused(layers: int) -> None:
    with pytest.raises(InputError, match="layers"):
        build("layer-map", {"layers": layers, "chunks": 4})
    with pytest.raises(InputError, match="layers"):
        build("stage-messages", {"layers": layers + 1})


def test_volumes_count_the_messages_of_the_simulated_schedules() -> None:
    chart = build("pipeline-volumes", GPT_3)
    for stages, chunks, count, total, *_ in chart.rows:
        name = "interleaved-1f1b" if chunks > 1 else "1f1b"
        trace = simulated(name, stages, 32, chunks)
        assert count == messages(trace.schedule)
        assert total == count * 2048 * 12288 * 2


def test_an_inner_rank_of_gpt_3_sends_what_narayanan_counts() -> None:
    assert build("pipeline-volumes", GPT_3).rows[0][4] == 3_221_225_472


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("efficiency", [0.5, 0.8, 0.9])
def test_needed_microbatches_reach_the_efficiency_and_one_fewer_does_not(
    stages: int, efficiency: float
) -> None:
    arguments = {"stages": (stages,), "efficiencies": (efficiency,), "chunks": (1,)}
    needed = build("microbatches-needed", arguments).rows[0][1]
    busy = [1 - simulated("1f1b", stages, m).bubble_fraction for m in (needed, max(1, needed - 1))]
    assert busy[0] >= efficiency - 1e-12
    assert needed == 1 or busy[1] < efficiency


def test_impossible_efficiencies_are_refused() -> None:
    with pytest.raises(InputError, match="efficiencies"):
        build("microbatches-needed", {"efficiencies": (1.0,)})
