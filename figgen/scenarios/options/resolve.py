"""Resolves a scenario (a preset, a run, or chosen sizes) into its layout and training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen import catalog
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.host_words import hosts_words
from figgen.models.machine.layout import ParallelLayout
from figgen.models.memory.memory import MemoryEstimate, memory
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.attained import check_time_factor
from figgen.models.step.newton_schulz import busiest_flops
from figgen.models.step.other_links import with_links
from figgen.models.step.predicted_parts import PredictedParts, computing_share, predicted_parts
from figgen.models.step.stage_time import StageTime
from figgen.models.step.step import StepEstimate, step, step_stages
from figgen.scenarios.options.assumptions import known_of
from figgen.scenarios.options.config_json import named_model
from figgen.scenarios.options.hardware_of import (
    changed_cluster,
    known_cluster,
    own_latencies_of,
)
from figgen.scenarios.options.option import Value
from figgen.scenarios.options.own_model import OwnModel
from figgen.scenarios.options.scenario import Scenario, scenario
from figgen.scenarios.options.schema import OPTIONS, asked_by
from figgen.scenarios.options.setup_of import layout_of, setup_of
from figgen.scenarios.runs.machine_rates import MeasuredRates, read_rates
from figgen.scenarios.runs.own_hardware import named_accelerator, named_link
from figgen.scenarios.runs.predicted import PredictedStep
from figgen.scenarios.runs.software import memory_of
from figgen.scenarios.runs.step_as_run import predicted

SIZES = ("nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "etp", "dp")
"""The options that make up a layout, apart from its order."""

MATTERS_WITH = {
    "context_exchange": "cp", "zigzag": "cp", "sequence_parallel": "tp", "dispatcher": "ep",
    "expert_skew": "ep", "expert_overlap": "ep",
}  # fmt: skip
"""Options without effect in a layout whose axis has one rank."""

_ASSUMABLE = frozenset(
    option.name
    for option in asked_by("step")
    if option.name not in (*SIZES, "model") and option.default is not None
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """A step as configured, its hardware, and the options whose values are not published.

    `launched` is the layout on nodes as requested, of which several can count as one in `setup`.
    `hardware` gives the accelerator and the link as requested, by name or file, and `measured` the
    rates that replace their datasheets. `given` are the options that were chosen over a preset or a
    run, and "layout" for its sizes.
    """

    asked: Scenario
    title: str
    run: catalog.Run | None
    model: catalog.Model | OwnModel
    launched: ParallelLayout
    setup: TrainingSetup
    accelerator: catalog.Accelerator
    nic: catalog.Link
    hardware: tuple[str, str]
    measured: MeasuredRates | None
    dtype: str
    own_latencies: tuple[tuple[str, float], ...]
    chosen_efficiency: float | None
    time_factor: float | None
    software: str
    reserve_bytes: float
    assumed: frozenset[str]
    given: frozenset[str]

    @property
    def cluster(self) -> Cluster:
        """The cluster that the step runs on; the step's memory does not depend on it.

        Raises InputError for nodes that are too wide, and for a number format without a peak.
        """
        return changed_cluster(self._known_cluster, dict(self.own_latencies))

    @property
    def _known_cluster(self) -> Cluster:
        """The cluster with latencies from datasheets or measurements."""
        width = self.launched.gpus_per_node
        measured = self.measured.known if self.measured else None
        chip, network = catalog.chip_of(self.accelerator), catalog.network_of(self.nic)
        return known_cluster(chip, network, self.dtype, width, measured)

    @property
    def hosts_said(self) -> str:
        """What the requested nodes count as, or "" where there is only one way to count."""
        nodes, width = self.launched.nodes, self.launched.gpus_per_node
        chip = catalog.chip_of(self.accelerator)
        return hosts_words(nodes, width, self.setup.parallel.nodes, chip)

    @property
    def estimate(self) -> StepEstimate:
        """The step's time, part by part."""
        return _estimate(self.setup, self.cluster, self.compute_efficiency, self.parts)

    @property
    def stages(self) -> tuple[StageTime, ...]:
        """Times of every virtual stage in the simulated step."""
        return step_stages(self.setup, self.cluster, self.compute_efficiency, self.parts)

    @property
    def predicted(self) -> PredictedStep:
        """The time of the step, and the interval of its class."""
        return predicted(
            self.setup, *self.hardware, self.dtype, self.software,
            self.run.name if self.run else "", self.measured.text if self.measured else "",
            self.chosen_efficiency, self.time_factor,
            (self._known_cluster, self.cluster) if self.own_latencies else None,
            self.launched.gpus_per_node,
        )  # fmt: skip

    @property
    def wide_flops_per_s(self) -> float:
        """The rate (FLOP/s) of matmuls in 16 bits or more, with which Muon orthogonalizes."""
        if self.chosen_efficiency is None:
            return float(self.predicted.attained.plain_flops_per_s)
        chip = catalog.chip_of(self.accelerator)
        return chip.wide_peak_flops_per_s(self.dtype) * self.chosen_efficiency

    @property
    def parts(self) -> PredictedParts:
        """The parts of the predicted time."""
        found = self.predicted
        return predicted_parts(found.job, found.parts, self.time_factor or 1.0)

    def with_links(self, *, scale_up: float = 1.0, network: float = 1.0) -> StepEstimate:
        """Return the step on links that run at these shares of their bandwidth."""
        found = self.predicted
        return with_links(
            self.setup, self.cluster, found.job, found.attained, scale_up=scale_up, network=network
        )

    @property
    def orthogonalising_s(self) -> float:
        """Seconds of Muon's matmuls after the step, which nothing hides; 0 with other optimizers.

        The step itself includes the reads and writes of every optimizer, but no matmuls.
        """
        return busiest_flops(self.setup) / self.wide_flops_per_s

    @property
    def interval_s(self) -> tuple[float, float]:
        """The interval in seconds that contains eight in ten runs of the step's class."""
        return self.predicted.low_s, self.predicted.high_s

    @property
    def has_interval(self) -> bool:
        """Whether the time has an interval, which a chosen efficiency or time factor takes away."""
        return self.chosen_efficiency is None and self.time_factor is None

    @property
    def compute_efficiency(self) -> float:
        """Share of the dense peak that the step's FLOPs reach while the GPU computes."""
        found = computing_share(self.setup, self.cluster, self.parts)
        if self.time_factor is not None:
            check_time_factor(self.time_factor, found)
        return found

    @property
    def memory(self) -> MemoryEstimate:
        """Return the memory that each pipeline rank needs, and the accelerator's capacity."""
        measured = self.measured.capacity_bytes if self.measured else None
        return _memory(self.setup, measured or self.accelerator.capacity_bytes, self.reserve_bytes)


