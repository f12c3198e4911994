"""Trays of a rack and machines of a pod share fast links: they count as one node."""

from __future__ import annotations

from statistics import mean

import pytest

from figgen import catalog
from figgen.catalog.options_timed import timed_options
from figgen.models.machine.host_words import hosts_words
from figgen.models.machine.hosts import joined
from figgen.models.machine.layout import layout
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question

RACK, SERVER = "gb200-nvl72", "h100-sxm-80gb"
MOST = 72
"""GPUs of a rack that share NVLink; a tray has four of them (GB200 NVL72's datasheet)."""


TRAYS = {"nodes": 2, "gpus_per_node": 4}


def counted(nodes: int, width: int, chip: str = RACK) -> tuple[int, int]:
    launched = layout(nodes=nodes, gpus_per_node=width)
    found = joined(launched, catalog.chip_of(catalog.accelerator(chip)))
    assert found.world_size == launched.world_size
    return found.nodes, found.gpus_per_node


@pytest.mark.parametrize("width", [1, 2, 4])
def test_trays_fill_as_few_racks_as_hold_equally_many(width: int) -> None:
    for nodes in range(1, 100):
        racks, inside = counted(nodes, width)
        assert inside <= MOST
        assert inside % width == 0
        fewer = [n for n in range(1, racks) if nodes % n == 0 and nodes // n * width <= MOST]
        assert not fewer


def test_nodes_of_other_chips_and_wider_nodes_are_taken_as_they_are() -> None:
    assert counted(2, 4, SERVER) == (2, 4)
    assert counted(8, 8) == (8, 8)
    assert counted(4, 64) == (4, 64)
    assert counted(2, 16, "trainium1") == (2, 16)
    assert counted(2, 128, "tpu-v5p") == (2, 128), "two slices of a pod"
    assert counted(32, 4, "tpu-v5p") == (1, 128)


def test_answer_says_what_nodes_count_as_where_there_is_a_choice() -> None:
    def said(nodes: int, width: int, **options: bool) -> str:
        size = {"nodes": nodes, "gpus_per_node": width}
        return training_step(model="llama-3-8b", accelerator=RACK, **size, **options).hosts_said

    assert said(2, 4) == "2 nodes of 4 GPUs count as 1 of 8: up to 72 GPUs share fast links"
    apart = "2 nodes of 4 GPUs count as separate; if they share fast links, set 1 of 8"
    assert said(2, 4, join_hosts=False) == apart
    assert said(8, 8).endswith("if they share fast links, set 1 of 64")
    assert said(19, 4).endswith("they don't fill domains of up to 72 GPUs evenly")
    assert not any(said(*sizes) for sizes in ((1, 4), (1, 8), (4, 64), (2, 72)))
    server = catalog.chip_of(catalog.accelerator(SERVER))
    assert not hosts_words(2, 4, 2, server)


def test_eight_gb200_take_what_they_took_whether_typed_as_two_trays_or_as_one_domain() -> None:
    [routed] = timed_options("routing")
    measured_s = routed.seconds["balanced"]
    domain = training_step(**routed.job)
    trays = training_step(**{**routed.job, **TRAYS})
    apart = training_step(**{**routed.job, **TRAYS, "join_hosts": False})
    assert trays.estimate == domain.estimate
    assert trays.memory == domain.memory
    assert trays.predicted.step_time_s == pytest.approx(measured_s, rel=0.15)
    assert apart.predicted.step_time_s > 1.5 * measured_s


def test_published_runs_on_racks_take_as_long_if_their_trays_are_typed() -> None:
    """Runs on 8 to 5,120 GB200 and GB300, by Megatron-Bridge and MLPerf."""
    joined_errors, apart_errors = [], []
    for name, run in catalog.RUNS.items():
        if run.accelerator.name not in (RACK, "gb300-nvl72") or run.gpus is None:
            continue
        known, trays = training_step(run=name), {"nodes": run.gpus // 4, "gpus_per_node": 4}
        typed = training_step(run=name, **trays)
        assert typed.setup.parallel == known.setup.parallel
        assert typed.predicted.step_time_s == known.predicted.step_time_s
        rate = run.tokens_per_s_per_gpu
        timed = run.step_time.value if run.step_time else None
        if timed is None and rate is not None:
            timed = known.setup.tokens_per_step / rate / run.gpus
        if timed is None:
            continue
        separate = training_step(run=name, join_hosts=False, **trays)
        joined_errors.append(error(typed, timed))
        apart_errors.append(error(separate, timed))
    assert len(joined_errors) >= 20
    assert mean(joined_errors) < 0.1 < 0.4 < mean(apart_errors)


def error(step: TrainingStep, measured_s: float) -> float:
    return abs(step.predicted.step_time_s / measured_s - 1)


def test_network_of_a_host_is_shared_by_its_gpus_alone() -> None:
    job = {"model": "llama-3-8b", "accelerator": RACK, "nodes": 32, "gpus_per_node": 4}
    of_host = training_step(nic="200 GB/s per node", **job)
    of_gpu = training_step(nic="50 GB/s per GPU", **job)
    assert of_host.setup.parallel.gpus_per_node == 64
    assert of_host.cluster == of_gpu.cluster
    assert of_host.predicted.attained == of_gpu.predicted.attained
    nics = ("200 GB/s per node", "50 GB/s per GPU")
    planned = [plan_question(scenario(nic=nic, **job)) for nic in nics]
    assert planned[0].job.attained == planned[1].job.attained
    assert planned[0].hosts_said() == of_host.hosts_said
    assert planned[0].hosts_said(2).startswith("2 nodes of 4 GPUs count as 1 of 8")
