"""Every figure that shows a predicted time states the interval of its class of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from figgen.catalog.residuals import residuals
from figgen.charts import PREDICTED, interval_values
from figgen.errors import InputError
from figgen.generated.site_pages import site_pages
from figgen.markdown.conversion import fences
from figgen.markdown.directive import parse
from figgen.registry import build, figure_named
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.planning import plan_rows
from figgen.serving.code import SourceCode
from tests.thorough import drawn

DOCS = Path(__file__).parents[2] / "docs"

WITHOUT = {
    "axis-bandwidth": "what messages may take and need; no step",
    "experts-published": "steps beside measured ones, with the ratio of both",
    "fine-tuning-step": "no run with adapters was measured, which its caption says",
    "journey-fit": "bytes held by each layout",
    "journey-one-step": "bytes over shares of a step; the scoreboard has its time",
    "journey-ledger": "bytes of a step; times of messages are bytes over bandwidths",
    "journey-scoreboard": "its rows hold the interval, and each page's caption",
    "link-loads": "bandwidths that a step needs",
    "moe-step": "bytes and work of a step",
    "muon-update": "a part of the step and its share",
    "offload-fractions": "what offloading adds; its caption has the worst error",
    "packed-imbalance": "shares of the step",
    "offload-inputs": "what offloading adds, beside what was measured",
    "post-training-published": "a floor, of which training alone is predicted, as its page says",
    "logged-steps": "measured over predicted time, of each job",
    "post-training-split": "a floor, of which training alone is predicted, as its page says",
    "post-training-step": "a floor, of which training alone is predicted, as its page says",
    "runs-held-and-sent": "shares of the step, and bytes",
    "schedule-steps": "kernels and messages alone; step-breakdown has the step",
    "scaling-breaks": "its rows hold the interval",
    "scaling": "speeds as shares of each other's; the steps are in scaling-breaks",
    "setup-choices": "settings",
    "setup-roofline": "work over bytes",
    "setup-summary": "settings",
    "step-communication": "bytes and times of messages; step-breakdown above it has the step",
    "strategy-exchanges": "messages over computing",
    "wall-shares": "shares of the step",
    "verdict-threads": "which cause of a slow run is named first",
}
"""Figures that request a prediction but show no step time, or show its interval themselves."""

PREDICTORS = {TrainingStep.__module__, plan_rows.__name__}
"""Modules whose predictions count; a figure whose code imports neither has none to show."""


def shown() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every figure of the site's pages with its arguments; of tabs, the first."""
    written = {p.relative_to(DOCS).as_posix(): p.read_text("utf-8") for p in DOCS.rglob("*.md")}
    for source in (site_pages(DOCS, {}) | written).values():
        for fence in fences(source):
            try:
                directive = parse(fence.body)
            except InputError:
                continue  # an example of a mistake
            yield directive.figure, directive.variants()[0][2]


def test_what_shows_a_predicted_step_has_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    predicted, timed = TrainingStep.predicted.fget, plan_rows.layout_at
    assert predicted

    def noted(found: TrainingStep) -> object:
        asked.append(found.title)
        return predicted(found)

    def noted_rows(*given: Any) -> object:
        asked.append("layouts")
        return timed(*given)

    monkeypatch.setattr(TrainingStep, "predicted", property(noted))
    monkeypatch.setattr(plan_rows, "layout_at", noted_rows)
    silent, predicting = set[str](), set[str]()
    times = Counter[str]()
    code = SourceCode()
    code.look()
    for name, given in shown():
        times[name] += 1
        if name in silent | predicting or times[name] > drawn(1, 3):
            continue
        if not PREDICTORS & code.closure(figure_named(name).function.__module__):
            continue
        asked.clear()
        if PREDICTED in build(name, given).values:
            predicting.add(name)
        elif asked:
            silent.add(name)
    assert silent <= WITHOUT.keys(), "add `step_interval` to its values, or a reason here"
    assert not predicting & WITHOUT.keys()
    assert {"step-breakdown", "layout-search", "planned-layouts", "best-layouts"} <= predicting


def test_the_interval_of_several_classes_is_the_widest() -> None:
    names = ("Megatron on Hopper, dense", "JAX on Hopper, dense", "Megatron on Hopper, experts")
    known = [residuals()[name] for name in names]
    found = interval_values(*known, known[0])
    assert found[PREDICTED].value == "Megatron on Hopper, dense and experts; JAX on Hopper, dense"
    assert found["predicted_low"].value == min(each.low for each in known)
    assert found["predicted_high"].value == max(each.high for each in known)
    assert interval_values(known[0], known[0])[PREDICTED].value == names[0]
    assert interval_values() == {}


def test_a_share_that_somebody_chose_has_no_interval() -> None:
    def values(**given: Any) -> set[str]:
        sizes = "nodes=1 gpus_per_node=8 tp=2"
        return set(build("step-breakdown", {"model": "llama-3-8b", "sizes": sizes, **given}).values)

    assert PREDICTED in values()
    assert PREDICTED not in values(options="compute_efficiency=0.5")
    assert training_step(preset="bloom-176b").chosen_efficiency is None
