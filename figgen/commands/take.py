"""take: read a training job from a script, a configuration or a log."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from figgen.commands import Answer, Verbs, add_verb
from figgen.commands.line_rate import add_line_rate, full_busbw
from figgen.commands.training import aligned
from figgen.scenarios.options.config_json import model_from_file
from figgen.scenarios.taking.job import TakenJob
from figgen.scenarios.taking.log_words import collective_rows, log_sentences
from figgen.scenarios.taking.logs import CollectiveLog, Log, OutOfMemory, read_log
from figgen.scenarios.taking.options import answers_of, read_text, taken_from
from figgen.scenarios.taking.timeouts import TimedOut


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "take",
        _take,
        "read a training job from a script, a configuration or a log",
        "train.sh",
        "train.sh --set NNODES=16 --json",
        "config.toml --json",
        "config.json",
        "all_reduce.log --line-rate '450 GB/s'",
    )
    parser.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    parser.add_argument(
        "--set",
        dest="answers",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="value of a variable that the file does not set; may be repeated",
    )
    add_line_rate(parser)


def _take(options: argparse.Namespace) -> Answer:
    text = read_text(options.file)
    log = read_log(text)
    if log is not None:
        return _log_answer(log, _full(options, log))
    job = taken_from(options.file, answers_of(options.answers), text)
    data: dict[str, object] = {
        "format": job.dialect,
        "taken": job.taken,
        "assumed": job.assumed,
        "because": job.because,
        "left": job.left,
        "may_matter": job.unsure,
        "asked": job.asked,
        "missing": job.missing,
        "notes": job.notes,
    }
    lines = taken_lines(job)
    if job.dialect == "config.json":
        model = model_from_file(options.file)
        data["parameters"] = model.parameters
        data["notes"] = list(model.notes)
        lines += [f"{model.parameters:,} parameters", *model.notes]
    return Answer(data, "\n".join(lines))


def _full(options: argparse.Namespace, log: Log) -> float | None:
    """Return the busbw at which the links under a table are full, or None if unknown."""
    if not isinstance(log, CollectiveLog):
        return None
    return full_busbw(
        options, collective=log.collective, ranks=log.ranks, ranks_per_node=log.ranks_per_node
    )


KINDS = {OutOfMemory: "out of memory", TimedOut: "timeout"}


def _log_answer(log: Log, line_rate: float | None) -> Answer:
    """Return the numbers of a log, with the fit if it is a table of collectives."""
    kind = log.program if isinstance(log, CollectiveLog) else KINDS.get(type(log), "steps")
    data: dict[str, object] = {"format": kind, "taken": {}, "assumed": {}, "left": []}
    data |= {name: value for name, value in asdict(log).items() if value is not None}
    lines = [sentence for _, sentence in log_sentences(log, line_rate)]
    if isinstance(log, CollectiveLog):
        best = max(row.bus_bandwidth for row in log.rows)
        data["best_bus_bandwidth"] = best
        if log.fit is not None:
            data |= {"alpha_s": log.fit[0], "beta_s_per_byte": 1 / log.fit[1]}
        if line_rate is not None:
            data["share_of_line_rate"] = best / line_rate
        lines += aligned(collective_rows(log, line_rate), left=0)
    return Answer(data, "\n".join(lines))


def taken_lines(job: TakenJob) -> list[str]:
    """Return the job as lines for a terminal."""
    lines = [f"read as {job.dialect}"]
    lines += [f"taken: {_pairs(job.taken)}" if job.taken else "taken: nothing"]
    for reason in dict.fromkeys(job.because.values()):
        values = {name: job.assumed[name] for name in job.assumed if job.because[name] == reason}
        lines.append(f"assumed ({reason}): {_pairs(values)}")
    if job.missing:
        lines.append(f"missing, set it in the next command: {', '.join(job.missing)}")
    lines += [f"note: {note}" for note in job.notes]
    if job.asked:
        lines.append(f"missing: {', '.join(job.asked)}; give each as --set NAME=VALUE")
    if job.unsure:
        lines.append(f"not understood, but may matter: {', '.join(job.unsure)}")
    others = [name for name in job.left if name not in job.unsure]
    if others:
        lines.append(f"left aside: {', '.join(others)}")
    return lines


def _pairs(values: dict[str, int | str | bool]) -> str:
    shown = {True: "on", False: "off"}
    return ", ".join(
        f"{name} {shown[value] if isinstance(value, bool) else value}"
        for name, value in values.items()
    )
