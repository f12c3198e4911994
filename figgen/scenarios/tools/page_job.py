"""A training job as pages compute it, from options by name and the catalog served to pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.hardware import Chip, Network
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.attained import Attained, check_time_factor, on_hardware
from figgen.models.step.job import Job
from figgen.models.step.predicted_parts import PredictedParts, computing_share, predicted_parts
from figgen.models.step.timed_step import StepSeconds, timed_step
from figgen.scenarios.options.hardware_of import (
    changed_cluster,
    known_cluster,
    own_latencies_of,
)
from figgen.scenarios.options.setup_of import setup_of
from figgen.scenarios.runs.class_ends import MOST_GPUS, named_ends
from figgen.scenarios.runs.measured_rates import Measured, read_line
from figgen.scenarios.runs.rate_row import GivenRates, RateRow, attained_of, on_own_chip
from figgen.scenarios.runs.step_job import step_job
from figgen.scenarios.tools.served import (
    OWN,
    ServedCatalog,
    named,
    served_chip,
    served_network,
    served_row,
    usual_options,
)
from figgen.scenarios.tools.served_shape import served_shape

UNTIMED = 0.5
"""Share of the peak that hardware without measured rates is assumed to attain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualInterval:
    """The ratios of measured to predicted time within which eight in ten runs of a class lie."""

    interval_of: str
    residuals: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class UntimedJob:
    """A job with its hardware, and the rates that its software attains there."""

    catalog: ServedCatalog
    given: Mapping[str, Any]
    model: str
    setup: TrainingSetup
    chip: Chip
    network: Network
    measured: Measured | None
    known_cluster: Cluster
    cluster: Cluster

    @property
    def accelerator(self) -> str:
        """The chip's name in the catalog, or "own"."""
        return self.chip.name

    @property
    def nic(self) -> str:
        """The network's name in the catalog, or "own"."""
        return self.network.name

    @property
    def software(self) -> str:
        return str(self.given["software"])

    @property
    def dtype(self) -> str:
        return str(self.given["dtype"])

    @property
    def capacity_bytes(self) -> float | None:
        """Bytes of a GPU's memory, measured or reported; None if unknown."""
        if self.measured is not None and "capacity" in self.measured:
            return self.measured["capacity"][0]
        return self.chip.memory_bytes

    @property
    def memory_bytes_per_s(self) -> float | None:
        return self.chip.memory_bandwidth_bytes_per_s

    @cached_property
    def rates(self) -> RateRow:
        """The rates that the job's software attains on its chip."""
        row = served_row(self.catalog, self.software, self.chip, self.dtype)
        if self.accelerator != OWN:
            return row
        own = self.cluster
        return on_own_chip(
            row,
            own.peak_flops_per_s,
            own.memory_bandwidth_bytes_per_s,
            own.scale_up_bandwidth_bytes_per_s,
        )

    @cached_property
    def attained(self) -> Attained:
        """The rates that the job attains; a reader's own rates replace those of the model."""
        said = GivenRates(
            measured=self.measured,
            latencies=(self.known_cluster, self.cluster),
            compute_efficiency=self.given["compute_efficiency"],
            time_factor=self.given["time_factor"],
        )
        network = self.cluster.network_bandwidth_bytes_per_s
        return attained_of(self.rates, self.setup.shape.head_dim, self.nic, network, said)

    @property
    def interval(self) -> ResidualInterval:
        """The interval around predictions of this class of jobs."""
        setup, rates = self.setup, self.rates
        shape, tuned = setup.shape, setup.lora_rank is not None
        beyond = setup.parallel.world_size > MOST_GPUS
        name, low, high = named_ends(
            self.catalog.residuals,
            rates.stack,
            rates.chips,
            shape.experts is not None,
            tuned or beyond or shape.state_space is not None,
        )
        return ResidualInterval(interval_of=name, residuals=(low, high))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTiming:
    """The predicted step of a job: its rates, its numbers, its seconds and their parts."""

    attained: Attained
    rates: RateRow
    numbers: Job
    seconds: StepSeconds
    parts: PredictedParts


