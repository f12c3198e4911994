"""The models of the step as they are printed: every number of random jobs equal to the bit.

FIGGEN_JOBS=2000 asks more of them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.models.memory.memory import memory
from figgen.models.step.step import step
from figgen.models.step.step_timeline import step_timeline
from figgen.scenarios.options.resolve import layout_of, setup_of
from figgen.translation.modules import closure, printed
from figgen.translation.sources import Place
from tests.browser import training_cases
from tests.models import ledger
from tests.models.test_timed_step_counted import drawn_constants, drawn_job
from tests.translation.run import ran

PROGRAM = Path(__file__).with_name("models.js")
JOBS = int(os.environ.get("FIGGEN_JOBS", "60"))
ENTRIES = [
    Place("figgen.models.step.step", "step"),
    Place("figgen.models.memory.memory", "memory"),
    Place("figgen.models.step.step_timeline", "step_timeline"),
    Place("figgen.models.setup.training_setup", "TrainingSetup"),
    Place("figgen.models.machine.cluster", "Cluster"),
    Place("figgen.models.machine.layout", "ParallelLayout"),
    Place("figgen.models.shape.recipes", "Recipe"),
    *(
        Place("figgen.models.shape.model_shape", name)
        for name in ("ModelShape", "ExpertShape", "LatentAttention", "StateSpace")
    ),
]


def written(value: Any) -> Any:
    """A record as JSON from which the program makes it again."""
    if isinstance(value, tuple | list):
        return list(map(written, value))
    if isinstance(value, frozenset | set):
        return {"set": sorted(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [written(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init]
        return {"record": [type(value).__module__, type(value).__name__], "fields": fields}
    return value


def answer(value: Any) -> Any:
    """What a model answers, field by field, without the job that it was asked about."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: answer(getattr(value, name)) for name in value._fields}
    if isinstance(value, tuple | list):
        return list(map(answer, value))
    if isinstance(value, dict):
        return [[answer(key), answer(one)] for key, one in value.items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        compared = [f.name for f in dataclasses.fields(value) if f.compare and f.name != "setup"]
        return {name: answer(getattr(value, name)) for name in compared}
    return value


def jobs(count: int) -> Iterator[dict[str, Any]]:
    """Random jobs over the options of the schema, of the catalog's models and of made-up ones."""
    rng = random.Random(24)
    found = 0
    while found < count:
        own = rng.random() < 0.2
        draw = training_cases.own_choices if own else training_cases.random_choices
        choices = draw(rng)
        values = training_cases._values(choices)
        try:
            shape = (
                training_cases._shape(values["model"])
                if own
                else catalog.model(values["model"]).shape
            )
            setup = setup_of(shape, layout_of(values), values)
            cluster = (
                training_cases._own_cluster(values) if own else training_cases._cluster(values)
            )
        except InputError:
            continue
        found += 1
        share = values["compute_efficiency"] or training_cases.UNTIMED
        timeline = None
        if found % 8 == 0 and setup.microbatches <= 64:
            timeline = answer(step_timeline(setup, cluster, compute_efficiency=share))
        yield {
            "choices": choices,
            "setup": written(setup),
            "cluster": written(cluster),
            "share": share,
            "capacity_bytes": 80e9,
            "step": answer(step(setup, cluster, compute_efficiency=share)),
            "memory": answer(memory(setup, capacity_bytes=80e9)),
            "timeline": timeline,
        }


def test_printed_models_give_what_python_gives_to_the_bit(tmp_path: Path) -> None:
    given = list(jobs(JOBS))
    found = ran(tmp_path, PROGRAM.read_text("utf-8"), printed(ENTRIES), given)
    assert found["wrong"] == []
    assert found["numbers"] > 100 * JOBS


SHOWN = """
const shown = (value) => (value && typeof value === "object" ? Object.fromEntries(
  [...Object.keys(value), ...Object.getOwnPropertyNames(Object.getPrototypeOf(value))]
    .filter((name) => name !== "constructor").map((name) => [name, shown(value[name])])) : value);
"""


def test_the_printed_step_takes_what_its_kernels_and_messages_take(tmp_path: Path) -> None:
    draw = random.Random(5)
    cases = [(drawn_job(draw), drawn_constants(draw)) for _ in range(60)]
    given = [
        (dataclasses.asdict(job) | {"dp": job.dp, "tokens": job.tokens}, dataclasses.asdict(at))
        for job, at in cases
    ]
    program = (
        'import { timed_step } from "./assets/javascripts/models/step/timed_step.js";\n'
        f"{SHOWN}"
        f"const given = {json.dumps(given)};\n"
        "console.log(JSON.stringify(given.map((one) => shown(timed_step(...one)))));"
    )
    scripts = printed([Place("figgen.models.step.timed_step", "timed_step")])
    for (job, at), found in zip(cases, ran(tmp_path, program, scripts), strict=True):
        parts = ledger.step_parts(job, at)
        rounding = 1e-12 * sum(parts.values())
        assert {name: found[name] for name in parts} == pytest.approx(parts, rel=1e-9, abs=rounding)
        assert found["total_s"] == pytest.approx(sum(parts.values()) - parts["head_s"])
        dense = ledger.layer(job, at, experts=False)
        assert {name: found["dense"][name] for name in dense} == pytest.approx(dense, rel=1e-9)


def test_a_closure_has_no_array_and_no_file() -> None:
    modules = closure(ENTRIES)
    assert len(modules) > 40
    assert not [name for name in modules if "planner" in name or "profiles" in name]
