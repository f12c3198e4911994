"""What is known about a published run beyond its own entry, and what is assumed for the rest.

The data and its sources are in `figgen/catalog/assumptions.toml`, whose keys are the options of the
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from figgen import catalog
from figgen.catalog.load import content
from figgen.catalog.run_recipes import recipe_of
from figgen.entries.read import ENTRY_KEYS, parse_file, read_entry
from figgen.entries.schema import choice
from figgen.errors import EntryPlace, InputError
from figgen.lookups import remembered
from figgen.models.shape.recomputation import NAMED
from figgen.scenarios.options.option import Value
from figgen.scenarios.options.schema import OPTIONS, unknown_option
from figgen.scenarios.runs.names import recompute_of
from figgen.scenarios.runs.software import software_of

FILE = "assumptions.toml"
KNOWN = ("assumed", "published")
CONDITIONS = ("runs", "accelerators", "dtypes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Values of options that hold for some runs, and where they come from.

    `published` says that the run's own report states them, if only in words.
    """

    name: str
    runs: tuple[str, ...]
    accelerators: tuple[str, ...]
    dtypes: tuple[str, ...]
    values: Mapping[str, Value]
    published: bool
    source: str
    confidence: str
    note: str

    def holds(self, run: catalog.Run) -> bool:
        """Return whether the entry applies to this run."""
        return (
            (not self.runs or run.name.startswith(self.runs))
            and (not self.accelerators or run.accelerator.name in self.accelerators)
            and (not self.dtypes or run.dtype in self.dtypes)
        )


@remembered(1)
def assumptions() -> tuple[Assumption, ...]:
    """Return all entries in order; later entries replace the values of earlier ones."""
    return read_assumptions(content(FILE))


def read_assumptions(text: str) -> tuple[Assumption, ...]:
    """Return the entries of `assumptions.toml`.

    Raises InputError for any mistake in it: an unknown option or value, a condition that no run of
    the catalog meets, a missing source.
    """
    found = tuple(
        _read(EntryPlace(file=FILE, entry=name, content=text), table)
        for name, table in parse_file(FILE, text).items()
    )
    for entry in found:
        if not any(map(entry.holds, catalog.RUNS.values())) and entry.runs:
            raise EntryPlace(file=FILE, entry=entry.name, key="runs").fault(
                "no such run", got=list(entry.runs)
            )
    return found


def _read(place: EntryPlace, table: Mapping[str, Any]) -> Assumption:
    known = (*CONDITIONS, "known", *ENTRY_KEYS)
    provenance = {key: value for key, value in table.items() if key in ("known", *ENTRY_KEYS)}
    entry = read_entry(place, provenance, {"known": choice(*KNOWN, required=True)}, catalog.SOURCES)
    chosen = {key: value for key, value in table.items() if key not in known}
    for key, value in chosen.items():
        if key not in OPTIONS:
            nearest = unknown_option("key", key, [*OPTIONS, *known]).nearest
            raise place.at(key).fault("unknown key", nearest=nearest)
        try:
            OPTIONS[key].checked(value)
        except InputError as error:
            raise place.at(key).fault(str(error)) from None
    if not chosen:
        raise place.fault("assumes nothing", expected="an option")
    runs, chips, dtypes = (_names(place.at(key), table.get(key, [])) for key in CONDITIONS)
    return Assumption(
        name=place.entry,
        runs=runs,
        accelerators=chips,
        dtypes=dtypes,
        values=chosen,
        published=entry.words["known"] == "published",
        source=entry.source,
        confidence=entry.confidence,
        note=entry.note,
    )


def _names(place: EntryPlace, got: object) -> tuple[str, ...]:
    if not isinstance(got, list) or not all(isinstance(name, str) and name for name in got):
        raise place.fault("not a list of names", got=got)
    return tuple(got)


def known_of(run: catalog.Run) -> tuple[dict[str, Value], frozenset[str]]:
    """Return the values of a run's options, and the names of the options that its source states."""
    values, said = _stated(run)
    for entry in assumptions():
        if entry.holds(run):
            # An entry that replaces a published value with a different one is an assumption.
            said -= {name for name, value in entry.values.items() if values.get(name) != value}
            said |= set(entry.values) if entry.published else set()
            values |= entry.values
    recipe = recipe_of(run.name)
    return values | recipe, frozenset(said | recipe.keys())


def reasons(run: catalog.Run) -> tuple[tuple[tuple[str, ...], Assumption], ...]:
    """Return the entries that decide options of the run, each with those options."""
    deciding: dict[str, Assumption] = {}
    for entry in assumptions():
        if entry.holds(run):
            deciding |= dict.fromkeys(entry.values, entry)
    found = dict.fromkeys(entry.name for entry in deciding.values())
    by_name = {entry.name: entry for entry in deciding.values()}
    return tuple(
        (tuple(name for name, entry in deciding.items() if entry.name == key), by_name[key])
        for key in found
    )


def _stated(run: catalog.Run) -> tuple[dict[str, Value], set[str]]:
    """Return the run's own entry as options, and the options' names."""
    chunks = run.virtual_stages
    values: dict[str, Value] = {
        "model": run.model.name,
        "accelerator": run.accelerator.name,
        "dtype": run.dtype,
        "sequence": run.sequence,
        "software": software_of(run),
    }
    if run.global_batch is not None:
        values["global_batch"] = run.global_batch
    if run.microbatch is not None:
        values["microbatch_size"] = run.microbatch
    if run.zero_stage is not None:
        values["zero_stage"] = run.zero_stage
    if run.mtp_layers:
        values["mtp_layers"] = run.mtp_layers
    recompute = recompute_of(run.recompute)
    if run.recompute in NAMED or recompute not in ("", *NAMED):
        values["recompute"] = recompute
    if chunks > 1:
        values |= {"schedule": "interleaved-1f1b", "chunks": chunks}
    elif run.pp == 1:
        values["schedule"] = "1f1b"
    return values, set(values)
