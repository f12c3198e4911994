"""Values with their provenance, NCCL's constants, and measurements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import figgen.catalog as catalog
from figgen.catalog import Value
from figgen.catalog.hardware import DTYPES
from figgen.catalog.nccl_links import step_latency_s
from figgen.errors import InputError
from figgen.scenarios.tools.data import configurations
from figgen.scenarios.tools.rates import attained_rows

ORACLES = Path(__file__).parents[1] / "oracles"


def all_values() -> Iterator[Value]:
    tables = (catalog.ACCELERATORS, catalog.LINKS, catalog.MODELS, catalog.RUNS)
    for table in tables:
        for entry in table.values():
            yield from dict(entry.facts).values()


def test_every_value_says_where_it_is_from_when_and_how_sure() -> None:
    values = list(all_values())
    assert len(values) > 1500
    for value in values:
        assert value.source
        assert re.fullmatch(r"2026-\d\d", value.seen)
        assert value.confidence in ("read", "secondary", "memory")


def test_every_physical_quantity_from_memory_has_a_range_and_prints_it() -> None:
    hardware = [
        value
        for table in (catalog.ACCELERATORS, catalog.LINKS)
        for entry in table.values()
        for value in dict(entry.facts).values()
        if value.confidence == "memory"
    ]
    assert hardware
    for value in hardware:
        assert value.low is not None
        assert value.high is not None
        assert value.low <= value.value <= value.high
        assert " to " in str(value)


def test_the_disputed_peak_of_b300_prints_with_its_range() -> None:
    fp4 = catalog.accelerator("b300-sxm-hgx").fp4
    assert fp4 is not None
    assert (fp4.low, fp4.value, fp4.high) == (13.125e15, 13.5e15, 14e15)
    assert str(fp4) == "13500 TFLOP/s (13125 TFLOP/s to 14000 TFLOP/s)"


def test_the_memory_of_h800_is_no_slower_than_a_kernel_has_read_it() -> None:
    bandwidth = catalog.accelerator("h800-sxm-80gb").hbm_bandwidth
    assert bandwidth.low == 3000e9  # FlashMLA on H800 SXM5: "up to 3000 GB/s"; PCIe cards have 2.0
    assert bandwidth.value == catalog.accelerator("h100-sxm-80gb").hbm_bandwidth.value


def test_a_certain_value_prints_as_its_datasheet_does() -> None:
    assert str(catalog.accelerator("h100-sxm-80gb").hbm_bandwidth) == "3.35 TB/s"


def test_a_value_with_a_source_of_its_own_does_not_take_that_of_its_entry() -> None:
    link = catalog.link("nvlink4")
    assert link.latency is not None
    assert link.latency.source == "DeepSeek-AI 2025, arXiv:2505.09343, Table 5"
    assert "Machine Learning Engineering" in link.bandwidth.source


def test_no_dense_peak_is_above_its_sparse_footnote() -> None:
    footnotes = 0
    for accelerator in catalog.ACCELERATORS.values():
        for dtype, sparse in accelerator.sparse_footnote:
            if getattr(accelerator, dtype) is not None:
                assert accelerator.peak_flops_per_s(dtype) < 0.8 * sparse.value
                footnotes += 1
    assert footnotes > 30


def test_a_peak_that_a_part_does_not_have_is_an_error_with_those_it_has() -> None:
    with pytest.raises(InputError, match="a100-sxm-80gb has no dense fp8 matrix peak") as raised:
        catalog.accelerator("a100-sxm-80gb").peak_flops_per_s("fp8")
    assert raised.value.expected == "bf16 or fp16 or tf32"


def test_torus_links_add_up_within_a_tenth_of_the_vendor_total() -> None:
    for name in ("tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7"):
        accelerator = catalog.accelerator(name)
        vendor = accelerator.scale_up.vendor_chip_bandwidth
        assert vendor is not None
        ratio = accelerator.scale_up_bandwidth_bytes_per_s / vendor.value
        assert 0.9 <= ratio <= 1


def test_the_range_of_a_torus_link_reaches_the_vendor_total_over_the_ports() -> None:
    for name in ("tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e"):
        accelerator = catalog.accelerator(name)
        link = accelerator.scale_up
        assert link.bandwidth.high is not None
        assert link.vendor_chip_bandwidth is not None
        assert link.bandwidth.high * accelerator.scale_up_ports == link.vendor_chip_bandwidth.value
        assert f"{link.bandwidth.high / 1e9:g} GB/s a link" in link.note


def test_tpus_before_v6e_have_no_fp16_peak() -> None:
    """The comparison that the catalog cites crosses it out; the vendor prints only bf16
    and int8."""
    for name in ("tpu-v4", "tpu-v5e", "tpu-v5p"):
        assert catalog.accelerator(name).fp16 is None
    v4 = catalog.accelerator("tpu-v4")
    assert (v4.hbm_bandwidth.value, v4.hbm_bandwidth.confidence) == (1.2e12, "read")


def test_nccl_constants_equal_those_compiled_from_its_source() -> None:
    oracle = json.loads((ORACLES / "nccl_tuning.json").read_text())["constants"]
    constants = catalog.nccl_tuning().constants
    for key, microseconds in oracle["base_us"].items():
        assert constants.base_latency_s[key] == pytest.approx(microseconds * 1e-6)
    for transport, steps in oracle["step_us"].items():
        for key, microseconds in steps.items():
            found = constants.step_latency_s[transport][key]
            assert found == pytest.approx(microseconds * 1e-6), (transport, key)
    for host, microseconds in oracle["overhead_us"].items():
        assert constants.network_overhead_s[host] == pytest.approx(microseconds * 1e-6)
    for architecture, caps in oracle["caps_gb_s"].items():
        for key, number in caps.items():
            unit = 1 if key == "nvls_efficiency" else 1e9
            assert constants.bandwidth_caps[architecture][key] == pytest.approx(number * unit)


def test_latency_presets_of_the_conventions_are_nccls() -> None:
    tuning = catalog.nccl_tuning()
    assert (tuning.scale_up_latency_s, tuning.network_latency_s) == pytest.approx((3.4e-6, 14e-6))


OWN_STEPS_US = {"tpu-": 1.0, "mi3": 2.1, "trainium": 1.5, "gaudi": 3.4}
"""Latency of a hop: Austin et al. 2025, sharding;

