"""The data about a job that pages show, as in `figgen step --json` and `figgen memory --json`."""

from __future__ import annotations

from figgen.models.memory.memory import memory
from figgen.models.step.stage_time import StageTime
from figgen.models.step.step import step, step_stages
from figgen.scenarios.tools.answers import (
    buckets_data,
    memory_data,
    muon_data,
    setup_data,
    step_data,
)
from figgen.scenarios.tools.page_job import PageJob


def stages_of(job: PageJob) -> tuple[StageTime, ...]:
    """Return the times of all virtual stages in a job's simulated step."""
    return step_stages(job.setup, job.cluster, job.compute_efficiency, job.parts)


def page_answers(job: PageJob) -> dict[str, object]:
    """Return the step and the memory of a job.

    A variant has no gradient buckets, which would require simulating its whole schedule. Raises
    InputError for an impossible job.
    """
    setup, efficiency = job.setup, job.compute_efficiency
    found = step(setup, job.cluster, compute_efficiency=efficiency, predicted=job.parts)
    about, predicted = setup_data(job.model, setup), job.predicted
    interval: dict[str, object] = {}
    if predicted is not None:
        low, high = predicted.residuals
        interval["step_time_interval_s"] = (found.step_time_s * low, found.step_time_s * high)
        interval["interval_of"] = predicted.interval_of
    if job.base is None:
        interval["gradient_buckets"] = buckets_data(found, stages_of(job))
    held = memory(
        setup, capacity_bytes=job.capacity_bytes, reserve_bytes=job.given["reserve_bytes"]
    )
    return {
        "step": {
            **about,
            "accelerator": job.accelerator,
            "nic": job.nic,
            "compute_efficiency": efficiency,
            "software": job.software,
            **interval,
            **step_data(found, job.cluster, efficiency),
            **muon_data(found, job.wide_flops_per_s),
        },
        "memory": {**about, **memory_data(held)},
    }
