"""What software attains on chips, for the live tools: what rows share, and what each has more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.catalog.rates import constants
from figgen.formulas.functions_javascript import printed_module
from figgen.models import layer_time, timed_step
from figgen.models.layout import layout
from figgen.models.training_setup import TrainingSetup
from figgen.scenarios.predicted import described
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.predicted import OWN_CLASS, class_of
from figgen.scenarios.runs.rates import attained
from figgen.scenarios.software import SOFTWARE, known_software, software_of

WIDE_HEAD = 128
WITHOUT_NETWORK = ("network_bytes_per_s", "shuffle_bytes_per_s")


def timed_step_module() -> str:
    """The model of a step's time as an ES module."""
    return printed_module((layer_time, timed_step), ("timed_step",))


def attained_rows() -> dict[str, Any]:
    """Rows by software, chip and number format: the usual software on all chips, and all that
    presets use on theirs and on H100.

    `attention_flops_per_s` is of heads of 128; networks are shares.
    """
    rows: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for software, chip in _wanted():
        for dtype in DTYPES:
            if getattr(chip, dtype) is not None:
                row = _row(software, chip, dtype)
                rows.setdefault(software, {}).setdefault(chip.name, {})[dtype] = row
    shared = dict(rows[SOFTWARE]["h100-sxm-80gb"]["bf16"])
    for chips in rows.values():
        for formats in chips.values():
            for dtype, row in formats.items():
                formats[dtype] = {k: v for k, v in row.items() if shared.get(k, "") != v}
    return {"usual": SOFTWARE, "shared": shared, "rows": rows}


def _wanted() -> Iterator[tuple[str, catalog.Accelerator]]:
    for chip in catalog.ACCELERATORS.values():
        yield SOFTWARE, chip
    for software in known_software():
        yield software, catalog.accelerator("h100-sxm-80gb")
    for preset in catalog.PRESETS.values():
        if isinstance(preset, catalog.TrainingPreset):
            yield software_of(preset.run), preset.run.accelerator


def _row(software: str, chip: catalog.Accelerator, dtype: str) -> dict[str, Any]:
    run = _stub(software, chip, dtype)
    rates = asdict(attained(run))
    for name in WITHOUT_NETWORK:
        del rates[name]
    network = run.network.bandwidth_bytes_per_s
    efa = replace(run, network=catalog.link("efa-v2-p5"))
    sharing = efa.network.bandwidth_bytes_per_s
    return {
        **rates,
        "network_share": attained(run).network_bytes_per_s / network,
        "efa_share": attained(efa).network_bytes_per_s / sharing,
        "shuffle_share": constants()["shuffle_share.all"].value,
        "framework": run.framework,
        "framework_class": run.framework if run.framework in OWN_CLASS else None,
        "dense_class": class_of(run),
        "quantized": float(run.dtype in ("fp8", "fp4")),
    }


def _stub(software: str, chip: catalog.Accelerator, dtype: str) -> DescribedRun:
    """A dense model with wide heads on one GPU."""
    shape = replace(catalog.model("llama-3-8b").shape, head_dim=WIDE_HEAD)
    parallel = layout(nodes=1, gpus_per_node=1)
    setup = TrainingSetup(shape=shape, parallel=parallel, microbatches=1, sequence=4096)
    return described(setup, chip, catalog.link("ib-ndr"), dtype, software)
