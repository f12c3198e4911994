"""A training step as a run whose time is predicted, with the software it is assumed to use."""

from __future__ import annotations

from figgen import catalog
from figgen.lookups import remembered
from figgen.models.machine.cluster import Cluster
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.job import Job
from figgen.scenarios.runs.classes import stack_of
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.machine_rates import read_rates
from figgen.scenarios.runs.names import DTYPE_OF
from figgen.scenarios.runs.own_hardware import named_accelerator, named_link
from figgen.scenarios.runs.predicted import PredictedStep, predicted_step
from figgen.scenarios.runs.rate_row import GivenRates
from figgen.scenarios.runs.software import RECIPE_OF, compiled_of, read_software
from figgen.scenarios.runs.step_job import step_job


def described(
    setup: TrainingSetup,
    accelerator: catalog.Accelerator,
    nic: catalog.Link,
    dtype: str,
    software: str,
    name: str = "",
    gpus_per_host: int | None = None,
) -> DescribedRun:
    """Return a step as a run without a measured time."""
    framework, version, recipe = read_software(software)
    parallel = setup.parallel
    # A report may compare its FP8 run with the peak of BF16; its matmuls are FP8 all the same.
    known = recipe is not None and dtype in (DTYPE_OF[recipe], "bf16")
    number_format = recipe if recipe and known else RECIPE_OF[dtype]
    chunks = setup.placement.stages // setup.placement.pipes // parallel.pp
    return DescribedRun(
        name=name or "step",
        shape=setup.shape,
        accelerator=accelerator,
        network=nic,
        gpus=parallel.world_size, gpus_per_node=parallel.gpus_per_node,
        gpus_per_host=gpus_per_host,
        tp=parallel.tp, cp=parallel.cp, pp=parallel.pp, ep=parallel.ep, etp=parallel.etp,
        schedule=setup.schedule,
        virtual_stages=chunks,
        microbatch=setup.microbatch_size,
        global_batch=setup.global_batch,
        sequence=setup.sequence,
        zero_stage=setup.zero_stage,
        number_format=number_format,
        recompute=setup.recompute,
        framework=framework,
        stack=stack_of(software.split()[0]),
        release="",
        version=version,
        compiled=compiled_of(software),
        layers_per_stage=tuple(setup.layers_per_stage),
        mtp_layers=setup.mtp_layers,
        step_time_s=None,
        peak_memory_bytes=None,
        suspect=False,
        group="",
        source="",
        config_key="",
    )  # fmt: skip


@remembered(256)
def predicted(
    setup: TrainingSetup,
    accelerator_name: str,
    nic_name: str,
    dtype: str,
    software: str,
    name: str = "",
    measured: str = "",
    compute_efficiency: float | None = None,
    time_factor: float | None = None,
    latencies: tuple[Cluster, Cluster] | None = None,
    gpus_per_host: int | None = None,
) -> PredictedStep:
    """Return the predicted time of a step and its interval.

    `measured` is a text or a file for `read_rates`. `gpus_per_host` is a field of `DescribedRun`,
    the other keywords are fields of `GivenRates`.
    """
    chip, nic = named_accelerator(accelerator_name), named_link(nic_name)
    run = described(setup, chip, nic, dtype, software, name, gpus_per_host)
    rates = read_rates(measured).known if measured else None
    said = GivenRates(
        measured=rates,
        latencies=latencies,
        compute_efficiency=compute_efficiency,
        time_factor=time_factor,
    )
    return predicted_step(run, job_of(setup, run), said)


def job_of(setup: TrainingSetup, run: DescribedRun) -> Job:
    """Return the job of a step that `run` describes."""
    return step_job(
        setup,
        quantized=float(run.dtype in ("fp8", "fp4")),
        per_tensor=float(run.framework == "nanotron"),
    )
