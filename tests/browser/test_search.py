"""The search of the site: queries, results, and cost."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from figgen.search.words import stem, words
from tests.browser.paths import LIGHT, PIPELINE, RANKS, ROOT
from tests.browser.waits import Held, addressed, at_rest, drawn, resting

TABLE: dict[str, list[str]] = tomllib.loads(
    (Path(__file__).parent / "search_queries.toml").read_text(encoding="utf-8")
)
FIRST_QUERY_BYTES = 100_000
FIND = """async ([module, queries]) => {
  const { find } = await import(module);
  const found = {};
  for (const query of queries) {
    const { results, missing } = await find(query);
    const all = results.flatMap(({ sections }) => sections);
    const sections = all.map(({ url, kind }) => `${kind} ${url}`);
    found[query] = { missing, pages: results.map(({ url }) => url), sections };
  }
  return found;
}"""
CUT = """async ([module, texts]) => {
  const { words, stem } = await import(module);
  return texts.map((text) => [words(text), stem(text)]);
}"""


@pytest.fixture(scope="module")
def home(profile: BrowserContext, site: str) -> Iterator[Page]:
    """One page for all queries, because each page would load the index again."""
    with profile.new_page() as page:
        page.goto(f"{site}/about/accessibility/")
        yield page


@pytest.fixture(scope="module")
def found(home: Page, site: str) -> dict[str, Any]:
    """Return the results of every query of the table, in one evaluation."""
    queries = [query for asked in TABLE.values() for query in asked]
    module = f"{site}/assets/javascripts/search/find.js"
    answer: dict[str, Any] = home.evaluate(FIND, [module, [*queries, *KINDS, *SLIPS, "qwxzvk"]])
    return answer


def test_sixty_queries_find_their_page_among_the_first_three(found: dict[str, Any]) -> None:
    asked = [(query, page) for page, queries in TABLE.items() for query in queries]
    assert len(asked) >= 60
    missed = {q: found[q]["pages"][:3] for q, page in asked if page not in found[q]["pages"][:3]}
    assert missed == {}
    first = sum(found[query]["pages"][0] == page for query, page in asked)
    assert first >= 0.8 * len(asked)


FILLED = {
    "70B on 16 H200": "tools/planner/?model=llama-3-70b&chip=h200-sxm-141gb&nodes=2",
    "16 nodes of H200 for a 405B": "tools/planner/?nodes=16&chip=h200-sxm-141gb&model=llama-3-405b",
    "llama 8b on 4 gpus": "tools/planner/?model=llama-3-8b&nodes=1&gpus=4",
}


def test_a_job_that_is_searched_for_opens_the_planner_filled_in(home: Page, site: str) -> None:
    module = f"{site}/assets/javascripts/search/find.js"
    answer = home.evaluate(FIND, [module, [*FILLED, "all tools", "70B"]])
    assert {query: answer[query]["pages"][0] for query in FILLED} == FILLED
    assert "tools/" in answer["all tools"]["pages"][:3]
    assert "?" not in answer["70B"]["pages"][0], "a model alone is no job"


KINDS = {
    "bubble_fraction": "formula reference/formulas/pipeline/#bubble_fraction",
    "ring_all_reduce_time": "formula reference/formulas/collectives/#ring_all_reduce_time",
    "oversubscription": "section guide/placement/#oversubscription",
    "nvidia h200": "row reference/hardware/#h200-sxm-141gb",
    "master weights": "term reference/glossary/#master-weights",
}


def test_formulas_sections_rows_terms_and_figures_are_kinds_of_result(
    found: dict[str, Any],
) -> None:
    assert {q: wanted for q, wanted in KINDS.items() if wanted not in found[q]["sections"]} == {}
    kinds = {section.split()[0] for answer in found.values() for section in answer["sections"]}
    assert kinds == {"page", "section", "figure", "formula", "term", "row"}


def test_nonsense_finds_nothing_and_says_so(found: dict[str, Any]) -> None:
    assert found["qwxzvk"] == {"missing": ["qwxzvk"], "pages": [], "sections": []}


SLIPS = {
    "oversubscripton": "guide/placement/", "checkpoiting": "guide/memory/",
    "interleavng schedule": "guide/pipeline-schedules/", "recieve": "guide/collectives/",
}  # fmt: skip


def test_what_objects_of_javascript_have_is_a_word_as_others_are(page: Page, site: str) -> None:
    """Each piece of the index is a JavaScript object with a constructor, even if the site lacks
    that word."""
    page.route("**/search/words-*.json", lambda route: route.fulfill(json={}))
    page.goto(f"{site}/about/accessibility/")
    module = f"{site}/assets/javascripts/search/find.js"
    found = page.evaluate(FIND, [module, ["constructor"]])
    assert found["constructor"] == {"missing": ["constructor"], "pages": [], "sections": []}


def test_an_address_with_a_long_query_is_cut_to_what_the_field_takes(page: Page, site: str) -> None:
    page.goto(f"{site}/search/?q={'ring+' * 10_000}")
    page.locator(".find-here .find-item").first.wait_for()
    assert page.locator(".find-here input").input_value() == "ring " * 40


def test_a_slip_in_a_word_or_in_its_ending_is_forgiven(found: dict[str, Any]) -> None:
    pages = {typed: found[typed]["pages"][:3] for typed in SLIPS}
    assert {typed: pages[typed] for typed, page in SLIPS.items() if page not in pages[typed]} == {}
    assert not any(found[typed]["missing"] for typed in SLIPS)


def test_browser_and_build_cut_words_alike(home: Page, site: str, site_folder: Path) -> None:
    """This covers all words of the site and all their inflections."""
    index = site_folder / "search"
    known = [w for piece in index.glob("words-*.json") for w in json.loads(piece.read_text())]
    texts = [
        line
        for text in sorted(index.glob("text-*.json"))[:12]
        for line in json.loads(text.read_text())
    ]
    endings = ("", "s", "es", "ed", "ing", "ation", "ational", "izer", "ise", "ly", "ness", "ity",
               "fulness", "ement", "ies", "y", "our", "eed", "e", "ll", "ical", "ion")  # fmt: skip
    made = [w + end for w, end in itertools.product(sorted(known)[::9], endings) if w.isalpha()]
    asked = [*known, *made, *texts, "AllReduce ZeRO-3 α–β 16,384 NVLink4 B200's ½ ℓ ϑ µs"]
    module = f"{site}/assets/javascripts/search/words.js"
    answers = home.evaluate(CUT, [module, asked])
    differ = [
        text
        for text, (cut, stemmed) in zip(asked, answers, strict=True)
        if cut != list(words(text)) or stemmed != stem(text)
    ]
    assert differ == []


def test_nothing_is_loaded_before_somebody_searches_and_little_then(
    page: Page, asked: list[Request], site: str, site_folder: Path
) -> None:
    at_rest(page, f"{site}{PIPELINE}")
    assert not any("search" in urlsplit(request.url).path for request in asked)
    asked.clear()
    with resting(page):
        page.keyboard.press("/")
        page.locator("dialog.find input").wait_for()
        # At once: how many unfinished words are looked up depends on how fast they are typed.
        page.keyboard.insert_text("activation checkpointing")
        page.locator(".find-text:has(mark)").nth(2).wait_for()
    files = {site_folder / urlsplit(request.url).path.lstrip("/") for request in asked}
    assert sum(len(gzip.compress(file.read_bytes(), 9)) for file in files) <= FIRST_QUERY_BYTES


def test_search_is_worked_by_keyboard_alone(page: Page, site: str) -> None:
    page.goto(f"{site}{LIGHT}")
    field = page.locator("dialog.find input")
    for key in ("s", "f", "/"):
        page.keyboard.press(key)
        field.wait_for()
        page.keyboard.press("Escape")
        field.wait_for(state="hidden")
    page.keyboard.press("/")
    page.keyboard.type("pipeline schedules")
    links = page.locator("dialog.find .find-list a")
    links.first.wait_for()
    page.locator(".find-told", has_text="pipeline schedules").wait_for()
    page.keyboard.press("ArrowDown")
    expect(links.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"{PIPELINE}(#.*)?$"))
    expect(field).to_be_hidden()


PIECES = "**/search/words-*.json"
LATE = "**/search/view.js"


def test_enter_waits_for_the_results_of_what_was_typed_last(page: Page, site: str) -> None:
    """Enter used to open the first result of the previous query."""
    page.goto(f"{site}{LIGHT}")
    page.keyboard.press("/")
    page.keyboard.type("ring all-reduce")
    page.locator(".find-text:has(mark)").first.wait_for()
    held = Held(page, PIECES)
    with page.expect_request(PIECES):
        page.locator("dialog.find input").fill("pipeline schedules")
    page.keyboard.press("Enter")
    held.come()
    page.wait_for_url(re.compile(f"{PIPELINE}(#.*)?$"))


@pytest.mark.parametrize("then", ["types on", "closes"])
def test_enter_leads_nowhere_when_the_reader_goes_on_before_there_are_results(
    page: Page, site: str, then: str
) -> None:
    """Enter used to open the first result of the previous query, even after the search
    was closed."""
    page.goto(f"{site}{LIGHT}")
    page.keyboard.press("/")
    field = page.locator("dialog.find input")
    field.fill("ring all-reduce")
    page.locator(".find-text:has(mark)").first.wait_for()
    page.evaluate("addEventListener('click', (event) => { window.led = event.target.href; }, true)")
    held = Held(page, PIECES)
    with page.expect_request(PIECES):
        field.fill("pipeline schedules")
    page.keyboard.press("Enter")
    if then == "closes":
        page.locator("dialog.find").get_by_role("button", name="Close").click()
        field.wait_for(state="hidden")
    else:
        page.keyboard.type(" zv")
    held.come()
    told = page.locator(
        ".find-told", has_text="schedules zv" if then == "types on" else "schedules"
    )
    told.wait_for(state="attached")
    drawn(page)
    assert page.evaluate("window.led") is None
    assert urlsplit(page.url).path == LIGHT


def test_a_search_that_was_left_does_not_write_into_the_next_page_s_address(
    instant: Page, site: str
) -> None:
    page = instant
    at_rest(page, f"{site}/search/")
    held = Held(page, PIECES)
    with page.expect_request(PIECES):
        page.locator(".find-here input").fill("bubble")
    page.evaluate("window.told = document.querySelector('.find-here .find-told')")
    page.locator(".md-header a.md-logo").click()
    page.wait_for_url(f"{site}/")
    page.locator(".find-here").wait_for(state="detached")
    held.come()
    page.wait_for_function("() => window.told.textContent.includes('bubble')")
    drawn(page)
    assert urlsplit(page.url).query == ""


@pytest.mark.parametrize("last", ["Backspace", "Escape"])
def test_a_slip_that_is_mended_while_the_search_is_loaded_stays_mended(
    page: Page, site: str, last: str
) -> None:
    page.goto(f"{site}{LIGHT}")
    held = Held(page, LATE)
    with page.expect_request(LATE):
        page.keyboard.press("/")
    page.keyboard.type("bubblx")
    page.keyboard.press(last)
    with page.expect_response(LATE):
        held.come()
    # What comes after the file in the page's own order.
    page.evaluate("async () => { await import('/assets/javascripts/search/view.js'); }")
    field = page.locator("dialog.find input")
    if last == "Escape":
        assert field.count() == 0
    else:
        page.keyboard.type("e")
        expect(field).to_have_value("bubble")


def entered_while_the_search_is_loaded(page: Page) -> Held:
    """Press Enter while the search is still loading; return what is held back."""
    page.evaluate("addEventListener('click', (event) => { window.led = event.target.href; }, true)")
    held = Held(page, LATE)
    with page.expect_request(LATE):
        page.keyboard.press("/")
    page.keyboard.type("pipeline schedules")
    page.keyboard.press("Enter")
    return held


def test_enter_while_the_search_is_loaded_leads_to_the_first_result(page: Page, site: str) -> None:
    """Enter used to be dropped, and had to be pressed again."""
    page.goto(f"{site}{LIGHT}")
    entered_while_the_search_is_loaded(page).come()
    page.wait_for_url(re.compile(f"{PIPELINE}(#.*)?$"))


def test_enter_while_the_search_is_loaded_leads_nowhere_when_the_reader_types_on(
    page: Page, site: str
) -> None:
    page.goto(f"{site}{LIGHT}")
    held = entered_while_the_search_is_loaded(page)
    page.keyboard.type(" zv")
    held.come()
    page.locator(".find-told", has_text="schedules zv").wait_for()
    drawn(page)
    assert page.evaluate("window.led") is None


def test_enter_while_the_search_is_loaded_leads_nowhere_when_the_reader_goes_to_another_page(
    instant: Page, site: str
) -> None:
    page = instant
    at_rest(page, f"{site}{LIGHT}")
    held = entered_while_the_search_is_loaded(page)
    page.locator(".md-header a.md-logo").click()
    page.wait_for_url(f"{site}/")
    page.evaluate("window.led = undefined")
    held.come()
    page.locator(".find-told", has_text="pipeline schedules").wait_for()
    drawn(page)
    assert page.evaluate("window.led") is None
    assert urlsplit(page.url).path == "/"


CLOSED_AND_PRESSED = """() => {
  const dialog = document.querySelector("dialog.find");
  dialog.close();
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
}"""


def test_a_key_right_after_closing_opens_the_search_again(page: Page, site: str) -> None:
    """The closed dialog's field keeps the focus until the next frame, and used to
    swallow the key."""
    page.goto(f"{site}{LIGHT}")
    field = page.locator("dialog.find input")
    page.keyboard.press("/")
    field.wait_for()
    page.evaluate(CLOSED_AND_PRESSED)
    field.wait_for()


def test_shared_search_is_answered_on_a_page_of_its_own(page: Page, site: str) -> None:
    page.goto(f"{site}/search/?q=bubble+fraction")
    page.locator(f".find-here .find-item a[href*='{PIPELINE}']").first.wait_for()
    expect(page.locator("h2", has_text="Formulas")).to_be_hidden()
    page.locator(".find-here input").fill("")
    page.locator("h2", has_text="Formulas").wait_for()
    addressed(page, q=None)


def test_without_scripts_the_search_is_a_register(unscripted: Page, site: str) -> None:
    unscripted.goto(f"{site}/")
    unscripted.locator(".find-open").click()
    unscripted.wait_for_url(f"{site}/search/")
    text = unscripted.locator("article").inner_text()
    assert all(name in text for name in ("Bubble fraction", "oversubscription", "NVIDIA H200"))


def test_dialog_is_accessible_in_both_palettes(page: Page, site: str, axe: Any) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{site}/about/accessibility/")  # axe reads what is under the dialog too
        page.keyboard.press("/")
        page.keyboard.type("tensor parallel")
        page.locator(".find-text:has(mark)").first.wait_for()
        assert axe(page, within="dialog.find") == []


def test_insides_of_figures_are_not_searched(site_folder: Path) -> None:
    """Cells of data tables would otherwise outnumber the pages that explain them."""
    page = (site_folder / RANKS.strip("/") / "index.html").read_text(encoding="utf-8")
    assert "GPU of the node" in page
    for texts in (site_folder / "search").glob("text-*.json"):
        assert "GPU of the node" not in texts.read_text(encoding="utf-8")


def test_every_query_of_the_table_leads_to_a_page_that_exists() -> None:
    assert len({query for queries in TABLE.values() for query in queries}) >= 60
    sources = {page.rstrip("/") + ".md" for page in TABLE}
    written = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert {s for s in sources if s.startswith(("guide/", "tools/", "appendix/"))} <= written | {
        "appendix/coverage.md"
    }
