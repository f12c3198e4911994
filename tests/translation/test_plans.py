"""The printed planner: the layouts of random jobs, their bytes, times and order."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

from figgen import catalog
from figgen.errors import InputError
from figgen.guide.tool_scripts import printed_modules
from figgen.models.memory.fit_probability import SAFE
from figgen.models.planner.ranking import layout_at
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import terms_of
from figgen.scenarios.planning.planner import plan
from figgen.scenarios.tools.data import configurations
from tests import thorough
from tests.translation.run import imported, started
from tests.translation.test_models import differing

JOBS = thorough.drawn(8, 60)
PROGRAM = Path(__file__).with_name("plans.js").read_text("utf-8")
MEASURED = (
    "bf16-300000-3_attention-200000_memory-1500_near-250-4_far-20-15_capacity-60",
    "fp16-300000-3_nearshuffle-120_farshuffle-30", "fp8-900000-0_capacity-200",
)  # fmt: skip


def random_job(rng: random.Random) -> tuple[dict[str, Any], bool]:
    """Return a small job of any model, with some sizes fixed and some unusual options."""
    name = rng.choice(list(catalog.MODELS))
    shape = catalog.MODELS[name].shape
    job: dict[str, Any] = {
        "model": name,
        "nodes": rng.choice((1, 2, 3)),
        "gpus_per_node": 8,
        "accelerator": rng.choice(("a100-sxm-80gb", "h100-sxm-80gb", "b300-sxm-hgx")),
        "global_batch": rng.choice((4, 6, 8, 12)),
        "cp": rng.choice((1, 2)),
        "sequence": rng.choice((512, 1024)),
    }
    if shape.experts:
        job["etp"] = 1
        job["pp"] = rng.choice((1, 2, 4))
    for name_, values in {
        "zero_stage": (0, 1, 2, 3), "recompute": ("none", "full", "mlp,moe", "uniform:2"),
        "microbatch_size": (1, 2), "dp": (2, 3), "lora_rank": (8,),
        "recipe": ("zero16", "fsdp16"), "flash_attention": (False,), "tp": (1, 2, 3),
        "context_exchange": ("all-gather", "all-to-all"), "double_buffering": (False,),
        "pp": (2, 3, 4),
        "software": ("torchtitan", "nanotron", "fsdp"), "activations": ("fp8",),
        "overlap_data_parallel": (False,), "measured": MEASURED,
        "order": ("megatron-tp-pp-dp",), "mtp_layers": (1,), "zigzag": (False,),
    }.items():  # fmt: skip
        if rng.random() < 0.15:
            job[name_] = rng.choice(values)
    own = random.Random(repr(job))  # so that all other draws stay
    if own.random() < 0.3:
        job["document_tokens"] = own.choice(((200,), (3000,), (job["sequence"] - 100, 100)))
    if own.random() < 0.2:
        job["context_exchange"] = "a2a+p2p"
    if own.random() < 0.3:
        job["offloaded_activations"] = own.choice((0.5, 1))
    return job, rng.random() < 0.15


CUT_IN_ORDER: dict[str, Any] = {
    "model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8, "global_batch": 8, "sequence": 1024,
    "cp": 4, "zigzag": False, "recompute": "mlp",
}  # fmt: skip
"""The last context rank has more work, of which modules repeat a smaller share."""

SENT_ONCE: dict[str, Any] = {
    "model": "mixtral-8x7b", "nodes": 4, "gpus_per_node": 8, "global_batch": 64, "sequence": 2048,
    "recompute": "full", "dispatcher": "deepep", "expert_skew": 1.5,
}  # fmt: skip


def answered(job: dict[str, Any], every: bool, chance: float = SAFE) -> dict[str, Any]:
    """Return what Python finds, in the order of its ranking."""
    try:
        one = plan(plan_question(scenario(**job), every, chance))
    except InputError as error:
        return {"error": str(error)}
    found, places = one.found, range(min(40, one.fitting))
    return {
        "layouts": found.layouts,
        "fitting": found.fitting,
        "refused": dict(found.refused),
        "least_bytes": found.least_bytes,
        "step_s": list(found.step_s),
        "memory_bytes": list(found.memory_bytes),
        "meshes": [[place, count] for place, count in found.meshes.items()],
        "front": list(one.front),
        "same": one.same,
        "best": [asdict(layout_at(found, place)) for place in places],
        "terms": terms_of(one, places),
    }


def test_a_search_finds_on_a_page_what_it_finds_in_python(tmp_path: Path) -> None:
    rng = random.Random(5)
    jobs = [(CUT_IN_ORDER, False), (SENT_ONCE, False), *(random_job(rng) for _ in range(JOBS))]
    cases = [(*job, rng.choice((0.5, SAFE))) for job in jobs]
    scripts = imported(PROGRAM, printed_modules(("goodput",)))
    found = started(tmp_path, PROGRAM, scripts, {"catalog": configurations(), "cases": cases})
    wanted = [answered(*case) for case in cases]
    for case, got, want in zip(cases, found(), wanted, strict=True):
        assert next(differing(got, want), None) is None, case
    refused = [one["error"] for one in wanted if "error" in one]
    assert 0 < len(refused) < JOBS / 2
    assert len(set(refused)) > JOBS / 16
    assert sum(bool(one.get("fitting")) for one in wanted) > JOBS / 3
