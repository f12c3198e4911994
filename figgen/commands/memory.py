"""memory: how much memory a training step needs on each GPU, and whether it fits."""

from __future__ import annotations

import argparse

from figgen.commands import Answer, Verbs, add_verb
from figgen.commands.training import (
    add_options,
    aligned,
    described,
    hosts_lines,
    model_notes,
    model_notes_data,
    scenario_of,
)
from figgen.errors import InputError
from figgen.models.memory.fit_probability import fit_words
from figgen.models.memory.memory import MemoryEstimate
from figgen.models.memory.memory_fixes import reason, what_fits
from figgen.models.memory.memory_lines import PARTS
from figgen.scenarios.options.resolve import TrainingStep, resolve
from figgen.scenarios.taking.log_words import log_sentences, memory_beside
from figgen.scenarios.taking.logs import read_log
from figgen.scenarios.taking.options import read_text
from figgen.scenarios.tools.answers import memory_data, setup_data
from figgen.units import format_quantity


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "memory",
        _memory,
        "compute the memory of a training step on each pipeline rank, part by part",
        "--model llama-3-70b --nodes 8 --gpus-per-node 8 --tp 8 --pp 4 --accelerator h100-sxm-80gb",
        "--model gpt-3-175b --nodes 8 --gpus-per-node 8 --tp 8 --pp 8 --recompute full --json",
        "--model llama-3-8b --nodes 1 --gpus-per-node 8 --zero 3 --recipe zero16",
        "--preset deepseek-v3",
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="step lines or PyTorch's out-of-memory message to compare with",
    )
    add_options(parser, "memory")


def _memory(options: argparse.Namespace) -> Answer:
    asked = resolve(scenario_of(options))
    data = setup_data(asked.model.name, asked.setup) | memory_data(asked.memory)
    data |= model_notes_data(asked)
    found = asked.memory
    lines = [
        _answer(asked),
        described(asked.model.name, asked.setup),
        *hosts_lines(asked.hosts_said),
        *model_notes(asked),
        *_table(found),
    ]
    if options.log:
        log = read_log(read_text(options.log))
        if log is None or not memory_beside(log, found.fullest.total_bytes):
            raise InputError(f"file {options.log!r}", expected="a log with memory", got="none")
        told = [*log_sentences(log, None), *memory_beside(log, found.fullest.total_bytes)]
        lines.extend(sentence for _, sentence in told)
    return Answer(data, "\n".join(lines))


def _answer(asked: TrainingStep) -> str:
    """Return in a sentence or two whether the fullest GPU fits, and what would make it fit."""
    found = asked.memory
    text = f"{asked.model.title} on {asked.setup.parallel.world_size:,} × {asked.accelerator.title}"
    if found.fit_probability is not None:
        text += f" {fit_words(found.fit_probability)}"
    if found.capacity_bytes is not None and not found.fits:
        change = what_fits(asked.setup, found.capacity_bytes, asked.reserve_bytes)
        way = f"It would fit with {change}." if change else "None of the usual changes is enough."
        return f"{text}: {reason(found)}. {way}"
    text += f": the fullest GPU, of pipeline rank {found.fullest.pipeline_rank}, needs "
    text += _both(found.fullest.total_bytes)
    if found.capacity_bytes is None or found.free_bytes is None:
        return f"{text}."
    text += f" of the {_both(found.capacity_bytes)} that PyTorch reports"
    return f"{text}; {_both(found.free_bytes)} are free."


def _table(found: MemoryEstimate) -> list[str]:
    """Return one line per pipeline rank, in GB.

    The parts up to communication are allocated memory. The allocator reserves more than that, and
    the process holds a little memory outside the allocator.
    """
    parts = [name for name in PARTS if name != "reserve"]
    sums = ("allocated", "reserved", "outside", "total GB")
    rows = [["rank", "layers", "params", "in flight", *parts, *sums]]
    for rank in found.ranks:
        rows.append(
            [
                str(rank.pipeline_rank),
                str(rank.layers),
                format_quantity(rank.parameters, "1", "si"),
                f"{rank.in_flight:.4g}",
                *(f"{rank.bytes_of(name) / 1e9:.2f}" for name in parts),
                f"{rank.allocated_bytes / 1e9:.2f}",
                f"{rank.reserved_bytes / 1e9:.2f}",
                f"{rank.outside_bytes / 1e9:.2f}",
                f"{rank.total_bytes / 1e9:.2f}",
            ]
        )
    return aligned(rows, left=0)


def _both(size: float) -> str:
    return f"{size / 1e9:.1f} GB ({size / 2**30:.1f} GiB)"
