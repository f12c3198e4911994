"""Choosing a layout: the limits of each strategy, and the planner's results for all meshes."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.catalog.residuals import Residuals
from figgen.charts import Column, Named, Scalar, Table, interval_values
from figgen.errors import InputError, check_between
from figgen.figures.training.step import step_interval
from figgen.formulas.compute_and_roofline import critical_tokens, ridge_point
from figgen.formulas.context_parallel import causal_ring_attention_min_tokens
from figgen.formulas.pipeline import microbatches_for_efficiency
from figgen.formulas.scale_and_state import largest_replicated_model
from figgen.formulas.tensor_parallel import tensor_parallel_layer_ccr
from figgen.lookups import remembered
from figgen.models.planner.ranking import layout_at
from figgen.models.shape.recipes import recipe as named_recipe
from figgen.models.step.compute import MFU_LABEL
from figgen.plotting.placed import headings
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.options.option import Choices
from figgen.scenarios.options.resolve import resolve
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import PlanRow, plan_rows
from figgen.scenarios.planning.planner import Plan, plan

TOKENS_PER_STEP = 4_194_304
"""A batch of four million tokens, as in published runs of this size."""

PLAIN: Choices = {"cp": 1, "schedule": "1f1b"}
"""Options that stay fixed, so that only meshes are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The planner's search for a job, and the fastest layout of every mesh, in order."""

    layouts: int
    fitting: int
    plans: tuple[Plan, ...]
    meshes: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.meshes)

    def row(self, place: int) -> PlanRow:
        """Return a mesh in full."""
        which, found = self.meshes[place]
        return plan_rows(self.plans[which], [found])[0]


@remembered(16)
def search(model: str, nodes: int, microbatch_size: int = 1) -> Tried:
    """Return every mesh of plain 1F1B on nodes of eight GPUs, with no or full recomputation.

    A `microbatch_size` of 0 tries all sizes.
    """
    batch = TOKENS_PER_STEP // catalog_model(model).shape.sequence
    job = scenario(model=model, nodes=nodes, gpus_per_node=8, global_batch=batch, **PLAIN)
    job = job.but(microbatch_size=microbatch_size) if microbatch_size else job
    plans = tuple(plan(plan_question(job.but(recompute=mode))) for mode in ("none", "full"))
    fastest: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {}
    for which, one in enumerate(plans):
        for place in one.meshes:
            layout = layout_at(one.found, place)
            # Recomputing costs a third of the work: only what does not fit needs it.
            mesh = (int(layout.tp), int(layout.pp))
            fastest.setdefault(mesh, (float(one.found.step_s[place]), (which, int(place))))
    return Tried(
        layouts=sum(one.layouts for one in plans),
        fitting=sum(one.fitting for one in plans),
        plans=plans,
        meshes=tuple(place for _, place in sorted(fastest.values())),
    )


def mesh_label(row: PlanRow) -> str:
    """Return the options that are not fixed, in one line."""
    given = row.choices
    sizes = [(axis, given[axis.lower()]) for axis in ("TP", "PP") if given[axis.lower()] != 1]
    axes = [f"{axis} {size}" for axis, size in (*sizes, ("DP", row.dp))]
    size = given["microbatch_size"]
    more = "" if size == 1 else f", {size} sequences"
    said = ", recomputed" if given["recompute"] == "full" else ""
    return " · ".join(axes) + f", ZeRO-{given['zero_stage']}{more}{said}"


@figure("layout-search", of_reference=True)
def layout_search(
    *, model: str = "llama-3-70b", nodes: int = 8, most: int = 6, microbatch_size: int = 1
) -> Table:
    """The fastest meshes of a model on some nodes, each in its fastest form, with its idle time.

    Idle is that of the pipeline rank that works longest, as a share of the whole step. It is less
    than the bubble_fraction of its schedule, whose wall time has no communication and no longer
    stage. A `microbatch_size` of 0 tries all sizes.
    """
    check_between("microbatch_size", microbatch_size, 0, 64)
    check_between("nodes", nodes, 1, 512)
    check_between("most", most, 2, 20)
    tried = search(model, nodes, microbatch_size)
    if not len(tried):
        raise InputError(
            f"layouts of {model!r}", expected="more nodes; none fits", got=nodes, key="nodes"
        )
    shown = [tried.row(place) for place in range(min(most, len(tried)))]
    steps = [resolve(tried.plans[0].question.asked.but(**row.choices)) for row in shown]
    rows: list[tuple[Scalar, ...]] = [
        (
            mesh_label(row),
            row.step_s,
            row.model_flops_utilisation,
            found.estimate.bubble_fraction,
            found.estimate.exposed_s / row.step_s,
            _share(tried, row),
        )
        for row, found in zip(shown, steps, strict=True)
    ]
    best, last = shown[0], tried.row(len(tried) - 1)
    return Table(
        columns=(
            Column(label="layout"),
            Column(label="step", unit="s", spec="time"),
            *headings(MFU_LABEL, "idle", "exposed", spec=".1%"),
            Column(label="memory used", spec=".0%"),
        ),
        rows=tuple(rows),
        values={
            "tried": Named(tried.layouts),
            "fitting": Named(tried.fitting),
            "meshes": Named(len(tried)),
            "shown": Named(len(rows)),
            "gpus": Named(8 * nodes, "GPU"),
            "best": Named(mesh_label(best)),
            "best_mfu": Named(best.model_flops_utilisation),
            "best_step": Named(best.step_s, "s"),
            "slowest": Named(mesh_label(last)),
            "slowest_factor": Named(last.step_s / best.step_s),
            **step_interval(steps[0]),
        },
    )


