"""Films in the page: played, stepped, questioned, and read without playing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.paths import RINGS
from tests.browser.waits import drawn

MOST_BYTES = 8_000


def test_a_film_is_stepped_by_keys_and_asks_before_it_shows(
    page: Page, site: str, axe: Callable[..., list[str]]
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{site}{RINGS}")
    figure = page.locator("#fig-ring-numbers")
    figure.scroll_into_view_if_needed()
    player = figure.locator(".film")
    player.focus()
    says, asks = player.locator(".film-says"), player.locator(".film-asks")
    page.keyboard.press("Home")
    expect(says).to_have_text("Every rank begins with its own numbers.")
    below = figure.locator("figcaption")
    drawn(page)
    before = below.bounding_box()
    page.keyboard.press("ArrowRight")
    expect(asks).to_contain_text("What will rank 0 hold there?")
    after = below.bounding_box()
    assert before is not None
    assert after is not None
    assert after["y"] == pytest.approx(before["y"], abs=0.6), "a question moves nothing"
    expect(says).to_have_text("Every rank begins with its own numbers.")
    asks.get_by_role("button", name="12", exact=True).click()
    expect(asks).to_have_text("No: 15. 3 + 12 = 15: in the first half what comes in is added.")
    expect(says).to_have_text("Step 1 of 6: each rank sends one number, to be added.")
    assert axe(page, within="#fig-ring-numbers") == []
    page.keyboard.press("ArrowRight")
    expect(says).to_have_text("What came in is added.")
    expect(player.locator("svg")).to_contain_text("15")
    page.keyboard.press("End")
    expect(asks).to_contain_text("How many steps until all hold all?")
    page.keyboard.press("Enter")
    expect(asks).to_contain_text("Yes.")
    page.keyboard.press("End")
    expect(says).to_have_text("Every rank has every sum: the all-gather is done.")
    assert player.get_by_role("button", name="Play", exact=True).count() == 0, "nothing moves"
    page.keyboard.press("Home")
    expect(says).to_have_text("Every rank begins with its own numbers.")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize(
    ("where", "name", "last"),
    [
        ("/journey/splitting-the-layer/", "fig-split-film", "Added up, both have Y"),
        ("/journey/hiding/", "fig-bucket-film", "All gradients are the mean of 8"),
        ("/journey/all-at-once/", "fig-room-film", "the TP group of rank 0 would be in 8 nodes"),
    ],
)
def test_a_film_of_the_journey_is_walked_to_its_end_by_keys_alone(
    page: Page, site: str, axe: Callable[..., list[str]], where: str, name: str, last: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{site}{where}")
    figure = page.locator(f"#{name}")
    figure.scroll_into_view_if_needed()
    player = figure.locator(".film")
    player.focus()
    answered = 0
    for _ in range(9):
        page.keyboard.press("End")
        if not player.locator(".film-asks button").count():
            break
        page.keyboard.press("Enter")
        answered += 1
    assert answered >= 2
    expect(player.locator(".film-says")).to_contain_text(last)
    # The page around it is looked at in test_pages.py.
    assert axe(page, within=f"#{name}") == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_film_is_light_and_has_its_stills_without_a_script(
    unscripted: Page, site: str, site_folder: Path
) -> None:
    script = (site_folder / "assets/javascripts/player.js").read_bytes()
    assert len(gzip.compress(script, 9)) <= MOST_BYTES
    unscripted.goto(f"{site}{RINGS}")
    stills = unscripted.locator("#fig-ring-numbers .still")
    assert stills.count() == 4
    expect(stills.last).to_contain_text("Every rank has every sum")


def test_a_film_opens_with_a_scene_that_tells_and_begins_with_the_first(
    page: Page, site: str
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{site}/journey/all-at-once/")
    figure = page.locator("#fig-room-film")
    figure.scroll_into_view_if_needed()
    says = figure.locator(".film-says")
    expect(says).to_contain_text("The groups of rank 0: TP in one node, DP in 8 nodes")
    expect(figure.locator("svg").first).to_contain_text("56")
    figure.locator(".film").focus()
    page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("16 nodes of 8 GPUs.")
    page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("TP 8")


def test_play_plays_to_the_end_and_asks_afterwards(chromium: Browser, site: str) -> None:
    """A fake clock affects a whole profile, whose pages then have no `performance`
    entries either."""
    with chromium.new_context() as profile, profile.new_page() as page:
        page.goto(f"{site}{RINGS}")
        figure = page.locator("#fig-ring-numbers")
        figure.scroll_into_view_if_needed()
        expect(figure.locator(".film-says")).to_contain_text("the reduce-scatter is done")
        page.clock.install()
        figure.get_by_role("button", name="Play", exact=True).click()
        expect(figure.locator(".film-says")).to_have_text("Every rank begins with its own numbers.")
        asks = figure.locator(".film-asks")
        for _ in range(12):
            expect(asks).to_be_hidden()
            page.clock.run_for(1100)
        expect(figure.locator(".film-says")).to_contain_text("the all-gather is done")
        page.clock.run_for(1100)
        expect(asks).to_contain_text("What will rank 0 hold there?")
