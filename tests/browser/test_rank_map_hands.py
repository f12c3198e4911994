"""The rank map by keyboard, pointer and touch, on desktop and phone, with assistive technology."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from figgen.models.machine.layout import layout, mesh_of
from figgen.models.machine.mesh import groups
from tests.browser.rank_map import MAP, opened, query_of
from tests.browser.waits import drawn


def test_keyboard_walks_from_preset_to_picture_and_back(page: Page, site: str) -> None:
    opened(page, site, "?nodes=4&tp=4&pp=2")
    page.locator("[name=tp]").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.map-box')"):
            break
    box = page.locator(".map-box")
    assert box.evaluate("(b) => b === document.activeElement && b.role") == "grid"

    def at(place: str) -> None:
        expect(cursor).to_have_attribute("aria-label", re.compile(f"^{place}"))

    cursor = page.locator("#map-cursor")
    expect(box).to_have_attribute("aria-activedescendant", "map-cursor")
    at("Rank 0, node 0, GPU 0: tp 0, cp 0, dp 0, pp 0.*TP group 0: 0, 1, 2, 3")
    page.keyboard.press("ArrowRight")
    at("Rank 1,")
    page.keyboard.press("End")
    page.keyboard.press("PageDown")
    at("Rank 15, node 1, GPU 7")
    page.keyboard.press("Enter")
    expect(page.locator(".map-details h2")).to_have_text("Rank 15")
    page.keyboard.press("Control+End")
    at("Rank 31,")
    page.keyboard.press("i")
    page.locator(".map-entry[aria-pressed=true]").wait_for()
    assert query_of(page).endswith("rank=15&group=7")
    expect(page.locator(".map-svg rect.map-plain")).to_have_count(28)
    expect(page.locator(".tool-live[role=status]")).to_contain_text("32 GPUs")
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.matches('.map-box')")


def test_pointing_at_a_gpu_frames_its_groups_and_lists_them(page: Page, site: str) -> None:
    opened(page, site, "?nodes=4&tp=4&pp=2&show=pp")
    parallel = layout(nodes=4, gpus_per_node=8, tp=4, pp=2)
    page.locator(".map-svg [data-rank='13']").hover()
    page.locator(".map-details h2", has_text="Rank 13").wait_for()
    listed = page.locator(".map-groups li").all_inner_texts()
    pp = next(g for g in groups(mesh_of(parallel, "pp"), "pp") if 13 in g)
    assert any(", ".join(map(str, pp)) in text for text in listed)
    framed = """() => {
      const [marks, svg] = [".map-marks", ".map-svg"].map((name) => document.querySelector(name));
      const context = marks.getContext("2d"), scale = marks.width / marks.clientWidth;
      return [...svg.querySelectorAll("[data-rank] rect")].flatMap((cell, rank) => {
        const box = cell.getBBox();
        const [x, y] = [(box.x + 0.4) * scale, (box.y + box.height / 2) * scale];
        const dot = context.getImageData(x, y, 1, 1);
        return dot.data[3] ? [rank] : [];
      });
    }"""
    drawn(page)
    names = ("tp", "dp", "pp", "etp", "edp")
    all_groups = [group for name in names for group in groups(mesh_of(parallel, name), name)]
    around = {rank for group in all_groups if 13 in group for rank in group}
    assert set(page.evaluate(framed)) == around
    tip = page.locator(".map-tip")
    expect(tip).to_have_text(re.compile("^Rank 13"))
    page.keyboard.press("Escape")
    page.mouse.move(2, 2)
    page.locator(".map-details h2", has_text="No GPU chosen").wait_for()
    expect(tip).to_be_hidden()
    page.locator(".map-box").focus()
    page.keyboard.press("ArrowRight")
    tip.wait_for()
    page.keyboard.press("Escape")
    drawn(page)
    assert not tip.is_visible()


def test_large_cluster_is_a_canvas_that_zooms_pans_and_follows_the_palette(
    page: Page, site: str
) -> None:
    page.emulate_media(color_scheme="light")
    opened(page, site, "?preset=llama-3-405b-8k-16384&show=pp")
    assert page.locator(".map-svg").count() == 0
    corner = """() => {
      const canvas = document.querySelector(".map-cells");
      return [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data]
        .reduce((sum, part, at) => (sum * 31 + part * (at % 97)) % 1000003, 7);
    }"""
    whole = page.evaluate(corner)
    expect(page.locator(".map-overview")).to_be_hidden()
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    drawn(page)
    expect(page.locator(".map-overview")).to_be_visible()
    near = page.evaluate(corner)
    assert near != whole
    edge = page.locator(".map-box").bounding_box()
    assert edge is not None
    page.mouse.move(edge["x"] + 300, edge["y"] + 300)
    page.mouse.down()
    page.mouse.move(edge["x"] + 200, edge["y"] + 250, steps=3)
    page.mouse.up()
    drawn(page)
    panned = page.evaluate(corner)
    assert panned != near
    expect(page.locator(".map-details h2")).not_to_have_text("Rank 0")  # a drag chooses nothing
    page.locator("[data-md-component=palette] label:visible").click()
    page.locator("body[data-md-color-scheme=slate]").wait_for()
    drawn(page)
    assert page.evaluate(corner) != panned
    page.get_by_role("button", name="Show the whole cluster").click()
    expect(page.locator(".map-overview")).to_be_hidden()
    page.locator(".map-box").focus()
    page.keyboard.press("Control+End")
    cursor = page.locator("#map-cursor")
    expect(cursor).to_have_attribute("aria-label", re.compile("^Rank 16383,"))


def test_on_a_phone_a_tap_chooses_and_nothing_goes_sideways(chromium: Browser, site: str) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for query in ("", "?preset=deepseek-v3&show=ep", "?nodes=3&tp=5"):
        page.goto(f"{site}{MAP}{query}")
        page.locator(".map-box").wait_for()
        assert page.evaluate(sideways) == 0
    page.goto(f"{site}{MAP}")
    page.locator(".map-svg [data-rank='75']").tap()
    page.locator(".map-details h2", has_text="Rank 75").wait_for()
    answer = page.locator(".map-tip")
    answer.wait_for()
    told = answer.inner_text()
    assert told.startswith("Rank 75")
    assert re.search(r"PP 11\s+11, 43, 75, 107", told), "all its groups, at the finger"
    box, cell = answer.bounding_box(), page.locator(".map-svg [data-rank='75']").bounding_box()
    assert box
    assert cell
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 844
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert abs(box["y"] - cell["y"] - cell["height"]) < 12
    small = page.evaluate(
        """() => [...document.querySelectorAll("#rank-map :is(button, input, select, textarea)")]
          .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
          .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
          .filter(([text]) => !text.includes("checkbox")).map(([text]) => text)"""
    )
    page.close()
    assert small == []


@pytest.mark.parametrize("query", ["?preset=deepseek-v3&rank=75&group=3", "?nodes=2&tp=3&cp=x"])
def test_axe_finds_nothing_in_any_state(
    page: Page, site: str, axe: Callable[..., list[str]], query: str
) -> None:
    page.emulate_media(color_scheme="dark" if "deepseek" in query else "light")
    opened(page, site, query)
    page.add_style_tag(content=".map-below { content-visibility: visible !important }")
    # Elsewhere they are looked at where they are seen: tests/browser/test_pages.py.
    page.evaluate("document.querySelectorAll('figure.figgen').forEach((hidden) => hidden.remove())")
    assert axe(page) == []
    assert axe(page, tags=("label-content-name-mismatch", "target-size")) == []
