"""For which layouts of a plan somebody has published a time."""

from __future__ import annotations

import itertools

from figgen.catalog.measured import measured_records
from figgen.models.planner.layout_kind import layout_kind
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import plan_rows
from figgen.scenarios.planning.planner import plan
from figgen.scenarios.runs.timed_kinds import timed_kinds


def test_kinds_of_layouts_are_told_apart() -> None:
    kinds = [
        layout_kind(tp=tp, cp=cp, pp=pp, ep=ep, zero_stage=zero)
        for tp, cp, pp, ep in itertools.product((1, 8), repeat=4)
        for zero in (1, 3)
    ]
    assert sorted(kinds) == list(range(32))
    assert layout_kind(tp=1, cp=1, pp=1, ep=1, zero_stage=2) == 0


def test_a_published_run_makes_its_kind_timed_and_no_other_chip_s() -> None:
    # NVIDIA's GPT-3 on 128 H100s: TP 4, PP 8, ZeRO-1.
    run = next(one for one in measured_records() if "gpt3-175b-h100-bf16-g128" in one["id"])
    assert (run["tp"], run["pp"], run["cp"], run["ep"]) == (4, 8, 1, 1)
    kind = layout_kind(tp=4, cp=1, pp=8, ep=1, zero_stage=1)
    assert kind in timed_kinds()["h100-sxm-80gb", False]
    # No dense model on an H800 is among the published runs.
    assert ("h800-sxm-80gb", False) not in timed_kinds()


def test_rows_of_a_plan_say_whether_such_a_layout_was_timed() -> None:
    small = {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8, "global_batch": 16}
    for chip in ("h100-sxm-80gb", "h800-sxm-80gb"):
        found = plan(plan_question(scenario(**small, accelerator=chip)))
        rows = plan_rows(found, list(found.meshes))
        known = timed_kinds().get((chip, False), frozenset())
        assert any(row.timed for row in rows) == bool(known)
        for row in rows:
            sizes = {name: int(str(row.choices[name])) for name in ("tp", "cp", "pp", "ep")}
            zero = int(str(row.choices["zero_stage"]))
            assert row.timed == (layout_kind(**sizes, zero_stage=zero) in known)
