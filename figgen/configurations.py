"""The catalog as the live tools take it: models, accelerators, links and published steps.

Values are plain SI numbers; where the catalog gives a range, `<key>_range` has its two ends.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.models.layout import ParallelLayout
from figgen.models.model_shape import ModelShape
from figgen.models.training_setup import TrainingSetup
from figgen.scenarios.training import TrainingStep, training_step

Choices = dict[str, Any]


def configurations_json() -> str:
    """`configurations` as the file that the tools load."""
    return json.dumps(configurations(), ensure_ascii=False, separators=(",", ":")) + "\n"


def configurations() -> dict[str, Any]:
    """Everything a reader can choose by name, and the latencies of a ring step."""
    nccl = catalog.nccl_tuning()
    return {
        "models": {name: _model(found) for name, found in catalog.MODELS.items()},
        "accelerators": {name: _accelerator(a) for name, a in catalog.ACCELERATORS.items()},
        "links": {name: _link(found) for name, found in catalog.LINKS.items()},
        "latencies": {
            "scale_up_s": nccl.scale_up_latency_s,
            "network_s": nccl.network_latency_s,
        },
        "presets": {name: _preset(found) for name, found in catalog.PRESETS.items()},
    }


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
    }


def _sizes(found: catalog.MapPreset | ParallelLayout) -> Choices:
    """The cluster and the axes along which it is divided at all."""
    sizes = {axis: getattr(found, axis) for axis in ("tp", "cp", "pp", "ep")}
    divided = {axis: size for axis, size in sizes.items() if size > 1}
    return {"nodes": found.nodes, "gpus_per_node": found.gpus_per_node, **divided} | (
        {} if found.etp == found.tp else {"etp": found.etp}
    )


def training_choices(found: TrainingStep) -> Choices:
    """A step as the options of `figgen step` are called, what they are by default left out."""
    setup = found.setup
    usual = {field.name: field.default for field in fields(TrainingSetup)} | {"recipe": "mcore18"}
    given = {name: getattr(setup, name) for name in usual if name not in ("shape", "parallel")}
    given["recipe"] = setup.recipe.name
    return {
        "model": found.model.name,
        **_sizes(setup.parallel),
        **({} if setup.parallel.order == "megatron" else {"order": setup.parallel.order}),
        **{name: value for name, value in given.items() if value != usual[name]},
        "accelerator": found.accelerator.name,
        "nic": found.nic.name,
        "dtype": found.dtype,
    }


def _model(found: catalog.Model) -> dict[str, Any]:
    usual = {field.name: field.default for field in fields(ModelShape)}
    shape = {key: value for key, value in asdict(found.shape).items() if value != usual[key]}
    return {"title": found.title, **shape}


def _accelerator(found: catalog.Accelerator) -> dict[str, Any]:
    peaks = {dtype: getattr(found, dtype) for dtype in DTYPES}
    return {
        "title": found.title,
        "vendor": found.vendor,
        "year": found.year,
        **_numbers("memory_bytes", found.hbm_capacity),
        **_numbers("memory_bandwidth_bytes_per_s", found.hbm_bandwidth),
        "peaks": {dtype: peak.value for dtype, peak in peaks.items() if peak is not None},
        "scale_up": found.scale_up.name,
        "scale_up_bandwidth_bytes_per_s": found.scale_up_bandwidth_bytes_per_s,
        "scale_up_domain": found.scale_up_domain,
    }


def _link(found: catalog.Link) -> dict[str, Any]:
    latency = {} if found.latency is None else _numbers("latency_s", found.latency)
    return {
        "title": found.title,
        "kind": found.kind,
        "per": found.per,
        **_numbers("bandwidth_bytes_per_s", found.bandwidth),
        **latency,
    }


def _numbers(key: str, value: catalog.Value) -> dict[str, Any]:
    found: dict[str, Any] = {key: value.value}
    if value.low is not None and value.high is not None:
        found[f"{key}_range"] = [value.low, value.high]
    return found
