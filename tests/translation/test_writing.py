"""Pages write files that start jobs as the command line does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from figgen.errors import InputError
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.tools.data import configurations
from figgen.scenarios.writing.writers import WRITERS, write_job
from tests.browser import training_cases
from tests.taking.test_writing import DRAWN, job_of, random_job
from tests.translation.run import imported, ran

PROGRAM = """
import fs from "node:fs";
import { jobOf } from "./assets/javascripts/engine/job.js";
import { record } from "./assets/javascripts/engine/records.js";
import { layout_of } from "./assets/javascripts/scenarios/options/setup_of.js";
import { write_job } from "./assets/javascripts/scenarios/writing/writers.js";
import { JobToWrite } from "./assets/javascripts/scenarios/writing/written.js";
const { catalog, cases } = JSON.parse(fs.readFileSync("data.json", "utf8"));
function written([software, choices]) {
  const { given, setup, model, dtype } = jobOf(catalog, choices);
  const job = record(JobToWrite, { setup, parallel: layout_of(given), model, dtype });
  const { text, refused, left_out } = write_job(software, job);
  return { text, refused, left_out: Object.fromEntries(left_out) };
}
console.log(JSON.stringify(cases.map(written)));
"""


def drawn() -> list[tuple[str, dict[str, Any]]]:
    """Return jobs for which the frameworks have options, and others."""
    rng = random.Random(4)
    likely = [(name, random_job(name, rng)) for name in DRAWN for _ in range(25)]
    others = [(rng.choice(list(WRITERS)), training_cases.random_choices(rng)) for _ in range(150)]
    return [
        (name, chosen)
        for name, chosen in (*likely, *others)
        if "=" not in str(chosen["model"]) and is_job(chosen)
    ]


def is_job(chosen: dict[str, Any]) -> bool:
    try:
        asked = training_step(**chosen)
        return bool(asked.cluster)  # the page checks the hardware too
    except InputError:
        return False


def test_a_page_writes_what_the_command_line_writes(tmp_path: Path) -> None:
    cases = drawn()
    data = {"catalog": configurations(), "cases": cases}
    found = ran(tmp_path, PROGRAM, imported(PROGRAM), data)
    texts = 0
    for (software, chosen), answer in zip(cases, found, strict=True):
        job = job_of(chosen)
        assert job is not None
        written = write_job(software, job)
        wanted = {"text": written.text, "refused": written.refused, "left_out": written.left_out}
        assert answer == wanted, (software, chosen)
        texts += bool(written.text)
    assert texts > 80
