"""The tools' engine refuses bad input in the words of the models, and loads on the site."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from figgen.models.machine import mesh as meshes
from figgen.models.machine.layout import layout, mesh_of
from figgen.models.machine.mesh import RankMesh
from tests.browser.engine import Ask, differing, said

if TYPE_CHECKING:
    from playwright.sync_api import Page

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


def test_modules_load_on_the_built_site(page: Page, site: str) -> None:
    """The site's security policy lets its pages import the engine from the site itself."""
    page.goto(f"{site}/")
    names = page.evaluate(
        """async (folder) => {
          const [placed, simulated] = await Promise.all(
            ["engine/placement", "models/pipeline/simulate"].map(
              (name) => import(`${folder}/${name}.js`)));
          return [typeof placed.communicators, typeof simulated.simulate];
        }""",
        f"{site}/assets/javascripts",
    )
    assert names == ["function", "function"]
