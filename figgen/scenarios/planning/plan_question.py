"""A question for the planner: a job without its layout, and the user's choices for the layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from figgen import catalog
from figgen.catalog.residuals import Residuals
from figgen.errors import InputError, check_size
from figgen.models.machine.host_words import hosts_words
from figgen.models.memory.fit_probability import SAFE
from figgen.models.planner.plan import PlannedJob
from figgen.models.planner.plan_space import CHUNKS, SCHEDULES_OF
from figgen.models.planner.ranking import other_layout_interval
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recomputation import NAMED, recomputation
from figgen.models.step.attained import Attained
from figgen.scenarios.options.config_json import named_model
from figgen.scenarios.options.hardware_of import (
    changed_cluster,
    known_cluster,
    own_latencies_of,
)
from figgen.scenarios.options.option import Value
from figgen.scenarios.options.option_values import SMALL
from figgen.scenarios.options.own_model import OwnModel
from figgen.scenarios.options.resolve import base_of, completed, resolve
from figgen.scenarios.options.scenario import Scenario
from figgen.scenarios.options.setup_of import joined_layout, setup_of
from figgen.scenarios.runs.classes import residuals_of
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.machine_rates import MeasuredRates, read_rates
from figgen.scenarios.runs.own_hardware import named_accelerator, named_link
from figgen.scenarios.runs.rate_row import GivenRates, RateRow
from figgen.scenarios.runs.rates import attained, rate_row
from figgen.scenarios.runs.software import memory_of
from figgen.scenarios.runs.step_as_run import described

AXES = ("tp", "cp", "pp", "ep", "etp", "dp")
_COUNTS = ("chunks", "microbatch_size", "zero_stage")
SEARCHED = (*AXES, *_COUNTS, "schedule", "recompute")
"""Options that the planner chooses unless the user sets them."""

NOT_PLANNED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("microbatches", "layers_per_stage", "compute_efficiency", "buckets"),
            "no value: the planner does not use it",
        ),
    }
)
"""Options that only describe a single layout, with the reason."""

USUAL_TOKENS = 2**22
"""Tokens per step if no batch is given: four million, as in published runs."""


@dataclass(frozen=True, kw_only=True)
class PlanQuestion:
    """What the planner is asked: a job without its layout, and choices that fix parts of it."""

    asked: Scenario
    model: catalog.Model | OwnModel
    accelerator: catalog.Accelerator
    nic: catalog.Link
    measured: MeasuredRates | None
    values: Mapping[str, Value]
    fixed: Mapping[str, Value]
    batch_assumed: bool
    run: DescribedRun
    job: PlannedJob

    @property
    def residuals(self) -> Residuals:
        """The errors of past predictions for this class of jobs."""
        return residuals_of(self.run, tuned=self.job.setup.lora_rank is not None)

    def hosts_said(self, nodes: int | None = None) -> str:
        """Return what nodes count as, those of the job or so many; "" where there is no choice."""
        values, chip = undivided(self.values), catalog.chip_of(self.accelerator)
        values |= {} if nodes is None else {"nodes": nodes}
        counted = joined_layout(values, chip).nodes
        return hosts_words(values["nodes"], values["gpus_per_node"], counted, chip)

    @property
    def interval(self) -> tuple[float, float]:
        """Factors of a layout's predicted time that bound eight in ten measured times.

        If the time factor is set, one measured step determined it. The bounds are then those for
        predicting a different layout of the same job.
        """
        known = self.residuals
        if self.values["time_factor"] is None:
            return known.low, known.high
        return other_layout_interval(known.low, known.high)


def plan_question(
    asked: Scenario, every_schedule: bool = False, fit_chance: float = SAFE
) -> PlanQuestion:
    """Return the search for a scenario's layouts; every layout keeps the options that the user set.

    A layout counts as fitting if it fits with a chance of `fit_chance`.

    Raises InputError for an option that has no meaning in a search, and in the cases of `resolve`.
    """
    chosen = dict(asked.chosen)
    for name, why in NOT_PLANNED.items():
        if name in chosen:
            raise InputError(name, expected=why, got=chosen[name])
    values, fixed = _without_layout(asked), {n: chosen[n] for n in SEARCHED if n in chosen}
    model = named_model(str(values["model"]))
    chip = named_accelerator(str(values["accelerator"]))
    nic = named_link(str(values["nic"]))
    measured = read_rates(str(values["measured"])) if values["measured"] else None
    undone, software = undivided(values), str(values["software"])
    setup = setup_of(model.shape, undone, memory_of(software), catalog.chip_of(chip))
    width = undone["gpus_per_node"]
    run = described(setup, chip, nic, str(values["dtype"]), software, gpus_per_host=width)
    latencies = None
    if own := own_latencies_of(values):
        known = known_cluster(
            catalog.chip_of(chip),
            catalog.network_of(nic),
            str(values["dtype"]),
            width,
            measured.known if measured else None,
        )
        latencies = known, changed_cluster(known, own)
    factor = values["time_factor"]
    said = GivenRates(
        measured=measured.known if measured else None,
        latencies=latencies,
        time_factor=None if factor is None else float(str(factor)),
    )
    job = planned_job(
        setup,
        attained(run, said),
        rate_row(run),
        values,
        fixed,
        capacity_bytes=(measured and measured.capacity_bytes) or chip.capacity_bytes,
        every_schedule=every_schedule,
        fit_chance=fit_chance,
    )
    return PlanQuestion(
        asked=asked,
        model=model,
        accelerator=chip,
        nic=nic,
        measured=measured,
        values=values,
        fixed=fixed,
        batch_assumed=values["global_batch"] is None,
        run=run,
        job=job,
    )


def _without_layout(asked: Scenario) -> dict[str, Value]:
    """Return every option, with the default of each that the planner searches."""
    base = base_of(asked).values
    values = base | {n: v for n, v in asked.chosen if n not in SEARCHED}
    if values.get("global_batch") is None and values.get("microbatches") is not None:
        values["global_batch"] = setup_batch(asked)
    for name in (*SEARCHED, "microbatches"):
        values.pop(name, None)
    return completed(values, "step")


def setup_batch(asked: Scenario) -> int:
    """Return the sequences per step of the run that a scenario starts from."""
    return resolve(Scenario(asked.preset, asked.run)).setup.global_batch


def usual_batch(sequence: int, gpus: int) -> int:
    """Return a power of two sequences with about four million tokens, at least one per GPU."""
    batch = 1
    while 2 * batch * sequence <= USUAL_TOKENS:
        batch *= 2
    return max(batch, gpus)


def undivided(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's options with nothing divided, whether or not it fits."""
    one = dict.fromkeys(("microbatches", "microbatch_size", "tp", "cp", "pp", "ep"), 1)
    return {**values, **one, "global_batch": None, "etp": None, "dp": None}


