"""The rank map as a cube: where every GPU is, and that both pictures show the same choice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from playwright.sync_api import Page, expect

from figgen.models.machine.mesh import coordinate_array, coordinates_of
from tests.browser.engine import Ask
from tests.browser.rank_map import opened, query_of
from tests.browser.rank_map_cases import expected, laid_out, random_states
from tests.browser.waits import drawn

SUITES = "rank_map_suites.js"
DRAWN = "(canvas) => canvas.toDataURL()"
# A place on the canvas at which only the GPU that is named in words is drawn.
HIT = """async (canvas) => {
  const box = canvas.getBoundingClientRect();
  const frame = () => new Promise(requestAnimationFrame);
  for (let y = 20; y < box.height; y += 6) for (let x = 20; x < box.width; x += 6) {
    canvas.dispatchEvent(new PointerEvent("pointermove",
      { clientX: box.left + x, clientY: box.top + y, pointerType: "mouse", bubbles: true }));
    const rank = /Rank (\\d+),/.exec(canvas.ariaLabel)?.[1];
    if (rank) { await frame(); return [x, y, Number(rank)]; }
  }
  return null;
}"""


def test_every_gpu_is_at_its_coordinates(ask: Ask) -> None:
    states = [state for state in random_states(7, 60) if "rows" in expected(state)]
    assert len(states) > 15
    for state, cube in zip(states, ask("cubes", states), strict=True):
        parallel = laid_out(state)
        cp = parallel.cp
        assert cube["sizes"] == [parallel.tp, cp * parallel.dp, parallel.pp]
        for rank in range(parallel.world_size):
            at = coordinates_of(parallel.dense, rank)
            place = [at["tp"], at["cp"] + cp * at["dp"], at["pp"]]
            point = cube["pointOfRank"][rank]
            assert cube["ranks"][point] == rank
            assert cube["at"][3 * point : 3 * point + 3] == place, (state, rank)


def test_a_large_job_is_a_cube_of_neighbours(ask: Ask) -> None:
    sizes = {"cp": 2, "ep": 1, "etp": None, "dp": None, "order": "megatron"}
    states = [
        {"nodes": 16384, "gpus": 8, "tp": 8, "pp": 16, **sizes},
        {"nodes": 3000, "gpus": 8, "tp": 2, "pp": 3, **sizes},
    ]
    for state, cube in zip(states, ask("cubes", states), strict=True):
        parallel, (x, y, z), joined = laid_out(state), cube["sizes"], cube["joined"]
        assert len(cube["ranks"]) <= x * y * z <= 8192
        assert joined[0] == joined[2] == 1
        at = coordinate_array(parallel.dense)
        names = parallel.dense.names
        tp, cp, dp, pp = (at[:, names.index(axis)] for axis in ("tp", "cp", "dp", "pp"))
        place = np.stack([tp, (cp + parallel.cp * dp) // joined[1], pp], axis=1)
        shown = np.array(cube["at"]).reshape(-1, 3)[cube["pointOfRank"]]
        assert (shown == place).all()
        firsts = np.array(cube["pointOfRank"])[cube["ranks"]]
        assert (firsts == np.arange(len(firsts))).all()


def test_cube_turns_by_key_and_both_pictures_show_the_same_choice(
    page: Page, site: str, axe: Callable[..., list[str]]
) -> None:
    opened(page, site, "?nodes=4&tp=4&pp=2")
    section = page.get_by_role("region", name="Cube")
    section.scroll_into_view_if_needed()
    cube = page.locator(".map-cube")
    cube.wait_for()
    assert "TP 4 across, CP 1 times DP 4 deep, PP 2 up" in str(cube.get_attribute("aria-label"))
    cube.focus()
    drawn(page)
    seen = [cube.evaluate(DRAWN)]
    for key in ("ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        drawn(page)
        seen.append(cube.evaluate(DRAWN))
    assert len(set(seen)) == 3
    found = cube.evaluate(HIT)
    assert found
    x, y, rank = found
    page.locator(".map-details h2", has_text=f"Rank {rank}").wait_for()
    cube.click(position={"x": x, "y": y})
    page.locator(".map-details h2", has_text=f"Rank {rank}").wait_for()
    assert f"rank={rank}" in query_of(page)
    page.locator(".map-svg [data-rank='9']").hover()
    page.wait_for_function(
        "() => document.querySelector('.map-cube').ariaLabel.includes('Rank 9,')"
    )
    legend = page.get_by_role("region", name="Groups", exact=True)
    page.locator("[name=tp]").fill("2")
    page.get_by_role("button", name="All 16").click()
    expect(legend.get_by_role("listitem").filter(visible=True)).to_have_count(16)
    assert axe(page, without=("color-contrast",)) == []


def test_the_cube_comes_when_two_frames_are_told_at_once(far_first: Page, site: str) -> None:
    page = opened(far_first, site)
    page.locator("h2", has_text="cube").scroll_into_view_if_needed()
    page.locator(".map-cube").wait_for()
