"""What software attains on chips, for the live tools: what rows share, and what each has more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.catalog.rates import constants
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.machine.layout import layout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.predicted import dense_class, framework_class
from figgen.scenarios.runs.rates import Terms, terms_of
from figgen.scenarios.runs.software import SOFTWARE, known_software
from figgen.scenarios.runs.step_as_run import described

WIDE_HEAD = 128
OF_THE_CHIP = {
    "product_flops_per_s": "product_share", "plain_flops_per_s": "plain_share",
    "attention_flops_per_s": "attention_share",
}  # fmt: skip
"""Rates of a datasheet, which stand apart from what software makes of them."""

WITHOUT_NETWORK = ("network_bytes_per_s", "shuffle_bytes_per_s", "near_shuffle_bytes_per_s")

OWN = "own"
OWN_PEAKS = {"bf16": 1.0, "fp16": 1.0, "tf32": 0.5, "fp8": 2.0, "fp4": 4.0}
"""Peaks of a reader's chip that says one number, over that of 16 bits."""


Rows = dict[str, dict[str, Mapping[str, Any]]]
"""By chip and number format: what is attained, by name."""


def attained_rows() -> dict[str, Any]:
    """What the usual software attains on every chip in each of its formats, and all other software
    beside it, as `_beside` tells.

    The rows of "own" are shares of the numbers that a reader gives: the peak of the job's format,
    memory's and links' bandwidth.
    A row has what differs from `shared`, null is a format that software does not take on a chip.
    Rates of products are the datasheet's, beside the share of them that is attained.
    `attention_flops_per_s` is of heads of 128; networks are shares.
    """
    usual = _all_rows(SOFTWARE)
    shared = dict(usual["h100-sxm-80gb"]["bf16"])
    others = {name: _beside(usual, _all_rows(name)) for name in known_software()[1:]}
    rows = {
        chip: {dtype: _differences(row, shared) for dtype, row in formats.items()}
        for chip, formats in usual.items()
    }
    return {"usual": SOFTWARE, "shared": shared, "rows": rows, "others": others}


def _all_rows(software: str) -> Rows:
    found: Rows = {}
    for chip in (*catalog.ACCELERATORS.values(), _own_chip()):
        for dtype in DTYPES:
            if getattr(chip, dtype) is not None:
                row: Mapping[str, Any] = {}
                with suppress(InputError):  # FP8 on a chip without
                    row = _row(software, chip, dtype)
                found.setdefault(chip.name, {})[dtype] = row
    return found


def _beside(usual: Rows, rows: Rows) -> dict[str, Any]:
    """What rows of other software have instead of the usual.

    `kinds` are what they have, that of the H100 in BF16 first; `rows` has the number of each row's
    kind, a list for each chip in the order of the usual rows.
    """
    kinds: list[dict[str, Any]] = []
    numbers: dict[str, dict[str, int | None]] = {}
    for chip, formats in sorted(rows.items(), key=lambda at: at[0] != "h100-sxm-80gb"):
        for dtype, row in formats.items():
            kind = _differences(row, usual[chip][dtype]) if row else None
            if kind is not None and kind not in kinds:
                kinds.append(kind)
            number = None if kind is None else kinds.index(kind)
            numbers.setdefault(chip, {})[dtype] = number
    return {
        "kinds": kinds,
        "rows": [[numbers[chip][dtype] for dtype in usual[chip]] for chip in usual],
    }


def _differences(row: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if base[key] != value}


# More than there are rows: of a changed chip only its own are made again.
@remembered(4096)
def _row(software: str, chip: catalog.Accelerator, dtype: str) -> Mapping[str, Any]:
    run = _stub(software, chip, dtype)
    unit = chip.peak_flops_per_s(dtype) if chip.name == OWN else 1.0
    terms, rates = terms_of(run), dict[str, Any]()
    for name, (base, names) in terms.items():
        share = _share(names)
        if name in OF_THE_CHIP:
            rates |= {name: base / unit, OF_THE_CHIP[name]: share}
        elif name == "expert_flops_per_s":  # the datasheet's rate of other matmuls
            rates["expert_share"] = share
        elif name not in WITHOUT_NETWORK:
            rates[name] = base * share
    efa = replace(run, network=catalog.link("efa-v2-p5"))
    return {
        **rates,
        "network_share": _network_share(terms),
        "efa_share": _network_share(terms_of(efa)),
        "shuffle_share": constants()["shuffle_share.all"].value,
        "framework": run.framework,
        "framework_class": framework_class(run),
        "dense_class": dense_class(chip),
        "quantized": float(run.dtype in ("fp8", "fp4")),
    }


def _share(names: Iterable[str]) -> float:
    return prod(constants()[name].value for name in names)


def _network_share(terms: Terms) -> float:
    return _share(terms["network_bytes_per_s"][1])


def _own_chip() -> catalog.Accelerator:
    """A chip of which nothing is known but that it has numbers."""
    like = catalog.accelerator("h100-sxm-80gb")

    def one(size: float) -> catalog.Value:
        return catalog.Value(value=size, unit="1", source="", seen="", confidence="")

    peaks: dict[str, Any] = {dtype: one(peak) for dtype, peak in OWN_PEAKS.items()}
    return replace(
        like,
        name=OWN,
        vendor=OWN,
        hbm_bandwidth=one(1.0),
        measured_bf16=None,
        measured_fp8=None,
        scale_up=replace(like.scale_up, bandwidth=one(1.0)),
        scale_up_ports=1,
        **peaks,
    )


def _stub(software: str, chip: catalog.Accelerator, dtype: str) -> DescribedRun:
    return described(_dense_on_one(), chip, catalog.link("ib-ndr"), dtype, software)


@remembered(1)
def _dense_on_one() -> TrainingSetup:
    """A dense model with wide heads on one GPU."""
    shape = replace(catalog.model("llama-3-8b").shape, head_dim=WIDE_HEAD)
    parallel = layout(nodes=1, gpus_per_node=1)
    return TrainingSetup(shape=shape, parallel=parallel, microbatches=1, sequence=4096)
