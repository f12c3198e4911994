"""One job in the address of every tool, whichever tool wrote it."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from figgen.scenarios.tools.data import layouts
from tests.browser.engine import Ask
from tests.browser.test_job_line import TOOLS

SUITES = "address_suites.js"
SHARING = ("modeler", "planner", "rank-map", "schedules", "converter")
JOB = {
    "model": "llama-3-8b", "nodes": "4", "chip": "h200-sxm-141gb", "tp": "2", "pp": "4",
    "microbatch_size": "2", "zero": "0", "sp": "0", "sequence": "4096",
}  # fmt: skip
"""A job without its batch; four keys of it look like typos of keys of other tools."""

BARE = JOB | {"microbatches": "16"}
BATCH = "128"  # 4 nodes of 8 GPUs make 4 replicas of 8, each with 16 microbatches of 2
RECORD = JOB | {"gpus": "8", "cp": "1", "software": "megatron-bridge 26.04", "global_batch": BATCH}


def carried(job: dict[str, str], **own: str) -> str:
    """Return an address with keys of its tool's own, which carries the rest of a job."""
    return urlencode(own | {f"m.{key}": value for key, value in job.items() if key not in own})


WRITTEN = {
    "modeler": urlencode(BARE),
    "planner": urlencode(JOB | {"global_batch": BATCH}),
    "rank-map": carried(RECORD, nodes="4", tp="2", pp="4"),
    "schedules": carried(RECORD, microbatches="16", stages="4"),
    "converter": carried(RECORD, ranks="32", width="8"),
    "profile, measure and verdict": carried(RECORD),
}
"""The address of a job in each tool."""


def test_every_tool_takes_or_carries_the_whole_job_of_every_address(ask: Ask) -> None:
    shared = ask("shared", [list(layouts()), list(WRITTEN.values())])
    assert tuple(shared) == SHARING
    for tool, answers in shared.items():
        for source, found in zip(WRITTEN, answers, strict=True):
            known = dict(found["taken"]) | dict(found["job"])
            where = (source, tool, found)
            assert {key: known.get(key) for key in JOB} == JOB, where
            assert known.get("microbatches") == "16" or known.get("global_batch") == BATCH, where
            foreign = {"schedules": ["stages"], "converter": ["ranks", "width"]}.get(source, [])
            foreign = [] if source == tool else foreign
            verb = "is" if len(foreign) == 1 else "are"
            said = [f"{', '.join(foreign)} {verb} left out"] if foreign else []
            assert found["problems"] == said, where
            if tool in ("modeler", "planner"):
                assert found["job"] == [], where


def test_keys_that_a_tool_has_no_use_for_are_carried_or_named(ask: Ask) -> None:
    addresses = {
        "the planner's question": "model=llama-3-8b&nodes=2&ask=deadline&days=3",
        "two configurations": "model=llama-3-8b&nodes=2&compare=1&b.tp=4",
        "own numbers": "model=own&layers=12&hidden=1024&chip=own&peak=100&nodes=2",
        "a typo": "model=llama-3-8b&nodess=4",
        "of another site": "model=llama-3-8b&nodes=2&utm_source=x&h=rank",
        "twice": "model=llama-3-8b&nodes=2&m.nodes=4",
    }
    answers = ask("shared", [list(layouts()), list(addresses.values())])
    found = {tool: dict(zip(addresses, answers[tool], strict=True)) for tool in SHARING}

    def problems(about: str) -> list[list[str]]:
        return [found[tool][about]["problems"] for tool in SHARING]

    assert problems("the planner's question") == [["ask, days are left out"], [], [], [], []]
    assert problems("two configurations") == [[], ["compare, b.tp are left out"], [], [], []]
    for about in ("own numbers", "of another site"):
        assert problems(about) == [[]] * 5
    typo = ["unknown key 'nodess' (did you mean nodes?)"]
    assert problems("a typo")[:3] == [typo] * 3
    for tool in ("rank-map", "schedules", "converter"):
        question = dict(found[tool]["the planner's question"]["job"])
        assert (question["ask"], question["days"]) == ("deadline", "3")
        both = dict(found[tool]["two configurations"]["job"])
        assert (both["compare"], both["b.tp"]) == ("1", "4")
        own = dict(found[tool]["own numbers"]["job"])
        assert (own["layers"], own["peak"]) == ("12", "100")  # not the lab's nor the converter's
    assert ["nodes", "4"] in found["modeler"]["twice"]["taken"]
    assert ["nodes", "2"] in found["modeler"]["twice"]["taken"]


def test_every_key_of_every_tool_is_one_of_a_job_or_known_to_be_none(ask: Ask) -> None:
    named = list(layouts())
    assert ask("unlisted", named) == []
    assert ask("unasked", named) == [[], []]


USED = {
    "modeler": {"nodes": "4", "tp": "2", "microbatches": "16"},
    "planner": {"nodes": "4", "tp": "2", "global_batch": BATCH},
    "rank-map": {"nodes": "4", "tp": "2", "pp": "4"},
    "schedules": {"stages": "4", "microbatches": "16"},
    "converter": {"ranks": "32", "width": "8"},
}
"""What a tool shows of the job in fields."""


@pytest.mark.parametrize("tool", TOOLS)
def test_a_job_that_is_copied_into_the_address_of_a_tool_is_used_and_handed_on(
    page: Page, site: str, tool: str
) -> None:
    page.goto(f"{site}/tools/{tool}/?{urlencode(BARE)}")
    for name, value in USED.get(tool, {}).items():
        expect(page.locator(f".tool [name={name}]").first).to_have_value(value)
    expect(page.locator(".job-words span")).to_contain_text("llama-3-8b · 32 × H200")
    if tool == "planner":  # hands on the best layout
        page.locator("#planner .plan-best strong").wait_for()
    else:
        expect(page.locator(".job-words span")).to_contain_text(f"{BATCH} × 4,096 tokens")
    assert page.locator(".tool .tool-message", has_text="address").count() == 0
    link = page.locator(".job-line a[data-tool=modeler]").get_attribute("href")
    handed = dict(parse_qsl(urlsplit(str(link)).query))
    assert {key: handed.get(key) for key in JOB} == JOB
    assert handed["global_batch"] == BATCH
