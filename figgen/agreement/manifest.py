"""The quantity, convention and inputs of each number in `figures.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import PurePath
from typing import Any

from figgen.agreement.inputs import Same
from figgen.agreement.numbers import Kind, Number
from figgen.agreement.ways import ComparedQuantity, Way, quantities
from figgen.cache import digest
from figgen.charts import Scalar
from figgen.equations.definition import Formula
from figgen.equations.syntax import expression_tree
from figgen.equations.tree import text
from figgen.registry import all_formulas
from figgen.subject import Subject, subject

Entry = dict[str, Any]


def listed(entries: Iterable[Entry], files: Mapping[str, str]) -> str:
    """Return a page's entries of `figures.json`, by line; `files` are its downloads, by path."""
    drawn = {PurePath(path).stem: text for path, text in files.items() if path.endswith(".svg")}
    found = sorted(with_quantities(entries), key=lambda entry: str(entry["where"]))
    for entry in found:
        if picture := drawn.get(str(entry.get("id"))):
            entry["picture_sha256"] = digest(picture)
    return json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)[1:-2]


def with_quantities(entries: Iterable[Entry]) -> list[Entry]:
    """Add to entries the convention and formula of each inline number, and the quantity of each
    value of a figure; a value that only its figure computes is named after the figure.
    """
    return [_sentence(entry) if "call" in entry else _figure(entry) for entry in entries]


def numbers_of(entry: Entry) -> list[Number]:
    """Return the numbers of one entry, without their text."""
    shared = {"where": entry["where"], "inputs": entry["inputs"]}
    if "call" in entry:
        kind: Kind = "formula" if entry["quantity"] in all_formulas() else "lookup"
        name, value, unit = entry["quantity"], entry["value"], entry["unit"]
        return [Number(kind=kind, source=name, name=name, value=value, unit=unit, **shared)]
    values: Mapping[str, tuple[Scalar, str]] = entry["values"]
    shared |= {
        "source": entry["figure"],
        "beside": {name: one for name, (one, _) in values.items()},
    }
    return [
        Number(kind="figure", name=name, value=value, unit=unit, **shared)
        for name, (value, unit) in values.items()
    ]


def _sentence(entry: Entry) -> Entry:
    formula = all_formulas().get(entry["quantity"])
    [number] = numbers_of(entry)
    found = _known(number)
    convention = found["convention"] if found else formula.doc if formula else "as its source says"
    return {
        **entry,
        "convention": convention,
        **({"formula": _written(formula)} if formula else {}),
    }


@cache
def _written(formula: Formula) -> str:
    return text(expression_tree(formula), {})


def _figure(entry: Entry) -> Entry:
    own = {"quantity": "", "convention": f"as {entry['figure']} computes it"}
    known = {
        number.name: _known(number) or {**own, "quantity": f"{entry['figure']} {number.name}"}
        for number in numbers_of(entry)
    }
    return {**entry, "quantities": known}


@cache
def _ways_by_source(about: Subject) -> dict[tuple[str, str], list[tuple[ComparedQuantity, Way]]]:
    found: dict[tuple[str, str], list[tuple[ComparedQuantity, Way]]] = {}
    for quantity in quantities():
        for way in quantity.ways:
            found.setdefault((way.kind, way.source), []).append((quantity, way))
    return found


def _known(number: Number) -> dict[str, Any] | None:
    for quantity, way in _ways_by_source(subject()).get((number.kind, number.source), ()):
        inputs = way.inputs(number)
        if inputs is not None:
            convention = way.convention or quantity.convention
            said = {
                name: str(value) if isinstance(value, Same) else value
                for name, value in inputs.items()
            }
            return {"quantity": quantity.name, "convention": convention, "inputs": said}
    return None
