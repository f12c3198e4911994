"""The events of a page's step, as `figgen trace-export` writes them."""

from __future__ import annotations

from figgen.models.step.kernel_timeline import kernel_timeline
from figgen.models.step.pass_kernels import step_kernels
from figgen.models.step.step_timeline import StepTimeline, step_timeline
from figgen.scenarios.tools.page_answers import stages_of
from figgen.scenarios.tools.page_job import PageJob


def page_timeline(job: PageJob, *, each_call: bool) -> StepTimeline:
    """Return the timeline of a job's step, with its kernels if the step is predicted."""
    timed = job.timed
    if timed is None:
        return step_timeline(job.setup, stages_of(job), each_call=each_call)
    return kernel_timeline(
        job.setup,
        job.cluster,
        job.compute_efficiency,
        timed.parts,
        step_kernels(job.setup.shape, timed.numbers, timed.attained, timed.seconds),
        each_call=each_call,
    )
