"""The page of the rank map: what a reader does with it, by mouse, key, finger and address."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from figgen.__main__ import main
from figgen.layouts import layouts
from figgen.models.layout import layout, mesh_of
from figgen.models.mesh import groups
from tests.browser.site import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MAP = "/tools/rank-map/"
ORACLE = ROOT / "tests" / "oracles" / "megatron_rank_groups.json"
# Runs in the page: whatever would be downloaded is kept as text instead.
KEEP_FILES = """() => {
  window.kept = [];
  URL.createObjectURL = (blob) => { window.kept.push(blob); return "data:,"; };
}"""
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
PICTURE = """() => Object.fromEntries([...document.querySelectorAll(".map-svg [data-rank]")]
  .map((gpu) => [gpu.dataset.rank, Number(gpu.dataset.group)]))"""


@pytest.fixture
def instant(page: Page, site: str, site_folder: Path) -> Page:
    """The theme changes pages without loading them only if the site map has their address."""
    text = (site_folder / "sitemap.xml").read_text(encoding="utf-8")
    here = re.sub(r"(?<=<loc>)https?://[^/]+", site, text)
    page.route("**/sitemap.xml", lambda route: route.fulfill(body=here, content_type="text/xml"))
    return page


def opened(page: Page, site: str, query: str = "") -> Page:
    page.set_viewport_size({"width": 1366, "height": 900})
    page.goto(f"{site}{MAP}{query}")
    page.locator(".map-box").wait_for()
    return page


def query_of(page: Page) -> str:
    """The query of the address once it has been rewritten."""
    page.wait_for_timeout(220)
    return page.evaluate("location.search")


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
    assert page.locator(".map-messages").inner_text() == ""
    assert query_of(page) == ""


def test_every_preset_is_loaded_and_exported_as_the_command_line_prints_it(
    page: Page, site: str
) -> None:
    """Whole text for worlds up to 512 GPUs; how many and how large for the others."""
    opened(page, site)
    page.evaluate(KEEP_FILES)
    names = [found["name"] for found in layouts()]
    shown = page.evaluate(
        """async (names) => {
          const frame = () => new Promise(requestAnimationFrame);
          const select = document.querySelector("[name=preset]");
          const answers = [];
          for (const name of names) {
            select.value = name;
            select.dispatchEvent(new Event("change"));
            await frame().then(frame);
            document.querySelector("[data-file=json]").click();
            const text = await window.kept.at(-1).text();
            const command = document.querySelector(".map-command").textContent;
            const refused = document.querySelectorAll(".map-messages .is-bad").length;
            answers.push({ name: select.value, command, refused,
              world: JSON.parse(text).world_size, text: text.length < 60000 ? text : null });
          }
          return answers;
        }""",
        names,
    )
    assert [answer["name"] for answer in shown] == names
    assert [a["world"] for a in shown] == [found["nodes"] * found["gpus"] for found in layouts()]
    assert sum(answer["refused"] for answer in shown) == 0
    whole = [answer for answer in shown if answer["text"]]
    assert len(whole) >= 8
    for answer in whole:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(answer["command"].removeprefix("figgen ").split())
        assert answer["text"] == out.getvalue(), answer["name"]


def flags(case: dict[str, Any]) -> str:
    names = {
        "tp": "tensor-model-parallel-size", "pp": "pipeline-model-parallel-size",
        "cp": "context-parallel-size", "ep": "expert-model-parallel-size",
        "etp": "expert-tensor-parallel-size",
    }  # fmt: skip
    given = " ".join(f"--{names[axis]} {case[axis]}" for axis in names if axis in case)
    return f"torchrun --nnodes {case['world'] // 8} --nproc-per-node 8 pretrain.py {given}"


def same_groups(frozen: Any, got: list[list[int]]) -> bool:
    """Whether groups are those of the oracle, which keeps a digest of long lists."""
    if isinstance(frozen, list):
        return frozen == got
    return frozen["sha256"] == hashlib.sha256(json.dumps(got).encode()).hexdigest()


LOAD_AND_READ = """async (commands) => {
  const frame = () => new Promise(requestAnimationFrame);
  const answers = [];
  for (const [text, shows] of commands) {
    document.querySelector(".map-take textarea").value = text;
    [...document.querySelectorAll("button")].find((b) => b.textContent === "Load it").click();
    await frame().then(frame);
    document.querySelector("[data-file=json]").click();
    const drawn = {};
    for (const name of shows) {
      document.querySelector(`[data-show="${name}"]`).click();
      await frame().then(frame);
      drawn[name] = [];
      for (const { dataset } of document.querySelectorAll(".map-svg [data-rank]")) {
        (drawn[name][dataset.group] ??= []).push(Number(dataset.rank));
      }
    }
    answers.push({ file: await window.kept.at(-1).text(), drawn });
  }
  return answers;
}"""


def test_groups_of_megatron_itself_come_out_of_a_pasted_command_line(page: Page, site: str) -> None:
    """In the file, and in the picture where it is an SVG."""
    opened(page, site)
    page.evaluate(KEEP_FILES)
    cases = json.loads(ORACLE.read_text("utf-8"))["cases"]
    small = ("tp", "pp", "dp", "tp-cp", "dp-cp")
    commands = [[flags(case), small if case["world"] <= 128 else ()] for case in cases]
    own = {"tp": "etp", "dp": "edp", "ep": "ep", "pp": "pp"}
    for case, answer in zip(cases, page.evaluate(LOAD_AND_READ, commands), strict=True):
        found = json.loads(answer["file"])
        assert found["world_size"] == case["world"]
        for axis in ("tp", "cp", "dp", "pp"):
            assert same_groups(case["dense"][axis], found["dense"][axis]), (case["world"], axis)
        for axis, name in own.items():
            assert same_groups(case["expert"][axis], found["expert"][name]), (case["world"], axis)
        assert same_groups(case["dense"]["dp-cp"], found["combined"]["dp-cp"])
        assert len(answer["drawn"]) == (5 if case["world"] <= 128 else 0)
        for name, drawn in answer["drawn"].items():
            assert same_groups(case["dense"][name], drawn), (case["world"], name)


def test_what_does_not_fit_is_said_in_words_with_ways_out(page: Page, site: str) -> None:
    opened(page, site, "?nodes=2&gpus=8&tp=8")
    page.locator("[name=tp]").fill("3")
    told = page.locator(".map-messages .is-bad")
    told.wait_for()
    assert "TP·CP·PP = 3·1·1: expected a divisor of 16" in told.inner_text()
    assert page.locator(".map-picture.is-stale").count() == 1
    ways = told.locator("[data-nearest]")
    assert ways.all_inner_texts() == ["TP 3 → 4", "TP 3 → 2", "nodes 2 → 3"]
    ways.first.focus()
    page.keyboard.press("Enter")
    page.locator(".map-messages .is-bad").wait_for(state="detached")
    assert page.evaluate("document.activeElement.matches('.map-summary')"), "the place is kept"
    assert page.locator("[name=tp]").input_value() == "4"
    assert page.locator("[name=dp]").input_value() == "4"
    assert query_of(page) == "?nodes=2&tp=4"
    page.locator("[name=dp]").fill("8")  # DP is derived, but can be asked for
    page.locator("[data-nearest]").first.wait_for()
    page.get_by_role("button", name="nodes 2 → 4").click()
    page.locator(".map-messages .is-bad").wait_for(state="detached")
    assert page.locator("[name=nodes]").input_value() == "4"


def test_tensor_groups_that_leave_their_node_are_warned_of(page: Page, site: str) -> None:
    opened(page, site, "?nodes=4&gpus=4&tp=8")
    warned = page.locator(".map-messages .is-warning").first.inner_text()
    assert "TP=8 is larger than a node of 4 GPUs" in warned


def test_hostile_address_is_text_and_changes_nothing(page: Page, site: str) -> None:
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    opened(page, site, "?order=<img src=x onerror=alert(1)>&tp=-1&nodes=1e99&show=<b>x</b>&h=x")
    told = page.locator(".map-messages .is-warning")
    assert told.count() == 4
    assert "<img src=x onerror=alert(1)>" in told.first.inner_text()
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
    assert page.locator(".map-svg").inner_html() == picture
    assert page.locator(".map-details h2").inner_text() == "Rank 9"
    handed = page.locator("#rank-map a[href*='modeler']").get_attribute("href")
    assert handed == "../modeler/?nodes=4&tp=2&pp=4&order=llama3&show=dp"


def test_order_tells_which_ranks_move(page: Page, site: str) -> None:
    opened(page, site, "?nodes=8&tp=8&pp=4&order=llama3&moved=1")
    assert page.locator(".map-moves").inner_text().startswith("48 of 64 ranks hold another part")
    assert page.locator(".map-svg .map-moved").count() == 48
    page.locator("[name=order]").select_option("own")
    page.locator("[name=own-order]").fill("pp-tp-dp")
    page.locator(".map-summary", has_text="PP 4 · TP 8").wait_for()
    page.locator("[name=own-order]").fill("pp-tp-")
    assert page.locator("[name=own-order]").get_attribute("aria-invalid") == "true"


def test_keyboard_walks_from_preset_to_picture_and_back(page: Page, site: str) -> None:
    opened(page, site, "?nodes=4&tp=4&pp=2")
    page.locator("[name=tp]").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.map-box')"):
            break
    box = page.locator(".map-box")
    assert box.evaluate("(b) => b === document.activeElement && b.role") == "grid"

    def cursor() -> str:
        return page.locator("#map-cursor").get_attribute("aria-label") or ""

    assert box.get_attribute("aria-activedescendant") == "map-cursor"
    assert cursor().startswith("Rank 0, node 0, GPU 0: tp 0, cp 0, dp 0, pp 0")
    assert "TP group 0: 0, 1, 2, 3" in cursor()
    page.keyboard.press("ArrowRight")
    assert cursor().startswith("Rank 1,")
    page.keyboard.press("End")
    page.keyboard.press("PageDown")
    assert cursor().startswith("Rank 15, node 1, GPU 7")
    page.keyboard.press("Enter")
    page.locator(".map-details h2", has_text="Rank 15").wait_for()
    page.keyboard.press("Control+End")
    assert cursor().startswith("Rank 31,")
    page.keyboard.press("i")
    page.evaluate(NEXT_FRAME)
    page.locator(".map-entry[aria-pressed=true]").wait_for()
    assert query_of(page).endswith("rank=15&group=7")
    assert page.locator(".map-svg rect.map-plain").count() == 28
    said = page.locator(".tool-live[role=status]")
    page.wait_for_timeout(200)
    assert "32 GPUs" in said.inner_text()
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
    page.evaluate(NEXT_FRAME)
    names = ("tp", "dp", "pp", "etp", "edp")
    all_groups = [group for name in names for group in groups(mesh_of(parallel, name), name)]
    around = {rank for group in all_groups if 13 in group for rank in group}
    assert set(page.evaluate(framed)) == around
    page.mouse.move(2, 2)
    page.locator(".map-details h2", has_text="No GPU chosen").wait_for()


def test_files_are_handed_over(page: Page, site: str) -> None:
    opened(page, site, "?preset=map-32&show=pp")
    page.evaluate(KEEP_FILES)
    for kind in ("svg", "csv", "png"):
        page.locator(f"[data-file={kind}]").click()
    for _ in range(50):  # the page's policy forbids Playwright to wait for a condition
        if page.evaluate("window.kept.length") == 3:
            break
        page.wait_for_timeout(20)
    answers = page.evaluate(
        """async () => {
          const [svg, csv, png] = window.kept;
          const drawn = new DOMParser().parseFromString(await svg.text(), "image/svg+xml");
          const bitmap = await createImageBitmap(png);
          return { error: drawn.querySelectorAll("parsererror").length,
            title: drawn.querySelector("title").textContent,
            pp: [...drawn.querySelectorAll("[data-rank]")].map((r) => Number(r.dataset.group)),
            lines: (await csv.text()).split("\\n").length, size: [bitmap.width, bitmap.height] };
        }"""
    )
    assert answers["error"] == 0
    assert answers["title"].startswith("32 GPUs, 4 × 8: TP 8, CP 1, DP 2, PP 2; coloured by PP")
    assert answers["pp"] == [rank % 16 for rank in range(32)]
    assert answers["lines"] == 1 + 8 * 32 + 1
    assert min(answers["size"]) > 100


def test_leaving_and_coming_back_without_a_page_load(instant: Page, site: str) -> None:
    page = opened(instant, site, "?preset=map-64&show=dp")
    page.wait_for_load_state("networkidle")
    page.evaluate("window.stays = true")
    page.locator(".map-note a", has_text="chapter").click()
    page.wait_for_url("**/guide/rank-mapping/**")
    page.locator("#rank-map").wait_for(state="detached")
    page.wait_for_load_state("networkidle")
    assert page.locator("head [name=color-scheme], head [href*='rank-map.css']").count() == 1
    asked = "performance.getEntriesByType('resource').map(({ name }) => name)"
    assert sum("page.css" in name for name in page.evaluate(asked)) == 1
    page.go_back()
    page.locator(".map-svg [data-rank]").nth(63).wait_for()
    assert page.evaluate("window.stays") is True
    page.locator("[data-show=tp]").click()
    page.evaluate(NEXT_FRAME)
    assert page.evaluate(PICTURE)["9"] == 1
    assert query_of(page) == "?preset=map-64"


def test_chapter_opens_the_tool_without_a_page_load(instant: Page, site: str) -> None:
    page = instant
    page.goto(f"{site}/guide/rank-mapping/", wait_until="networkidle")
    page.evaluate("window.stays = true")
    page.locator("article a[href*='tools/rank-map/']").first.click()
    page.locator(".map-box").wait_for()
    assert page.evaluate("window.stays") is True
    assert page.locator(".map-columns").evaluate("(e) => getComputedStyle(e).display") == "grid"
    assert not page.locator("#fig-map-gpus").is_visible(), "that is for readers without scripts"


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
    assert page.locator(".map-overview").is_hidden()
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    page.evaluate(NEXT_FRAME)
    assert page.locator(".map-overview").is_visible()
    near = page.evaluate(corner)
    assert near != whole
    edge = page.locator(".map-box").bounding_box()
    assert edge is not None
    page.mouse.move(edge["x"] + 300, edge["y"] + 300)
    page.mouse.down()
    page.mouse.move(edge["x"] + 200, edge["y"] + 250, steps=3)
    page.mouse.up()
    page.evaluate(NEXT_FRAME)
    panned = page.evaluate(corner)
    assert panned != near
    assert page.locator(".map-details h2").inner_text() != "Rank 0", "a drag chooses nothing"
    page.locator("[data-md-component=palette] label:visible").click()
    page.locator("body[data-md-color-scheme=slate]").wait_for()
    page.evaluate(NEXT_FRAME)
    assert page.evaluate(corner) != panned
    page.get_by_role("button", name="Show the whole cluster").click()
    page.evaluate(NEXT_FRAME)
    assert page.locator(".map-overview").is_hidden()
    page.locator(".map-box").focus()
    page.keyboard.press("Control+End")
    assert (page.locator("#map-cursor").get_attribute("aria-label") or "").startswith("Rank 16383,")


def test_on_a_phone_a_tap_chooses_and_nothing_goes_sideways(chromium: Browser, site: str) -> None:
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for query in ("", "?preset=deepseek-v3&show=ep", "?nodes=3&tp=5"):
        page.goto(f"{site}{MAP}{query}")
        page.locator(".map-box").wait_for()
        assert page.evaluate(sideways) == 0
    page.goto(f"{site}{MAP}")
    page.locator(".map-svg [data-rank='75']").tap()
    page.locator(".map-details h2", has_text="Rank 75").wait_for()
    small = page.evaluate(
        """() => [...document.querySelectorAll("#rank-map :is(button, input, select, textarea)")]
          .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
          .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
          .filter(([text]) => !text.includes("checkbox")).map(([text]) => text)"""
    )
    context.close()
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


def test_script_of_the_page_weighs_less_than_60_kb(
    page: Page, site: str, site_folder: Path
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(f"{site}/")))
    opened(page, site)
    theme = ("assets/javascripts/bundle", "assets/javascripts/workers/")
    scripts = [path for path in asked if path.startswith("assets/javascripts/")]
    own = [path for path in scripts if not path.startswith(theme)]
    assert "assets/javascripts/tools/rank-map.js" in own
    files = {*own, "assets/javascripts/formulas.js"}
    assert sum(len(gzip.compress((site_folder / f).read_bytes(), 9)) for f in files) < 60_000


def test_without_scripts_the_first_configuration_and_the_presets_are_there(
    chromium: Browser, site: str
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}{MAP}")
    assert page.locator("#fig-map-gpus").is_visible()
    assert page.locator("#fig-map-gpus .fig-tabs input").count() == 5
    assert page.locator("#fig-map-gpus [data-rank]").count() >= 128
    assert page.locator("#rank-map").inner_text().strip() == ""
    context.close()
    scripted = chromium.new_page()
    scripted.goto(f"{site}{MAP}")
    assert not scripted.locator("#fig-map-gpus").is_visible()
    scripted.close()
