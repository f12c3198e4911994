"""Checkpoints and data: sizes, stalls, published times, and waste by padding."""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

from figgen.catalog import model
from figgen.charts import Axis, Bars, Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.figures.parameters import ModelName
from figgen.formulas.reliability import checkpoint_size
from figgen.models.algorithms.rollouts import answer_lengths
from figgen.models.planner.saving import COPY_BYTES_PER_S, STORAGE_BYTES_PER_S, WAYS, saving
from figgen.models.shape.recipes import EIGHT_BITS
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.registry import figure

CONTENTS: dict[str, tuple[float, float, float]] = {
    "for serving, 16-bit": (2, 0, 0),
    "8-bit Adam, FP32 copy": (2, 4, 2 * EIGHT_BITS),
    "Muon, FP32 copy": (2, 4, 4),
    "FSDP, all in FP32": (4, 0, 8),
    "Adam, FP32 copy": (2, 4, 8),
}
"""Bytes per parameter of weights, of their copy in FP32, and of the optimizer's moments."""


@figure("checkpoint-sizes", recomputed=True)
def checkpoint_sizes(*, model_name: ModelName = "llama-3-70b") -> Bars:
    """Bytes of a checkpoint of one model by what it contains."""
    count = float(model(model_name).parameters)
    names = ("weights", "copy in FP32", "moments")
    parts = {
        name: tuple(size[place] * count for size in CONTENTS.values())
        for place, name in enumerate(names)
    }
    totals = {name: fsum(size) * count for name, size in CONTENTS.items()}
    sizes = list(totals.values())
    serving, whole = sizes[0], sizes[-1]
    return Bars(
        labels=tuple(CONTENTS),
        segments=segments(parts),
        axis=Axis(label="size of a checkpoint", unit="B", low=0.0, spec="bytes"),
        values={
            "serving": Named(serving, "B"),
            "whole": Named(whole, "B"),
            "larger": Named(whole / serving),
            "fsdp": Named(totals["FSDP, all in FP32"], "B"),
            "eight": Named(totals["8-bit Adam, FP32 copy"], "B"),
        },
    )


@figure("checkpoint-stall")
def checkpoint_stall(
    *, model_name: str = "llama-3-70b", sizes: tuple[int, ...] = (64, 512, 4096)
) -> Table:
    """How long a checkpoint stalls training and how long until it is safe, by method and size."""
    count = float(model(model_name).parameters)
    size = float(checkpoint_size(count, 2, 12))
    rows: list[tuple[Scalar, ...]] = []
    values = {"size": Named(size, "B"), "storage": Named(STORAGE_BYTES_PER_S, "B/s")}
    for gpus in sizes:
        check_between("sizes", gpus, 1, 10**6)
        for way, words in WAYS.items():
            found = saving(way, size, gpus)
            rows.append((gpus, words, size / gpus, found.stall_s, found.stall_s + found.lag_s))
            values[f"{way}_{gpus}"] = Named(found.stall_s, "s")
    columns = (
        Column(label="GPUs", spec=",.0f"),
        Column(label="way"),
        Column(label="written by each", unit="B", spec="bytes"),
        *headings("training stands still", "safe after", unit="s", spec="time"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


class Saved(NamedTuple):
    """A published checkpoint: seconds that training waits, synchronous and asynchronous.

    `gpus` and times are 0 if they are not printed.
    """

    title: str
    parameters: float
    bytes_per_param: float
    gpus: int
    waits_s: float
    stall_s: float


SAVED = (
    Saved("PyTorch and IBM, 7B", 7e9, 12, 0, 148.8, 6.3),
    Saved("NeMo Automodel, Llama 3 8B", 8.03e9, 14, 8, 27.34, 0.54),
    Saved("torchtitan, Llama 3 70B", 70.6e9, 12, 1856, 0, 0.78),
)
"""Sources: pytorch.org/blog/reducing-checkpointing-times (2024-06-12); NVIDIA-NeMo/Automodel pull
request 635 (FP32 state and consolidated 16-bit weights); pytorch.org, 6x faster async checkpointing
(2025-04-30), where the background then takes 67 s. FSDP's state is 12 bytes per parameter."""


@figure("checkpoint-published")
def checkpoint_published() -> Table:
    """Published stalls next to this guide's time for the copy to the hosts."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"copy": Named(COPY_BYTES_PER_S, "B/s")}
    for one in SAVED:
        size = one.parameters * one.bytes_per_param
        copied = size / one.gpus / COPY_BYTES_PER_S if one.gpus else None
        rows.append(
            (
                one.title,
                one.gpus or "not printed",
                size,
                one.waits_s or "not printed",
                size / one.waits_s if one.waits_s else "not printed",
                one.stall_s,
                copied if copied is not None else "not known",
            )
        )
        if one.waits_s:
            key = one.title.split()[0].lower()
            values[f"{key}_rate"] = Named(size / one.waits_s, "B/s")
            values[f"{key}_gain"] = Named(one.waits_s / one.stall_s)
        if copied:
            key = one.title.split(",")[0].split()[0].lower()
            values[f"{key}_copied"] = Named(copied, "s")
    columns = (
        *headings("who", "GPUs"),
        Column(label="size", unit="B", spec="bytes"),
        Column(label="training waits", unit="s", spec="time"),
        Column(label="written at", unit="B/s", spec="si"),
        *headings("asynchronous", "copy, computed", unit="s", spec="time"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def packed(lengths: tuple[int, ...], sequence: int) -> int:
    """Return the sequences needed if each sample goes into the fullest one with room for it."""
    free: list[int] = []
    for length in sorted(lengths, reverse=True):
        room = [(space, place) for place, space in enumerate(free) if space >= length]
        if room:
            free[min(room)[1]] -= length
        else:
            free.append(sequence - length)
    return len(free)


@figure("packing")
def packing(
    *, sequence: int = 4096, means: tuple[int, ...] = (256, 512, 1024, 2048), samples: int = 512
) -> Table:
    """Share of computed tokens that is padding, with one sample per sequence and with packing.

    Lengths are exponential, cut off at the sequence length.
    """
    check_between("samples", samples, 1, 2000)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"sequence": Named(sequence)}
    for mean in means:
        lengths = answer_lengths(mean, sequence, samples)
        alone = 1 - fsum(lengths) / (samples * sequence)
        used = packed(lengths, sequence)
        together = 1 - fsum(lengths) / (used * sequence)
        faster = samples / used
        rows.append((mean, alone, together, faster))
        values |= {
            f"alone_{mean}": Named(alone),
            f"packed_{mean}": Named(together),
            f"faster_{mean}": Named(faster),
        }
    columns = (
        Column(label="mean length", spec=",.0f"),
        *headings("padding, one sample per sequence", "padding, packed", spec=".1%"),
        Column(label="fewer sequences, factor", spec=".1f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
