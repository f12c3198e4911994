"""Addresses of tools that are longer or more wrong than anyone would write."""

from __future__ import annotations

from string import ascii_lowercase

import pytest
from playwright.sync_api import Page, expect

from figgen.scenarios.options.schema import OPTIONS
from tests.browser.engine import Ask

SUITES = "modeler_suites.js"
INHERITED = ("constructor", "__proto__", "toString", "hasOwnProperty", "valueOf")
MESSAGES = ".tool .is-warning"
TOOLS = {
    "rank-map": "order",
    "modeler": "nodes",
    "planner": "nodes",
    "schedules": "stages",
    "converter": "ranks",
}


def said(page: Page, address: str) -> str:
    """Return the tool's messages at this address once it shows its form."""
    page.goto(address)
    page.locator(".tool :is(form, input):visible").first.wait_for()
    page.locator(MESSAGES).first.wait_for()
    return "\n".join(page.locator(MESSAGES).all_inner_texts())


@pytest.mark.parametrize("tool", TOOLS)
def test_an_address_that_is_too_long_gets_one_message(page: Page, site: str, tool: str) -> None:
    query = "&".join([f"{TOOLS[tool]}=4"] * 5_000)
    found = said(page, f"{site}/tools/{tool}/?{query}")
    assert f"its length: expected at most 16,384 characters, got {len(query) + 1}" in found
    assert "several" not in found


@pytest.mark.parametrize("tool", TOOLS)
def test_mistakes_of_an_address_are_listed_once_up_to_twenty_and_the_others_counted(
    page: Page, site: str, tool: str
) -> None:
    key = TOOLS[tool]
    slips = [f"{key}{letter}" for letter in ascii_lowercase]
    query = "&".join(f"{slip}=<b>1</b>" for slip in slips * 4)
    found = said(page, f"{site}/tools/{tool}/?{query}")
    assert [f"'{slip}'" in found for slip in slips] == [True] * 20 + [False] * 6
    assert found.count("unknown key") == 20
    assert "6 more values cannot be read" in found


@pytest.mark.parametrize("tool", TOOLS)
def test_one_mistake_beyond_twenty_is_counted_as_one(page: Page, site: str, tool: str) -> None:
    query = "&".join(f"{TOOLS[tool]}{letter}=1" for letter in ascii_lowercase[:21])
    assert "1 more value cannot be read" in said(page, f"{site}/tools/{tool}/?{query}")


def test_no_value_of_an_address_is_what_objects_of_javascript_have(ask: Ask) -> None:
    keys = [
        "preset",
        *(one.address_key for one in OPTIONS.values() if one.kind in ("switch", "choice")),
    ]
    queries = [f"{start}{key}={name}" for key in keys for start in ("", "b.") for name in INHERITED]
    fresh, *answers = ask("addresses", ["", *queries])
    assert len(answers) > 100
    for query, answer in zip(queries, answers, strict=True):
        assert len(answer["problems"]) == 1, query
        assert (answer["a"], answer["b"] or fresh["a"]) == (fresh["a"], fresh["a"]), query


def test_no_key_of_an_address_is_what_objects_of_javascript_have(ask: Ask) -> None:
    queries = [f"{start}{name}=1" for start in ("", "b.", "m.") for name in INHERITED]
    fresh, *answers = ask("addresses", ["", *queries])
    for query, answer in zip(queries, answers, strict=True):
        assert (answer["a"], answer["problems"]) == (fresh["a"], []), query


AS_TYPED = {
    "rank-map": ("nodes=0.1k&gpus=8", {"nodes": "100", "gpus": "8"}),
    "modeler": ("nodes=2e1&sequence=8k&tp=8&pp=4", {"nodes": "20", "sequence": "8192"}),
    "planner": (
        "model=llama-3-8b&nodes=2 nodes&sequence=4k&global_batch=1M tokens&tp=8&pp=1",
        {"nodes": "2", "sequence": "4096", "global_batch": "256"},
    ),
    "schedules": ("stages=8 stages&microbatches=0,016k", {"stages": "8", "microbatches": "16"}),
}


@pytest.mark.parametrize("tool", AS_TYPED)
def test_an_address_takes_numbers_as_the_fields_do(page: Page, site: str, tool: str) -> None:
    query, wanted = AS_TYPED[tool]
    page.goto(f"{site}/tools/{tool}/?{query}")
    for name, value in wanted.items():
        expect(page.locator(f".tool [name={name}]").first).to_have_value(value)
    assert page.locator(MESSAGES).count() == 0
