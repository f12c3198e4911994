"""Promised chances to fit, and the share of peaks and of layouts for which they held."""

from __future__ import annotations

from figgen.catalog import accelerator
from figgen.charts import Column, Named, Scalar, Table
from figgen.models.memory.fit_probability import SAFE, deviations_below, most_bytes
from figgen.models.setup.framework_memory import framework_memory
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.evidence.fit_chances import (
    SWEPT,
    PeakError,
    held,
    outcomes,
    peak_errors,
)

DASH = "–"

PROMISED = (0.5, 0.8, 0.9, SAFE, 0.99)
"""Chances for which the table says how often they held."""


def most_share(one: PeakError) -> float:
    """Return the share of an H100's memory that a layout may be predicted to need to be safe."""
    capacity = accelerator("h100-sxm-80gb").capacity_bytes
    return float(most_bytes(capacity, one.spread, deviations_below(SAFE)) / capacity)


@figure("validation-fit-chances")
def validation_fit_chances() -> Table:
    """The share of measured peaks below what a chance to fit promises, by software."""
    grouped: dict[str, list[PeakError]] = {}
    for one in peak_errors():
        grouped.setdefault(framework_memory(one.software).label, []).append(one)
    everyone = list(peak_errors())
    others = [one for one in everyone if one.software != SWEPT]
    rows: tuple[tuple[Scalar, ...], ...] = tuple(
        (
            name,
            len({one.publisher for one in found}),
            len(found),
            *(held(found, chance).below / len(found) for chance in PROMISED),
            held(found).unseen_below / len(found),
            most_share(found[0]) if name in grouped else DASH,
        )
        for name, found in (
            *sorted(grouped.items()),
            ("all but nanotron", others),
            ("all", everyone),
        )
    )
    safe = held(everyone)
    return Table(
        columns=(
            Column(label="software"),
            *headings("publishers", "peaks", spec=",d"),
            *(Column(label=f"below {chance:.0%}", spec=".0%") for chance in PROMISED),
            *headings(f"below {SAFE:.0%}, publisher left out", "may fill of 80 GB", spec=".0%"),
        ),
        rows=rows,
        values={
            "peaks": Named(safe.peaks),
            "safe": Named(SAFE),
            "below": Named(safe.below / safe.peaks),
            "unseen": Named(safe.unseen_below / safe.peaks),
            "others_unseen": Named(held(others).unseen_below / len(others)),
            "waiting_tensors": Named(2 * framework_memory(SWEPT).waiting_pairs),
        },
    )


@figure("validation-fit-outcomes")
def validation_fit_outcomes() -> Table:
    """Layouts of nanotron's sweep that ran and that failed, by their predicted chance to fit."""
    found = outcomes()
    return Table(
        columns=(
            Column(label="promised chance"),
            *headings("ran", "failed", spec=",d"),
            Column(label="share that ran", spec=".0%"),
        ),
        rows=tuple(
            (f"{one.low:.0%} to {one.high:.0%}", one.ran, one.failed, one.share) for one in found
        ),
        values={
            "layouts": Named(sum(one.ran + one.failed for one in found)),
            "failed": Named(sum(one.failed for one in found)),
            "safe_ran": Named(found[0].share),
            "likely_ran": Named(next(one.share for one in found if one.low == 0.5)),
            "unlikely_ran": Named(found[-1].share),
        },
    )