def planned_job(
    setup: TrainingSetup,
    attained: Attained,
    rates: RateRow,
    values: Mapping[str, Any],
    fixed: Mapping[str, Any],
    *,
    capacity_bytes: float,
    every_schedule: bool,
    fit_chance: float,
) -> PlannedJob:
    """Return the search for layouts of an undivided `setup`; all layouts keep the `fixed` options.

    Raises InputError if the batch is not a whole number, or if the way to recompute has no meaning
    in a search.
    """
    batch = values["global_batch"]
    if batch is None:
        batch = usual_batch(setup.sequence, setup.parallel.world_size)
    return PlannedJob(
        setup=setup,
        attained=attained,
        global_batch=check_size("global_batch", batch),
        capacity_bytes=capacity_bytes,
        fit_chance=fit_chance,
        reserve_bytes=values["reserve_bytes"],
        schedules=schedules_tried(fixed.get("schedule"), rates.framework, every_schedule),
        recompute=recomputations_tried(fixed.get("recompute"), setup),
        fixed={name: fixed.get(name) for name in (*AXES, *_COUNTS)},
        quantized=rates.quantized,
        per_tensor=float(rates.framework == "nanotron"),
    )


def schedules_tried(given: str | None, framework: str, every: bool) -> tuple[str, ...]:
    """Return the chosen schedule, or else the framework's schedules, or else all."""
    if given is not None:
        return (given,)
    if every:
        return tuple(CHUNKS)
    return SCHEDULES_OF.get(framework, SCHEDULES_OF["megatron"])


def recomputations_tried(given: str | None, setup: TrainingSetup) -> tuple[str, ...]:
    """Return the ways to recompute that the model has layers for, cheapest first."""
    if given is not None:
        if recomputation(given).method and given != "full":
            raise InputError("recompute", expected="none, full or modules with commas", got=given)
        return (given,)
    shape, modes = setup.shape, ["none"]
    if not setup.flash_attention:
        modes.append("selective")
    if setup.framework_memory.selective not in NAMED:
        modes.append(setup.framework_memory.selective)
    modes.append(SMALL if shape.experts else "layernorm")
    if shape.latent is not None:
        modes.append(f"{SMALL},mla_up_proj" if shape.experts else "layernorm,mla_up_proj")
    return (*modes, "mlp,moe" if shape.experts else "mlp", "full")
