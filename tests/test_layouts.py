"""The layouts that the tools offer by name."""

from __future__ import annotations

import json

import pytest

from figgen import catalog
from figgen.models.machine.layout import layout
from figgen.scenarios.tools.data import NamedLayout, layouts, layouts_json

BY_NAME = {found["name"]: found for found in layouts()}


def laid_out(given: NamedLayout) -> dict[str, int]:
    found = layout(
        nodes=given["nodes"],
        gpus_per_node=given["gpus"],
        tp=given["tp"],
        cp=given["cp"],
        ep=given["ep"],
        etp=given["etp"],
        pp=given["pp"],
        order=given["order"],
    )
    return {axis: getattr(found, axis) for axis in ("tp", "cp", "dp", "pp", "ep", "etp", "edp")}


def test_every_map_of_the_catalog_is_offered_with_both_of_its_grids() -> None:
    maps = [p for p in catalog.PRESETS.values() if isinstance(p, catalog.MapPreset)]
    assert len(maps) >= 7
    for preset in maps:
        axes = ("tp", "cp", "dp", "pp", "ep", "etp", "edp")
        assert laid_out(BY_NAME[preset.name]) == {axis: getattr(preset, axis) for axis in axes}


@pytest.mark.parametrize(
    ("name", "world", "tp", "cp", "dp", "pp"),
    [
        ("llama-3-405b-8k-16384", 16384, 8, 1, 128, 16),  # arXiv:2407.21783, table 4
        ("llama-3-405b-131k", 16384, 8, 16, 8, 16),  # the same
        ("gpt-1t", 3072, 8, 1, 6, 64),  # arXiv:2104.04473, table 1
        ("mt-nlg-530b", 2240, 8, 1, 8, 35),  # arXiv:2201.11990
    ],
)
def test_published_layout(name: str, world: int, tp: int, cp: int, dp: int, pp: int) -> None:
    found = BY_NAME[name]
    sizes = laid_out(found)
    assert found["nodes"] * found["gpus"] == world
    assert [sizes[axis] for axis in ("tp", "cp", "dp", "pp")] == [tp, cp, dp, pp]


def test_only_hardware_is_left_out() -> None:
    left_out = {p.name: p.kind for p in catalog.PRESETS.values() if p.name not in BY_NAME}
    assert {name for name, kind in left_out.items() if kind != "hardware"} == set()


def test_a_published_order_is_that_of_the_map_and_megatrons_is_every_others() -> None:
    """Llama 3: arXiv:2407.21783, section 3.3.2; torchtitan's own meshes."""
    orders = {name: found["order"] for name, found in BY_NAME.items()}
    others = {name: order for name, order in orders.items() if order != "megatron"}
    assert others == {
        "llama-3-405b-8k-8192": "llama3", "llama-3-405b-8k-16384": "llama3",
        "llama-3-405b-131k": "llama3", "llama-3-8b-fsdp": "torchtitan",
    }  # fmt: skip


def test_file_is_small_and_says_the_same() -> None:
    text = layouts_json()
    assert json.loads(text) == list(layouts())
    assert len(text) < 8_000
