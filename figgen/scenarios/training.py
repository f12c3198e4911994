"""Which training step a figure is about: a published run, a preset, or a model on given sizes.

What a run does not publish comes from `figgen.scenarios.assumptions`, and its name is kept,
so that a page can tell it apart from what was published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from figgen import catalog
from figgen.errors import InputError, unknown
from figgen.models.cluster import Cluster
from figgen.models.layout import ParallelLayout, layout
from figgen.models.memory import MemoryEstimate, memory
from figgen.models.recipes import recipe
from figgen.models.schedules import SCHEDULES
from figgen.models.step import StepEstimate, step
from figgen.models.training_setup import TrainingSetup
from figgen.scenarios.assumptions import EFFICIENCY, guesses, published
from figgen.scenarios.layouts import written_sizes


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A step as configured, on what it runs, and the names of what nobody published.

    `given` are the settings that the figure's author changed.
    """

    title: str
    run: catalog.Run | None
    model: catalog.Model
    setup: TrainingSetup
    accelerator: catalog.Accelerator
    nic: catalog.Link
    dtype: str
    cluster: Cluster
    compute_efficiency: float
    assumed: frozenset[str]
    given: frozenset[str]

    @property
    def estimate(self) -> StepEstimate:
        """Where the step's time goes."""
        return _estimate(self.setup, self.cluster, self.compute_efficiency)

    @property
    def memory(self) -> MemoryEstimate:
        """What every pipeline rank needs, against the accelerator's capacity."""
        return _memory(self.setup, self.accelerator.hbm_bytes)


# A page shows a setup in several figures, and a build has a page for every preset.
@lru_cache(maxsize=64)
def _estimate(setup: TrainingSetup, cluster: Cluster, efficiency: float) -> StepEstimate:
    return step(setup, cluster, compute_efficiency=efficiency)


@lru_cache(maxsize=64)
def _memory(setup: TrainingSetup, capacity_bytes: float) -> MemoryEstimate:
    return memory(setup, capacity_bytes=capacity_bytes)


def _switch(text: str) -> bool:
    return {"on": True, "off": False}[text]


OPTIONS: dict[str, Callable[[str], object]] = {
    "microbatches": int,
    "microbatch_size": int,
    "sequence": int,
    "schedule": str,
    "chunks": int,
    "zero_stage": int,
    "recipe": str,
    "recompute": str,
    "activations": str,
    "sequence_parallel": _switch,
    "flash_attention": _switch,
    "dropout": _switch,
    "context_exchange": str,
    "buckets": int,
    "overlap_data_parallel": _switch,
    "order": str,
    "accelerator": str,
    "nic": str,
    "dtype": str,
    "compute_efficiency": float,
}
"""What an `options:` text may set, with how its value is read."""


def written_options(text: str) -> dict[str, object]:
    """Options from words such as "schedule=zbv microbatches=64 nic=ib-xdr dropout=off".

    Raises InputError for a word that is not a name of `OPTIONS` with a value of its kind.
    """
    found: dict[str, object] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in OPTIONS:
            raise unknown(f"word of options {text!r}:", name, OPTIONS)
        try:
            found[name] = OPTIONS[name](value)
        except (ValueError, KeyError):
            kind = {int: "a whole number", float: "a number", _switch: "on or off"}
            expected = f"{name}= and {kind.get(OPTIONS[name], 'a text')}"
            raise InputError(f"options {text!r}", expected=expected, got=word) from None
        if not value:
            raise InputError(f"options {text!r}", expected=f"{name}=…", got=word)
    return found


@lru_cache(maxsize=64)
def training_step(
    preset: str | None = None,
    run: str | None = None,
    model: str = "",
    sizes: str = "",
    options: str = "",
) -> TrainingStep:
    """The step of a training preset, of a published run, or of `model` laid out by `sizes`.

    `sizes` is written "nodes=8 gpus_per_node=8 tp=8 pp=4", `options` as `written_options` reads
    it; both change what a run says. Raises InputError unless exactly one of preset, run and
    model is given, and for anything that does not fit.
    """
    given = {"preset": preset, "run": run, "model": model}
    if sum(bool(text) for text in given.values()) != 1:
        names = [name for name, text in given.items() if text]
        raise InputError("a training step", expected="one of preset, run or model", got=names)
    changed = written_options(options)
    if model:
        return _explicit(catalog.model(model), sizes, changed)
    chosen = catalog.run(run) if run else catalog.training_preset(str(preset)).run
    return _of_run(chosen, _written(sizes), changed)


