"""Addresses, files and words of the rank map, in a real browser without its page."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Browser

from figgen.models.machine.layout import mesh_of
from figgen.models.machine.mesh import groups
from figgen.scenarios.tools.data import layouts
from tests.browser.conftest import RUN
from tests.browser.engine import Ask
from tests.browser.rank_map_cases import PRESETS, State, laid_out, random_states

SUITES = "rank_map_suites.js"


def test_csv_has_every_rank_of_every_communicator_once(ask: Ask) -> None:
    state = PRESETS[5]
    parallel = laid_out(state)
    head, *lines = ask("csv", state).splitlines()
    assert head == "communicator,mesh,group,place,rank,node,local_rank"
    names = ("tp", "cp", "dp", "pp", "dp-cp", "etp", "ep", "edp")
    assert len(lines) == len(names) * parallel.world_size
    mesh = {name: "expert" if name in ("etp", "ep", "edp") else "dense" for name in names}
    wanted = {
        f"{name},{mesh[name]},{group},{place},{rank},{rank // 8},{rank % 8}"
        for name in names
        for group, members in enumerate(groups(mesh_of(parallel, name), name))
        for place, rank in enumerate(members)
    }
    assert set(lines) == wanted


@pytest.mark.parametrize(
    ("query", "left", "found"),
    [("tp=4", None, "?tp=4"), ("tp=2", "elsewhere.html?preset=other", "?preset=other")],
)
def test_address_of_a_page_that_the_reader_went_to_is_not_written(
    chromium: Browser, scripts_address: str, query: str, left: str | None, found: str
) -> None:
    """Going back changes the address first, and the page with its tool only later.

    A fake clock affects a whole profile, whose pages then have no `performance` entries either;
    this profile is not shared.
    """
    with chromium.new_context() as profile, profile.new_page() as page:
        page.clock.install()
        page.goto(f"{scripts_address}/index.html")
        page.evaluate(RUN, [f"{scripts_address}/{SUITES}", "remembered", [query, left]])
        page.clock.run_for(1000)
        assert page.evaluate("location.search") == found


def test_states_survive_their_address(ask: Ask) -> None:
    rng = np.random.default_rng(5)
    named = list(layouts())
    states = []
    for state in [*random_states(4, 200), *PRESETS]:
        more = {
            "show": str(rng.choice(["tp", "dp", "tp-cp", "none"])),
            "moved": bool(rng.integers(2)),
        }
        if rng.random() < 0.5:
            more |= {"rank": int(rng.integers(8)), "group": int(rng.integers(4))}
        states.append({**state, **more})
    for state, answer in zip(states, ask("states", [named, states]), strict=True):
        assert answer["problems"] == []
        assert {key: answer["state"][key] for key in state} == state, answer["written"]
    by_name = {found["name"]: found for found in named}
    written = [
        answer["written"]
        for answer in ask(
            "states",
            [
                named,
                [{**by_name[n], "preset": n} for n in ("map-128", "map-256", "llama-3-405b-131k")],
            ],
        )
    ]
    assert written == ["", "preset=map-256", "preset=llama-3-405b-131k"]


def test_hostile_addresses_leave_the_defaults_and_say_why(ask: Ask) -> None:
    named = list(layouts())
    bad = [
        "tp=-1", "tp=0", "tp=1.5", "tp=NaN", "tp=Infinity", "tp=0x8", "tp=", "tp=%20",
        "tp=99999999999999999999", "nodes=1048577", "gpus=<script>alert(1)</script>",
        "order=<img src=x onerror=alert(1)>", "order=tp-tp", "order=" + "a" * 5000,
        "preset=../../etc/passwd", "show=constructor", "rank=-5", "moved=maybe", "group=1;2",
        "tpp=8",
    ]  # fmt: skip
    answers = ask("queries", [named, bad])
    fresh = ask("queries", [named, [""]])[0]["state"]
    for query, answer in zip(bad, answers, strict=True):
        assert len(answer["problems"]) == 1, query
        assert len(answer["problems"][0]) < 250
        assert answer["state"] == fresh, query
    twice, ours, foreign, typed = ask(
        "queries",
        [named, ["tp=2&tp=4", "nodes=2&tp=4", "__proto__=1&utm_source=x&h=rank", "tp=1e3"]],
    )
    assert (typed["state"]["tp"], typed["problems"]) == (1000, [])
    assert (twice["state"]["tp"], len(twice["problems"])) == (2, 1)
    assert (ours["state"]["nodes"], ours["state"]["tp"], ours["state"]["cp"]) == (2, 4, 1)
    assert (foreign["problems"], foreign["state"]) == ([], fresh)


def test_ranks_are_listed_in_few_words(ask: Ask) -> None:
    lists = [
        [3],
        [0, 1, 2],
        [*range(8)],
        [*range(0, 64, 8)],
        [*range(0, 22, 2)],
        [0, 1, 8, 9, 16, 17],
    ]
    assert ask("words", lists) == [
        "3", "0, 1, 2", "0 … 7", "0, 8, 16, … 56 (every 8th)", "0, 2, 4, … 20 (every 2nd)",
        "0, 1, 8, … 17",
    ]  # fmt: skip


def test_moves_are_told_with_an_example(ask: Ask) -> None:
    base: State = {
        "nodes": 8,
        "gpus": 8,
        "tp": 8,
        "cp": 1,
        "ep": 1,
        "etp": None,
        "dp": None,
        "pp": 4,
    }
    stay, move = ask("moves", [{**base, "order": name} for name in ("nanotron", "llama3")])
    assert stay == "All 64 ranks hold the same part of the model as in Megatron's default order."
    assert move.startswith("48 of 64 ranks hold a different part")
    assert "rank 8 is dp 0, pp 1 instead of dp 1, pp 0" in move
