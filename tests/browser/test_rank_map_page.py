"""The page of the rank map: what a configuration shows, says and writes to the address."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.modeler import text_of
from tests.browser.rank_map import MAP, opened, query_of
from tests.browser.waits import at_rest, drawn, resting

PICTURE = """() => Object.fromEntries([...document.querySelectorAll(".map-svg [data-rank]")]
  .map((gpu) => [gpu.dataset.rank, Number(gpu.dataset.group)]))"""


def table(page: Page) -> dict[str, list[str]]:
    rows = page.evaluate(
        "() => [...document.querySelectorAll('.map-table tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return {name: cells for name, *cells in rows}


def test_first_configuration_is_drawn_and_counted(page: Page, site: str) -> None:
    opened(page, site)
    assert page.locator(".map-svg [data-rank]").count() == 128
    found = table(page)
    assert found["TP"] == ["dense", "16", "8", "1", "1", "inside nodes", "100 %", "0 %"]
    assert found["DP×CP"] == ["dense", "32", "4", "8", "4", "between nodes", "0 %", "100 %"]
    assert found["TP×CP"] == ["dense", "8", "16", "1", "2", "both", "87.5 %", "12.5 %"]
    assert page.locator(".map-messages .tool-message").count() == 0
    assert query_of(page) == ""
    said = text_of("figgen ranks --preset map-128").splitlines()[0]
    assert said.endswith("(ranks 0, 32, 64 and 96) send between nodes.")
    expect(page.locator("#rank-map > .tool-sentence")).to_have_text(said)


def test_what_does_not_fit_is_said_in_words_with_ways_out(page: Page, site: str) -> None:
    opened(page, site, "?nodes=2&gpus=8&tp=8")
    before = page.locator(".map-box").bounding_box()
    page.locator("[name=tp]").fill("3")
    page.locator(".map-messages .is-bad").wait_for()
    assert page.locator(".map-box").bounding_box() == before, "the picture stays where it is"
    told = page.locator(".map-messages .is-bad")
    expect(told).to_contain_text("TP·CP·PP = 3·1·1: expected a divisor of 16")
    expect(page.locator(".map-picture.is-stale")).to_have_count(1)
    ways = told.locator("[data-nearest]")
    expect(ways).to_have_text(["TP 3 → 4", "TP 3 → 2", "nodes 2 → 3"])
    ways.first.focus()
    page.keyboard.press("Enter")
    expect(told).to_have_count(0)
    expect(page.locator(".map-summary")).to_be_focused()  # the place is kept
    expect(page.locator("[name=tp]")).to_have_value("4")
    expect(page.locator("[name=dp]")).to_have_value("4")
    assert query_of(page) == "?nodes=2&tp=4"
    page.locator("[name=dp]").fill("8")  # DP is derived, but can be asked for
    page.get_by_role("button", name="nodes 2 → 4").click()
    expect(told).to_have_count(0)
    expect(page.locator("[name=nodes]")).to_have_value("4")


TYPED = """() => {
  const field = document.querySelector("[name=tp]");
  field.focus();
  for (const value of ["1", ""]) {
    field.value = value;
    field.dispatchEvent(new Event("input"));
  }
}"""


def test_what_a_field_does_not_understand_is_told_with_what_it_expects(
    page: Page, site: str
) -> None:
    opened(page, site)
    told = page.locator(".map-form [role=alert]")
    field = page.locator("[name=nodes]")
    for typed in ("abc", "2,5", "-3"):
        field.fill(typed)
        expect(told).to_have_text(re.compile(rf"^Nodes: expected .*, got '{typed}'\.$"))
        expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("8")
    expect(told).to_be_hidden()
    expect(field).to_have_attribute("aria-invalid", "false")
    page.locator("[name=order]").select_option("own")
    page.locator("[name=own-order]").fill("nonsense")
    expect(told).to_contain_text("Order: expected axes such as tp-cp-ep-dp-pp, got 'nonsense'")


def test_a_key_that_comes_before_the_frame_of_the_last_one_is_kept(page: Page, site: str) -> None:
    opened(page, site)
    page.evaluate(TYPED)
    drawn(page)
    field = page.locator("[name=tp]")
    assert field.input_value() == ""
    page.keyboard.type("4")
    expect(field).to_have_attribute("aria-invalid", "false")
    assert query_of(page) == "?nodes=16&tp=4&cp=2&pp=4"


def test_tensor_groups_that_leave_their_node_are_warned_of(page: Page, site: str) -> None:
    opened(page, site, "?nodes=4&gpus=4&tp=8")
    warned = page.locator(".map-messages .is-warning")
    expect(warned).to_contain_text("TP=8 is larger than a node of 4 GPUs")
    expect(warned).to_have_count(1)  # ETP is TP where no experts are divided


def test_communicators_of_one_hue_differ_in_their_line_and_every_name_has_room(
    page: Page, site: str
) -> None:
    opened(page, site, "?nodes=16384&gpus=8&tp=4&cp=2&etp=2&rank=131071")
    looks = page.locator(".map-shows button").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one))"
        ".map((style) => style.getPropertyValue('--map-hue') + style.borderTopStyle)"
    )
    assert len(set(looks)) == len(looks) > 8
    chips = page.locator(".map-details .map-groups button")
    assert any(len(text) > 10 for text in chips.all_inner_texts()), "TP×CP with five digits"
    wide = chips.evaluate_all(
        """(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1
          || one.getBoundingClientRect().right > one.nextSibling.getBoundingClientRect().left)"""
    )
    assert wide == []
    cut = page.locator("[name=preset]").evaluate(
        """(select) => {
          const pen = document.createElement("canvas").getContext("2d");
          pen.font = getComputedStyle(select).font;
          return [...select.options].map((option) => option.text)
            .filter((text) => pen.measureText(text).width > select.clientWidth - 30);
        }"""
    )
    assert cut == []


def test_a_rank_names_its_next_neighbour_and_where_it_is_alone(page: Page, site: str) -> None:
    opened(page, site, "?nodes=16384&gpus=8&tp=8&pp=16&rank=100000")
    told = page.locator(".map-details")
    expect(told).to_contain_text("16 nodes; next is 108192")
    expect(told).to_contain_text(re.compile("Alone in\\s*CP, EP"))


def test_a_job_of_many_nodes_is_seen_by_boxes_and_its_gpus_when_zoomed(
    page: Page, site: str
) -> None:
    opened(page, site, "?nodes=16384&gpus=8&tp=8&pp=16&show=dp")
    note = page.locator(".map-picture .map-note").first
    expect(note).to_contain_text("A box is 32 nodes, 256 GPUs; its number counts the DP groups")
    box = page.locator(".map-box")
    box.hover(position={"x": 10, "y": 10})
    tip = page.locator(".map-tip strong").first
    expect(tip).to_have_text("Nodes 0 to 31: 8 DP groups, none of them whole")
    page.locator("[data-show=tp]").click()
    box.hover(position={"x": 12, "y": 12})
    expect(tip).to_have_text("Nodes 0 to 31: 32 TP groups, all inside")
    box.focus()
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("Nodes 32 to 63")
    for _ in range(3):
        page.keyboard.press("+")
    expect(note).to_be_hidden()
    expect(tip).to_have_text(re.compile(r"Rank \d+"))


def test_hostile_address_is_text_and_changes_nothing(page: Page, site: str) -> None:
    opened(page, site, "?order=<img src=x onerror=alert(1)>&tp=-1&nodes=1e99&show=<b>x</b>&h=x")
    told = page.locator(".map-messages .is-warning")
    expect(told).to_have_count(4)
    expect(told.first).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("#rank-map img, #rank-map b").count() == 0
    assert page.locator(".map-svg [data-rank]").count() == 128
    assert query_of(page) == ""


def test_address_holds_the_whole_state(page: Page, site: str) -> None:
    opened(page, site)
    page.locator("[data-value='4']").first.click()
    page.locator("[name=order]").select_option("llama3")
    page.locator("[name=tp]").fill("2")
    page.locator("[name=cp]").fill("1")
    page.locator("[data-show=dp]").click()
    page.locator("[name=moved]").check()
    page.locator(".map-svg [data-rank='9']").click()
    page.locator(".map-entry[data-group='1']").click()
    query = query_of(page)
    kept = dict(part.split("=") for part in query.removeprefix("?").split("&"))
    assert kept == {
        "nodes": "4", "tp": "2", "pp": "4", "order": "llama3", "show": "dp", "rank": "9",
        "group": "1", "moved": "1",
    }  # fmt: skip
    picture = page.locator(".map-svg").inner_html()
    link = page.locator(".map-share input").input_value()
    assert link.endswith(query)
    page.goto("about:blank")
    page.goto(link)
    page.locator(".map-box").wait_for()
    expect(page.locator(".map-details h2")).to_have_text("Rank 9")
    assert page.locator(".map-svg").inner_html() == picture
    handed = page.locator(".job-line a[href*='modeler']").evaluate("(link) => link.href")
    assert handed.startswith(f"{site}/tools/modeler/?nodes=4&tp=2&pp=4&order=llama3&show=dp")


def test_order_tells_which_ranks_move(page: Page, site: str) -> None:
    opened(page, site, "?nodes=8&tp=8&pp=4&order=llama3&moved=1")
    expect(page.locator(".map-moves")).to_contain_text("48 of 64 ranks hold a different part")
    expect(page.locator(".map-svg .map-moved")).to_have_count(48)
    page.locator("[name=order]").select_option("own")
    page.locator("[name=own-order]").fill("pp-tp-dp")
    page.locator(".map-summary", has_text="PP 4 · TP 8").wait_for()
    page.locator("[name=own-order]").fill("pp-tp-")
    expect(page.locator("[name=own-order]")).to_have_attribute("aria-invalid", "true")


STYLES_ASKED = """performance.getEntriesByType("resource")
  .filter(({ name }) => name.includes("page.css")).length"""


@pytest.mark.usefixtures("first_visit")
def test_leaving_and_coming_back_without_a_page_load(instant: Page, site: str) -> None:
    with resting(instant):  # the theme has its site map
        page = opened(instant, site, "?preset=map-64&show=dp")
    page.evaluate("window.stays = true")
    with resting(page):
        page.locator("article a[href*='guide/rank-mapping/']").first.press("Enter")
        page.wait_for_url("**/guide/rank-mapping/**")
        page.locator("#rank-map").wait_for(state="detached")
    assert page.locator("head [name=color-scheme], head [href*='rank-map.css']").count() == 1
    assert page.locator("head [href*='page.css']").count() == 1
    page.wait_for_function(f"() => {STYLES_ASKED} > 0")  # an entry comes with the whole of the file
    page.go_back()
    page.locator(".map-svg [data-rank]").nth(63).wait_for()
    assert page.evaluate("window.stays") is True
    page.locator("[data-show=tp]").click()
    drawn(page)
    assert page.evaluate(PICTURE)["9"] == 1
    assert query_of(page) == "?preset=map-64"
    assert page.evaluate(STYLES_ASKED) == 1


def test_chapter_opens_the_tool_without_a_page_load(instant: Page, site: str) -> None:
    page = instant
    at_rest(page, f"{site}/guide/rank-mapping/")
    page.evaluate("window.stays = true")
    page.locator("article a[href*='tools/rank-map/']").first.click()
    page.locator(".map-box").wait_for()
    assert page.evaluate("window.stays") is True
    assert page.locator(".map-columns").evaluate("(e) => getComputedStyle(e).display") == "grid"
    expect(page.locator("#fig-map-gpus")).to_be_hidden()  # that is for readers without scripts


def test_script_of_the_page_weighs_less_than_56_kb(
    page: Page, asked: list[Request], site: str, site_folder: Path
) -> None:
    opened(page, site)
    theme = ("assets/javascripts/bundle", "assets/javascripts/workers/")
    paths = [request.url.removeprefix(f"{site}/") for request in asked]
    scripts = [path for path in paths if path.startswith("assets/javascripts/")]
    own = [path for path in scripts if not path.startswith(theme)]
    assert "assets/javascripts/tools/rank-map.js" in own
    files = {*own, "assets/javascripts/formulas.js"}
    assert sum(len(gzip.compress((site_folder / f).read_bytes(), 9)) for f in files) < 56_000


def test_without_scripts_the_first_configuration_and_the_presets_are_there(
    page: Page, unscripted: Page, site: str
) -> None:
    unscripted.goto(f"{site}{MAP}")
    assert unscripted.locator("#fig-map-gpus").is_visible()
    assert unscripted.locator("#fig-map-gpus .fig-tabs input").count() == 5
    assert unscripted.locator("#fig-map-gpus .cells rect").count() >= 128
    assert unscripted.locator("#rank-map").inner_text().strip() == ""
    opened(page, site)
    expect(page.locator("#fig-map-gpus")).to_be_hidden()


# Options of commands that go on in another line: how many there are, and those.
BROKEN = """() => {
  const options = [...document.querySelectorAll(".map-take pre .fig-keep")];
  const broken = options.filter((one) => one.getClientRects().length > 1);
  return [options.length, broken.map((one) => one.textContent)];
}"""


def test_a_phone_shows_the_section_that_an_address_names_and_no_option_in_two_lines(
    page: Page, site: str
) -> None:
    """The parts above the section are laid out only then, and were longer than estimated."""
    page.set_viewport_size({"width": 390, "height": 844})
    at_rest(page, f"{site}{MAP}#reading-the-picture")
    drawn(page)
    top = page.evaluate("document.querySelector('h2:target').getBoundingClientRect().top")
    assert 48 < top < 100
    page.locator(".map-command").scroll_into_view_if_needed()
    for width in range(320, 400, 8):
        page.set_viewport_size({"width": width, "height": 844})
        options, broken = page.evaluate(BROKEN)
        assert options > 8
        assert broken == []
    command = page.locator(".map-command")
    assert command.inner_text() == command.text_content(), "as it is copied"
