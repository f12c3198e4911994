"""The bandwidth converter in a real browser, compared with what `figgen convert` prints."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from figgen.formulas import evaluate, worked
from figgen.models.collectives.closed_forms import BUS_BANDWIDTHS
from figgen.quantity_shown import format_number
from figgen.units import format_quantity
from tests.browser.modeler import printed, text_of
from tests.browser.waits import addressed

PATH = "/tools/converter/"
# Sets fields one after the other and reads all answers, once for each case.
ANSWERS = """(cases) => cases.map((fields) => {
  for (const [name, value] of Object.entries(fields)) {
    const field = document.querySelector(`#converter [name=${name}]`);
    field.value = value;
    field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input"));
  }
  return [...document.querySelectorAll("#converter .converter-out")].map((box) =>
    [...box.querySelectorAll("dd")].map((row) => [
      [...row.querySelectorAll("strong")].map((one) => one.textContent),
      row.querySelector("small span + span")?.textContent ?? null]));
})"""


def opened(page: Page, site: str, query: str = "") -> Page:
    page.goto(f"{site}{PATH}{query}")
    page.locator("#converter .converter-rows small").first.wait_for()
    return page


def rate(value: float) -> str:
    return format_quantity(value, "B/s", "si.4")


def shown(answer: dict[str, float]) -> list[list[str]]:
    """Return numbers of the command line's JSON in the form in which the page shows them."""
    said = [
        [format_quantity(answer["time_s"], "s", "si.4")],
        [rate(answer["algbw_bytes_per_s"])],
        [rate(answer["busbw_bytes_per_s"])],
    ]
    return [*said, [rate(answer["port_bytes_per_s"])]]


def test_answers_are_those_of_the_command_line(page: Page, site: str) -> None:
    opened(page, site)
    known = (("time", "43,5 ms"), ("algbw", "48 GB/s"), ("busbw", "1,600 Gbps"))
    sizes = (("2", "1"), ("16", "8"), ("576", "72"))
    cases: list[dict[str, str]] = [
        {
            "collective": name,
            "ranks": ranks,
            "width": width,
            "ports": "4",
            "bytes": "8 GiB",
            "known": way,
            way: value,
        }
        for name, (way, value), (ranks, width) in itertools.product(BUS_BANDWIDTHS, known, sizes)
    ]
    for case, [rows, _, _] in zip(cases, page.evaluate(ANSWERS, cases), strict=True):
        way = case["known"]
        answer = printed(
            f"figgen convert busbw {case['collective']} --ranks {case['ranks']} --bytes '8 GiB' "
            f"--{way} '{case[way]}' --ranks-per-node {case['width']} --ports 4 --json"
        )
        assert [texts[:1] for texts, _ in rows] == shown(answer), case
        line_rate = answer["busbw_bytes_per_s"] * 8 / 1e9
        assert rows[2][0][1] == f"{format_number(line_rate, 4)}\u00a0Gb/s"
        assert all(line for _, line in rows[1:]), "each answer beside its formula"
    said = text_of(
        f"figgen convert busbw {case['collective']} --ranks 576 --bytes '8 GiB' "
        "--busbw '1,600 Gbps' --ranks-per-node 72 --ports 4 --line-rate '400 Gb/s'"
    )
    expect(page.locator("#converter > .tool-sentence")).to_have_text(said.splitlines()[0])
    bare = {"bytes": "8", "known": "time", "time": "5 μs"}
    [[rows, _, _]] = page.evaluate(ANSWERS, [bare])
    assert rows[-1][0] == ["8 has no unit: read as bytes"]
    quoted: list[dict[str, Any]] = [
        {"link": "900 GB/s", "ways": "two", "peak": "3958 TFLOP/s", "zeros": "sparse"},
        {"link": "400 Gb/s", "ways": "one", "peak": "989.4 TFLOP/s", "zeros": "dense"},
    ]
    for case, [_, link, peak] in zip(quoted, page.evaluate(ANSWERS, quoted), strict=True):
        both, sparse = case["ways"] == "two", case["zeros"] == "sparse"
        one = printed(
            f"figgen convert link '{case['link']}' {'--as two-way' if both else ''} --json"
        )
        assert link[0][0][0] == rate(one["one_way_bytes_per_s"])
        assert link[1][0][0] == rate(one["two_way_bytes_per_s"])
        chip = printed(
            f"figgen convert peak '{case['peak']}' {'--as sparse' if sparse else ''} --json"
        )
        assert peak[0][0][0] == format_quantity(chip["dense_flops_per_s"], "FLOP/s", "si.4")
        assert (link[0][1] is not None, peak[0][1] is not None) == (both, sparse)


