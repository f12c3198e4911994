"""figgen computes every figure and every number of *Parallelism, Computed*.

A page asks for a figure by name (`figgen.markdown`), the registry finds the function
(`figgen.registry`), the function evaluates models and formulas (`figgen.models`,
`figgen.formulas`, `figgen.catalog`) into a chart (`figgen.charts`), and a renderer
(`figgen.renderers`) turns the chart into SVG, Plotly JSON or text.

Ten functions answer the same in Python: `figgen.figure`, `figgen.step` and the others of
`figgen.api`, which is imported when one of them is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from figgen.api import (
        cost,
        figure,
        formula,
        memory,
        plan,
        ranks,
        schedule,
        step,
        take,
        trace,
    )

__all__ = [
    "cost", "figure", "formula", "memory", "plan", "ranks", "schedule", "step", "take", "trace",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        from figgen.api import FUNCTIONS

        return FUNCTIONS[name]
    raise AttributeError(f"module 'figgen' has no attribute {name!r}")
