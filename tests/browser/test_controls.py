"""What readers can do with a figure: choose a tab, choose a communicator, step through a trace."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page

from tests.browser.paths import RANKS, RINGS


def style(element: Locator, name: str) -> str:
    return element.evaluate("(e, name) => getComputedStyle(e)[name]", name)


def fills(grid: Locator) -> list[str]:
    """Return the color of every GPU of a rank grid, in the order of ranks."""
    colours: list[str] = grid.evaluate(
        "(svg) => [...svg.querySelectorAll('.cells rect')].map((r) => getComputedStyle(r).fill)"
    )
    return colours


def partition(colours: list[str]) -> set[frozenset[int]]:
    """Return which ranks share a color."""
    return {frozenset(i for i, c in enumerate(colours) if c == colour) for colour in colours}


def test_tab_shows_its_panel_and_its_caption(either: Page, site: str) -> None:
    either.goto(f"{site}{RANKS}")
    figure = either.locator("figure.figgen:has(.fig-tabs)").first
    tabs = figure.locator(".fig-tabs input")
    for chosen in (3, 1, 2):
        tabs.nth(chosen - 1).check()
        for panel in (1, 2, 3):
            parts = figure.locator(f".fig-{panel}")
            assert parts.count() == 2, "a panel and a caption"
            for part in parts.all():
                assert (style(part, "display") != "none") == (panel == chosen)


def test_tabs_go_by_arrow_key(either: Page, site: str) -> None:
    either.goto(f"{site}{RANKS}")
    figure = either.locator("figure.figgen:has(.fig-tabs)").first
    figure.locator(".fig-tabs input").first.focus()
    either.keyboard.press("ArrowRight")
    assert figure.locator(".fig-tabs input").nth(1).is_checked()
    assert style(figure.locator("div.fig-2"), "display") != "none"


def chosen(figure: Locator, configuration: str) -> Locator:
    """Choose a figure's configuration by the start of its name, and return its panel."""
    tab = figure.get_by_role("radio", name=re.compile(f"^{configuration}"))
    tab.check()
    (number,) = re.findall(r"fig-tab-(\d+)", tab.get_attribute("class") or "")
    return figure.locator(f"div.fig-{number}")


def test_communicator_recolours_the_ranks_of_its_own_grid(either: Page, site: str) -> None:
    """32 ranks as TP 8, PP 2, DP 2: TP groups are whole nodes, DP groups join ranks 8 apart."""
    either.goto(f"{site}{RANKS}")
    figure = either.locator("figure.figgen:has(.fig-tabs)").first
    panel = chosen(figure, "4 nodes × 8 GPUs")
    before = fills(panel.locator("svg.fig-grid"))
    assert partition(before) == {frozenset(range(n, n + 8)) for n in (0, 8, 16, 24)}

    panel.locator('.fig-controls input[value="dp"]').check()
    after = fills(panel.locator("svg.fig-grid"))
    assert set(after).isdisjoint(before)
    assert all(after[rank] == after[rank + 8] for rank in (*range(8), *range(16, 24)))
    assert all(after[rank] != after[rank + 1] for rank in range(31) if rank % 8 < 7)
    assert style(panel.locator("svg .of-dp").first, "display") != "none"
    assert style(panel.locator("svg .of-tp").first, "display") == "none"

    other = chosen(figure, "2 nodes × 8 GPUs")
    assert other.locator('.fig-controls input[value="tp"]').is_checked()
    assert partition(fills(other.locator("svg.fig-grid"))) == {
        frozenset(range(8)),
        frozenset(range(8, 16)),
    }


def test_paper_shows_tensor_parallel_groups_whatever_was_chosen(page: Page, site: str) -> None:
    page.goto(f"{site}{RANKS}")
    figure = page.locator("figure.figgen:has(.fig-controls)").first
    panel = figure.locator(".fig-picture:has(.fig-controls)").locator("visible=true").first
    tp = fills(panel.locator("svg.fig-grid"))
    panel.locator('.fig-controls input[value="pp"]').check()
    assert fills(panel.locator("svg.fig-grid")) != tp

    page.emulate_media(media="print")
    assert fills(panel.locator("svg.fig-grid")) == tp
    assert style(panel.locator("svg .of-tp").first, "display") != "none"
    assert style(panel.locator("svg .of-pp").first, "display") == "none"


def current(figure: Locator) -> list[int]:
    """Return which frames of a trace are highlighted; none if all are shown alike."""
    found: list[int] = figure.evaluate(
        "(f) => [...f.querySelectorAll('.frame')].flatMap((g, i) =>"
        " g.classList.contains('is-current') ? [i] : [])"
    )
    return found


def test_arrow_keys_step_through_a_trace_and_escape_shows_all(page: Page, site: str) -> None:
    page.goto(f"{site}{RINGS}")
    figure = page.locator("figure.figgen:has(.frame)").first
    told = figure.locator(".fig-stepper output")
    count = figure.locator(".frame").count()
    box = figure.locator(".fig-picture .fig-scroll")
    box.focus()
    assert current(figure) == []
    for expected in (0, 1, 2):
        page.keyboard.press("ArrowRight")
        assert current(figure) == [expected]
        assert told.inner_text() == f"step {expected + 1} of {count - 1}"
    dimmed = figure.locator(".frame").nth(0)
    assert float(style(dimmed, "opacity")) < 0.5
    page.keyboard.press("ArrowLeft")
    assert current(figure) == [1]
    for _ in range(count + 2):
        page.keyboard.press("ArrowRight")
    assert current(figure) == [count - 1]
    assert told.inner_text() == "result"
    page.keyboard.press("Escape")
    assert current(figure) == []
    assert style(dimmed, "opacity") == "1"


def test_buttons_step_through_a_trace(page: Page, site: str) -> None:
    page.goto(f"{site}{RINGS}")
    first, second = (page.locator("figure.figgen:has(.frame)").nth(n) for n in (0, 1))
    step = first.locator(".fig-stepper")
    step.get_by_role("button", name="Next step").click()
    step.get_by_role("button", name="Next step").click()
    step.get_by_role("button", name="Previous step").click()
    assert (current(first), current(second)) == ([0], [])
    step.get_by_role("button", name="All steps").click()
    assert current(first) == []
