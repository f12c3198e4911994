"""A training step as a run whose time is predicted, with the software that it is taken to use."""

from __future__ import annotations

from dataclasses import replace

from figgen import catalog
from figgen.lookups import remembered
from figgen.models.setup.stage_layers import fullest_and_beside_head, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup, sharding_of
from figgen.models.step.job import Job
from figgen.models.step.stage_work import repeated
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.measured_rates import read_rates
from figgen.scenarios.runs.names import DTYPE_OF
from figgen.scenarios.runs.own_hardware import named_accelerator, named_link
from figgen.scenarios.runs.predicted import PredictedStep, predicted_step
from figgen.scenarios.runs.software import RECIPE_OF, read_software


def described(
    setup: TrainingSetup,
    accelerator: catalog.Accelerator,
    nic: catalog.Link,
    dtype: str,
    software: str,
    name: str = "",
) -> DescribedRun:
    """A step as a run without a measured time."""
    framework, version, recipe = read_software(software)
    parallel = setup.parallel
    # A report may hold its FP8 run against the peak of BF16: its products are FP8 all the same.
    known = recipe is not None and dtype in (DTYPE_OF[recipe], "bf16")
    number_format = recipe if recipe and known else RECIPE_OF[dtype]
    chunks = setup.placement.stages // setup.placement.pipes // parallel.pp
    return DescribedRun(
        name=name or "step",
        shape=setup.shape,
        accelerator=accelerator,
        network=nic,
        gpus=parallel.world_size, gpus_per_node=parallel.gpus_per_node,
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
        release="",
        version=version,
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
) -> PredictedStep:
    """The predicted time of a step and its interval; `measured` as `read_rates` takes it."""
    chip, nic = named_accelerator(accelerator_name), named_link(nic_name)
    run = described(setup, chip, nic, dtype, software, name)
    rates = read_rates(measured).known if measured else None
    return predicted_step(run, job=job_of(setup, run), measured=rates)


def job_of(setup: TrainingSetup, run: DescribedRun) -> Job:
    """The numbers of a step, as it is cut into stages and recomputes; `run` describes it."""
    fullest, beside_head = stages_of(setup)
    gathers, scatters, overlapped = sharding_of(setup, setup.zero_stage, setup.parallel.pp)
    layer, core = repeated(setup, virtual_stage_shares(setup), setup.recompute)
    return replace(
        run_job(run), fullest_layers=fullest, head_layers=beside_head,
        gathers=gathers, scatters=scatters, scattered_bytes=setup.recipe.gradient_bytes,
        overlapped=float(overlapped), repeats_layer=layer, repeats_core=core,
    )  # fmt: skip


def stages_of(setup: TrainingSetup) -> tuple[int, float]:
    """Most layers of a pipeline rank, and the layers beside the head."""
    shares = virtual_stage_shares(setup)[: setup.placement.depth]
    said = setup.layers_per_stage or setup.mtp_layers
    cut = bool(said) or setup.framework_memory.balanced
    return fullest_and_beside_head(shares, setup.parallel.pp, cut=cut)
