"""What the rank map exports and imports: files, commands, pasted launch lines."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
from typing import Any

from playwright.sync_api import Page, expect

from figgen.__main__ import main
from figgen.scenarios.tools.data import layouts
from tests.browser.rank_map import KEEP_FILES, opened
from tests.browser.site import ROOT

ORACLE = ROOT / "tests" / "oracles" / "megatron_rank_groups.json"
LOAD_AND_READ = """async (commands) => {
  const frame = () => new Promise(requestAnimationFrame);
  const answers = [];
  for (const [text, shows] of commands) {
    document.querySelector(".tool-bring textarea").value = text;
    const answer = document.querySelector(".tool-answer");
    answer.replaceChildren();
    [...document.querySelectorAll("button")].find((b) => b.textContent === "Load it").click();
    while (!answer.children.length) await frame();
    await frame().then(frame);
    const before = window.kept.length;
    document.querySelector("[data-file=json]").click();
    while (window.kept.length === before) await frame();
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


def test_every_preset_is_loaded_and_exported_as_the_command_line_prints_it(
    page: Page, site: str
) -> None:
    """The whole text is compared for worlds up to 512 GPUs, number and size of groups
    for others."""
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
            const before = window.kept.length;
            document.querySelector("[data-file=json]").click();
            while (window.kept.length === before) await frame();
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
    """Return whether groups equal those of the oracle, which stores a digest of long lists."""
    if isinstance(frozen, list):
        return frozen == got
    return frozen["sha256"] == hashlib.sha256(json.dumps(got).encode()).hexdigest()


def test_groups_of_megatron_itself_come_out_of_a_pasted_command_line(page: Page, site: str) -> None:
    """The groups are read from the file, and from the picture if it is an SVG."""
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


EDGES = """() => [...document.querySelectorAll(".tool-answer .tool-message")]
  .map((box) => getComputedStyle(box).borderInlineStartColor)"""


def test_a_pasted_layout_that_cannot_be_placed_is_not_said_to_be_loaded(
    page: Page, site: str
) -> None:
    opened(page, site)
    page.locator(".tool-bring summary").click()
    line = page.get_by_label("Script, command, configuration or config.json")
    load = page.get_by_role("button", name="Load it")
    launch = page.get_by_label("Launch settings", exact=True)
    line.fill("python -m x --nnodes 4 --nproc_per_node 8 --tensor-model-parallel-size 3")
    load.click()
    told = page.locator(".tool-answer")
    expect(told).to_contain_text("can't be placed")
    expect(told).not_to_contain_text("was loaded")
    expect(told).to_contain_text("32 GPUs cannot be divided into replicas of 3")
    expect(page.locator(".map-messages .is-bad")).to_contain_text("got 3")
    expect(launch).to_be_hidden()
    assert page.locator("[data-file]:enabled, [data-launcher]:enabled").count() == 0
    line.fill("--bf16 --nnodes 4 --nproc_per_node 8 --tensor-model-parallel-size 4")
    load.click()
    expect(told).to_contain_text("was loaded")
    assert len(set(page.evaluate(EDGES))) == 2, "an edge of its own tells what is good"
    expect(launch).to_contain_text("--tensor-model-parallel-size 4")
    page.locator("[name=tp]").fill("2")
    expect(told).to_be_empty()


# A browser with much to do is never idle, and does not call back then.
NEVER_IDLE = """() => {
  HTMLCanvasElement.prototype.toBlob = () => {};
  window.requestIdleCallback = () => 0;
}"""


def test_no_tool_waits_until_the_browser_is_idle_before_it_hands_over_a_file() -> None:
    """Chromium delays the encoding of a canvas until it is idle, in a page and in a worker."""
    scripts = (ROOT / "docs" / "assets" / "javascripts").rglob("*.js")
    waiting = [
        path.name
        for path in scripts
        if re.search(r"\.(toBlob|convertToBlob)\(", path.read_text("utf-8"))
    ]
    assert waiting == []


def test_files_are_handed_over(page: Page, site: str) -> None:
    opened(page, site, "?preset=map-32&show=pp")
    page.evaluate(KEEP_FILES)
    page.evaluate(NEVER_IDLE)
    for count, kind in enumerate(("svg", "csv", "png"), 1):
        page.locator(f"[data-file={kind}]").click()
        page.wait_for_function("(count) => window.kept.length === count", arg=count)
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
    assert answers["title"].startswith("32 GPUs, 4 × 8: TP 8, CP 1, DP 2, PP 2; colored by PP")
    assert answers["pp"] == [rank % 16 for rank in range(32)]
    assert answers["lines"] == 1 + 8 * 32 + 1
    assert min(answers["size"]) > 100
