"""Published runs similar to a job: same chip generation and format, similar size and software."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import log

from figgen.lookups import remembered
from figgen.models.shape.transformer import parameter_counts
from figgen.models.step.compute import utilisation_of_step
from figgen.scenarios.evidence.publishers import published_runs
from figgen.scenarios.runs.classes import RunClass, run_class
from figgen.scenarios.runs.described import DescribedRun

SIZES = 4.0
"""Largest ratio of parameters that counts as a similar size."""

FEW = 5
"""With fewer similar runs than this, runs of other software are included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeRow:
    """A run with the fields that are compared.

    `utilisation` is its MFU relative to the dense peak of its format; `source` says where it was
    published.
    """

    name: str
    publisher: str
    source: str
    chips: str
    stack: str
    experts: bool
    dtype: str
    recompute: str
    parameters: int
    gpus: int
    sequence: int
    utilisation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeRun:
    """A published run and its distance: differences in size, GPUs, sequence and recomputation."""

    row: LikeRow
    distance: float


def like_rows(rows: list[LikeRow], own: LikeRow) -> list[LikeRun]:
    """Return runs like `own`, nearest first, with other software if there are fewer than `FEW`."""
    alike = [
        row
        for row in rows
        if row.chips == own.chips
        and row.experts == own.experts
        and row.dtype == own.dtype
        and abs(log(row.parameters / own.parameters)) <= log(SIZES)
    ]
    same = [row for row in alike if row.stack == own.stack]
    found = [
        LikeRun(row=row, distance=_distance(row, own))
        for row in (same if len(same) >= FEW else alike)
    ]
    return sorted(found, key=lambda one: (one.distance, one.row.name))


def _distance(row: LikeRow, own: LikeRow) -> float:
    """Return the distance between two runs.

    The distance adds the log ratios of size, GPUs and sequence, and one each for different software
    and different recomputation.
    """
    apart = abs(log(row.parameters / own.parameters))
    apart += abs(log(row.gpus / own.gpus))
    apart += abs(log(row.sequence / own.sequence))
    other = (1 if row.stack != own.stack else 0) + (1 if row.recompute != own.recompute else 0)
    return apart + other


def like_runs(run: DescribedRun) -> tuple[LikeRun, ...]:
    """Return published runs like `run`, nearest first."""
    own = _row(run, run_class(run), "", "", 0.0)
    return tuple(like_rows(list(published_rows()), own))


@remembered(1)
def published_rows() -> tuple[LikeRow, ...]:
    """Return every published run that isn't in doubt, with its MFU."""
    return tuple(
        _row(
            one.run,
            one.run_class,
            one.publisher,
            one.run.source or one.publisher,
            utilisation_of(one.run, one.measured_s),
        )
        for one in published_runs()
        if not one.doubt
    )


def published_columns() -> dict[str, list[str] | list[list[float]]]:
    """Return the published runs by column, MFU to five digits; texts are indices into a list."""
    texts: dict[str, int] = {}

    def place(one: str | float) -> float:
        if isinstance(one, str):
            return texts.setdefault(one, len(texts))
        return float(f"{one:.5g}")

    rows = [astuple(row) for row in published_rows()]
    columns = [list(map(place, column)) for column in zip(*rows, strict=True)]
    return {"texts": list(texts), "columns": columns}


def row_of_columns(texts: list[str], columns: list[list[float]], at: int) -> LikeRow:
    """Return the run in row `at` of `published_columns`."""
    return LikeRow(
        name=texts[int(columns[0][at])],
        publisher=texts[int(columns[1][at])],
        source=texts[int(columns[2][at])],
        chips=texts[int(columns[3][at])],
        stack=texts[int(columns[4][at])],
        experts=columns[5][at] > 0,
        dtype=texts[int(columns[6][at])],
        recompute=texts[int(columns[7][at])],
        parameters=int(columns[8][at]),
        gpus=int(columns[9][at]),
        sequence=int(columns[10][at]),
        utilisation=columns[11][at],
    )


def _row(
    run: DescribedRun, its_class: RunClass, publisher: str, source: str, utilisation: float
) -> LikeRow:
    return LikeRow(
        name=run.name,
        publisher=publisher,
        source=source,
        chips=its_class.chips,
        stack=its_class.stack,
        experts=its_class.experts,
        dtype=run.dtype,
        recompute=run.recompute or "none",
        parameters=parameter_counts(run.shape).total,
        gpus=run.gpus,
        sequence=run.sequence,
        utilisation=utilisation,
    )


def utilisation_of(run: DescribedRun, step_time_s: float) -> float:
    """Return the MFU of a run's step against the dense peak of its format."""
    return utilisation_of_step(
        run.shape,
        step_time_s=step_time_s,
        tokens_per_step=run.global_batch * run.sequence,
        gpus=run.gpus,
        peak_flops_per_s=run.accelerator.peak_flops_per_s(run.dtype),
        sequence=run.sequence,
    )
