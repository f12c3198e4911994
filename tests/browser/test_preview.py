"""What a link refers to is previewed next to it, for pointer and keyboard."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.paths import PIPELINE
from tests.browser.waits import at_rest

# The first link in running text to a figure of this page that is out of sight.
FAR = """() => {
  const link = [...document.querySelectorAll("article p a[href^='#fig-']")].find((link) => {
    link.scrollIntoView({ block: "end" });
    const figure = document.getElementById(link.hash.slice(1));
    const { top, bottom } = figure.getBoundingClientRect();
    return link.checkVisibility() && (bottom < 0 || top > innerHeight);
  });
  link.id = "far";
  return document.querySelector(`${link.hash} figcaption .fig-number`).textContent;
}"""


def test_a_link_shows_the_figure_equation_or_section_that_it_names(page: Page, site: str) -> None:
    at_rest(page, f"{site}{PIPELINE}")
    box = page.locator(".fig-preview")
    number = page.evaluate(FAR)
    far = page.locator("#far")
    far.hover()
    expect(box).to_be_visible()
    expect(box).to_contain_text(number)
    expect(box.locator("svg").first).to_be_visible()
    expect(far).to_have_attribute("aria-describedby", "fig-preview")
    assert box.locator("a, button, details").count() == 0
    box.hover()  # it stays while the pointer is in it
    expect(box).to_be_visible()
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(far).not_to_have_attribute("aria-describedby", "fig-preview")

    far.evaluate("(link) => link.focus({ focusVisible: true })")
    expect(box).to_be_visible()
    page.keyboard.press("Tab")
    expect(far).not_to_be_focused()

    section = page.locator("article a[href*='zero-bubble/#']:visible").first
    section.hover()
    expect(box).to_contain_text("Two stages on each rank")

    explained = page.locator("article .fig-how:has(a[href*='formulas/'])").first
    key = explained.get_attribute("id")
    page.locator(f"article button.fig-value[popovertarget='{key}']").first.click()
    equation = explained.locator("a[href*='formulas/']").first
    equation.hover()
    expect(box.locator("math").first).to_be_visible()
    page.mouse.move(2, 2)
    expect(box).to_be_hidden()


def test_a_run_is_shown_as_its_row_with_headings_and_a_term_with_its_meaning(
    page: Page, site: str
) -> None:
    at_rest(page, f"{site}/404.html")
    shown = """([address, id]) => {
      document.querySelector("article").innerHTML = `<p><a href="${address}#${id}">it</a></p>`;
    }"""
    row = "mpt-70b-a100_40gb-bf16-g128-s2048-mb4-b512"
    box = page.locator(".fig-preview")
    page.evaluate(shown, [f"{site}/validation/runs/", row])
    page.locator("article p a").hover()
    expect(box.locator("dt").first).to_have_text("run")
    expect(box.locator("dd").first).to_contain_text("mpt-70b")
    assert box.locator("dt").count() == box.locator("dd").count() >= 4
    page.mouse.move(2, 2)
    expect(box).to_be_hidden()
    page.evaluate(shown, [f"{site}/reference/glossary/", "expert-parallelism"])
    page.locator("article p a").hover()
    expect(box.locator("strong")).to_have_text("expert parallelism")
    expect(box).to_contain_text("Ranks hold different experts")
