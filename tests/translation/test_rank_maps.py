"""The rank map's arrays of the ranks in a mesh, and how a layout that cannot be is refused.

What a page says of whole layouts is compared in `tests/browser/test_rank_map_model.py`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from figgen.models.machine import mesh as meshes
from figgen.models.machine import placement
from figgen.models.machine.layout import layout
from figgen.models.machine.mesh import RankMesh
from tests.browser.engine import Ask, differing, said
from tests.browser.site import ROOT
from tests.translation.run import imported, ran

PROGRAM = Path(__file__).with_name("rank_maps.js").read_text("utf-8")
ORACLE = ROOT / "tests" / "oracles" / "megatron_rank_groups.json"


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """`ask(suite, cases)`: what a suite of the program returns."""
    scripts = imported(PROGRAM)
    return lambda suite, given: ran(tmp_path, PROGRAM, scripts, {"suite": suite, "given": given})


def small_meshes() -> Iterator[list[int]]:
    """Return meshes of every four sizes with at most 32 ranks, with their axes in each order."""
    for a in range(1, 33):
        for b in range(1, 32 // a + 1):
            for c in range(1, 32 // (a * b) + 1):
                yield from ([a, b, c, d] for d in range(1, 32 // (a * b * c) + 1))


NODE = 6
SUBSETS = ["-".join(s) for n in range(1, 5) for s in itertools.combinations("abcd", n)]


def described_mesh(sizes: list[int]) -> dict[str, Any]:
    mesh = RankMesh(tuple(zip("abcd", sizes, strict=True)))
    return {
        "coordinates": meshes.coordinate_array(mesh).ravel().tolist(),
        "groups": [meshes.group_array(mesh, axes).tolist() for axes in SUBSETS],
        "index": [meshes.group_index(mesh, axes).tolist() for axes in SUBSETS],
        "nodes": [
            placement.nodes_touched(meshes.group_array(mesh, axes), NODE).tolist()
            for axes in SUBSETS
        ],
    }


def test_every_mesh_of_up_to_32_ranks_is_the_same(ask: Ask) -> None:
    cases = list(small_meshes())
    shown = ask("meshes", [[sizes, SUBSETS, NODE] for sizes in cases])
    assert len(cases) > 600
    assert differing(cases, shown, [described_mesh(sizes) for sizes in cases]) == []


def test_groups_are_megatrons_own(ask: Ask) -> None:
    cases = json.loads(ORACLE.read_text("utf-8"))["cases"]
    frozen = [{key: case[key] for key in ("edp", "dense", "expert")} for case in cases]
    assert differing(range(len(cases)), ask("megatron", cases), frozen) == []


BAD_SIZES = (0, -1, 2.5, "8", True, 1e-05, "it's")


def bad_layouts() -> Iterator[dict[str, Any]]:
    cluster = {"nodes": 2, "gpus_per_node": 8}
    for bad, name in itertools.product(BAD_SIZES, ("nodes", "tp", "etp", "dp")):
        yield {**cluster, name: bad}
    for most, name in itertools.product((2**20, 2**20 + 1, 10**15), ("nodes", "cp", "dp")):
        yield {**cluster, name: most}
    yield {**cluster, "tp": 999_983, "cp": 999_979, "pp": 999_961}
    yield {**cluster, "tp": 999_983, "cp": 999_979, "pp": 999_961, "dp": 999_959}
    yield {**cluster, "etp": 999_983, "ep": 999_979, "pp": 16}
    for order in ("megatrn", "MEGATRON", "tp-tp", "tp-cp-xx", "-", "it's", "a\"b'c", "constructor"):
        yield {**cluster, "order": order}


def refusal(given: dict[str, Any]) -> None:
    layout(**given)


def test_a_bad_layout_is_refused_in_the_same_words(ask: Ask) -> None:
    cases = list(bad_layouts())
    expected = [said(refusal, case) for case in cases]
    assert sum(answer is not None for answer in expected) > 40
    assert differing(cases, ask("refusals", cases), expected) == []