def test_page_is_worked_by_keys_refuses_in_words_and_reads_without_a_script(
    page: Page, site: str, axe: Callable[..., list[str]]
) -> None:
    opened(page, site)
    line = worked(
        evaluate("all_reduce_bus_bandwidth", ranks=16, message_bytes=2**33, time_s=43e-3), "si.4"
    )
    out = page.get_by_role("group", name="Measured collective", exact=True)
    expect(out).to_contain_text(line.text)
    static = page.evaluate("document.querySelector('noscript.tool-static').textContent")
    for number in (">375", ">46.8", ">200", ">450", ">1.98"):
        assert number in static, "the same numbers stand in the static part"
    assert axe(page) == []
    page.get_by_label("Collective", exact=True).focus()
    page.keyboard.press("ArrowDown")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "algbw"
    page.keyboard.type("fast")
    expect(out).to_contain_text("algbw: expected an amount such as 200 GB/s, got 'fast'")
    assert page.locator("[name=algbw]").get_attribute("aria-invalid") == "true"
    assert axe(page) == []
    page.keyboard.press("Control+a")
    page.keyboard.type("200 GB/s")
    expect(out).to_contain_text("187.5\u00a0GB/s")
    addressed(page, algbw="200 GB/s")
    again = opened(page, site, page.evaluate("location.search"))
    expect(again.get_by_role("group", name="Measured collective", exact=True)).to_contain_text(
        "187.5\u00a0GB/s"
    )
    opened(page, site, "?bytes=<img src=x>&collective=constructor&ranks=1e9")
    assert page.locator("#converter img").count() == 0
    expect(page.locator("#converter .is-bad")).to_have_count(1)
    expect(page.locator("#converter .is-warning")).to_contain_text(
        "In the address, collective: expected one of all-reduce, "
    )
    opened(page, site, "?colective=broadcast&ranks=4&ranks=8")
    told = page.locator("#converter .is-warning")
    expect(told.nth(0)).to_contain_text("'colective' (did you mean collective?)")
    expect(told.nth(1)).to_contain_text("ranks: expected one value, got 'several'")
    expect(page.locator("[name=ranks]")).to_have_value("4")
    # Who does not see the page hears of the part that was changed.
    page.locator("[name=link]").fill("1800 GB/s")
    expect(page.locator("#converter [role=status]")).to_contain_text("900\u00a0GB/s")


def test_a_speed_of_training_leads_to_its_mfu(page: Page, site: str) -> None:
    opened(page, site, "?m.model=llama-3-8b&m.nodes=1&m.gpus=8")
    page.get_by_text("Paste a log or a speed").click()
    text = page.get_by_label("Log or speed")
    for said, speed in (
        ("7000 tokens/s/GPU", "7000 tokens/s/GPU"),
        ("step: 10  loss: 2.1  memory: 45.2GiB(57%)  tps: 6,500  tflops: 300.1  mfu: 30.3%",
         "6500 tokens/s"),
    ):  # fmt: skip
        text.fill(said)
        page.get_by_role("button", name="Load it").click()
        link = page.get_by_role("link", name=f"Is {speed} good?")
        expect(link).to_be_visible()
    text.fill("a cup of tea")
    page.get_by_role("button", name="Load it").click()
    expect(page.locator(".tool-bring")).to_contain_text("a speed such as 7000 tokens/s")
    text.fill("7000 tokens/s")
    page.get_by_role("button", name="Load it").click()
    page.get_by_role("link", name="Is 7000 tokens/s good?").click()
    judged = page.locator("#is-my-number-good")
    expect(judged.locator("textarea")).to_have_value("7000 tokens/s")
    expect(judged.locator(".tool-answer")).to_contain_text("Your step is")
    expect(page.locator(".tool-sentence")).to_contain_text("Llama 3.1 8B on 8 ×")
    page.goto(f"{site}/tools/modeler/?nodes=2#is-my-number-good=45%")  # a percent sign by hand
    expect(judged.locator("textarea")).to_have_value("45%")


def test_a_line_rate_in_bits_is_one_direction_s(page: Page, site: str) -> None:
    opened(page, site, "?link=400+Gbps")
    first = page.locator("#converter .converter-out").nth(1).locator("dd").first
    expect(first).to_contain_text("50\u00a0GB/s")
    ways = page.locator("#converter [name=ways]")
    expect(ways).to_have_value("one")
    ways.select_option("two")
    expect(first).to_contain_text("25\u00a0GB/s")
    addressed(page, ways="two")
    page.goto(f"{site}{PATH}")
    expect(ways).to_have_value("two")
    page.locator("#converter [name=link]").fill("400 Gb/s")
    expect(ways).to_have_value("one")
