"""The data of the live tools: the catalog, the options of their forms, and the named layouts.

Values are plain SI numbers; where the catalog gives a range, `<key>_range` has its two ends.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any, TypedDict

from figgen import catalog
from figgen.catalog.residuals import residuals as class_residuals
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.collectives.closed_forms import BUS_BANDWIDTHS
from figgen.models.machine.layout import ParallelLayout
from figgen.models.pipeline.schedules import TITLES
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.options.option import Choices, Option
from figgen.scenarios.options.resolve import TrainingStep, parallel_layout, training_step
from figgen.scenarios.options.schema import GROUPS, OPTIONS
from figgen.scenarios.runs.own_rates import sheet_of
from figgen.scenarios.runs.software import SOFTWARE, known_software, memory_of
from figgen.scenarios.taking.options import catalog_sizes, own_names
from figgen.scenarios.taking.own_lines import OwnNames
from figgen.scenarios.tools.own import own_shape
from figgen.scenarios.tools.rates import attained_rows

_PARTS = {"model": "models", "accelerator": "accelerators"}
"""Options whose choices are entries of the catalog, with their titles."""


@remembered(1)
def configurations_json() -> str:
    """Return `configurations` as the file that the tools load."""
    return json.dumps(configurations(), ensure_ascii=False, separators=(",", ":")) + "\n"


def configurations() -> dict[str, Any]:
    """Return everything that readers choose by name, and NCCL's latencies per ring step."""
    nccl = catalog.nccl_tuning()
    return {
        "models": {name: _model(found) for name, found in catalog.MODELS.items()},
        "accelerators": {name: _accelerator(a) for name, a in catalog.ACCELERATORS.items()},
        "links": {name: _link(found) for name, found in catalog.LINKS.items()},
        "latencies": {
            "scale_up_s": nccl.scale_up_latency_s,
            "network_s": nccl.network_latency_s,
        },
        "own_shape": own_shape(),
        "attained": attained_rows(),
        "software": {name: memory_of(name) for name in known_software()},
        "residuals": {name: [entry.low, entry.high] for name, entry in class_residuals().items()},
        "presets": {name: _preset(found) for name, found in catalog.PRESETS.items()},
        "groups": dict(GROUPS),
        "options": [_option(option) for option in OPTIONS.values()],
    }


def _option(option: Option) -> dict[str, Any]:
    """Return an option as a form needs it, without the fields that it lacks.

    `key` is its name in addresses, `flag` its name on the command line. `choices` are [name, title]
    pairs; a "choice" accepts no other name, a "text" does. A form shows a "quantity" in `unit`,
    which is `scale` SI units.
    """
    limits = {"low": option.low, "high": option.high}
    more: dict[str, Any] = {
        "hint": option.hint,
        "required": option.required,
        **(limits if option.kind in ("whole", "number", "quantity") else {}),
        "unit": option.form_unit,
        "scale": option.scale if option.kind == "quantity" else None,
        "choices": _choices(option),
        "former": dict(option.former),
    }
    return {
        "name": option.name,
        "key": option.address_key,
        "flag": option.command_flag,
        "kind": option.kind,
        "group": option.group,
        "label": option.label,
        "asked_by": list(option.asked_by),
        "default": option.default,
        **{key: value for key, value in more.items() if value or key in limits},
    }


def _choices(option: Option) -> list[list[str]] | str | None:
    """Return the [name, title] pairs that a form offers, or the part of the catalog with them."""
    if option.name in _PARTS:
        return _PARTS[option.name]
    return list(map(list, option.choices().items())) if option.choices else None


MACHINE = ("gpus_per_node", "accelerator", "nic")
"""Options that a page keeps if a text doesn't set them."""


def taking_tables_json() -> str:
    """Return the tables for reading scripts and the tools' own lines, as JSON.

    The first row of `sizes` names the numbers of the others, which follow a model's name. An
    option of the command line or of an address without a name is called as it is written.
    """
    sizes = catalog_sizes()
    rows = [[name, *row.values()] for name, row in sizes.items()]
    columns = next(iter(sizes.values()))
    names = asdict(page_names())
    for written in ("flags", "keys"):
        names[written] = {
            name: "" if name.replace("-", "_") == option else option
            for name, option in names[written].items()
        }
    tables = {"names": names, "sizes": [["", *columns], *rows]}
    return json.dumps(tables, separators=(",", ":"))


def page_names() -> OwnNames:
    """Return the names of a job's options without the machine's, which a page sets itself."""
    names = own_names()
    usual = {name: value for name, value in names.usual.items() if name not in MACHINE}
    return replace(names, usual=usual)


def _preset(found: catalog.Preset) -> dict[str, Any]:
    about = {"title": found.title, "kind": found.kind}
    if isinstance(found, catalog.HardwarePreset):
        chip, nic = found.accelerator.name, found.nic.name
        node = {"gpus_per_node": found.gpus_per_node, "accelerator": chip, "nic": nic}
        return about | {"choices": node}
    if isinstance(found, catalog.MapPreset):
        return about | {"choices": _sizes(found)}
    step = training_step(preset=found.name)
    measured = {
        "step_time_s": found.run.step_time,
        "tokens_per_s_per_gpu": found.run.tokens_per_s_per_gpu,
        "model_flops_utilisation": found.run.mfu,
        "hardware_flops_utilisation": found.run.hfu,
    }
    return about | {
        "choices": training_choices(step),
        "assumed": sorted(step.assumed),
        "published": {
            key: value.value if isinstance(value, catalog.Value) else value
            for key, value in measured.items()
            if value is not None
        },
        "attention": found.run.attention,
        "mfu_dtype": found.run.mfu_dtype,
        "mfu_peak_flops_per_s": found.run.mfu_peak_flops_per_s,
    }


