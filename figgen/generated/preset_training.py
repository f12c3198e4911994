"""The page of a published run: setup, layout, schedule, memory, time, and what was published."""

from __future__ import annotations

from html import escape

from figgen.catalog import TrainingPreset
from figgen.generated.fences import figure
from figgen.generated.layout_sections import Laid, layout_sections
from figgen.generated.published import published_section
from figgen.models.machine.layout import layout
from figgen.models.memory.memory_fixes import what_fits
from figgen.plotting.blocks import shown_communicators
from figgen.scenarios.options.assumptions import reasons
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.options.schema import OPTIONS

MOST_SLOTS = 300
"""The most forward and backward passes in a small copy of a schedule."""


def training_sections(preset: TrainingPreset, tools: frozenset[str]) -> str:
    """Return all sections of the page, in order."""
    step = training_step(preset=preset.name)
    return "\n".join(
        (
            _setup(preset),
            layout_sections(_laid(step)),
            _schedule(step),
            _memory(preset, step),
            _time(preset),
            _roofline(preset),
            published_section(preset, step, tools),
        )
    )


def _laid(step: TrainingStep) -> Laid:
    """Return a run's layout as sizes, since its nodes may be narrower than the scale-up domain.

    Without experts, the order omits their axis and groups.
    """
    parallel = step.setup.parallel
    order = parallel.order
    if step.model.shape.experts is None and parallel.has_experts:
        order = "-".join(axis for axis in parallel.convention.order if axis != "ep")
    axes = ["nodes", "gpus_per_node", "tp", "cp", "pp"]
    axes += ["ep", "etp"] if step.model.shape.experts else []
    sizes = {axis: getattr(parallel, axis) for axis in axes}
    written = " ".join(f"{axis}={size}" for axis, size in sizes.items())
    shown = shown_communicators(layout(**sizes, order=order))
    lines = f"sizes: {written}\norder: {order}"
    return Laid(layout(**sizes, order=order), lines, shown)


def _setup(preset: TrainingPreset) -> str:
    words = (
        "Everything in [](#fig-setup-summary) that the source does not say is marked as assumed.\n"
    )
    return (
        f"## Setup {{ data-search-exclude }}\n\n{words}\n"
        + figure(
            "setup-summary",
            f"preset: {preset.name}",
            caption="{{ assumed }} of the settings are assumptions: the published numbers do not "
            "depend on them, the computed ones do.",
            alt="A table of settings with their values and whether they were published: "
            "{{ gpus }} GPUs on {{ nodes }} nodes, {{ microbatches }} microbatches per replica, "
            "schedule {{ schedule }}.",
        )
        + _reasons(preset)
    )


def _reasons(preset: TrainingPreset) -> str:
    """Return the reasons, with sources, for settings that the run's own entry lacks."""
    lines = [
        f"- {', '.join(_short(OPTIONS[name].label) for name in names)}"
        f"{' (published)' if entry.published else ''}: {escape(entry.note)}"
        f"{' ' if entry.note else ''}Source: {escape(entry.source)}"
        f"{', not checked at the source' if entry.confidence == 'memory' else ''}.\n"
        for names, entry in reasons(preset.run)
    ]
    if not lines:
        return ""
    return "\nWhat the settings that are not in the table of runs rest on:\n\n" + "".join(lines)


def _short(label: str) -> str:
    """Shorten a form's label for use in a sentence: "TP, tensor" becomes "TP"."""
    return label.partition(":")[0].partition(",")[0]


