"""plan --published: show every published layout next to the fastest one for its job."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from figgen.catalog.load import FOLDER
from figgen.catalog.planned import FILE, planned_best
from figgen.commands import Answer
from figgen.scenarios.evidence.published_plans import published_plan, searched, training_presets
from figgen.scenarios.planning.plan_rows import TERMS, layout_words

ABOUT = "Layouts of each published job, and the options of the fastest that fits. From "
COMMAND = "python -m figgen plan --published --write"


def published_answer(write: bool) -> Answer:
    """Return all plans, ordered by the gap to the best layout, largest first.

    `write` searches again (30 s).
    """
    if write:
        found = {name: searched(name) for name in training_presets()}
        held = {
            "about": f"{ABOUT}`{COMMAND}`.",
            "date": datetime.now(tz=UTC).date().isoformat(),
            "presets": {
                n: {"layouts": count, "choices": best} for n, (count, best) in found.items()
            },
        }
        (FOLDER / FILE).write_text(json.dumps(held, indent=1) + "\n")
        planned_best.cache_clear()
    data, lines = [], []
    for one in sorted(map(published_plan, training_presets()), key=lambda one: -one.behind):
        term, share = one.loses_by
        times = one.published.predicted, one.best.predicted
        data.append(
            {
                "preset": one.preset,
                "layouts": one.layouts,
                "published": layout_words(one.published.setup),
                "best": layout_words(one.best.setup),
                "step_time_s": [found.step_time_s for found in times],
                "step_time_interval_s": [[found.low_s, found.high_s] for found in times],
                "longer_by": one.behind,
                "loses_by": term,
                "apart": one.apart,
            }
        )
        lines.append(
            f"{one.preset}: {times[0].step_time_s:.3g} s ({times[0].low_s:.3g} to "
            f"{times[0].high_s:.3g}) as published, {one.behind:+.1%} over "
            f"{times[1].step_time_s:.3g} s ({times[1].low_s:.3g} to {times[1].high_s:.3g}) with "
            f"{layout_words(one.best.setup)}; mainly in {TERMS[term]} ({share:.0%})"
        )
    return Answer(data, "\n".join(lines))