def _sizes(found: catalog.MapPreset | ParallelLayout) -> Choices:
    """Return the cluster and the axes that have more than one rank."""
    sizes = {axis: getattr(found, axis) for axis in ("tp", "cp", "pp", "ep")}
    divided = {axis: size for axis, size in sizes.items() if size > 1}
    return {"nodes": found.nodes, "gpus_per_node": found.gpus_per_node, **divided} | (
        {} if found.etp == found.tp else {"etp": found.etp}
    )


def training_choices(found: TrainingStep) -> Choices:
    """Return the options of a step that differ from their defaults."""
    setup = found.setup
    given = {field.name: getattr(setup, field.name) for field in fields(setup)}
    given |= {"recipe": setup.recipe.name, "order": setup.parallel.order}
    given = {name: given[name] for name in OPTIONS if name in given}
    usual = {name: OPTIONS[name].default for name in given}
    return {
        "model": found.model.name,
        **_sizes(setup.parallel),
        **{name: value for name, value in given.items() if value != usual[name]},
        "accelerator": found.accelerator.name,
        "nic": found.nic.name,
        "dtype": found.dtype,
        **({"software": found.software} if found.software != SOFTWARE else {}),
    }


def _model(found: catalog.Model) -> dict[str, Any]:
    usual = {field.name: field.default for field in fields(ModelShape)}
    shape = {key: value for key, value in asdict(found.shape).items() if value != usual[key]}
    return {"title": found.title, **shape}


def _accelerator(found: catalog.Accelerator) -> dict[str, Any]:
    step = found.scale_up.step_latency
    return {
        "title": found.title,
        "vendor": found.vendor,
        "year": found.year,
        **_numbers("memory_bytes", found.hbm_reported or found.hbm_capacity),
        **_numbers("memory_bandwidth_bytes_per_s", found.hbm_bandwidth),
        "peaks": found.peaks,
        "scale_up": found.scale_up.name,
        "scale_up_bandwidth_bytes_per_s": found.scale_up_bandwidth_bytes_per_s,
        "scale_up_domain": found.scale_up_domain,
        **({} if found.host_gpus is None else {"host_gpus": found.host_gpus}),
        **({} if step is None else {"scale_up_latency_s": step.value}),
    }


def _link(found: catalog.Link) -> dict[str, Any]:
    return {
        "title": found.title,
        "kind": found.kind,
        "per": found.per,
        **_numbers("bandwidth_bytes_per_s", found.bandwidth),
    }


def _numbers(key: str, value: catalog.Value) -> dict[str, Any]:
    found: dict[str, Any] = {key: value.value}
    if value.low is not None and value.high is not None:
        found[f"{key}_range"] = [value.low, value.high]
    return found


def chips_json() -> str:
    """Return the datasheets of all accelerators for comparison with measured machines, as JSON."""
    chips = {name: asdict(sheet_of(chip)) for name, chip in catalog.ACCELERATORS.items()}
    return json.dumps({"chips": chips}, separators=(",", ":")) + "\n"


def converter_json() -> str:
    """Return the converter's data: for each collective, the formula of its bus bandwidth."""
    return json.dumps({"busbw": BUS_BANDWIDTHS}, separators=(",", ":")) + "\n"


def schedules_json() -> str:
    """Return the schedule lab's name for each schedule."""
    return json.dumps({"titles": TITLES}, separators=(",", ":")) + "\n"


class NamedLayout(TypedDict):
    """Sizes by their names in the tools' addresses; `etp` None means the framework's default."""

    name: str
    title: str
    kind: str
    nodes: int
    gpus: int
    tp: int
    cp: int
    ep: int
    etp: int | None
    pp: int
    order: str
    note: str


def layouts() -> tuple[NamedLayout, ...]:
    """Return every map preset and every preset of a published run whose layout is known."""
    found = (_named(preset) for preset in catalog.PRESETS.values())
    return tuple(named for named in found if named is not None)


def layouts_json() -> str:
    """Return `layouts` as the file that the rank map loads."""
    return json.dumps(layouts(), ensure_ascii=False, separators=(",", ":")) + "\n"


def _named(preset: catalog.Preset) -> NamedLayout | None:
    if isinstance(preset, catalog.HardwarePreset):
        return None
    try:
        found = parallel_layout(preset=preset.name)
    except InputError:
        return None
    own = isinstance(preset, catalog.MapPreset) and found.etp != found.tp
    return NamedLayout(
        name=preset.name, title=preset.title, kind=preset.kind,
        nodes=found.nodes, gpus=found.gpus_per_node,
        tp=found.tp, cp=found.cp, ep=found.ep, etp=found.etp if own else None, pp=found.pp,
        order=found.order, note=preset.note,
    )  # fmt: skip
