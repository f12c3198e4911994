"""The journey on twelve clusters, from one RTX 4090 to 1,024 B200, in Python and in a page."""

from __future__ import annotations

import json
import math
import re
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from figgen.equations.call_data import CallData, Comparison
from figgen.equations.evaluation import evaluate
from figgen.equations.javascript import functions_module
from figgen.errors import InputError
from figgen.formulas import FORMULAS
from figgen.guide.tool_scripts import STEP_FORMULAS
from figgen.markdown.claims import CLAIM, comparisons
from figgen.markdown.inline import PATTERN
from figgen.publish.scripts import FOLDER
from figgen.registry import follows, is_of_reference
from figgen.scenarios.stories.journey import rung
from figgen.scenarios.stories.journey_ladder import RUNGS
from figgen.scenarios.stories.journey_numbers import numbers
from figgen.scenarios.stories.on_a_cluster import choices_on
from figgen.scenarios.tools.data import configurations
from figgen.values import compute
from tests.thorough import one_in
from tests.translation.run import imported, ran
from tests.yours import lookups, shape_of

DOCS = Path(__file__).parents[2] / "docs"
OWN = "rtx-4090.toml"
RTX_4090 = {
    "hbm_capacity": ("24 GB", "memory_bytes", 24e9),
    "hbm_bandwidth": ("1008 GB/s", "memory_bandwidth_bytes_per_s", 1.008e12),
    "bf16": ("165.2 TFLOP/s", "peak_flops_per_s", 165.2e12),
    "scale_up": ("32 GB/s", "scale_up_bandwidth_bytes_per_s", 32e9),
}
"""From NVIDIA's whitepaper on the Ada architecture, matmuls with sums in 32 bits, over PCIe 4."""
CLUSTERS: dict[str, dict[str, Any]] = {
    "one RTX 4090": {"model": "llama-3-1b", "accelerator": OWN, "nodes": 1, "gpus_per_node": 1,
                     "sequence": 2048},
    "eight RTX 4090": {"model": "llama-3-8b", "accelerator": OWN, "nodes": 1,
                       "gpus_per_node": 8, "sequence": 4096},
    "eight A100": {"model": "llama-3-8b", "accelerator": "a100-sxm-80gb", "nodes": 1,
                   "gpus_per_node": 8},
    "64 A100": {"model": "llama-2-13b", "accelerator": "a100-sxm-80gb", "nodes": 8,
                "gpus_per_node": 8, "nic": "ib-hdr", "sequence": 4096, "global_batch": 1024},
    "four A100 on PCIe": {"model": "qwen-3-8b", "accelerator": "a100-pcie-80gb", "nodes": 1,
                          "gpus_per_node": 4},
    "16 H100": {"model": "llama-3-8b", "nodes": 2, "gpus_per_node": 8, "global_batch": 256},
    "64 H100 of another batch": {"model": "llama-3-70b", "nodes": 8, "gpus_per_node": 8,
                                 "global_batch": 1024},
    "128 H200": {"model": "llama-3-70b", "accelerator": "h200-sxm-141gb", "nodes": 16,
                 "gpus_per_node": 8, "global_batch": 1024, "tp": 4},
    "256 MI300X": {"model": "llama-3-70b", "accelerator": "mi300x", "nodes": 32, "gpus_per_node": 8,
                   "global_batch": 1024},
    "512 H100": {"model": "llama-3-405b", "nodes": 64, "gpus_per_node": 8, "global_batch": 1024,
                 "pp": 8},
    "512 H100 and experts": {"model": "deepseek-v3", "nodes": 64, "gpus_per_node": 8,
                             "sequence": 4096},
    "1,024 B200": {"model": "llama-3-405b", "accelerator": "b200-sxm-hgx", "nodes": 128,
                   "gpus_per_node": 8, "nic": "ib-xdr", "global_batch": 2048, "microbatch_size": 2},
}  # fmt: skip
PAGES = {
    int(found[1]): text
    for path in (DOCS / "journey").glob("*.md")
    if (found := re.search(r"^journey: (\d+)$", text := path.read_text("utf-8"), re.M))
}


