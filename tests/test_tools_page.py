"""The page of all tools: each has its picture, and is reached from the home page."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from figgen import catalog
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.stories.journey_ladder import RUNGS

DOCS = Path(__file__).parents[1] / "docs"
NAV = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
TOOLS = re.findall(r": (tools/(?!index)\S+\.md)$", NAV, flags=re.M)
PAGE = (DOCS / "tools" / "index.md").read_text(encoding="utf-8")


def test_every_tool_has_a_picture_and_a_sentence_on_the_page_of_all() -> None:
    _, *parts = re.split(r"^## ", PAGE, flags=re.M)
    named = [re.findall(r"\]\((\w[\w-]*\.md)\)", part)[0] for part in parts]
    assert sorted(named) == sorted(tool.removeprefix("tools/") for tool in TOOLS)
    for part in parts:
        assert part.count("```figure") == 1
        name = re.findall(r"^id: (\S+)$", part, flags=re.M)[0]
        assert f"[](#fig-{name})" in part


def test_what_a_search_fills_in_are_names_of_the_catalog() -> None:
    planner = (DOCS / "tools" / "planner.md").read_text(encoding="utf-8")
    fill = yaml.safe_load(planner.split("---")[1])["fill"]
    for key, known in (("model", catalog.MODELS), ("chip", catalog.ACCELERATORS)):
        values = [pair.partition("=")[2] for pair in fill[key].split()]
        assert set(values) <= set(known)
    assert fill["each"] == 8


def test_the_job_line_leads_to_every_tool_in_order() -> None:
    line = (DOCS / "overrides" / "partials" / "job-line.html").read_text(encoding="utf-8")
    named = re.findall(r'\("([a-z-]+)", "', line)
    assert sorted(named) == sorted(Path(tool).stem for tool in TOOLS)


def test_pages_of_the_journey_hand_on_the_job_of_their_rung() -> None:
    jobs = {}
    for path in (DOCS / "journey").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        meta = yaml.safe_load(text.split("---")[1])
        if "job" in meta:
            jobs[meta["journey"]] = (dict(pair.split("=") for pair in meta["job"].split("&")), text)
    for rung in RUNGS:
        given, text = jobs.pop(rung.page)
        # Page 7 is about a larger model than its rung; the job is one that its figures compare.
        drawn = re.findall(
            r"^  - \"[^|]+\| (\S+) \| ((?:\w+=\S+ ?)+) \| ((?:\w+=\S+ ?)+)\"$", text, re.M
        )
        about = (rung.model, rung.sizes, rung.options)
        assert given == _as_address(*about) or rung.page == 7
        assert given in [_as_address(*job) for job in [about, *drawn]]
    # The last page goes on with the job of the one before.
    assert [(page, job) for page, (job, _) in jobs.items()] == [(RUNGS[-1].page + 1, given)]


def _as_address(model: str, sizes: str, options: str) -> dict[str, str]:
    keys = {option.name: option.address_key for option in OPTIONS.values()}
    pairs = dict(pair.split("=") for pair in f"{sizes} {options}".split())
    return {"model": model} | {keys[name]: value for name, value in pairs.items()}


def test_home_leads_to_the_page_of_all_tools() -> None:
    assert "(tools/index.md)" in (DOCS / "index.md").read_text(encoding="utf-8")
