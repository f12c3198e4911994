"""The planner in a real browser: its search compared with Python's, its page, its addresses."""

from __future__ import annotations

import random
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from figgen.catalog.interruptions import interruption, interruptions
from figgen.models.memory.fit_probability import chance_shown, fit_words
from figgen.models.planner.ranking import layout_at
from figgen.models.planner.saving import WAYS
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.goodput_plan import kept
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import plan_rows
from figgen.scenarios.planning.planner import fastest, plan
from figgen.scenarios.planning.sizing import sizing, wanted_of
from figgen.units import format_quantity
from tests.browser.engine import Ask
from tests.browser.waits import Held, drawn
from tests.scenarios.test_own_hardware import MINE
from tests.translation.test_models import differing
from tests.translation.test_plans import MEASURED, answered, random_job

SUITES = "planner_suites.js"
PATH = "/tools/planner/"


def test_the_browser_finds_what_python_finds(ask: Ask) -> None:
    """tests/translation/test_plans.py checks many more jobs in the same way in Node."""
    rng = random.Random(24)
    jobs = [random_job(rng) for _ in range(4)]
    wanted = [answered(*job) for job in jobs]
    for job, got, want in zip(jobs, ask("plans", jobs), wanted, strict=True):
        assert next(differing(got, want), None) is None, job
    assert any(one.get("fitting") for one in wanted)


