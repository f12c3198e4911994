"""verdict: whether a job's measured speed is good, and the likeliest reasons if it is not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from figgen import catalog
from figgen.commands import Answer, Verbs, add_verb, file_text
from figgen.commands.training import (
    add_options,
    chosen_of,
    hosts_lines,
    scenario_of,
    seconds_of,
)
from figgen.errors import InputError
from figgen.models.memory.memory import memory
from figgen.scenarios.options.resolve import base_of, resolve
from figgen.scenarios.options.scenario import Scenario, scenario
from figgen.scenarios.options.schema import OPTIONS, asked_by
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.machine_rates import read_rates
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.rate_row import GivenRates
from figgen.scenarios.runs.record import described_run, read_run_file
from figgen.scenarios.runs.setup import run_setup
from figgen.scenarios.runs.step_entry import ALWAYS, MeasuredJob, step_row
from figgen.scenarios.taking.log_words import batch_words, shared_batch
from figgen.scenarios.taking.logs import StepLog, read_log
from figgen.scenarios.verdict.like import LikeRun
from figgen.scenarios.verdict.measurement import measured_time
from figgen.scenarios.verdict.verdict import Verdict, verdict_of, verdict_of_step
from figgen.scenarios.verdict.words import (
    FASTER,
    NEAREST,
    SHOWN,
    WORDS,
    like_sentence,
    like_words,
    reason_words,
    typed_speed,
    verdict_sentence,
)

REASONS = "the likeliest reasons, the time that each costs in the measured step, and how to check:"


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "verdict",
        _verdict,
        "compare a job's measured speed with published runs, and list likely causes if it is slow",
        "--model llama-3-70b --accelerator h200-sxm-141gb --nodes 4 --gpus-per-node 8 --tp 8 "
        "--zero 3 --software torchtitan --tokens-per-s 200",
        "--take train.sh --log train.log",
        "--run runs.json --json",
    )
    parser.add_argument("--tokens-per-s", metavar="X", help="measured: tokens per second per GPU")
    parser.add_argument("--step-time", metavar="s", help="measured: time of a step, such as 9.5 s")
    parser.add_argument("--tflops", metavar="X", help="measured: model TFLOP/s per GPU, as logged")
    parser.add_argument("--mfu", metavar="X", help="measured: MFU, as 38%% or 0.38")
    parser.add_argument(
        "--log", metavar="FILE", help="measured: a log with the step lines of a training framework"
    )
    parser.add_argument(
        "--row",
        metavar="ADDRESS",
        help="print the job and its measured step as an entry of the catalog instead, with the "
        "address at which the log is published as its source, to paste into a pull request",
    )
    add_options(parser, "step")


def _verdict(options: argparse.Namespace) -> Answer:
    measured = {
        "tokens_per_s": _speed(options.tokens_per_s, "tokens_per_s"),
        "step_time_s": seconds_of(options.step_time),
        "flops_per_s": _speed(options.tflops, "tflops"),
        "utilisation": _speed(options.mfu, "mfu"),
        "log": file_text(options.log, "log") if options.log else None,
    }
    if options.row is not None:
        shown = _row(scenario_of(options), measured, options.row)
        return Answer({"row": shown}, shown)
    if options.run_name and options.run_name not in catalog.RUNS:
        found, said = _of_file(options, measured), list[str]()
    else:
        asked, said = _with_batch(scenario_of(options), measured["log"])
        step = resolve(asked)
        found, said = verdict_of_step(step, measured), [*said, *hosts_lines(step.hosts_said)]
    return Answer(verdict_data(found), "\n".join([*said, *verdict_lines(found)]))


def _with_batch(asked: Scenario, log: float | str | None) -> tuple[Scenario, list[str]]:
    """Return the scenario with a log's global batch, and a sentence if another was asked for.

    Raises InputError if the layout can't have that batch.
    """
    read = read_log(log) if isinstance(log, str) else None
    logged = read.global_batch if isinstance(read, StepLog) else None
    setup = resolve(asked).setup
    if logged is None or logged == setup.global_batch:
        return asked, []
    count = shared_batch(logged, setup.global_batch / setup.microbatches)
    chosen = {name: value for name, value in asked.chosen if name != "global_batch"}
    changed = scenario(preset=asked.preset, run=asked.run, **chosen | {"microbatches": count})
    return changed, [batch_words(logged, setup.global_batch)]


def _row(asked: Scenario, measured: Mapping[str, float | str | None], address: str) -> str:
    """Return the job and its measured step as an entry of the catalog."""
    asked, _ = _with_batch(asked, measured["log"])
    step = resolve(asked)
    found = verdict_of_step(step, measured).measured
    chosen = base_of(asked).values | dict(asked.chosen)
    given = {option.name: option.default for option in asked_by("step")} | chosen
    job = MeasuredJob(
        model=str(given["model"]),
        accelerator=step.accelerator.name,
        software=step.software,
        gpus=step.setup.parallel.world_size,
        choices={
            name: json.dumps(value, ensure_ascii=False)
            for name, value in sorted(given.items())
            if value is not None and (name in ALWAYS or value != OPTIONS[name].default)
        },
        step_time_s=found.step_time_s,
        steps=found.steps,
        peak_memory_bytes=found.memory_bytes,
        day=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    return step_row(job, address, catalog.MODELS, catalog.ACCELERATORS)


def _of_file(options: argparse.Namespace, measured: Mapping[str, float | str | None]) -> Verdict:
    """Return the verdict on a file's run. Raises InputError for a file with several runs."""
    many, records = read_run_file(file_text(options.run_name, "run file"))
    if many and len(records) != 1:
        raise InputError("run file", expected="one run", got=len(records))
    run = described_run(records[0])
    path = str(chosen_of(options).get("measured") or "")
    rates = read_rates(path).known if path else None
    predicted = predicted_step(run, said=GivenRates(measured=rates))
    found = measured_time(run, **measured)  # type: ignore[arg-type]
    return verdict_of(run, run_job(run), predicted, found, filled=_filled(run))


