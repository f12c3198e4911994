"""What readers can take from a figure: files made on the spot, and texts to copy."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.paths import PIPELINE, RANKS
from tests.browser.waits import at_rest

# Size of a picture, and how many of its points differ from the one in its corner.
DRAWN = """async (text) => {
  const image = new Image();
  image.src = `data:image/png;base64,${text}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  const { data } = pen.getImageData(0, 0, image.width, image.height);
  const last = data.slice(-4);
  let other = 0;
  for (let at = 0; at < data.length; at += 4) {
    other += [0, 1, 2].some((part) => data[at + part] !== last[part]);
  }
  return [image.width, image.height, other / (image.width * image.height), [...last]];
}"""


def saved(page: Page, figure: Locator, name: str, to: Path) -> Path:
    with page.expect_download() as download:
        figure.get_by_role("button", name=name).click()
    file = to / download.value.suggested_filename
    download.value.save_as(file)
    return file


def copied(page: Page, figure: Locator, name: str) -> str:
    figure.get_by_role("button", name=name).click()
    expect(figure.locator(".fig-copies output")).to_have_text("Copied")
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_png_plotly_page_citation_address_and_iframe(page: Page, site: str, tmp_path: Path) -> None:
    page.emulate_media(color_scheme="dark")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    at_rest(page, f"{site}{PIPELINE}")
    figure = page.locator("figure.figgen#fig-naive")
    figure.get_by_text("Data, files and citation").click()

    png = saved(page, figure, "PNG", tmp_path)
    assert png.name == "fig-naive.png"
    encoded = page.evaluate(
        """async (bytes) => new Uint8Array(bytes).toBase64?.()
           ?? btoa(String.fromCharCode(...new Uint8Array(bytes)))""",
        list(png.read_bytes()),
    )
    width, _, inked, ground = page.evaluate(DRAWN, encoded)
    assert width == 3 * 720
    assert 0.2 < inked < 0.95
    assert max(ground[:3]) < 80, "the picture has the colours of the dark page"

    alone = saved(page, figure, "Plotly HTML", tmp_path)
    assert "var(--fig" not in alone.read_text("utf-8").rsplit("<script>", 1)[1]
    address = copied(page, figure, "Copy address")
    assert address.endswith(f"{PIPELINE}#fig-naive")
    citation = copied(page, figure, "Copy citation")
    command = "figgen show pipeline-timeline schedule=naive stages=4 microbatches=2"
    assert re.search(rf", Figure \d+\.\d+\. Computed with {command}\. http\S+$", citation)
    frame = copied(page, figure, "Copy iframe")
    assert re.search(
        r'<iframe src="http[^"]+/fig-naive\.svg" title="Figure [^"]+" width="720"', frame
    )

    page.goto("about:blank")
    page.set_content(alone.read_text("utf-8"))
    page.locator(".main-svg").first.wait_for()
    assert page.locator(".bars .point, .scatterlayer .trace").count() > 0
    expect(page.locator("body > p")).to_have_text(citation)


def test_the_address_of_a_configuration_opens_its_tab(page: Page, site: str) -> None:
    page.goto(f"{site}{RANKS}#fig-rank-grid-map-16")
    figure = page.locator("figure.figgen#fig-rank-grid")
    chosen = figure.locator(":scope > .fig-tabs input:checked")
    expect(chosen).to_have_class("fig-tab-3")
    expect(figure).to_be_in_viewport()