def test_own_hardware_is_that_of_a_file_on_the_command_line(ask: Ask, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(MINE)
    said = {
        "accelerator": {
            "peak_flops_per_s": 800e12, "memory_bytes": 96e9,
            "memory_bandwidth_bytes_per_s": 4e12, "scale_up_bandwidth_bytes_per_s": 600e9,
        },
        "nic": {"bandwidth_bytes_per_s": 25e9},
    }  # fmt: skip
    small = {"nodes": 2, "gpus_per_node": 8, "global_batch": 16, "sequence": 1024}
    jobs = [
        {**small, "model": "llama-3-8b", "measured": MEASURED[0]},
        {**small, "model": "mixtral-8x7b", "etp": 1, "cp": 1, "recompute": "full"},
        {**small, "model": "llama-3-8b", "software": "torchtitan", "cp": 1},
    ]
    shown = ask("plans", [[job | said, False] for job in jobs])
    for job, got in zip(jobs, shown, strict=True):
        want = answered({**job, "accelerator": str(mine), "nic": str(mine)}, False)
        assert want["best"], job
        # A file's numbers pass through units of its own.
        for name in ("step_s", "memory_bytes"):
            assert got.pop(name) == pytest.approx(want.pop(name), rel=1e-12), job
        for one, other in zip(got.pop("terms"), want.pop("terms"), strict=True):
            assert one == pytest.approx(other, rel=1e-9, abs=1e-12), job
        assert got.pop("least_bytes") == pytest.approx(want.pop("least_bytes"), rel=1e-12)
        assert got == want, job


HOSTILE = (
    "nodes=0", "tp=-1", "nodes=1e9", "model=nobody", "schedule=<b>", "recompute=uniform:2",
    "global_batch=x", "chip=own&peak=-1", "zero=7", "nodes=8&nodes=9", "software=%00",
    "tp=7&nodes=2", "measured=bf16-0-0", "measured=bf17-1-1", "measured=memory-1e999",
    "measured=memory", "measured=memory-1_memory-1",
)  # fmt: skip


def test_hostile_addresses_are_refused_in_words_and_others_come_back(ask: Ask) -> None:
    small = "&global_batch=8&sequence=512&cp=1&pp=1"
    shown = ask("addresses", [f"{query}{small}" for query in HOSTILE])
    for query, answer in zip(HOSTILE, shown, strict=True):
        assert answer["problems"] or "error" in answer, query
    kept = [
        "preset=llama-3-8b-fsdp&pp=1&cp=1",
        f"model=llama-3-8b&nodes=1&tp=2&schedule=1f1b{small}",
        f"chip=own&peak=500&hbm=96&bw=2000&nodes=1&model=gpt-2-xl{small}",
        f"measured={MEASURED[0]}&model=llama-3-8b&nodes=1&tp=2&double=0{small}",
    ]
    for query, answer in zip(kept, ask("addresses", kept), strict=True):
        assert (answer["problems"], answer["stays"]) == ([], True), query
        assert answer["fitting"] > 0, query


def test_an_address_of_the_modeler_keeps_its_batch_and_says_what_is_left_out(ask: Ask) -> None:
    own = {"model": "llama-3-8b", "nodes": 2, "tp": 2, "cp": 1, "pp": 1, "sequence": 1024}
    jobs = [
        own | {"microbatches": 3, "microbatch_size": 2},
        {"preset": "llama-3-8b-fsdp", "microbatches": 3, "pp": 1, "cp": 1},
        own | {"microbatches": 3, "global_batch": 24},
        {"model": "llama-3-8b", "nodes": 1, "microbatches": 2},
    ]
    shown = ask("addresses", [urlencode(job) for job in jobs])
    for job, answer in zip(jobs, shown, strict=True):
        wanted = job.get("global_batch") or training_step(**job).setup.global_batch
        assert (answer["batch"], answer["problems"]) == (wanted, []), job
    (usual,) = ask("addresses", [urlencode(own)])
    count = "microbatches: expected a whole number from 1 to 65,536 or auto, got"
    batch = "microbatches: expected a batch of a whole number from 1 to 1,000,000,000, got"
    refused = {
        "microbatches=abc": f"{count} 'abc'",
        f"microbatches={10**12}": f"{count} '{10**12}'",
        "nodes=16&microbatches=65536&microbatch_size=1024": f"{batch} {64 * 65536 * 1024}",
        "microbatches=1&pp=3": f"{batch} 2.6666666666666665",
        "microbatches=3&tp=auto": "microbatches is left out",
        "layers_per_stage=32&efficiency=0.5": "layers_per_stage, efficiency are left out",
    }
    queries = [urlencode(own | dict(parse_qsl(query))) for query in refused]
    for answer, said in zip(ask("addresses", queries), refused.values(), strict=True):
        assert (answer["batch"], answer["problems"]) == (usual["batch"], [said])
    (both,) = ask("addresses", [urlencode(own | {"microbatches": 3, "global_batch": 64})])
    assert (both["batch"], both["problems"]) == (64, ["microbatches is left out"])


def test_a_layout_opens_in_the_modeler_with_the_time_that_was_found(
    ask: Ask,
) -> None:
    query = urlencode({"model": "llama-3-8b", "nodes": 1, "global_batch": 16})
    opened = ask("opened", query)
    given = {name: values[0] for name, values in parse_qs(opened["modeler"]).items()}
    assert given["model"] == "llama-3-8b"
    assert int(given["microbatches"]) * int(given.get("microbatch_size", 1)) <= 16
    map_ = {name: values[0] for name, values in parse_qs(opened["map"]).items()}
    assert {"nodes", "gpus", "tp", "pp"} <= map_.keys()
    # On a chip of one's own too, whose memory says what else a time is predicted from.
    own = {"model": "llama-3-8b", "nodes": 2, "chip": "own", "peak": 500, "up": 300, "bw": 2000}
    for job in (own, own | {"model": "mixtral-8x7b", "global_batch": 64}, {"model": "llama-3-8b"}):
        opened = ask("opened", urlencode(job))
        assert ("bw=2000" in opened["modeler"]) == ("bw" in job)
        assert opened["modeler_s"] == pytest.approx(opened["step_time_s"], rel=1e-6), job


def test_goodput_is_that_of_the_command_line(ask: Ask) -> None:
    jobs = [
        {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8},
        {"model": "llama-3-405b", "nodes": 2048, "gpus_per_node": 8, "recipe": "fsdp16"},
        {"model": "deepseek-v3", "nodes": 16384, "gpus_per_node": 8},
    ]
    cases = [
        [job, way, failures, 15e12, 2**23, 7.5]
        for job in jobs
        for way in WAYS
        for failures in interruptions()
    ]
    for case, got in zip(cases, ask("goodput", cases), strict=True):
        setup = plan_question(scenario(**case[0])).job.setup
        want = kept(setup, case[1], interruption(case[2]))
        days = want.days(*case[3:])
        expected = asdict(want) | {"days": days}
        assert got.keys() == expected.keys()
        for name, value in expected.items():
            assert got[name] == (value if name == "way" else pytest.approx(value, rel=1e-9)), case


def test_the_page_answers_and_opens_what_it_found(page: Page, site: str) -> None:
    page.set_viewport_size({"width": 1366, "height": 900})
    page.goto(f"{site}{PATH}?model=llama-3-8b&nodes=1&global_batch=16&sequence=2048")
    rows = page.locator("#planner .plan-table").first.locator("tbody tr")
    expect(rows).to_have_count(12)
    found = plan(
        plan_question(
            scenario(model="llama-3-8b", nodes=1, gpus_per_node=8, global_batch=16, sequence=2048)
        )
    )
    told = (page.locator(f"#planner .{part}").inner_text() for part in ("plan-best", "plan-answer"))
    said = "\n".join(told)
    for count in (found.layouts, found.fitting):
        assert f"{count:,}" in said
    assert fit_words(found.chance(0)) in said
    offered = plan_rows(found, [0])[0]
    assert re.search(f"ZeRO-{offered.choices['zero_stage']}.* takes", said)
    chances = page.locator("#planner .plan-table").first.locator("tbody td[data-chance]")
    places = page.locator("#planner .plan-table").first.locator("tbody .plan-tick")
    shown_places = [int(text) - 1 for text in places.all_inner_texts()]
    assert chances.all_inner_texts() == [chance_shown(found.chance(at)) for at in shown_places]
    page.locator("#planner h2", has_text="With failures").scroll_into_view_if_needed()
    panel = page.locator("#planner .plan-goodput")
    tokens = panel.get_by_label("Training tokens, billions")
    tokens.fill("15000")
    tokens.press("Enter")
    panel.get_by_label("Fails as").select_option("rsc-1")
    best = plan_rows(found, [0])[0]
    days = [
        kept(found.question.job.setup, way, interruption("rsc-1")).days(
            15e12, 16 * 2048, best.step_s
        )
        for way in WAYS
    ]
    expect(panel.locator("tbody tr")).to_have_count(len(WAYS))
    shown = panel.locator("tbody td:last-child").all_inner_texts()
    numbers = [float(text.split()[0].replace(",", "")) for text in shown]
    assert numbers == pytest.approx(days, rel=0.01)
    expect(page).to_have_url(re.compile("tokens=15000&failures=rsc-1"))
    memory = page.locator("#planner [data-sort=memory]").first
    memory.press("Enter")
    expect(
        page.locator("#planner th[aria-sort=ascending] [data-sort=memory]").first
    ).to_be_focused()
    assert page.locator("#planner .plan-figure svg").get_attribute("role") == "group"
    dots = page.locator("#planner .plan-dots").get_attribute("d") or ""
    assert dots.count("M") == min(500, found.fitting)
    rows.first.get_by_role("link", name="modeler").click()
    expect(page.locator("#modeler .modeler-card").first).to_be_visible()
    again = page.locator(".job-line a[href*='planner/?']").get_attribute("href") or ""
    asked = {name: values[0] for name, values in parse_qs(urlsplit(again).query).items()}
    same = {"model": "llama-3-8b", "sequence": "2048", "global_batch": "16", "nodes": "1"}
    assert asked.items() >= same.items()
    assert "tp" not in asked


# No search of this page ends any more.
ENDLESS = (
    """() => { window.Worker = class extends EventTarget { postMessage() {} terminate() {} } }"""
)
HREFS = "(links) => links.map((link) => link.href).sort()"


def test_trays_of_a_rack_are_said_to_count_as_one_node(page: Page, site: str) -> None:
    page.goto(f"{site}{PATH}?model=llama-3-8b&chip=gb200-nvl72&nodes=2&gpus=4&tp=1&cp=1&pp=1")
    expect(page.locator("#planner")).to_contain_text("2 nodes of 4 GPUs count as 1 of 8")


def test_links_lead_to_layouts_of_the_job_that_was_searched_while_another_one_is(
    page: Page, site: str
) -> None:
    """After sorting, links used to open old layouts with the new job."""
    page.goto(f"{site}{PATH}?model=llama-3-8b&nodes=1&global_batch=16&sequence=2048")
    table = page.locator("#planner .plan-table").first
    expect(table.locator("tbody tr")).to_have_count(12)
    before = table.locator("a").evaluate_all(HREFS)
    page.evaluate(ENDLESS)
    page.locator("#planner [name=sequence]").fill("4096")
    page.locator("#planner .plan-results.is-stale").wait_for()
    table.locator("[data-sort=memory]").press("Enter")
    table.locator("th[aria-sort=ascending] [data-sort=memory]").wait_for()
    assert table.locator("a").evaluate_all(HREFS) == before


def test_a_text_that_cannot_be_read_is_refused_in_words_without_the_modeler(
    page: Page, site: str, asked: list[Request]
) -> None:
    """The part that reads texts used to load it, with errors that the planner then ignored."""
    page.goto(f"{site}{PATH}?model=llama-3-8b&nodes=1&global_batch=16&sequence=2048")
    page.locator(".tool-bring summary").click()
    page.get_by_label("Script, command, configuration or config.json").fill("{")
    page.get_by_role("button", name="Load it").click()
    said = page.locator("#planner .tool-message")
    expect(said).to_contain_text("the text: expected")
    file = {"name": "measured.json", "mimeType": "application/json", "buffer": b"{}"}
    page.get_by_label("Rates measured by measure.py").set_input_files([file])
    expect(said).to_have_count(2)
    expect(page.locator("#planner .plan-messages")).to_contain_text("measured file: ")
    assert not any(request.url.endswith("/modeler.js") for request in asked)


def test_a_pasted_model_is_forgotten_when_a_job_is_chosen_before_it_is_read(
    page: Page, site: str
) -> None:
    page.goto(f"{site}{PATH}?model=llama-3-8b&nodes=1&global_batch=16&sequence=2048")
    expect(page.locator("#planner .plan-table").first.locator("tbody tr")).to_have_count(12)
    held = Held(page, "**/planner_own.js")
    model = page.locator("#planner [name=model]")
    page.locator(".tool-bring summary").click()
    page.get_by_label("Script, command, configuration or config.json").fill("{")
    with page.expect_request("**/planner_own.js"):
        page.get_by_role("button", name="Load it").click()
    page.locator("#planner [name=preset]").select_option("gpt-3-175b")
    drawn(page)
    with page.expect_response("**/planner_own.js"):
        held.come()
    # What comes after the file in the page's own order.
    page.evaluate("async () => { await import('/assets/javascripts/tools/planner_own.js'); }")
    drawn(page)
    assert page.locator("#planner .tool-message").count() == 0
    assert model.input_value() == "megatron22-175b"


def test_the_page_answers_how_many_nodes(page: Page, site: str) -> None:
    job = {"model": "llama-3-8b", "sequence": 4096, "global_batch": 128, "recompute": "full"}
    held = {**job, "cp": 1, "zero": 3}
    asked = {"ask": "deadline", "tokens": 100, "days": 5, "price": 2}
    page.goto(f"{site}{PATH}?{urlencode(held | asked)}")
    answer = page.locator("#planner .plan-sizing .plan-best")
    expect(answer).to_be_visible()
    found = sizing(
        scenario(**job, cp=1, zero_stage=3, gpus_per_node=8, nodes=1),
        wanted_of(
            days=5,
            budget=None,
            fewest=False,
            tokens=1e11,
            price=2,
            failures=interruption("llama-3-405b"),
        ),
    )
    assert found.best is not None
    assert answer.inner_text().startswith(f"{found.best.nodes} nodes, {found.best.gpus} GPUs")
    rows = page.locator("#planner .plan-sizing tbody tr")
    expect(rows).to_have_count(len(found.found))
    assert page.locator("#planner .plan-curves .is-chosen").count() == 2
    # The layouts of that number of nodes follow, with links to it.
    table = page.locator("#planner .plan-table").first
    expect(table.locator("tbody tr").first).to_be_visible()
    link = table.get_by_role("link", name="modeler").first.get_attribute("href") or ""
    assert parse_qs(urlsplit(link).query)["nodes"] == [str(found.best.nodes)]
    page.locator("#planner [name=days]").fill("0.02")
    expect(answer).to_contain_text("No number of nodes is that fast")
    page.locator("#planner [name=tokens]").fill("0.05T")
    expect(page).to_have_url(re.compile("[?&]tokens=50(&|$)"))
    page.locator("#planner [name=ask]").select_option("budget")
    page.locator("#planner [name=price]").fill("")
    expect(page.locator("#planner .plan-messages")).to_contain_text("your price of one GPU")


def test_the_next_steps_stand_below_the_answer(page: Page, site: str) -> None:
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"{site}{PATH}?model=llama-3-8b&nodes=1&global_batch=16&sequence=2048&cp=1")
    steps = page.get_by_role("group", name="With the fastest layout")
    expect(steps).to_be_in_viewport(ratio=1)
    row = page.locator("#planner .plan-table tbody tr").first
    for name, cell in (("Open in the modeler", "modeler"), ("Show its ranks", "map")):
        href = row.get_by_text(cell, exact=True).get_attribute("href") or ""
        expect(steps.get_by_role("link", name=name)).to_have_attribute("href", href)
    steps.get_by_role("button", name="Write its launch file").click()
    expect(page.locator("#planner .plan-next .tool-code")).to_contain_text("torchrun")
    page.locator("#planner [name=nodes]").fill("2")
    expect(page.locator("#planner .plan-next .tool-code")).to_have_count(0)


