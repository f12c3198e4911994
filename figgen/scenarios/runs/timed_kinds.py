"""Kinds of layouts that have published times, by accelerator, with and without experts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from figgen.catalog.measured import measured_records
from figgen.catalog.publishers import publisher_records
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.planner.layout_kind import layout_kind
from figgen.scenarios.runs.record import described_run


@remembered(1)
def timed_kinds() -> Mapping[tuple[str, bool], frozenset[int]]:
    """Return the kinds of layouts of timed published runs.

    The keys are the accelerator and whether the model has experts. Runs whose source is in doubt
    are left out.
    """
    found = defaultdict[tuple[str, bool], set[int]](set)
    for record in (*measured_records(), *publisher_records()):
        try:
            run = described_run(record)
        except InputError:
            continue
        if run.step_time_s is None or run.suspect or record.get("doubt"):
            continue
        kind = layout_kind(tp=run.tp, cp=run.cp, pp=run.pp, ep=run.ep, zero_stage=run.zero_stage)
        found[run.accelerator.name, run.shape.experts is not None].add(kind)
    return {key: frozenset(kinds) for key, kinds in found.items()}