def _filled(run: DescribedRun) -> float | None:
    """Return the share of the GPU's memory that a run needs, or None for a run without a layout."""
    try:
        held = memory(run_setup(run), capacity_bytes=run.accelerator.capacity_bytes)
    except InputError:
        return None
    return held.fullest.total_bytes / run.accelerator.capacity_bytes


def verdict_data(found: Verdict) -> dict[str, Any]:
    """Return the verdict for JSON."""
    utilisations = sorted(one.row.utilisation for one in found.like)
    return {
        "verdict": found.word,
        "measured_step_time_s": found.measured.step_time_s,
        "measured_from": found.measured.source,
        "step_time_s": found.predicted.step_time_s,
        "step_time_interval_s": [found.predicted.low_s, found.predicted.high_s],
        "interval_of": found.predicted.residuals.name,
        "measured_over_predicted": found.ratio,
        "model_flops_utilisation": found.utilisation,
        "like_runs": {
            "runs": len(found.like),
            "faster": found.slower_than,
            "lowest": utilisations[0] if utilisations else None,
            "middle": utilisations[len(utilisations) // 2] if utilisations else None,
            "highest": utilisations[-1] if utilisations else None,
            "nearest": [_like_data(one) for one in found.like[:NEAREST]],
        },
        "reasons": [
            {
                "cause": one.name,
                "title": one.title,
                "score": one.score,
                "worth_s": list(one.worth_s) if one.worth_s else None,
                "how_to_tell": one.tell,
            }
            for one in found.reasons
        ],
    }


def _like_data(one: LikeRun) -> dict[str, Any]:
    row = one.row
    return {
        "name": row.name,
        "publisher": row.publisher,
        "gpus": row.gpus,
        "sequence": row.sequence,
        "model_flops_utilisation": row.utilisation,
        "source": row.source,
    }


def verdict_lines(found: Verdict) -> list[str]:
    """Return the verdict as lines for a terminal."""
    predicted = found.predicted
    reasons = []
    for place, one in enumerate(found.reasons[:SHOWN], 1):
        reasons += [f"  {place}. {reason_words(one)}", f"     {one.tell}"]
    return [
        verdict_sentence(
            found.measured.step_time_s,
            predicted.step_time_s,
            predicted.low_s,
            predicted.high_s,
            predicted.residuals.name,
        ),
        like_sentence(found.utilisation, list(found.like)),
        *(f"  {like_words(one)}" for one in found.like[:NEAREST]),
        *([FASTER] if found.word == WORDS[0] else [REASONS, *reasons]),
    ]


def _speed(text: str | None, kind: str) -> float | None:
    """Return a speed as the modeler's field reads it. Raises InputError if it is no `kind`."""
    if text is None:
        return None
    found, value = typed_speed(text, kind)
    if found != kind:
        raise InputError(kind, expected="a number of this kind", got=text)
    return value