def _written(sizes: str) -> dict[str, int]:
    """Sizes that change a run; those of its cluster may stay unsaid."""
    if not sizes:
        return {}
    whole = sizes if "nodes=" in sizes else f"{sizes} nodes=1 gpus_per_node=1"
    found = written_sizes(whole)
    return {name: size for name, size in found.items() if f"{name}=" in f" {sizes}"}


def cluster_of(run: catalog.Run) -> tuple[int, int]:
    """Nodes and GPUs in each: as wide as the scale-up domain, or the widest power of two in it.

    Raises InputError for a run on an unknown number of accelerators, or not on whole nodes.
    """
    if run.gpus is None:
        raise InputError(f"run {run.name!r}", expected="a published number of accelerators")
    width = run.accelerator.scale_up_domain
    if run.gpus % width:
        width = 2 ** (width.bit_length() - 1)
    if run.gpus < width:
        return 1, run.gpus
    if run.gpus % width:
        raise InputError(f"run {run.name!r}", expected=f"whole nodes of {width}", got=run.gpus)
    return run.gpus // width, width


def _of_run(
    run: catalog.Run, sizes: Mapping[str, int], changed: Mapping[str, object]
) -> TrainingStep:
    nodes, width = cluster_of(run)
    axes_said = {"tp": run.tp, "cp": run.cp, "pp": run.pp, "ep": run.ep}
    missing = [axis for axis, size in axes_said.items() if size is None and axis not in sizes]
    if missing:
        raise InputError(f"run {run.name!r}", expected="a published layout", got=missing)
    axes = {"nodes": nodes, "gpus_per_node": width, **axes_said, **sizes}
    guessed = guesses(run)
    chosen = {**guessed, **changed}
    parallel = layout(
        **{name: size for name, size in axes.items() if size is not None},
        order=str(chosen.pop("order")),
    )
    if "microbatches" not in chosen:
        chosen["microbatches"] = _microbatches(run, parallel, int(str(chosen["microbatch_size"])))
    open_ends = frozenset(guessed) - frozenset(changed)
    found = _assembled(run.title, run, run.model, parallel, chosen, open_ends)
    return replace(found, given=frozenset(changed) | ({"layout"} if sizes else frozenset()))


def _microbatches(run: catalog.Run, parallel: ParallelLayout, size: int) -> int:
    if run.global_batch is None:
        raise InputError(f"run {run.name!r}", expected="a published global batch")
    share = parallel.dp * size
    if run.global_batch % share:
        expected = f"a divisor of the global batch {run.global_batch}"
        raise InputError("DP · microbatch_size", expected=expected, got=share)
    return run.global_batch // share


def _explicit(model: catalog.Model, sizes: str, changed: Mapping[str, object]) -> TrainingStep:
    chosen: dict[str, object] = {
        "accelerator": "h100-sxm-80gb", "nic": "ib-ndr", "dtype": "bf16", "order": "megatron",
        "sequence": model.shape.sequence, "compute_efficiency": EFFICIENCY, **changed,
    }  # fmt: skip
    parallel = layout(**written_sizes(sizes), order=str(chosen.pop("order")))
    chosen.setdefault("microbatches", 4 * parallel.pp)
    return _assembled(model.title, None, model, parallel, chosen, frozenset())


def _assembled(
    title: str,
    run: catalog.Run | None,
    model: catalog.Model,
    parallel: ParallelLayout,
    chosen: dict[str, object],
    open_ends: frozenset[str],
) -> TrainingStep:
    accelerator = catalog.accelerator(str(chosen.pop("accelerator")))
    nic, dtype = catalog.link(str(chosen.pop("nic"))), str(chosen.pop("dtype"))
    efficiency = float(str(chosen.pop("compute_efficiency")))
    cluster = catalog.cluster(accelerator, nic, dtype, parallel.gpus_per_node)
    if "recipe" in chosen:
        chosen["recipe"] = recipe(str(chosen["recipe"]))
    schedule = chosen.get("schedule", "1f1b")
    if schedule not in SCHEDULES:
        raise unknown("schedule", str(schedule), SCHEDULES)
    return TrainingStep(
        title=title, run=run, model=model, accelerator=accelerator, nic=nic, dtype=dtype,
        cluster=cluster, setup=TrainingSetup(shape=model.shape, parallel=parallel, **chosen),  # type: ignore[arg-type]
        compute_efficiency=efficiency,
        assumed=open_ends - (published(run) if run else frozenset()),
        given=frozenset(),
    )  # fmt: skip