def _share(tried: Tried, row: PlanRow) -> float:
    """Return the share of memory that the fullest GPU uses."""
    return row.memory_bytes / tried.plans[0].question.job.capacity_bytes


GRID = {"llama-3-8b": (1, 8, 64), "llama-3-70b": (1, 8, 64), "gpt-3-175b": (8, 16, 64)}
"""Models with the numbers of nodes to try them on."""


@figure("best-layouts")
def best_layouts() -> Table:
    """The fastest layout that fits, for models and numbers of nodes of eight H100."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    total = 0
    shown: list[Residuals] = []
    for name, sizes in GRID.items():
        for count in sizes:
            tried = search(name, count)
            total += tried.layouts
            key = f"{identifier(name)}_{8 * count}"
            title = catalog_model(name).title
            if not len(tried):
                rows.append((title, 8 * count, "none fits", float("nan"), float("nan")))
                values[key] = Named("none fits")
                continue
            best = tried.row(0)
            shown.append(tried.plans[0].question.residuals)
            label, mfu = mesh_label(best), best.model_flops_utilisation
            rows.append((title, 8 * count, label, mfu, _share(tried, best)))
            values |= {key: Named(label), f"{key}_mfu": Named(mfu)}
    values["tried"] = Named(total)
    values["cells"] = Named(len(rows))
    return Table(
        columns=(
            Column(label="model"),
            Column(label="GPUs", spec=","),
            Column(label="fastest that fits"),
            Column(label=MFU_LABEL, spec=".1%"),
            Column(label="memory used", spec=".0%"),
        ),
        rows=tuple(rows),
        values=values | interval_values(*shown),
    )


@figure("strategy-limits")
def strategy_limits(
    *, preset: str = "h100-ndr", recipe: str = "mcore18", heads: int = 64, kv_heads: int = 8
) -> Table:
    """For each strategy the size beyond which it stops working on one kind of node.

    State may fill all of a GPU's memory. Rings pass keys and values of causal attention, of
    `kv_heads` for as many query `heads`.
    """
    limits = _limits(
        hardware_preset(preset), float(named_recipe(recipe).total_bytes), heads, kv_heads
    )
    rows: tuple[tuple[Scalar, ...], ...] = (
        (
            "data parallelism",
            "largest model whose state fills a GPU",
            f"{limits['ddp'] / 1e9:.1f}B parameters",
            "memory ÷ bytes per parameter",
        ),
        (
            "DDP, ZeRO, FSDP",
            "tokens per rank per microbatch to hide gradients or weights",
            f"{limits['tokens']:,.0f} on whole nodes, {limits['alone']:,.0f} alone on a port",
            "peak ÷ bandwidth",
        ),
        (
            "tensor parallelism of 8",
            "hidden size for messages no longer than the matmuls",
            f"{limits['tp_inside']:,.0f} inside, {limits['tp_outside']:,.0f} between nodes",
            "peak ÷ bandwidth × 14/9",
        ),
        (
            "pipeline of 8 stages",
            "microbatches to be busy 90% of the step",
            f"{limits['microbatches']:.0f}, or {limits['chunked']:.0f} with two chunks",
            "9 (stages − 1) ÷ chunks",
        ),
        (
            "context parallelism",
            f"tokens per rank to hide a causal ring, {heads} heads on {kv_heads} KV heads",
            f"{limits['cp_inside']:,.0f} inside, {limits['cp_outside']:,.0f} between nodes",
            f"peak ÷ bandwidth × 2 · {kv_heads}/{heads}",
        ),
    )
    units = {"ddp": "param"}
    return Table(
        columns=headings("strategy", "limit", "value", "how"),
        rows=rows,
        values={key: Named(value, units.get(key, "1")) for key, value in limits.items()},
    )


def _limits(node: HardwarePreset, per_param: float, heads: int, kv_heads: int) -> dict[str, float]:
    """Return each strategy's limit on this kind of node, by the name of its value."""
    peak, hbm = node.accelerator.peak_flops_per_s("bf16"), node.accelerator.capacity_bytes
    network = node.network_bandwidth_bytes_per_s
    inside = node.scale_up_bandwidth_bytes_per_s
    whole = node.node_bandwidth_bytes_per_s
    per_width = float(tensor_parallel_layer_ccr(1, 0, 2, 8))
    return {
        "ddp": float(largest_replicated_model(hbm, 1, per_param)),
        "tokens": float(critical_tokens(peak, whole, 2)),
        "alone": float(critical_tokens(peak, network, 2)),
        "tp_inside": float(ridge_point(peak, inside)) / per_width,
        "tp_outside": float(ridge_point(peak, network)) / per_width,
        "microbatches": float(microbatches_for_efficiency(8, 1, 0.9)),
        "chunked": float(microbatches_for_efficiency(8, 2, 0.9)),
        "cp_inside": float(causal_ring_attention_min_tokens(peak, inside, 2, heads, kv_heads)),
        "cp_outside": float(causal_ring_attention_min_tokens(peak, network, 2, heads, kv_heads)),
    }
