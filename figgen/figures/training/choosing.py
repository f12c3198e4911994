"""Which layout to take: the limits of each strategy, and searches that try all."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.catalog.lookups import remembered
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.figures.training.step import step_interval
from figgen.formulas.compute_and_roofline import critical_tokens, ridge_point
from figgen.formulas.context_parallel import ring_attention_min_tokens
from figgen.formulas.pipeline import microbatches_for_efficiency
from figgen.formulas.scale_and_state import largest_replicated_model
from figgen.formulas.tensor_parallel import tensor_parallel_layer_ccr
from figgen.models.recipes import recipe as named_recipe
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.resolve import TrainingStep, resolve
from figgen.scenarios.scenario import Scenario, scenario

TOKENS_PER_STEP = 4_194_304
"""A batch of four million tokens, as in published runs of this size."""

USABLE = 0.8
MOST_STAGES = 16
MOST_MICROBATCHES = 512
"""Beyond it a replica works so long on one step that nobody would train that way."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A layout that was computed: how it is written, and whether its fullest GPU is full."""

    label: str
    found: TrainingStep
    share: float

    @property
    def step_s(self) -> float:
        return self.found.predicted.step_time_s

    @property
    def mfu(self) -> float:
        return self.found.predicted.model_flops_utilisation


def candidates(model: str, nodes: int) -> tuple[tuple[str, Scenario], ...]:
    """Layouts worth trying on nodes of eight GPUs, as (label, scenario).

    Tensor parallelism inside the node, stages that divide the layers, and a batch that divides
    among the replicas; ZeRO-3 only where nothing else is split.
    """
    shape, gpus, found = catalog_model(model).shape, 8 * nodes, []
    batch = TOKENS_PER_STEP // shape.sequence
    asked = scenario(model=model, nodes=nodes, gpus_per_node=8)
    for tp in (1, 2, 4, 8):
        for pp in (1, 2, 4, 8, MOST_STAGES):
            replicas, left = divmod(gpus, tp * pp)
            if left or not replicas or batch % replicas or shape.layers % pp:
                continue
            if batch // replicas > MOST_MICROBATCHES:
                continue
            if shape.heads % tp or shape.kv_heads % tp:
                continue
            axes = [f"{axis} {size}" for axis, size in (("TP", tp), ("PP", pp)) if size > 1]
            zero = 3 if tp == pp == 1 else 1
            label = " · ".join([*axes, f"DP {replicas}"]) + f", ZeRO-{zero}"
            chosen = asked.but(tp=tp, pp=pp, microbatches=batch // replicas, zero_stage=zero)
            found.append((label, chosen))
    return tuple(found)


@remembered(16)
def search(model: str, nodes: int) -> tuple[int, tuple[Tried, ...]]:
    """How many layouts were tried, and those that fit, recomputing if they must, fastest first."""
    tried, fitting = candidates(model, nodes), []
    for label, asked in tried:
        # Recomputing everything costs a third of the work: only what does not fit needs it.
        for recompute, said in (("none", ""), ("full", ", recomputed")):
            found = resolve(asked.but(recompute=recompute))
            held = found.memory
            if held.fits:
                share = held.fullest.total_bytes / (held.capacity_bytes or 1)
                fitting.append(Tried(f"{label}{said}", found, share))
                break
    return len(tried), tuple(sorted(fitting, key=lambda entry: (entry.step_s, entry.label)))


@figure("layout-search")
def layout_search(*, model: str = "llama-3-70b", nodes: int = 8, most: int = 6) -> Table:
    """The fastest layouts of a model on some nodes among all that fit, with what each idles.

    Idle is the pipeline rank that works longest, as a share of the whole step: less than the
    bubble_fraction of its schedule, whose wall holds no communication and no longer stage.
    """
    check_between("nodes", nodes, 1, 512)
    check_between("most", most, 2, 20)
    tried, fitting = search(model, nodes)
    if not fitting:
        raise InputError(
            f"layouts of {model!r}", expected="more nodes; none fits", got=nodes, key="nodes"
        )
    rows: list[tuple[Scalar, ...]] = [
        (entry.label, entry.step_s, entry.mfu, entry.found.estimate.bubble_fraction,
         entry.found.estimate.exposed_s / entry.step_s, entry.share)
        for entry in fitting[:most]
    ]  # fmt: skip
    best, last = fitting[0], fitting[-1]
    return Table(
        columns=(
            Column(label="layout"),
            Column(label="step", unit="s", spec="time"),
            Column(label="MFU", spec=".1%"),
            Column(label="idle, slowest rank", spec=".1%"),
            Column(label="exposed", spec=".1%"),
            Column(label="memory used", spec=".0%"),
        ),
        rows=tuple(rows),
        values={
            "tried": Named(tried),
            "fitting": Named(len(fitting)),
            "shown": Named(len(rows)),
            "gpus": Named(8 * nodes, "GPU"),
            "best": Named(best.label),
            "best_mfu": Named(best.mfu),
            "best_step": Named(best.step_s, "s"),
            "slowest": Named(last.label),
            "slowest_factor": Named(last.step_s / best.step_s),
            **step_interval(best.found),
        },
    )


GRID = {"llama-3-8b": (1, 8, 64), "llama-3-70b": (1, 8, 64), "gpt-3-175b": (8, 16, 64)}
"""Models with the numbers of nodes to try them on."""


@figure("best-layouts")
def best_layouts() -> Table:
    """The fastest layout that fits, for models and numbers of nodes of eight H100."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    total = 0
    for name, sizes in GRID.items():
        for count in sizes:
            tried, fitting = search(name, count)
            total += tried
            key = f"{identifier(name)}_{8 * count}"
            title = catalog_model(name).title
            if not fitting:
                rows.append((title, 8 * count, "none fits", float("nan"), float("nan")))
                values[key] = Named("none fits")
                continue
            best = fitting[0]
            rows.append((title, 8 * count, best.label, best.mfu, best.share))
            values |= {key: Named(best.label), f"{key}_mfu": Named(best.mfu)}
    values["tried"] = Named(total)
    values["cells"] = Named(len(rows))
    return Table(
        columns=(
            Column(label="model"),
            Column(label="GPUs", spec=","),
            Column(label="fastest that fits"),
            Column(label="MFU", spec=".1%"),
            Column(label="memory used", spec=".0%"),
        ),
        rows=tuple(rows),
        values=values,
    )


@figure("strategy-limits")
def strategy_limits(*, preset: str = "h100-ndr", recipe: str = "mcore18") -> Table:
    """For each strategy the number beyond which it stops working on one kind of node."""
    node, per_param = hardware_preset(preset), named_recipe(recipe).total_bytes
    peak, hbm = node.accelerator.peak_flops_per_s("bf16"), node.accelerator.hbm_bytes
    network = node.network_bandwidth_bytes_per_s
    inside = node.scale_up_bandwidth_bytes_per_s
    whole = node.node_bandwidth_bytes_per_s
    per_width = float(tensor_parallel_layer_ccr(1, 0, 2, 8))
    limits = {
        "ddp": float(largest_replicated_model(hbm, USABLE, per_param)),
        "tokens": float(critical_tokens(peak, whole, 2)),
        "alone": float(critical_tokens(peak, network, 2)),
        "tp_inside": float(ridge_point(peak, inside)) / per_width,
        "tp_outside": float(ridge_point(peak, network)) / per_width,
        "microbatches": float(microbatches_for_efficiency(8, 1, 0.9)),
        "chunked": float(microbatches_for_efficiency(8, 2, 0.9)),
        "cp_inside": float(ring_attention_min_tokens(peak, inside, 2, 8, 8)),
        "cp_outside": float(ring_attention_min_tokens(peak, network, 2, 8, 8)),
    }
    rows: tuple[tuple[Scalar, ...], ...] = (
        ("data parallelism", "largest model, nothing sharded",
         f"{limits['ddp'] / 1e9:.1f}B parameters"),
        ("DDP, ZeRO, FSDP", "tokens per rank and microbatch to hide gradients or weights",
         f"{limits['tokens']:,.0f} on whole nodes, {limits['alone']:,.0f} alone on a port"),
        ("tensor parallelism of 8", "hidden size for messages no longer than the work",
         f"{limits['tp_inside']:,.0f} inside, {limits['tp_outside']:,.0f} between nodes"),
        ("pipeline of 8 stages", "microbatches for 90% of the wall",
         f"{limits['microbatches']:.0f}, or {limits['chunked']:.0f} with two chunks"),
        ("context parallelism", "tokens per rank to hide the ring, KV heads not shared",
         f"{limits['cp_inside']:,.0f} inside, {limits['cp_outside']:,.0f} between nodes"),
    )  # fmt: skip
    units = {"ddp": "param"}
    return Table(
        columns=(Column(label="strategy"), Column(label="limit"), Column(label="value")),
        rows=rows,
        values={key: Named(value, units.get(key, "1")) for key, value in limits.items()},
    )