RCCL's tables for its mesh of eight, Ring, Simple; AWS's 1 to 2 µs. Nobody publishes Gaudi's, which
takes NCCL's value and says so.
"""


@pytest.mark.parametrize(
    "name", [n for n in catalog.ACCELERATORS if n.startswith(tuple(OWN_STEPS_US))]
)
def test_a_step_takes_the_latency_of_its_own_link_where_one_is_known(name: str) -> None:
    step_s = next(1e-6 * us for of, us in OWN_STEPS_US.items() if name.startswith(of))
    chip, nic = catalog.accelerator(name), catalog.link("tpu-dcn-v5p")
    assert step_latency_s(replace(chip.scale_up, kind="scale-up")) == pytest.approx(step_s)
    assert catalog.cluster(chip, nic, "bf16", 4).scale_up_latency_s == pytest.approx(step_s)
    found = configurations()["accelerators"][name].get("scale_up_latency_s")
    if name.startswith("gaudi"):
        assert found is None
        assert "NCCL" in chip.note
        return
    assert found == pytest.approx(step_s)
    assert _attained(name, "bf16")["near_latency_s"] == pytest.approx(step_s)


def _attained(chip: str, dtype: str) -> dict[str, Any]:
    """Return what the default software attains on a chip, from the tools' columns."""
    rows = [(c.name, d) for c in catalog.ACCELERATORS.values() for d in DTYPES if getattr(c, d)]
    place = rows.index((chip, dtype))
    return {
        name: column[place] if isinstance(column, list) else column
        for name, column in _attained_columns().items()
    }


@cache
def _attained_columns() -> dict[str, Any]:
    columns: dict[str, Any] = attained_rows()["columns"]
    return columns


