"""The data served to pages is read back as the catalog has it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.errors import InputError
from figgen.models.step.attained import Attained
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.runs.rates import rate_row
from figgen.scenarios.runs.software import known_software
from figgen.scenarios.runs.step_as_run import described
from figgen.scenarios.tools.data import configurations
from figgen.scenarios.tools.page_job import page_job
from figgen.scenarios.tools.page_plan import page_plan
from figgen.scenarios.tools.served import (
    ServedCatalog,
    served,
    served_chip,
    served_network,
    served_row,
)
from figgen.scenarios.tools.served_shape import served_shape
from tests.thorough import one_in

HEADS = {"head_dim": 128}


@pytest.fixture(scope="module")
def pages() -> ServedCatalog:
    return served(json.loads(json.dumps(configurations())))


def test_shapes_chips_and_networks_are_those_of_the_catalog(pages: ServedCatalog) -> None:
    for name, model in catalog.MODELS.items():
        assert served_shape(pages.models[name]) == model.shape
    for name, chip in catalog.ACCELERATORS.items():
        assert served_chip(pages, name, "bf16") == catalog.chip_of(chip)
    for name, link in catalog.LINKS.items():
        assert served_network(pages, name) == catalog.network_of(link)
    with pytest.raises(InputError, match="did you mean h100-sxm-80gb"):
        served_chip(pages, "h100-sxm-80g", "bf16")


def test_rates_are_those_of_the_software_on_the_chip(pages: ServedCatalog) -> None:
    setup = training_step(model="llama-3-8b", nodes=1, gpus_per_node=1).setup
    setup = replace(setup, shape=replace(setup.shape, **HEADS))
    cases = [(s, c, d) for s in known_software() for c in catalog.ACCELERATORS for d in DTYPES]
    refused = 0
    for software, name, dtype in one_in(7, cases):
        chip = catalog.ACCELERATORS[name]
        if getattr(chip, dtype) is None:
            continue
        run = described(setup, chip, catalog.link("ib-ndr"), dtype, software)
        try:
            wanted = asdict(rate_row(run))
        except InputError as error:
            with pytest.raises(InputError, match=error.what):
                served_row(pages, software, catalog.chip_of(chip), dtype)
            refused += 1
            continue
        found = asdict(served_row(pages, software, catalog.chip_of(chip), dtype))
        assert found.pop("rates").keys() == Attained.__dataclass_fields__.keys()
        del wanted["rates"]
        assert found == wanted
    assert refused


def test_a_page_times_a_job_as_the_command_line_does(pages: ServedCatalog) -> None:
    choices = {"model": "mixtral-8x7b", "nodes": 4, "gpus_per_node": 8, "ep": 8, "dtype": "fp8"}
    found, wanted = page_job(pages, choices), training_step(**choices)
    assert found.setup == wanted.setup
    assert found.cluster == wanted.cluster
    assert found.timed is not None
    assert found.timed.seconds.total_s == wanted.predicted.step_time_s
    assert found.compute_efficiency == wanted.compute_efficiency
    assert found.wide_flops_per_s == wanted.wide_flops_per_s
    known = wanted.predicted.residuals
    assert found.predicted is not None
    assert found.predicted.interval_of == known.name
    assert found.predicted.residuals == (known.low, known.high)


def test_a_chip_of_ones_own_has_shares_of_its_numbers(pages: ServedCatalog) -> None:
    """Doubling the peak and the bandwidths doubles the rates."""
    chip = {"peak_flops_per_s": 1e15, "scale_up_bandwidth_bytes_per_s": 4e11}
    choices = {"model": "llama-3-8b", "nodes": 2, "gpus_per_node": 8, "accelerator": chip}
    bare = page_job(pages, choices)
    assert bare.timed is None
    assert bare.compute_efficiency == 0.5
    told = {**choices, "accelerator": {**chip, "memory_bandwidth_bytes_per_s": 3e12}}
    one = page_job(pages, told)
    twice = page_job(
        pages, {**choices, "accelerator": {k: 2 * v for k, v in told["accelerator"].items()}}
    )  # type: ignore[attr-defined]
    assert one.timed is not None
    for field in ("matmul_flops_per_s", "memory_bytes_per_s", "scale_up_bytes_per_s"):
        assert getattr(twice.attained, field) == pytest.approx(2 * getattr(one.attained, field))


def test_a_batch_that_is_not_given_is_the_usual_one(pages: ServedCatalog) -> None:
    choices = {"model": "llama-3-8b", "nodes": 2, "gpus_per_node": 8, "sequence": 4096}
    assert page_plan(pages, choices).job.global_batch == 2**22 / 4096
    assert page_plan(pages, {**choices, "global_batch": 48}).job.global_batch == 48
    with pytest.raises(InputError, match="global_batch: expected a whole number"):
        page_plan(pages, {**choices, "global_batch": 0})