# A page shows a setup in several figures, and a build has a page for every preset.
@remembered(512)
def _estimate(
    setup: TrainingSetup, cluster: Cluster, efficiency: float, parts: PredictedParts | None
) -> StepEstimate:
    return step(setup, cluster, compute_efficiency=efficiency, predicted=parts)


@remembered(512)
def _memory(setup: TrainingSetup, capacity_bytes: float, reserve_bytes: float) -> MemoryEstimate:
    return memory(setup, capacity_bytes=capacity_bytes, reserve_bytes=reserve_bytes)


def training_step(
    *, preset: str | None = "", run: str | None = "", **chosen: Value
) -> TrainingStep:
    """Return the training step of a scenario, with the parameters and errors of `scenario`."""
    return resolve(scenario(preset=preset, run=run, **chosen))


def parallel_layout(
    *, preset: str | None = "", run: str | None = "", **chosen: Value
) -> ParallelLayout:
    """Return the layout of a scenario, with the parameters and errors of `scenario`."""
    return resolve_layout(scenario(preset=preset, run=run, **chosen))


@remembered(256)
def resolve(asked: Scenario) -> TrainingStep:
    """Return the training step of a scenario.

    Raises InputError if options are missing or don't fit.
    """
    base = base_of(asked)
    values = completed(base.values | dict(asked.chosen), "step")
    if base.run and values["microbatches"] is None and values["global_batch"] is None:
        raise InputError(f"run {base.run.name!r}", expected="a published global batch", key="run")
    parallel = layout_of(values)
    model = named_model(str(values["model"]))
    hardware = str(values["accelerator"]), str(values["nic"])
    chip, nic = named_accelerator(hardware[0]), named_link(hardware[1])
    chosen = frozenset(name for name, _ in asked.chosen) if base.run else frozenset[str]()
    sized = frozenset({"layout"}) if chosen & set(SIZES) else frozenset[str]()
    return TrainingStep(
        asked=asked,
        title=base.run.title if base.run else model.title,
        run=base.run,
        model=model,
        launched=parallel,
        setup=setup_of(
            model.shape, values, memory_of(str(values["software"])), catalog.chip_of(chip)
        ),
        accelerator=chip,
        nic=nic,
        hardware=hardware,
        measured=read_rates(str(values["measured"])) if values["measured"] else None,
        dtype=str(values["dtype"]),
        own_latencies=tuple(own_latencies_of(values).items()),
        chosen_efficiency=_number(values["compute_efficiency"]),
        time_factor=_number(values["time_factor"]),
        software=str(values["software"]),
        reserve_bytes=float(str(values["reserve_bytes"])),
        assumed=_assumed(parallel) - base.published - chosen if base.run else frozenset(),
        given=chosen | sized,
    )