def _schedule(step: TrainingStep) -> str:
    """Return the section with a copy of the schedule that is small enough to read."""
    setup = step.setup
    stages, chunks = setup.parallel.pp, setup.chunks or 1
    if stages == 1:
        return (
            "## Schedule { data-search-exclude }\n\n"
            "There is only one pipeline stage, so there is no schedule and no pipeline idle time.\n"
        )
    small = min(stages, 4 if chunks > 1 or setup.schedule.startswith("dualpipe") else 8)
    count = min(setup.microbatches, 10 if setup.schedule.startswith("dualpipe") else 2 * small)
    fewer = min(chunks, MOST_SLOTS // (2 * small * count))
    lines = f"schedule: {setup.schedule}\nstages: {small}\nmicrobatches: {count}"
    lines += f"\nchunks: {fewer}" if chunks > 1 else ""
    real = f"{stages} stages and {setup.microbatches:,} microbatches"
    real += f", {chunks} chunks per stage" if chunks > 1 else ""
    share = step.estimate.bubble_s / step.estimate.step_time_s
    copy = small != stages or count != setup.microbatches or fewer != chunks
    words = (
        f"The run has {real}; [](#fig-pipeline-timeline) shows a smaller version.\n"
        if copy
        else "[](#fig-pipeline-timeline) shows the whole step.\n"
    )
    return f"## Schedule {{ data-search-exclude }}\n\n{words}\n" + figure(
        "pipeline-timeline",
        lines,
        caption=f"The schedule {setup.schedule} with {{{{ stages }}}} stages and "
        "{{ microbatches }} microbatches, if messages take no time: "
        "{{ bubble_fraction:.1%}} of the time is idle"
        + (f", and {share:.1%} of the run's own step." if copy else "."),
        alt="{{ stages }} lanes of forward and backward slots for {{ microbatches }} "
        "microbatches; {{ bubble_fraction:.1%}} of the wall time is idle.",
    )


def _memory(preset: TrainingPreset, step: TrainingStep) -> str:
    verdict = (
        "The fullest GPU needs {{ fullest:bytes }} of {{ capacity:bytes }}, so it fits with "
        "{{ free:bytes }} to spare."
        if step.memory.fits
        else "The models count {{ fullest:bytes }} on a GPU of {{ capacity:bytes }}, so the run "
        "must keep less than they assume" + _would_fit(step) + "."
    )
    return (
        "## Memory per GPU { data-search-exclude }\n\n"
        "[](#fig-memory-by-stage) counts state, activations, buffers and a reserve for every "
        "pipeline rank.\n\n"
        + figure(
            "memory-by-stage",
            f"preset: {preset.name}",
            caption=f"{verdict}",
            alt="One bar per pipeline rank ({{ shown }} of {{ stages }} shown) divided into "
            "weights, gradients, optimizer, activations, buffers and reserve; the fullest is rank "
            "{{ fullest_rank }} with {{ fullest:bytes }} of {{ capacity:bytes }}.",
        )
    )


def _would_fit(step: TrainingStep) -> str:
    """Describe the smallest change with which the run would fit, by the models' count."""
    change = what_fits(step.setup, step.accelerator.capacity_bytes, step.reserve_bytes)
    return f"; by their count it would fit with {change}" if change else ""


def _time(preset: TrainingPreset) -> str:
    parameters = f"preset: {preset.name}"
    return (
        "## Time of a step { data-search-exclude }\n\n"
        "[](#fig-step-breakdown) divides the step of the busiest GPU into its parts, and "
        "[](#fig-step-communication) lists every kind of call that it makes.\n\n"
        + figure(
            "step-breakdown",
            parameters,
            caption="A step takes {{ step_time:time }}, of which {{ compute_share:.0%}} is "
            "computing, {{ bubble_share:.0%}} idle in the pipeline and {{ exposed_share:.0%}} "
            "exposed communication.",
            alt="Two bars. The step of {{ step_time:time }}: computing {{ compute:time }}, "
            "recomputation {{ recompute:time }}, pipeline idle {{ bubble:time }}, exposed "
            "communication {{ exposed:time }}. Hidden behind it: {{ hidden:time }}.",
        )
        + "\n"
        + figure(
            "step-communication",
            parameters,
            caption="A GPU sends {{ sent:si }} in a step, {{ between_nodes:si }} of it between "
            "nodes.",
            alt="A table of collectives of a GPU of pipeline rank {{ bottleneck }} with calls, "
            "buffers, bytes sent, link, time and exposed time; {{ sent:si }} in all.",
        )
    )


def _roofline(preset: TrainingPreset) -> str:
    return (
        "## Position on the roofline { data-search-exclude }\n\n"
        "[](#fig-setup-roofline) divides the work of a step by the bytes of each axis: below the "
        "ridge of its link, an axis takes longer than all computation.\n"
        "Work and ridge are for the rate that matmuls reach here; at the peak the ridge is "
        "higher.\n\n"
        + figure(
            "setup-roofline",
            f"preset: {preset.name}",
            caption="{{ nearest }} is closest to the ridge of its link, with "
            "{{ nearest_over_ridge:.1f}} times the work per byte that the link needs.",
            alt="A table of axes with their link, bytes sent, FLOP per byte, the ridge point of "
            "the link, and the quotient of the two.",
        )
    )
