"""write: the file that starts a training job under a framework."""

from __future__ import annotations

import argparse

from figgen import catalog
from figgen.commands import Answer, Verbs, add_verb
from figgen.commands.training import add_options, scenario_of
from figgen.scenarios.options.resolve import TrainingStep, resolve
from figgen.scenarios.writing.writers import FILES, LABELS, WRITERS, write_job
from figgen.scenarios.writing.written import JobToWrite


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "write",
        _write,
        "write the file that starts a training job in a framework",
        "megatron-lm --model llama-3-70b --nodes 8 --gpus-per-node 8 --tp 8 --global-batch 512",
        "torchtitan --take train.sh",
        "deepspeed --model llama-3-8b --nodes 1 --gpus-per-node 8 --zero 3 --recipe zero16 --json",
    )
    parser.add_argument("framework", metavar="SOFTWARE", help=", ".join(WRITERS))
    add_options(parser, "step")


def job_to_write(asked: TrainingStep) -> JobToWrite:
    """Return the job of a step in the form that the writers take."""
    known = isinstance(asked.model, catalog.Model)
    return JobToWrite(
        setup=asked.setup,
        parallel=asked.launched,
        model=asked.model.name if known else "",
        dtype=asked.dtype,
    )


def _write(options: argparse.Namespace) -> Answer:
    software = options.framework
    written = write_job(software, job_to_write(resolve(scenario_of(options))))
    data = {
        "software": software,
        "file": FILES[software],
        "text": written.text,
        "refused": written.refused,
        "left_out": written.left_out,
    }
    if written.refused:
        return Answer(data, f"{LABELS[software]}: {written.refused}", status=1)
    return Answer(data, written.text.rstrip("\n"))