CLOCKS_MHZ = json.loads((ORACLES / "system_totals.json").read_text())["clocks"]


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_the_same_silicon_at_a_lower_clock_attains_as_much_less(dtype: str) -> None:
    """The catalog has no measured MI350X; its rates are those of the MI355X times the ratio of
    clocks."""
    slow, fast = (_attained(name, dtype) for name in ("mi350x", "mi355x"))
    ratio = CLOCKS_MHZ["mi350x"][0] / CLOCKS_MHZ["mi355x"][0]
    for rate in ("matmul", "plain", "attention"):
        found = slow[f"{rate}_flops_per_s"] / fast[f"{rate}_flops_per_s"]
        assert found == pytest.approx(ratio, rel=1e-3)
    # Matmuls of experts attain a share of the rate of all others.
    found = slow["matmul_flops_per_s"] * slow["expert_share"]
    found /= fast["matmul_flops_per_s"] * fast["expert_share"]
    assert found == pytest.approx(ratio, rel=1e-3)


def test_a_format_that_nobody_measured_attains_the_share_of_the_one_that_was() -> None:
    """For the chips with both formats, the shares are within 12% of each other."""
    chips = [c for c in catalog.ACCELERATORS.values() if c.measured_bf16]
    shares = {
        (chip.name, name): measured.value / chip.peak_flops_per_s(name)
        for chip in chips
        for name in ("bf16", "fp8")
        if (measured := getattr(chip, f"measured_{name}"))
    }
    both = [chip.name for chip in chips if (chip.name, "fp8") in shares]
    assert len(both) >= 5
    for name in both:
        assert shares[name, "fp8"] == pytest.approx(shares[name, "bf16"], rel=0.12)
    for name in ("mi325x", "mi355x"):
        rates = _attained(name, "fp8")
        peak = catalog.accelerator(name).peak_flops_per_s("fp8")
        assert rates["matmul_flops_per_s"] / peak == pytest.approx(shares[name, "bf16"])


def test_an_unknown_constant_gets_the_one_that_was_meant() -> None:
    with pytest.raises(InputError) as raised:
        catalog.nccl_tuning().link_bandwidth("sm90_nvlnk")
    assert "sm90_nvlink" in raised.value.nearest


@pytest.mark.parametrize(
    ("link", "accelerator", "measurement", "share"),
    [
        ("sm90_nvlink", "h200-sxm-141gb", "h200-all-reduce-ring", 0.02),
        ("sm100_nvlink", "b200-sxm-hgx", "b200-all-reduce-by-gpus-ring", 0.06),
    ],
)
def test_nccl_link_bandwidths_are_near_the_measured_ring(
    link: str, accelerator: str, measurement: str, share: float
) -> None:
    lanes = catalog.accelerator(accelerator).scale_up.lanes
    assert lanes == 18
    measured = catalog.measurement(measurement).points[-1][1]
    modelled = lanes * catalog.nccl_tuning().link_bandwidth(link).value
    assert measured == pytest.approx(modelled, rel=share)


def test_no_measured_ring_is_faster_than_its_link() -> None:
    rings = [m for m in catalog.MEASUREMENTS.values() if m.algorithm == "ring" and m.accelerator]
    assert len(rings) >= 5
    for measurement in rings:
        assert measurement.accelerator is not None
        wire = measurement.accelerator.scale_up_bandwidth_bytes_per_s
        assert max(busbw for _, busbw in measurement.points) < wire


def test_nvlink_sharp_is_measured_above_the_wire() -> None:
    measurement = catalog.measurement("h200-all-reduce-nvls")
    assert measurement.points == ((2**34, 480e9),)
    assert measurement.accelerator is not None
    assert measurement.points[0][1] > measurement.accelerator.scale_up_bandwidth_bytes_per_s


def test_tables_are_read_once() -> None:
    assert catalog.MODELS is catalog.MODELS
    assert catalog.model("deepseek-v3") is catalog.run("deepseek-v3").model


def test_an_unknown_table_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="GPUS"):
        catalog.GPUS  # noqa: B018