@remembered(256)
def resolve_layout(asked: Scenario) -> ParallelLayout:
    """Return only the layout on nodes as requested, which needs neither a model nor a network."""
    return layout_of(_layout_values(asked))


def hosts_apart(asked: Scenario) -> str:
    """Return what the nodes of a layout count as where no step is asked for; see `hosts_words`."""
    values = _layout_values(asked)
    nodes, width = int(str(values["nodes"])), int(str(values["gpus_per_node"]))
    chip = catalog.chip_of(named_accelerator(str(values["accelerator"])))
    return hosts_words(nodes, width, nodes, chip)


def _layout_values(asked: Scenario) -> dict[str, Value]:
    return completed(base_of(asked).values | dict(asked.chosen), "layout")


@dataclass(frozen=True, slots=True)
class Base:
    """The options that a scenario starts from, its run, and which options were published."""

    values: dict[str, Value]
    run: catalog.Run | None = None
    published: frozenset[str] = frozenset()


def base_of(asked: Scenario) -> Base:
    """Return the options of a scenario's preset or run. Raises InputError if it has no layout."""
    run = catalog.run(asked.run) if asked.run else None
    if asked.preset:
        found = catalog.preset(asked.preset)
        if isinstance(found, catalog.MapPreset):
            return Base({name: getattr(found, name) for name in SIZES})
        if isinstance(found, catalog.HardwarePreset):
            return Base({
                "gpus_per_node": found.gpus_per_node,
                "accelerator": found.accelerator.name,
                "nic": found.nic.name,
            })  # fmt: skip
        run = found.run
    return _of_run(run, dict(asked.chosen)) if run else Base({})


def _of_run(run: catalog.Run, chosen: Mapping[str, Value]) -> Base:
    axes = {"tp": run.tp, "cp": run.cp, "pp": run.pp}
    missing = [axis for axis, size in axes.items() if size is None and axis not in chosen]
    if missing:
        raise InputError(f"run {run.name!r}", expected="a published layout", got=missing, key="run")
    values, published = known_of(run)
    if chosen.get("accelerator", run.accelerator.name) != run.accelerator.name:
        values.pop("software", None)  # the run's software ran on another chip
    values |= run_sizes(run)
    if "microbatches" in {**values, **chosen}:
        values.pop("global_batch", None)
    return Base(values, run, published)


def run_sizes(run: catalog.Run) -> dict[str, Value]:
    """Return the cluster of a run and the published part of its layout, from which DP follows."""
    nodes, width = cluster_of(run)
    axes = {"tp": run.tp, "cp": run.cp, "pp": run.pp, "ep": run.ep}
    known = {axis: size for axis, size in axes.items() if size is not None}
    return {"nodes": nodes, "gpus_per_node": width, **known}


def cluster_of(run: catalog.Run) -> tuple[int, int]:
    """Return nodes and GPUs per node: the scale-up domain, or the largest power of two in it.

    Raises InputError if the run's number of accelerators is unknown or doesn't fill whole nodes.
    """
    if run.gpus is None:
        raise InputError(
            f"run {run.name!r}", expected="a published number of accelerators", key="run"
        )
    width = run.accelerator.scale_up_domain
    if run.gpus % width:
        width = 2 ** (width.bit_length() - 1)
    if run.gpus < width:
        return 1, run.gpus
    if run.gpus % width:
        raise InputError(
            f"run {run.name!r}", expected=f"whole nodes of {width}", got=run.gpus, key="run"
        )
    return run.gpus // width, width


def _assumed(parallel: ParallelLayout) -> frozenset[str]:
    """Return the options that are assumed if a run does not state them."""
    idle = {name for name, axis in MATTERS_WITH.items() if getattr(parallel, axis) == 1}
    return _ASSUMABLE - idle


def completed(values: Mapping[str, Value], question: str) -> dict[str, Value]:
    """Return every option, with its default unless it was chosen.

    A node is a whole scale-up domain by default. Raises InputError if an option that matters for
    the `question` is missing and has no default.
    """
    found = {name: option.default for name, option in OPTIONS.items()} | dict(values)
    if found["gpus_per_node"] is None:
        found["gpus_per_node"] = named_accelerator(str(found["accelerator"])).scale_up_domain
    for option in asked_by(question):
        if option.required and found[option.name] is None:
            raise InputError(option.name, expected="a value; it has no default")
    return found


def _number(value: Value) -> float | None:
    return None if value is None else float(str(value))
