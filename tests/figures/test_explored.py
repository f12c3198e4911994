"""Which plots a page recomputes: all except those below, for each of which DECISIONS.md has a
reason."""

from __future__ import annotations

import inspect

from figgen.charts import Bars, Curves, Timeline
from figgen.registry import all_figures

OTHERWISE = {
    "measured or published, so that no parameter has other values": (
        "all-reduce-measured-by-ranks", "all-reduce-measured-by-size", "alpha-beta-fit",
        "alpha-beta-residuals", "computed-over-published", "measured-strong-scaling",
        "memory-validation", "mfu-conventions", "post-training-split",
        "post-training-step", "products-by-size", "recorded-ddp", "rollout-tail",
        "step-measured", "swept-layouts", "swept-axis",
        "validation-scatter",
    ),
    "of a whole job, which the modeler and the planner compute with all options": (
        "activation-modes", "fine-tuning-memory", "measures-by-kind", "memory-budget",
        "memory-by-sequence", "memory-by-stage", "memory-choices",
        "offload-overhead", "order-network-bytes", "oversubscription", "packed-documents",
        "planned-front", "profile-shares", "recompute-ladder", "scaling", "schedule-steps",
        "step-breakdown", "wall-shares",
    ),
    "of the journey, whose pages follow the reader's own job in place": (
        "journey-fit", "journey-layouts", "journey-ledger", "journey-subtract",
        "journey-tokens-decide",
    ),
    "drawn at random or trained with NumPy": ("layout-drift", "moe-bias", "rounding-error"),
    "traced message by message, which the chapter shows for its ranks": ("root-against-ring",),
    "counted by hand": ("coverage-counts",),
}  # fmt: skip


def test_every_plot_with_parameters_is_recomputed_or_has_its_reason() -> None:
    plots = {
        name
        for name, figure in all_figures().items()
        if figure.parameters
        and inspect.signature(figure.function, eval_str=True).return_annotation
        in (Curves, Bars, Timeline)
    }
    recomputed = {name for name, figure in all_figures().items() if figure.recomputed}
    otherwise = [name for names in OTHERWISE.values() for name in names]
    assert len(otherwise) == len(set(otherwise))
    assert recomputed <= plots
    assert plots - recomputed == set(otherwise)
