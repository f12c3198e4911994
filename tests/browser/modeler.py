"""How the tests of the modeler's page work it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PATH = "/tools/modeler/"
COME_NEAR = """async () => {
  const [sections, y] = [document.querySelectorAll(".modeler-details section"), scrollY];
  const drawn = () => sections[5].querySelector(".modeler-body").childElementCount > 0;
  while (!drawn()) {
    sections[5].scrollIntoView({ behavior: "instant" });
    await new Promise(requestAnimationFrame);
  }
  scrollTo({ top: y, behavior: "instant" });
}"""
QUIET = "() => !document.querySelector('#modeler [aria-busy=true]')"


def settled(page: Page) -> None:
    """Wait until the answer stands, all below it is there, and nothing more is being computed."""
    page.locator("#modeler .modeler-card").first.wait_for()
    # What is not on the screen waits until a reader comes near it.
    page.evaluate(COME_NEAR)
    page.wait_for_function(QUIET)


def card(page: Page, index: int) -> str:
    """What a card of the answer says, on one line."""
    return " ".join(page.locator(".modeler-card").nth(index).inner_text().split())


def section(page: Page, title: str) -> Locator:
    return page.locator("#modeler section", has=page.get_by_role("heading", name=title, exact=True))


def choose(page: Page, name: str, value: str) -> None:
    """Put a value into a field or a list, as a reader does."""
    field = page.locator(f"#modeler [name={name}]")
    field.evaluate(
        "(field) => { if (field.closest('details')) field.closest('details').open = true; }"
    )
    if field.evaluate("(field) => field.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)


def takeaway(page: Page) -> Locator:
    """What can be taken away, which comes when a reader is near it."""
    section(page, "Take away").scroll_into_view_if_needed()
    return page.locator("#modeler .modeler-take")


def file_of(page: Page, name: str) -> Any:
    with page.expect_download() as download:
        page.locator(f"[data-file='{name}']").click()
    text = download.value.path().read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else text
