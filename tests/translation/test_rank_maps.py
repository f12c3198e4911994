"""The printed meshes, layouts and placement, and their groups in the rank map's arrays.

Counts, ranks and texts are Python's, and so are refusals.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.guide.tool_scripts import printed_models
from figgen.models.machine import mesh as meshes
from figgen.models.machine import placement
from figgen.models.machine.frameworks import AXES, CONVENTIONS, convention
from figgen.models.machine.layout import MOST_RANKS, ParallelLayout, layout, mesh_of
from figgen.models.machine.mesh import RankMesh
from figgen.models.machine.nearest import Sizes, problem
from figgen.publish.scripts import FOLDER
from tests.browser.engine import Ask, differing, said
from tests.browser.site import ROOT
from tests.translation.run import ENGINE, ran

PROGRAM = Path(__file__).with_name("rank_maps.js").read_text("utf-8")
ORACLE = ROOT / "tests" / "oracles" / "megatron_rank_groups.json"


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """`ask(suite, cases)`: what a suite of the program returns."""
    hand = {
        f"{FOLDER}/{name}": (ENGINE.parent / name).read_text("utf-8")
        for name in ("engine/records.js", "tools/map_ranks.js")
    }
    scripts = {**hand, **printed_models({**hand, "main.js": PROGRAM})}
    return lambda suite, given: ran(tmp_path, PROGRAM, scripts, {"suite": suite, "given": given})


def small_meshes() -> Iterator[list[int]]:
    """Return meshes of every four sizes with at most 32 ranks, with their axes in each order."""
    for a in range(1, 33):
        for b in range(1, 32 // a + 1):
            for c in range(1, 32 // (a * b) + 1):
                yield from ([a, b, c, d] for d in range(1, 32 // (a * b * c) + 1))


SUBSETS = ["-".join(s) for n in range(1, 5) for s in itertools.combinations("abcd", n)]


def described_mesh(sizes: list[int]) -> dict[str, Any]:
    mesh = RankMesh(tuple(zip("abcd", sizes, strict=True)))
    ranks = range(mesh.world_size)
    return {
        "world_size": mesh.world_size,
        "coordinates": meshes.coordinate_array(mesh).ravel().tolist(),
        "by_name": [meshes.coordinates_of(mesh, rank) for rank in ranks],
        "back": list(ranks),
        "strides": [[meshes.axis_size(mesh, a), meshes.axis_stride(mesh, a)] for a in "abcd"],
        "groups": [meshes.group_array(mesh, axes).tolist() for axes in SUBSETS],
        "index": [meshes.group_index(mesh, axes).tolist() for axes in SUBSETS],
    }


def test_every_mesh_of_up_to_32_ranks_is_the_same(ask: Ask) -> None:
    cases = list(small_meshes())
    shown = ask("meshes", [[sizes, SUBSETS] for sizes in cases])
    assert len(cases) > 600
    assert differing(cases, shown, [described_mesh(sizes) for sizes in cases]) == []


def orders() -> list[str]:
    """Return every sequence of axes, every framework, and likely typos."""
    sequences = (s for n in range(1, 6) for s in itertools.permutations(AXES, n))
    typed = "megatrn,MEGATRON,torchtitan ,llama,tp-tp,tp-cp-xx,tp_cp,-,tp--pp,deepspeed-moe,it's"
    other = ["", "a\"b'c", "tp-\n", "nanotron-mo", "constructor"]
    return [*CONVENTIONS, *("-".join(s) for s in sequences), *typed.split(","), *other]


def described_order(order: str) -> dict[str, Any]:
    found = convention(order)
    return {
        "name": found.name,
        "label": found.label,
        "order": found.order,
        "etp": found.etp,
        "etp_fixed": found.etp_fixed,
    }


def test_frameworks_and_communicators_have_the_same_names(ask: Ask) -> None:
    shown = ask("names", None)
    expected = [described_order(name) for name in CONVENTIONS]
    assert differing(CONVENTIONS, shown["conventions"], expected) == []
    assert list(shown["labels"].items()) == list(placement.LABELS.items())
    assert shown["most_ranks"] == MOST_RANKS


def test_every_order_is_read_the_same(ask: Ask) -> None:
    cases = orders()
    assert len(cases) > 325
    expected = [said(described_order, order) for order in cases]
    assert differing(cases, ask("orders", cases), expected) == []


def summary(found: placement.Communicator) -> dict[str, Any]:
    fields = {name: getattr(found, name) for name in found.__slots__}
    return {**fields, "inter_node_share": found.inter_node_share}


def described_layout(given: dict[str, Any]) -> dict[str, Any]:
    found = layout(**given)

    def crossings(axes: str) -> Any:
        rows = meshes.group_array(mesh_of(found, axes), axes)
        return [
            placement.nodes_touched(rows, found.gpus_per_node).tolist(),
            placement.inter_node_links(rows, found.gpus_per_node).tolist(),
        ]

    sizes = ("tp", "cp", "dp", "pp", "ep", "etp", "edp", "order", "world_size", "has_experts")
    combined = ("tp-cp", "tp-dp-cp", "etp-ep", "ep-edp")
    return {
        "sizes": {name: getattr(found, name) for name in sizes},
        "dense": found.dense.axes,
        "expert": found.expert.axes if found.has_experts else None,
        "communicators": list(map(summary, placement.communicators(found))),
        "combined": [
            said(lambda axes: summary(placement.communicator(found, axes)), axes)
            for axes in combined
        ],
        "warnings": placement.warnings(found),
        "crossings": [said(crossings, axes) for axes in placement.LABELS],
    }


def divisor(rng: np.random.Generator, number: int) -> int:
    return int(rng.choice([d for d in range(1, number + 1) if number % d == 0]))


def fitting(rng: np.random.Generator, nodes: int, gpus_per_node: int) -> dict[str, Any]:
    """Return sizes whose products divide the world, so that most of them are valid."""
    world = nodes * gpus_per_node
    pp = divisor(rng, world)
    tp = divisor(rng, world // pp)
    ep = divisor(rng, world // pp)
    given = {"nodes": nodes, "gpus_per_node": gpus_per_node, "pp": pp, "tp": tp, "ep": ep}
    given["cp"] = divisor(rng, world // pp // tp)
    if rng.random() < 0.6:
        given["etp"] = divisor(rng, world // pp // ep)
    if rng.random() < 0.3:
        given["dp"] = world // pp // tp // given["cp"]
    return given


def valid_layouts(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    names = [*CONVENTIONS, *("-".join(order) for order in itertools.permutations(AXES))]
    for order in names * 2:
        yield {**fitting(rng, int(rng.integers(1, 5)), int(rng.integers(1, 9))), "order": order}


def any_layouts(rng: np.random.Generator, count: int) -> Iterator[dict[str, Any]]:
    """Return whatever a reader may type for up to four nodes; nearly all of it does not fit."""
    names = [*CONVENTIONS, "tp-pp", "pp-dp-tp", "ep-tp-dp-pp-cp", "dp-cp"]
    for _ in range(count):
        given = {
            axis: int(rng.integers(1, 9)) for axis in ("gpus_per_node", "tp", "cp", "pp", "ep")
        }
        given |= {axis: int(rng.integers(1, 9)) for axis in ("etp", "dp") if rng.random() < 0.4}
        yield {**given, "nodes": int(rng.integers(1, 5)), "order": str(rng.choice(names))}


def test_layouts_that_fit_have_the_same_meshes_and_communicators(ask: Ask) -> None:
    cases = list(valid_layouts(np.random.default_rng(1)))
    expected = [said(described_layout, given) for given in cases]
    assert sum("error" not in answer for answer in expected) > len(cases) // 2
    assert differing(cases, ask("layouts", cases), expected) == []


def test_layouts_that_do_not_fit_get_the_same_message_and_nearest(ask: Ask) -> None:
    cases = list(any_layouts(np.random.default_rng(2), 400))
    expected = [said(described_layout, given) for given in cases]
    assert sum("error" in answer for answer in expected) > len(cases) // 2
    assert differing(cases, ask("layouts", cases), expected) == []


SMALL_WORLDS = sorted({nodes * gpus for nodes in range(1, 5) for gpus in (1, 6, 8)})


def test_every_size_up_to_eight_on_every_small_cluster_is_refused_for_the_same_reason(
    ask: Ask,
) -> None:
    largest, chosen = 8, CONVENTIONS["megatron"]
    sizes = range(1, largest + 1)

    def text(world: int, tp: int, cp: int, pp: int, ep: int, etp: int | None = None) -> str:
        error = problem(world, Sizes(tp=tp, cp=cp, pp=pp, ep=ep, etp=etp), chosen)
        return f"{error.what}|{error.expected}|{error.got or 'null'}" if error else "fits"

    expected = []
    for world in SMALL_WORLDS:
        texts: list[str] = []
        for dense in itertools.product(sizes, repeat=3):
            # Dense layers are looked at first: what is wrong there is said for all experts alike.
            if world % math.prod(dense):
                texts += [text(world, *dense, 1, 1)] * largest**2
            else:
                texts += [text(world, *dense, *e) for e in itertools.product(sizes, repeat=2)]
        expected.append(hashlib.sha256("\n".join(texts).encode()).hexdigest())
    shown = ask("problems", [SMALL_WORLDS, largest, "megatron"])
    assert differing(SMALL_WORLDS, shown, expected) == []


def large_layouts(rng: np.random.Generator) -> list[dict[str, Any]]:
    clusters = [(2048, 8), (16384, 8), (1000, 8), (252, 8), (4096, 4), (64, 72), (625, 16), (17, 7)]
    return [
        {**fitting(rng, nodes, gpus), "order": order}
        for nodes, gpus in clusters
        for order in ("megatron", "megatron-tp-pp-dp", "nanotron-moe")
    ]


def test_groups_of_large_clusters_are_the_same(ask: Ask) -> None:
    def digests(found: ParallelLayout) -> dict[str, Any]:
        return {
            axes: hashlib.sha256(
                meshes.group_array(mesh_of(found, axes), axes).astype("<i4").tobytes()
            ).hexdigest()
            for axes in (*placement.LABELS, "tp-cp", "tp-pp", "etp-ep")
        }

    cases, expected = [], []
    for given in large_layouts(np.random.default_rng(3)):
        try:
            found = layout(**given)
        except InputError:
            continue
        cases.append(given)
        summaries = list(map(summary, placement.communicators(found)))
        expected.append({"digests": digests(found), "communicators": summaries})
    assert len(cases) >= 8
    assert differing(cases, ask("large", cases), expected) == []


def test_large_clusters_get_the_same_nearest_layouts(ask: Ask) -> None:
    rng = np.random.default_rng(4)
    clusters = [(2048, 8), (1000, 8), (126, 8), (96, 8), (64, 72), (13, 8)]
    cases = [
        {"nodes": nodes, "gpus_per_node": gpus, "order": order}
        | {axis: int(rng.integers(1, 40)) for axis in ("tp", "cp", "pp", "ep", "etp")[:axes]}
        for nodes, gpus in clusters
        for order, axes in (("megatron", 5), ("megatron", 4), ("megatron-tp-pp-dp", 4))
    ]
    expected = [said(described_layout, given) for given in cases]
    assert differing(cases, ask("layouts", cases), expected) == []


def test_groups_are_megatrons_own(ask: Ask) -> None:
    cases = json.loads(ORACLE.read_text("utf-8"))["cases"]
    frozen = [{key: case[key] for key in ("edp", "dense", "expert")} for case in cases]
    assert differing(range(len(cases)), ask("megatron", cases), frozen) == []


BAD_SIZES = (0, -1, 2.5, "8", True, 1e-05, "it's")


def messages() -> Iterator[tuple[str, Any]]:
    cluster = {"nodes": 2, "gpus_per_node": 8}
    for bad in BAD_SIZES:
        for name in ("nodes", "tp", "etp", "dp"):
            yield "layout", {**cluster, name: bad}
    for most, name in itertools.product((2**20, 2**20 + 1, 10**15), ("nodes", "cp", "dp")):
        yield "layout", {**cluster, name: most}
    yield "layout", {**cluster, "tp": 999_983, "cp": 999_979, "pp": 999_961}
    yield "layout", {**cluster, "tp": 999_983, "cp": 999_979, "pp": 999_961, "dp": 999_959}
    yield "layout", {**cluster, "etp": 999_983, "ep": 999_979, "pp": 16}
    for axes in ("tp-dp", "dp-cp-xx", "tp-ep", "tp-etp", "", "tp-tp", "etp-edp", "tpp"):
        yield "mesh_of", [cluster, axes]
        yield "mesh_of", [{**cluster, "order": "llama3"}, axes]
        yield "group_array", axes
    yield from (("rank_mesh", axes) for axes in ([], [["a", 2], ["a", 3]], [["a", 0]], [["a", 2]]))
    for at in ({"tp": 2, "dp": 0}, {"tp": 1}, {"pp": 0, "tp": 0}, {"tp": -1, "dp": 1}, {}):
        yield "rank_of", at
    yield from (("coordinates_of", rank) for rank in (-1, 0, 5, 6))


def message_of(kind: str, given: Any) -> None:
    square = RankMesh((("tp", 2), ("dp", 3)))
    match kind:
        case "layout":
            layout(**given)
        case "mesh_of":
            mesh_of(layout(**given[0]), given[1])
        case "rank_mesh":
            RankMesh(tuple(map(tuple, given)))
        case "group_array":
            meshes.group_array(square, given)
        case "rank_of":
            meshes.rank_of(square, given)
        case "coordinates_of":
            meshes.coordinates_of(square, given)


def test_bad_input_is_refused_in_the_same_words(ask: Ask) -> None:
    cases = list(messages())
    expected = [said(message_of, *case) for case in cases]
    assert sum(answer is not None for answer in expected) > 50
    assert differing(cases, ask("messages", cases), expected) == []