@cache
def called(page: int) -> tuple[dict[str, CallData], dict[str, list[Comparison]]]:
    """Return calls whose numbers follow the reader's cluster, and a page's conditions, with their
    data."""
    text = re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL)
    found = [compute(match[1])[0] for match in re.finditer(PATTERN, text)]
    claims = [match["condition"] for match in re.finditer(CLAIM, PAGES[page])]
    return (
        {one.call: one.follows for one in found if one.follows is not None},
        {claim: comparisons(claim) for claim in claims},
    )


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("own") / OWN
    lines = [f'{key} = "{text}"' for key, (text, _, _) in RTX_4090.items()]
    file.write_text("\n".join(["[rtx-4090]", *lines, "scale_up_domain = 8\n"]))
    return file


def with_own(yours: dict[str, Any], chip: Any) -> dict[str, Any]:
    return yours | ({"accelerator": chip} if yours.get("accelerator") == OWN else {})


def spoken(page: int, yours: dict[str, Any]) -> dict[str, Any]:
    """Return what a page calls on a cluster, as functions for `eval`: its jobs and
    every formula."""
    jobs = {name: cache(found) for name, found in lookups(page, yours).items()}
    return {**{name: partial(value_of, name) for name in FORMULAS}, **jobs}


def value_of(formula: str, **given: Any) -> float:
    return evaluate(formula, **given).value


