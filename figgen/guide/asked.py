"""Rewrites inputs: a step or a layout, however it was requested, by its numbers.

A preset's page, a figure with sizes and a rung of the journey are therefore compared with each
other if they request the same step, and with formulas that are given its sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from figgen.agreement.inputs import Inputs, Same, plain
from figgen.catalog.load import presets
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.machine.layout import ParallelLayout
from figgen.models.machine.placement import communicator
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.options.written import written_layout, written_step
from figgen.scenarios.stories.journey_ladder import RUNGS
from figgen.scenarios.tools.data import training_choices

STEP = ("preset", "run", "model", "sizes", "options", "job", "rung", "page")
LAYOUT = ("preset", "run", "sizes", "order")


STEPS: Mapping[str, Callable[[TrainingStep], object]] = {
    "time": lambda found: _same(found, found.cluster, _efficiency(found)),
    "memory": lambda found: _same(found, found.accelerator.capacity_bytes, found.reserve_bytes),
    "sent": lambda found: _same(found),
    "grids": lambda found: _grids(found.setup.parallel),
    "accelerator": lambda found: plain(found.accelerator.name),
    "model": lambda found: plain(found.model.name),
    "run": lambda found: plain(found.run.name) if found.run else None,
    "tokens": lambda found: found.setup.tokens_per_step,
    "global_batch": lambda found: found.setup.global_batch,
    "sequence": lambda found: found.setup.sequence,
    "world_size": lambda found: found.setup.parallel.world_size,
}
"""Values of the key `step` in the table."""

LAYOUTS: Mapping[str, Callable[[ParallelLayout, str], object]] = {
    "grids": lambda found, _: _grids(found),
    "ranks": lambda found, axis: communicator(found, axis).size,
    "ranks_per_node": lambda found, axis: _ranks_per_node(found, axis),
    "nodes_each": lambda found, axis: communicator(found, axis).nodes_touched_max,
}
"""Values of a key `layout`; all except the grids describe the groups of the input `axis`."""


def by_step(inputs: Inputs, asked: Mapping[str, object], names: tuple[str, ...]) -> Inputs:
    """Return `inputs` with these names in place of a step, as a page writes it in `asked`."""
    rest = {name: value for name, value in inputs.items() if name not in STEP}
    found = _step(*(_text(asked, name) for name in STEP))
    return rest | {name: STEPS[name](found) for name in names}


def by_layout(inputs: Inputs, asked: Mapping[str, object], names: tuple[str, ...]) -> Inputs:
    """Return the same for a layout; the axis stays an input if the grids are among the names."""
    axis = str(inputs.get("axis", "")).replace("_", "-")
    dropped = LAYOUT if "grids" in names else (*LAYOUT, "axis")
    rest = {name: value for name, value in inputs.items() if name not in dropped}
    found = _layout(*(_text(asked, name) for name in LAYOUT))
    return rest | {name: LAYOUTS[name](found, axis) for name in names}


def _text(asked: Mapping[str, object], name: str) -> str:
    """Return a preset's name; it may come from the name of a value, which has no hyphens."""
    text = str(asked.get(name) or "")
    return _presets().get(text, text) if name == "preset" else text


@remembered(1)
def _presets() -> dict[str, str]:
    return {str(plain(name)): name for name in presets.names()}


@remembered(4096)
def _step(
    preset: str, run: str, model: str, sizes: str, options: str, job: str, rung: str, page: str
) -> TrainingStep:
    if rung or page:  # a lookup's and the scoreboard's name of it
        entry = RUNGS[int(rung or page) - 1]
        model, sizes, options = entry.model, entry.sizes, entry.options
    return written_step(preset or None, run or None, model or job, sizes, options)


@remembered(4096)
def _layout(preset: str, run: str, sizes: str, order: str) -> ParallelLayout:
    return written_layout(preset or None, run or None, sizes, order)


def _same(found: TrainingStep, *beside: object) -> Same:
    choices = training_choices(found)
    words = " ".join(f"{name}={value}" for name, value in choices.items())
    return Same((found.setup, *beside), words)


def _efficiency(found: TrainingStep) -> object:
    """Return what determines the speed of matmuls: a share, or the model's identity of a run."""
    if found.chosen_efficiency is not None:
        return found.chosen_efficiency
    return found.nic.name, found.software, found.run.name if found.run else ""


def _grids(found: ParallelLayout) -> Same:
    expert = found.expert if found.has_experts else None
    words = f"{found.nodes} × {found.gpus_per_node}: {found.dense.axes}"
    return Same((found.gpus_per_node, found.dense, expert), words)


def _ranks_per_node(found: ParallelLayout, axis: str) -> int:
    """Return a group's members on each node.

    Raises InputError if nodes have unequal parts of one.
    """
    groups = communicator(found, axis)
    if (
        groups.nodes_touched_min != groups.nodes_touched_max
        or groups.size % groups.nodes_touched_max
    ):
        raise InputError(
            f"groups of {axis}", expected="equal parts on their nodes", got=groups.size
        )
    return groups.size // groups.nodes_touched_max
