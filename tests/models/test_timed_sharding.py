"""Time of updates and of sharding, compared with counted bytes and separately timed streams."""

from __future__ import annotations

from dataclasses import replace

import pytest

from figgen.models.algorithms.sharded_step import makespan_s, sharded_step
from figgen.models.machine.layout import layout
from figgen.models.pipeline.filling import idle_for
from figgen.models.setup.training_setup import sharding_of
from figgen.models.step.data_traffic import data_traffic
from figgen.models.step.timed_step import (
    UPDATE_BYTES,
    _gradients_s,
    _sharding_s,
    _update_s,
    timed_step,
)
from figgen.scenarios.evidence.measured import measured_runs
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.rates import attained
from figgen.scenarios.runs.setup import run_setup

RUNS = {run.name: run for run in measured_runs()}
DENSE = "dgxc-v24.11.1-gpt3-175b-h100-bf16-g128-b256"
MIXED = "mbridge-25.11-deepseek-v3-gb200-bf16-g256-b4096-w-o-mtp"


@pytest.mark.parametrize("name", [DENSE, MIXED])
@pytest.mark.parametrize("etp", [1, 2])
def test_all_gpus_together_update_every_parameter_once_where_the_state_is_divided(
    name: str, etp: int
) -> None:
    job, rates = run_job(RUNS[name]), attained(RUNS[name])
    job = replace(job, zero_stage=1, etp=etp, ep=max(1, job.ep // etp))
    bytes_moved = _update_s(job, rates) * rates.memory_bytes_per_s / rates.optimizer
    parameters = job.dense_parameters + job.routed_parameters
    assert bytes_moved * job.gpus == pytest.approx(UPDATE_BYTES * parameters)


@pytest.mark.parametrize("name", [DENSE, MIXED])
@pytest.mark.parametrize("framework", ["megatron", "torchtitan"])
@pytest.mark.parametrize(("pp", "microbatches"), [(1, 1), (1, 5), (4, 8)])
def test_sharding_takes_as_long_as_its_calls_one_by_one(
    name: str, framework: str, pp: int, microbatches: int
) -> None:
    run = RUNS[name]
    parallel = layout(nodes=1, gpus_per_node=32, pp=pp, ep=4 if run.shape.experts else 1, etp=1)
    job = replace(
        run_job(run),
        pp=pp,
        tp=1,
        cp=1,
        ep=parallel.ep,
        etp=1,
        gpus=32,
        gpus_per_node=32,
        microbatches=microbatches,
        gradient_bytes=4,
        per_tensor=0.0,
    )
    rates = replace(attained(run), scale_up_bytes_per_s=1.0, near_latency_s=0.0, exposed_data=1.0)
    for zero in range(4):
        setup = replace(
            run_setup(run),
            parallel=parallel,
            microbatches=microbatches,
            zero_stage=zero,
            framework=framework,
            schedule="1f1b",
            chunks=None,
            layers_per_stage=(),
        )
        gathers, scatters, _ = sharding_of(setup, zero, pp)
        one = replace(job, zero_stage=zero, gathers=gathers, scatters=scatters)
        waiting = microbatches - (scatters and not gathers)
        found = waiting * _sharding_s(one, rates, 0.0, 1 / 3) + _gradients_s(one, rates, 0.0)
        calls = [call for stage in range(pp) for call in data_traffic(setup, stage)]
        sent = sum(
            call.calls * call.sent_bytes * (microbatches if call.per_microbatch else 1)
            for call in calls
            if call.axis != "embedding"
        )
        # In a pipeline the first and the last stage hold the tied table both.
        assert found == pytest.approx(sent / pp, rel=1e-4 if pp == 1 else 5e-3), zero


@pytest.mark.parametrize("gather_s", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("scatter_s", [0.0, 0.5, 1.5, 4.0])
def test_sharding_hides_behind_computing_as_on_two_streams(
    gather_s: float, scatter_s: float
) -> None:
    run, layers = RUNS[DENSE], 12
    job = replace(run_job(run), layers=layers, pp=1, chunks=1, repeats_layer=0.0, overlapped=1.0)
    streams = sharded_step(
        layers, gather_s=gather_s, forward_s=1.0, backward_s=2.0, scatter_s=scatter_s
    )
    alone_s = 3.0 * layers

    def waits(gather: float, scatter: float) -> float:
        # Rates at which one pass of gathers and of scatters takes the time that is wanted.
        zero = replace(job, gathers=0, scatters=0)
        unit = replace(zero, gathers=0, scatters=1, gradient_bytes=2, overlapped=0.0)
        pass_s = _sharding_s(unit, attained(run), 0.0, 1 / 3)
        both = replace(
            job, gathers=2 * gather / pass_s, scatters=scatter / pass_s, gradient_bytes=2
        )
        if not gather:
            both = replace(both, gathers=1e-9)
        return float(_sharding_s(both, attained(run), alone_s, 1 / 3))

    found = alone_s + waits(gather_s * layers, scatter_s * layers)
    rounded = 2 ** (1 / 6)  # where both take equally long
    assert makespan_s(streams) * (1 - 1e-6) <= found <= makespan_s(streams) * rounded


def test_pipelines_wait_for_sharding_in_every_microbatch() -> None:
    run = RUNS[DENSE]
    job, rates = replace(run_job(run), tp=1, microbatches=16), attained(run)
    assert job.pp > 1
    for slower in (1, 20):
        network = replace(rates, network_bytes_per_s=rates.network_bytes_per_s / slower)
        first, second, third = (
            timed_step(replace(job, zero_stage=zero, gathers=g, scatters=s), network)
            for zero, g, s in ((1, 0, 0), (2, 0, 1), (3, 2, 1))
        )
        assert first.sharding_s == 0
        assert first.gradients_s == second.gradients_s
        assert first.gradients_s > third.gradients_s == 0
        assert 0 <= second.sharding_s < third.sharding_s
        assert (third.sharding_s > third.work_s) == (slower > 1)
    one = replace(job, microbatches=1, idle=idle_for(0))
    second = timed_step(replace(one, zero_stage=2, scatters=1), rates)
    assert second.total_s == timed_step(replace(one, zero_stage=1), rates).total_s
    alone = timed_step(replace(job, overlapped=0.0), rates)
    assert alone.gradients_s > timed_step(job, rates).gradients_s


@pytest.mark.parametrize("slower", [1, 1000])
def test_gradients_hide_behind_no_more_than_the_step_computes(slower: int) -> None:
    run = RUNS[DENSE]
    job = replace(run_job(run), tp=1, microbatches=2, zero_stage=1, gathers=0, scatters=0)
    rates = attained(run)
    network = replace(rates, network_bytes_per_s=rates.network_bytes_per_s / slower)
    whole = timed_step(job, replace(network, exposed_data=1.0))
    hidden = timed_step(job, replace(network, exposed_data=0.0))
    assert (whole.gradients_s > whole.work_s) == (slower > 1)
    assert hidden.gradients_s == pytest.approx(max(0.0, whole.gradients_s - whole.work_s))