def answered(page: int, yours: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return values of a page's calls and claims on a cluster; None for what it cannot run."""
    names = spoken(page, yours)

    def value(text: str) -> Any:
        try:
            return eval(text, {"__builtins__": {}}, dict(names))
        except InputError:
            return None

    calls, claims = called(page)
    return [value(call) for call in calls], [value(claim) for claim in claims]


def test_the_reference_machine_is_what_the_pages_print() -> None:
    for page in range(1, len(RUNGS) + 1):
        assert numbers(lookups(page, {})["rung"](page)) == pytest.approx(
            numbers(rung(page)), nan_ok=True
        )
    for page in PAGES:
        assert all(answered(page, {})[1])


def test_pages_compute_twelve_clusters_as_python_does(tmp_path: Path, own: Path) -> None:
    assert len(CLUSTERS) == 12
    some = one_in(3, [*CLUSTERS.items()])
    chip = {name: size for _, name, size in RTX_4090.values()}
    asked = [
        (page, with_own(yours, chip), *(list(one.values()) for one in called(page)))
        for _, yours in some
        for page in sorted(PAGES)
    ]
    formulas = {f"{FOLDER}/{STEP_FORMULAS}": functions_module(FORMULAS.values())}
    data = {"catalog": configurations(), "asked": asked}
    found = ran(tmp_path, PROGRAM, imported(PROGRAM, formulas), data)
    at = iter(found)
    turned = 0
    for name, yours in some:
        for page in sorted(PAGES):
            values, truths = answered(page, with_own(yours, str(own)))
            got = next(at)
            for call, mine, theirs in zip(called(page)[0], values, got["values"], strict=True):
                if mine is None or math.isnan(mine):
                    assert theirs is None, (name, page, call)
                else:
                    assert theirs == pytest.approx(mine, rel=1e-12), (name, page, call)
            assert got["claims"] == truths, (name, page)
            assert_opened(page, with_own(yours, str(own)), got["opened"])
            turned += truths.count(False)
    assert turned > 0


def assert_opened(page: int, yours: dict[str, Any], got: Any) -> None:
    """Assert that what numbers of a page's job open to on a cluster equals Python's text."""
    if got is None:
        return
    found = lookups(page, yours)["rung"](page)
    for field, theirs in zip(("step_time_s", "total_bytes", "far_bytes", "mfu"), got, strict=True):
        mine = found.opened(field)
        assert (theirs["formula"], theirs["worked"]) == (mine.formula, mine.worked), (page, field)
        said = [(part["name"], part["how"], part["source"]) for part in theirs["parts"]]
        assert said == [(part.name, part.how, part.source) for part in mine.parts], (page, field)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_script_of_a_page_has_every_formula_that_follows(page: int) -> None:
    script = (DOCS / FOLDER / "tools/journey_values.js").read_text("utf-8")
    calls, claims = called(page)
    text = json.dumps([*calls.values(), *claims.values()])
    assert {name for name in FORMULAS if f'["{name}", {{' in text} <= set(
        re.findall(r"\w+", script)
    )


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_wording_has_all_its_numbers_on_the_clusters_where_it_is_shown(
    page: int, own: Path
) -> None:
    shown = set()
    for cluster, yours in CLUSTERS.items():
        names = spoken(page, with_own(yours, str(own)))
        for claim in re.finditer(CLAIM, PAGES[page]):
            holds = eval(claim["condition"], {"__builtins__": {}}, names)
            wording = claim["wording" if holds else "other"]
            shown.add(wording)
            for quoted in re.finditer(PATTERN, wording):
                found, _ = compute(quoted[1])
                if found.follows:
                    value = eval(found.call, {"__builtins__": {}}, names)
                    assert not math.isnan(value), (cluster, found.call)
    assert shown


PROGRAM = """
import fs from "node:fs";
import { InputError } from "./assets/javascripts/engine/errors.js";
import { all_hold, followed } from "./assets/javascripts/equations/call_data.js";
import { opened } from "./assets/javascripts/scenarios/stories/opened.js";
import { journey } from "./assets/javascripts/tools/journey_jobs.js";
import { mapped } from "./assets/javascripts/engine/records.js";
import * as formulas from "./assets/javascripts/step-formulas.js";
const OPENED = ["step_time_s", "total_bytes", "far_bytes", "mfu"];
const of = (one) => (one.setup ? OPENED.map((field) => opened(one, field)) : null);
const { catalog, asked } = JSON.parse(fs.readFileSync("data.json", "utf8"));
console.log(JSON.stringify(asked.map(([page, yours, calls, claims]) => {
  const { lookUp, functions } = journey(catalog, page, yours);
  const compute = (name, given) => formulas[name](Object.fromEntries(given));
  return {
    opened: of(page < 11 ? functions.rung(page) : {}),
    values: calls.map((call) => followed(mapped(call), compute, lookUp)),
    claims: claims.map((claim) => all_hold(mapped(claim), compute, lookUp)),
  };
})));
"""


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_job_on_a_cluster_has_all_its_gpus_and_whole_microbatches(cluster: str) -> None:
    yours = CLUSTERS[cluster] | {"accelerator": "h100-sxm-80gb"}
    gpus = yours["nodes"] * yours["gpus_per_node"]
    for page in range(4, len(RUNGS) + 1):
        setup = lookups(page, yours)["rung"](page).setup
        assert setup.parallel.world_size == (yours["gpus_per_node"] if page == 4 else gpus)
        assert yours["gpus_per_node"] % setup.parallel.tp == 0


def test_only_a_model_of_experts_takes_the_place_of_one() -> None:
    asked: dict[str, Any] = {"model": "deepseek-v3", "nodes": 64, "gpus_per_node": 8, "ep": 8}
    asked["global_batch"] = 4096
    assert choices_on("deepseek-v3", asked, {}, shape_of) == asked

    def chosen(lead: str, wanted: str) -> str:
        return str(choices_on(lead, asked, {"model": wanted}, shape_of)["model"])

    assert chosen("deepseek-v3", "llama-3-70b") == "deepseek-v3"
    assert chosen("deepseek-v3", "kimi-k2") == "kimi-k2"
    assert chosen("llama-3-1b", "kimi-k2") == "deepseek-v3"


def test_a_figure_of_the_journey_follows_tells_its_machine_or_shows_an_idea() -> None:
    """What depends on a GPU or a link is recomputed, says that it isn't, or was timed."""
    ideas = {
        "collective-steps", "cp-triangle", "data-parallel-replicas", "fsdp-timeline", "moe-film",
        "parallel-stack", "pipeline-film", "recorded-layer", "recorded-memory", "ring-attention",
        "ring-attention-film", "ring-film", "room-film", "schedules-compared", "sharded-film",
        "split-film", "step-measured", "swept-layouts", "tp-layer", "validation-scatter",
    }  # fmt: skip
    for text in PAGES.values():
        for name in re.findall(r"^figure: (\S+)$", text, re.M):
            assert [name in ideas, follows(name), is_of_reference(name)].count(True) == 1, name
