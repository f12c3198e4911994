"""The catalog as the live tools take it: models, accelerators, links and published steps.

Values are plain SI numbers; where the catalog gives a range, `<key>_range` has its two ends.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.layouts import ORDERS
from figgen.models.model_shape import ModelShape
from figgen.models.training_setup import RECOMPUTE

NETWORKS = {"gb300-nvl72": "ib-xdr"}
"""Network links of accelerators that no hardware preset pairs with one; others get NDR."""

SCHEDULES = {"deepseek-v3": "dualpipe"}
"""Published schedules that the number of virtual stages does not tell."""

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
            "scale_up_s": nccl.step_latency("nvlink").value,
            "network_s": nccl.step_latency("net").value,
        },
        "presets": {
            name: _preset(found)
            for name, found in catalog.PRESETS.items()
            if not isinstance(found, catalog.HardwarePreset)
        },
    }


def _preset(found: catalog.MapPreset | catalog.TrainingPreset) -> dict[str, Any]:
    if isinstance(found, catalog.MapPreset):
        return {"title": found.title, "kind": found.kind, "choices": _sizes(found)}
    measured = {
        "step_time_s": found.run.step_time,
        "tokens_per_s_per_gpu": found.run.tokens_per_s_per_gpu,
        "model_flops_utilisation": found.run.mfu,
        "hardware_flops_utilisation": found.run.hfu,
    }
    return {
        "title": found.title,
        "kind": found.kind,
        "choices": training_choices(found),
        "published": {
            key: value.value if isinstance(value, catalog.Value) else value
            for key, value in measured.items()
            if value is not None
        },
        "attention": found.run.attention,
    }


def _sizes(found: catalog.MapPreset) -> Choices:
    sizes = _unlike_one({axis: getattr(found, axis) for axis in ("tp", "cp", "pp", "ep")})
    inside = {} if found.etp == found.tp else {"etp": found.etp}
    return {"nodes": found.nodes, "gpus_per_node": found.gpus_per_node, **sizes, **inside}


def _unlike_one(sizes: Choices) -> Choices:
    return {axis: size for axis, size in sizes.items() if size not in (None, 1)}


def training_choices(preset: catalog.TrainingPreset) -> Choices:
    """The step of a published run, as the options of `figgen step` are called.

    What a run does not publish is left to the defaults, such as one sequence per microbatch and
    nothing recomputed, or is the network that such accelerators are usually sold with.
    """
    run = preset.run
    nodes, gpus_per_node = _cluster(run)
    order = ORDERS.get(preset.name)
    sizes = _unlike_one({axis: getattr(run, axis) for axis in ("tp", "cp", "pp", "ep")})
    choices: Choices = {
        "model": run.model.name,
        "nodes": nodes,
        "gpus_per_node": gpus_per_node,
        **sizes,
        "order": order,
        "microbatches": _microbatches(run),
        "microbatch_size": run.microbatch,
        "sequence": run.sequence,
        "schedule": SCHEDULES.get(
            preset.name, "interleaved-1f1b" if run.virtual_stages > 1 else None
        ),
        "chunks": run.virtual_stages if run.virtual_stages > 1 else None,
        "zero_stage": run.zero_stage,
        "recompute": run.recompute if run.recompute in RECOMPUTE else None,
        "accelerator": run.accelerator.name,
        "nic": _network(run.accelerator.name),
        "dtype": run.dtype,
    }
    return {key: value for key, value in choices.items() if value is not None}


def _cluster(run: catalog.Run) -> tuple[int, int]:
    """Nodes and GPUs of each, the most of a scale-up domain that divide the job evenly."""
    gpus = run.gpus or run.accelerator.scale_up_domain
    width = next(n for n in range(run.accelerator.scale_up_domain, 0, -1) if gpus % n == 0)
    return gpus // width, width


def _microbatches(run: catalog.Run) -> int | None:
    if run.global_batch is None or run.dp is None:
        return None
    return run.global_batch // (run.dp * (run.microbatch or 1))


def _network(accelerator: str) -> str:
    for preset in catalog.PRESETS.values():
        if isinstance(preset, catalog.HardwarePreset) and preset.accelerator.name == accelerator:
            return preset.nic.name
    return NETWORKS.get(accelerator, "ib-ndr")


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
