"""Figures of the guide that formula pages show again unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping

from figgen.errors import InputError
from figgen.markdown.conversion import fences

BORROWED = {
    "activation-memory": ("tensor-parallelism", "sp-memory"),
    "alpha-beta": ("alpha-beta", "message-time"),
    "collectives": ("ring-all-reduce", "ring-bus-bandwidth"),
    "compute-and-roofline": ("strategies-on-the-roofline", "strategies-roofline"),
    "context-parallel": ("context-parallelism", "ring-step-times"),
    "data-parallel": ("data-parallelism", "bucket-tradeoff"),
    "experts": ("experts", "moe-ccr"),
    "fine-tuning": ("fine-tuning", "fine-tuning-memory"),
    "hierarchical-collectives": ("all-reduce-algorithms", "all-reduce-nic-bytes"),
    "modern-layers": ("modern-layers", "attention-kinds"),
    "pipeline": ("pipeline-schedules", "bubble-curves"),
    "placement": ("tensor-parallelism", "tp-step-bytes"),
    "rank-mapping": ("rank-mapping", "rank-strides"),
    "reliability": ("failures", "goodput-by-interval"),
    "scale-and-state": ("why-distribute", "model-growth"),
    "serving": ("serving", "cache-per-token"),
    "tensor-parallel": ("tensor-parallelism", "tp-volume"),
    "topology": ("fabrics", "all-to-all-by-fabric"),
}
"""By topic, the chapter and the figure that show some of the topic's formulas at work."""


def borrowed_figures(sources: Mapping[str, str], titles: Mapping[str, str]) -> dict[str, str]:
    """Return a sentence and a fence by topic, for topics whose chapter is in `sources`.

    Raises InputError for a chapter that no longer has the figure.
    """
    found = {}
    for topic, (chapter, name) in BORROWED.items():
        path = f"guide/{chapter}.md"
        if path in sources:
            body = _fence(sources[path], path, name)
            given = re.search(r"^id: (\S+)$", body, re.M)
            found[topic] = (
                f"[](#fig-{given[1] if given else name}), taken over from "
                f"[{titles.get(path, path)}](../../{path}), shows some of them at work.\n\n"
                f"```figure\n{body}\n```\n"
            )
    return found


def _fence(source: str, path: str, name: str) -> str:
    """Return the first fence of a figure, without its `as:` line."""
    for fence in fences(source):
        lines = fence.body.splitlines()
        if f"figure: {name}" in lines:
            return "\n".join(line for line in lines if not line.startswith("as: "))
    raise InputError(f"figure {name!r}", expected=f"one on {path}")