def test_a_large_search_shows_the_fastest_layout_before_it_has_counted_the_others(
    page: Page, site: str
) -> None:
    job: dict[str, Any] = {"model": "mixtral-8x7b", "nodes": 16, "global_batch": 1024}
    page.goto(f"{site}{PATH}?{urlencode(job)}")
    sentence = page.locator("#planner .tool-sentence")
    expect(sentence).to_contain_text("The other layouts are being counted.")
    found = fastest(plan_question(scenario(**job))).found
    expect(sentence).to_contain_text(f"takes {format_quantity(found.step_s[0], 's', 'time')}")
    steps = page.get_by_role("group", name="With the fastest layout")
    link = steps.get_by_role("link", name="Open in the modeler").get_attribute("href") or ""
    sizes, layout = dict(parse_qsl(urlsplit(link).query)), asdict(layout_at(found, 0))
    axes = ("tp", "cp", "pp", "ep")
    assert [int(sizes.get(axis, 1)) for axis in axes] == [layout[axis] for axis in axes]


def test_ticked_rows_are_compared_and_points_of_the_front_open(page: Page, site: str) -> None:
    page.goto(f"{site}{PATH}?model=llama-3-8b&nodes=1&global_batch=16&sequence=2048&cp=1")
    ticks = page.locator("#planner .plan-table").first.locator("input[type=checkbox]")
    expect(ticks.first).to_be_visible()
    compared = page.locator("#planner .plan-compared th[scope=col]")
    ticks.nth(0).check()
    assert compared.count() == 0
    ticks.nth(2).check()
    expect(compared).to_have_count(3)
    # What a reader does next is on the screen, however long the table is.
    page.set_viewport_size({"width": 1366, "height": 500})
    ticks.nth(2).scroll_into_view_if_needed()
    show = page.get_by_role("button", name="Compare the 2 ticked layouts")
    expect(show).to_be_in_viewport(ratio=1)
    show.press("Enter")
    expect(compared.first).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("group", name="Ticked layouts side by side")).to_be_focused()
    first = page.locator("#planner .plan-figure a").first.get_attribute("href") or ""
    assert first.startswith("../modeler/?model=llama-3-8b")
    ticks.nth(0).uncheck()
    expect(compared).to_have_count(0)
