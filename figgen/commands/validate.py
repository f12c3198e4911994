"""validate: predicted against measured step times, by class, format, generation and ranking."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from figgen.commands import Answer, add_verb
from figgen.registry import build
from figgen.scenarios.evidence.class_intervals import coverages, interval_of
from figgen.scenarios.evidence.publishers import (
    by_class,
    by_publisher,
    errors_of_group,
    judged_publishers,
    side_of,
)
from figgen.scenarios.evidence.rivals import comparisons
from figgen.scenarios.evidence.validation import GROUPINGS, errors_of, grouped, rankings

if TYPE_CHECKING:
    from figgen.commands import Verbs

TITLES = {
    "class": "Errors by class",
    "format": "Errors by format",
    "generation": "Errors by generation",
    "framework": "Errors by framework",
    "experts": "Errors of mixtures of experts by release",
}


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    add_verb(
        verbs,
        "validate",
        _validate,
        "predicted against measured step times of every published run",
        "--json",
    )


def _validate(options: argparse.Namespace) -> Answer:
    from figgen.renderers import text

    data: dict[str, object] = {
        by: [
            {"tested": tested} | asdict(found)
            for name, runs in grouped(by).items()
            for tested in (False, True)
            if (found := errors_of(name, [run for run in runs if run.tested == tested]))
        ]
        for by in GROUPINGS
    }
    shown = [
        f"{title}\n{text.render(build('validation-errors', {'by': by}))}"
        for by, title in TITLES.items()
    ]
    shown += [
        f"Errors by publisher\n{text.render(build('validation-publishers', {}))}",
        f"Errors by stack, chips and kind\n{text.render(build('validation-classes', {}))}",
    ]
    shown += [f"Layouts of the sweep in order\n{text.render(build('validation-ranking', {}))}"]
    shown += [f"Worst misses of tests\n{text.render(build('validation-misses', {}))}"]
    shown += [f"Other models on the same tests\n{text.render(build('validation-rivals', {}))}"]
    judged = judged_publishers()
    publishers = [
        asdict(errors_of_group(name, runs)) | {"part": side_of(name)}
        for name, runs in by_publisher(judged).items()
    ]
    classes = [
        asdict(errors_of_group(name, runs))
        | {"interval": asdict(interval_of(runs[0].published.run_class, judged))}
        for name, runs in by_class(judged).items()
    ]
    covered = [asdict(found) for found in coverages(judged)]
    ranked = [asdict(entry) for entry in rankings(tested_only=True)]
    rivals = [
        {"kind": one.kind, "tool": one.rival.name, "documented": asdict(one.documented)}
        | {"fitted": asdict(one.fitted), "ours": asdict(one.ours)}
        for one in comparisons()
    ]
    data |= {"publishers": publishers, "classes": classes, "coverage": covered}
    return Answer(data | {"rankings": ranked, "rivals": rivals}, "\n".join(shown))
