"""Training steps that readers measured, each with its job and its source.

The data is `figgen/catalog/logged-steps.toml`; its keys other than `KEYS` are options of the
schema, as `figgen step` takes them. `figgen verdict --row` prints an entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen import catalog
from figgen.catalog.load import content
from figgen.entries.read import ENTRY_KEYS, parse_file, read_entry
from figgen.entries.schema import count, quantity, text
from figgen.errors import EntryPlace, InputError
from figgen.lookups import remembered
from figgen.scenarios.options.resolve import TrainingStep, resolve
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.options.schema import OPTIONS, unknown_option

FILE = "logged-steps.toml"
KEYS = {
    "title": text(required=True),
    "step_time": quantity("s", "1 ms", "10000 s", required=True),
    "steps": count(1, 10_000_000),
    "peak_memory": quantity("B", "100 MB", "1 TB"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStep:
    """A measured step; `steps` counts the timed steps of a log, 0 without a log."""

    name: str
    title: str
    asked: TrainingStep
    step_time_s: float
    steps: int
    peak_memory_bytes: float | None
    source: str
    seen: str

    @property
    def ratio(self) -> float:
        """Measured over predicted time."""
        return self.step_time_s / float(self.asked.predicted.step_time_s)


@remembered(1)
def logged_steps() -> tuple[LoggedStep, ...]:
    """Return all logged steps, in the order of the file."""
    return read_logged_steps(content(FILE), catalog.SOURCES)


def read_logged_steps(text: str, sources: Mapping[str, str]) -> tuple[LoggedStep, ...]:
    """Return the entries of the file. Raises InputError for any fault in it."""
    return tuple(
        _read(EntryPlace(file=FILE, entry=name, content=text), table, sources)
        for name, table in parse_file(FILE, text).items()
    )


def _read(place: EntryPlace, table: Mapping[str, object], sources: Mapping[str, str]) -> LoggedStep:
    own = {key: value for key, value in table.items() if key in (*KEYS, *ENTRY_KEYS)}
    entry = read_entry(place, own, KEYS, sources)
    chosen = {key: value for key, value in table.items() if key not in own}
    for key in chosen:
        if key not in OPTIONS:
            nearest = unknown_option("key", key, [*OPTIONS, *KEYS, *ENTRY_KEYS]).nearest
            raise place.at(key).fault("unknown key", nearest=nearest)
    try:
        asked = resolve(scenario(**chosen))  # type: ignore[arg-type]  # checked there
    except InputError as error:
        raise place.at(error.key).fault(str(error)) from None
    peak = entry.values.get("peak_memory")
    return LoggedStep(
        name=place.entry,
        title=entry.words["title"],
        asked=asked,
        step_time_s=entry.values["step_time"].value,
        steps=entry.whole("steps"),
        peak_memory_bytes=None if peak is None else peak.value,
        source=entry.source,
        seen=entry.seen,
    )
