"""The catalog compared with errata and published tables that were typed in separately."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import prod
from pathlib import Path

import pytest

import figgen.catalog as catalog
from figgen.errors import InputError

TABLES = json.loads((Path(__file__).parents[1] / "oracles/published_tables.json").read_text())

# Dense peaks in TFLOP/s, memory in GB and TB/s, scale-up in GB/s of one direction.
HARDWARE = [
    ("v100-sxm2-32gb", {"fp16": 125}, 32, 0.9, 150),
    ("a100-sxm-80gb", {"tf32": 156, "bf16": 312}, 80, 2.039, 300),
    ("h100-sxm-80gb", {"tf32": 494.7, "bf16": 989.4, "fp8": 1978.9}, 80, 3.35, 450),
    ("h200-sxm-141gb", {"tf32": 494.7, "bf16": 989.4, "fp8": 1978.9}, 141, 4.8, 450),
    ("b200-sxm-hgx", {"tf32": 1125, "bf16": 2250, "fp8": 4500}, 180, 8.0, 900),
]


@pytest.mark.parametrize(("name", "peaks", "memory", "bandwidth", "scale_up"), HARDWARE)
def test_accelerators_have_dense_peaks_and_one_direction(
    name: str, peaks: dict[str, float], memory: float, bandwidth: float, scale_up: float
) -> None:
    accelerator = catalog.accelerator(name)
    for dtype, tflops in peaks.items():
        assert accelerator.peak_flops_per_s(dtype) == pytest.approx(tflops * 1e12)
    assert accelerator.hbm_bytes == memory * 1e9
    assert accelerator.hbm_bandwidth_bytes_per_s == pytest.approx(bandwidth * 1e12)
    assert accelerator.scale_up_bandwidth_bytes_per_s == scale_up * 1e9


SYSTEMS = json.loads((Path(__file__).parents[1] / "oracles/system_totals.json").read_text())


@pytest.mark.parametrize("name", SYSTEMS["totals"])
def test_systems_add_up_to_what_their_pages_print(name: str) -> None:
    accelerator, total = catalog.accelerator(name), SYSTEMS["totals"][name]
    gpus, sparse = total["gpus"], dict(accelerator.sparse_footnote)
    for dtype, pflops in total["sparse"].items():
        assert gpus * sparse[dtype].value / 1e15 == pytest.approx(pflops, rel=0.02)
        if dtype not in total["dense"]:
            assert gpus * accelerator.peak_flops_per_s(dtype) / 1e15 == pytest.approx(
                pflops / 2, rel=0.02
            )
    for dtype, pflops in total["dense"].items():
        assert gpus * accelerator.peak_flops_per_s(dtype) / 1e15 == pytest.approx(pflops)
    assert gpus * accelerator.hbm_bytes / 1e12 == pytest.approx(total["memory"], rel=0.03)
    if "memory_bandwidth" in total:
        bandwidth = gpus * accelerator.hbm_bandwidth_bytes_per_s / 1e12
        assert bandwidth == pytest.approx(total["memory_bandwidth"])
    both = 2 * gpus * accelerator.scale_up_bandwidth_bytes_per_s / 1e12
    assert both == pytest.approx(total["nvlink"], rel=0.005)


@pytest.mark.parametrize("name", sorted(SYSTEMS["clocks"].keys() - {"note"}))
def test_a_peak_is_clock_times_units_times_multiply_adds(name: str) -> None:
    megahertz, units, multiply_adds = SYSTEMS["clocks"][name]
    peak = 2 * megahertz * 1e6 * units * multiply_adds
    assert catalog.accelerator(name).peak_flops_per_s("bf16") == pytest.approx(peak, rel=5e-4)


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        *zip(("ib-edr", "ib-hdr", "ib-ndr", "ib-xdr"), (12.5, 25, 50, 100), strict=True),
        ("pcie4-x16", 31.508),
        ("pcie5-x16", 63.015),
        ("roce-100g", 12.5),
        ("nvlink4-h800", 200),
    ],
)
def test_links_carry_one_direction(name: str, gb_per_s: float) -> None:
    assert catalog.link(name).bandwidth_bytes_per_s == pytest.approx(gb_per_s * 1e9)
    assert catalog.link(name).both_directions_bytes_per_s == pytest.approx(2 * gb_per_s * 1e9)


@pytest.mark.parametrize(("name", "total"), TABLES["checkpoints"]["totals"].items())
def test_models_sum_to_the_released_checkpoint(name: str, total: int) -> None:
    assert catalog.model(name).parameters == total


def test_llama_1_rounds_two_thirds_of_4h_up_to_a_multiple_of_256() -> None:
    for name in ("llama-1-7b", "llama-1-13b", "llama-1-33b", "llama-1-65b"):
        shape = catalog.model(name).shape
        assert shape.ffn_hidden == 256 * -(-(2 * 4 * shape.hidden // 3) // 256)


def test_every_model_is_within_half_a_percent_or_says_why() -> None:
    for model in catalog.MODELS.values():
        off = abs(model.parameters / model.published_parameters.value - 1)
        assert (off <= 0.005) != bool(model.explained), model.name


def test_an_explanation_prints_the_sum_that_the_shape_has() -> None:
    found = re.compile(r"sums to (\d+)(\.\d+)?([MBT])")
    printed = {m.name: found.search(m.explained) for m in catalog.MODELS.values() if m.explained}
    for name, number in printed.items():
        assert number, name
        whole, digits, unit = number.groups(default="")
        parameters = catalog.model(name).parameters / {"M": 1e6, "B": 1e9, "T": 1e12}[unit]
        assert f"{parameters:.{max(len(digits) - 1, 0)}f}" == whole + digits, name


@pytest.mark.parametrize(
    ("name", "world"),
    [("docstring-16", 16), *((f"map-{world}", world) for world in (8, 16, 32, 64, 128, 256))],
)
def test_map_presets_multiply_out_on_both_grids(name: str, world: int) -> None:
    preset = catalog.preset(name)
    assert isinstance(preset, catalog.MapPreset)
    assert preset.world == world
    assert prod((preset.tp, preset.cp, preset.dp, preset.pp)) == world
    assert prod((preset.etp, preset.ep, preset.edp, preset.pp)) == world


def test_the_repaired_sixth_map_has_experts_inside_data_parallel_ranks() -> None:
    preset = catalog.preset("map-256")
    assert isinstance(preset, catalog.MapPreset)
    layout = (preset.tp, preset.pp, preset.dp, preset.ep, preset.etp, preset.edp)
    assert layout == (8, 2, 16, 8, 1, 16)


@pytest.mark.parametrize(
    ("name", "scale_up", "node"),
    [
        ("a100-hdr", 300, 200),
        ("h100-ndr", 450, 400),
        ("h200-ndr", 450, 400),
        ("h800-ndr", 200, 400),
        ("b200-ndr", 900, 400),
        ("b300-xdr", 900, 800),
        ("gb200-ndr", 900, 3600),
        ("mi300x-roce", 448, 400),
    ],
)
def test_hardware_presets_pair_a_gpu_with_its_network(
    name: str, scale_up: float, node: float
) -> None:
    preset = catalog.preset(name)
    assert isinstance(preset, catalog.HardwarePreset)
    assert preset.scale_up_bandwidth_bytes_per_s == scale_up * 1e9
    assert preset.node_bandwidth_bytes_per_s == node * 1e9
    assert preset.network_bandwidth_bytes_per_s == node * 1e9 / preset.gpus_per_node
    step_s = 2.1e-6 if name == "mi300x-roce" else 3.4e-6
    assert (preset.scale_up_latency_s, preset.network_latency_s) == pytest.approx((step_s, 14e-6))


@pytest.mark.parametrize(
    ("look_up", "wrong", "right"),
    [
        (catalog.accelerator, "h100-sxm-80g", "h100-sxm-80gb"),
        (catalog.link, "nvlink-4", "nvlink4"),
        (catalog.model, "llama3-405b", "llama-3-405b"),
        (catalog.run, "deepseekv3", "deepseek-v3"),
        (catalog.preset, "map_256", "map-256"),
    ],
)
def test_an_unknown_name_gets_the_one_that_was_meant(
    look_up: Callable[[str], object], wrong: str, right: str
) -> None:
    with pytest.raises(InputError) as raised:
        look_up(wrong)
    assert right in raised.value.nearest