@dataclass(frozen=True, kw_only=True)
class PageJob(UntimedJob):
    """A job whose step is timed.

    `base` is the original if the job is a variant on other hardware.

    Properties raise InputError if the job cannot be timed.
    """

    base: PageJob | None

    @property
    def wide_peak_flops_per_s(self) -> float:
        """Dense peak in at least 16 bits, in which Muon orthogonalizes matrices."""
        return self.chip.wide_peak_flops_per_s(self.dtype)

    @cached_property
    def timed(self) -> PageTiming | None:
        """The predicted step; None on a reader's own chip if too few of its numbers are known."""
        base, was = self.base, None if self.base is None else self.base.timed
        if base is not None and was is not None and self._is_elsewhere(base):
            attained = on_hardware(was.attained, base.cluster, self.cluster)
            return self._timed(attained, was.rates)
        told = self.measured is not None or self.memory_bytes_per_s is not None
        return self._timed(self.attained, self.rates) if self.accelerator != OWN or told else None

    def _is_elsewhere(self, base: PageJob) -> bool:
        """Return whether chip or network are a reader's own although those of `base` are not."""
        own_chip = self.accelerator == OWN and base.accelerator != OWN
        return own_chip or (self.nic == OWN and base.nic != OWN)

    def _timed(self, attained: Attained, rates: RateRow) -> PageTiming:
        per_tensor = float(rates.framework == "nanotron")
        numbers = step_job(self.setup, quantized=rates.quantized, per_tensor=per_tensor)
        seconds = timed_step(numbers, attained)
        factor = self.given["time_factor"]
        parts = predicted_parts(numbers, seconds, 1.0 if factor is None else factor)
        return PageTiming(
            attained=attained, rates=rates, numbers=numbers, seconds=seconds, parts=parts
        )

    @property
    def parts(self) -> PredictedParts | None:
        return None if self.timed is None else self.timed.parts

    @cached_property
    def compute_efficiency(self) -> float:
        """Share of the dense peak that the job's FLOPs reach while it computes."""
        found, factor = self.timed, self.given["time_factor"]
        if found is None:
            if factor is not None:
                expected = "none without the memory bandwidth of your chip"
                raise InputError("time_factor", expected=expected, got=factor)
            return self._untimed_share
        share = computing_share(self.setup, self.cluster, found.parts)
        if factor is not None:
            check_time_factor(factor, share)
        return share

    @property
    def _untimed_share(self) -> float:
        given: float | None = self.given["compute_efficiency"]
        if given is not None:
            return given
        return UNTIMED if self.base is None else self.base.compute_efficiency

    @property
    def matmul_share(self) -> float:
        """Share of the dense peak that matmuls reach, or the share that the reader gives."""
        if self.timed is None:
            return self._untimed_share
        return float(self.timed.attained.matmul_flops_per_s) / self.cluster.peak_flops_per_s

    @property
    def wide_flops_per_s(self) -> float:
        """The rate of matmuls in at least 16 bits."""
        share: float | None = self.given["compute_efficiency"]
        if self.timed is None:
            share = self._untimed_share
        elif share is None:
            return float(self.timed.attained.plain_flops_per_s)
        return self.wide_peak_flops_per_s * share

    @property
    def predicted(self) -> ResidualInterval | None:
        """The interval of the step; None if a rate was chosen or no such step has been timed."""
        chosen = self.given["compute_efficiency"] is not None
        scaled = self.given["time_factor"] is not None
        elsewhere = self.base is not None and self._is_elsewhere(self.base)
        return None if self.timed is None or chosen or scaled or elsewhere else self.interval


def untimed_job(catalog: ServedCatalog, choices: Mapping[str, Any]) -> UntimedJob:
    """Return the job that these options describe; missing options take their defaults.

    `model`, `accelerator` and `nic` are names of the catalog, or mappings of a reader's numbers in
    SI units. Raises InputError for unknown names and for options that contradict each other.
    """
    given: dict[str, Any] = {**usual_options(catalog), **choices}
    model, entry = named("model", given["model"], catalog.models)
    _, framework = named("software", given["software"], catalog.software)
    dtype = str(given["dtype"])
    chip = served_chip(catalog, given["accelerator"], dtype)
    setup = setup_of(served_shape(entry), given, framework, chip)
    network = served_network(catalog, given["nic"])
    measured = None if given["measured"] is None else read_line(given["measured"])
    known = known_cluster(chip, network, dtype, given["gpus_per_node"], measured)
    return UntimedJob(
        catalog=catalog,
        given=given,
        model=model,
        setup=setup,
        chip=chip,
        network=network,
        measured=measured,
        known_cluster=known,
        cluster=changed_cluster(known, own_latencies_of(given)),
    )


def page_job(
    catalog: ServedCatalog, choices: Mapping[str, Any], base: PageJob | None = None
) -> PageJob:
    """Return the job of these options with its time. Raises InputError as `untimed_job` does."""
    job = untimed_job(catalog, choices)
    return PageJob(
        catalog=catalog,
        given=job.given,
        base=base,
        model=job.model,
        setup=job.setup,
        chip=job.chip,
        network=job.network,
        measured=job.measured,
        known_cluster=job.known_cluster,
        cluster=job.cluster,
    )
