"""Packed documents: the attention that they save, and how uneven they make equal sequences."""

from __future__ import annotations

import random

from figgen.charts import Axis, Column, Curves, Named, Scalar, Table
from figgen.errors import check_between
from figgen.figures.training.step import step_interval
from figgen.models.shape.documents import packed_keys
from figgen.plotting.series import doublings, line
from figgen.registry import figure
from figgen.scenarios.options.resolve import TrainingStep, training_step

LEAST_DOCUMENT = 256
DRAWN_STEPS = 40
"""Steps whose documents are drawn to see how uneven ranks are."""
MOST_RANKS, MOST_DOCUMENTS = 128, 128
"""Ranks, and documents of a sequence, that are drawn in a second."""


def _step(model: str, sequence: int, nodes: int, documents: tuple[int, ...]) -> TrainingStep:
    return training_step(
        model=model,
        nodes=nodes,
        accelerator="h200-sxm-141gb",
        cp=8,
        recompute="mlp",
        sequence=sequence,
        microbatches=4,
        document_tokens=documents,
    )


@figure("packed-documents", explorable=True)
def packed_documents(
    *, model: str = "llama-3-8b", sequence: int = 131072, nodes: int = 2, most: int = 131072
) -> Curves:
    """Share of a step, and of its attention, that remains with packed documents, by mean length."""
    check_between("most", most, 2 * LEAST_DOCUMENT, 2**24)
    whole = _step(model, sequence, nodes, ())
    attention_s = dict(whole.estimate.kinds)["attention"]
    lengths = doublings(most, LEAST_DOCUMENT)
    steps = [_step(model, sequence, nodes, (length,)) for length in lengths]
    pairs = [packed_keys(sequence, sequence, (length,)) / sequence for length in lengths]
    times = [one.estimate.step_time_s / whole.estimate.step_time_s for one in steps]
    at = lengths.index(min(lengths, key=lambda length: abs(length - 2048)))
    values = {
        "sequence": Named(sequence, "token"),
        "mean": Named(lengths[at], "token"),
        "attention": Named(attention_s / whole.estimate.step_time_s),
        "pairs": Named(pairs[at]),
        "step": Named(times[at]),
        "longest": Named(times[-1]),
        "longest_pairs": Named(pairs[-1]),
        "mfu": Named(whole.estimate.model_flops_utilisation),
        "packed_mfu": Named(steps[at].estimate.model_flops_utilisation),
    }
    return Curves(
        x=Axis(label="mean tokens of a document", scale="log2", spec=","),
        y=Axis(label="of a sequence without documents", low=0.0, spec=".0%"),
        series=(
            line("attention", map(float, lengths), pairs, 0),
            line("step", map(float, lengths), times, 1),
        ),
        values=values | step_interval(whole, steps[at]),
    )


def squares_over_mean(
    sequence: int, mean: int, sequences: int, ranks: int, draw: random.Random
) -> float:
    """Return the attention of the busiest rank over the mean, for ranks of random documents."""
    work = []
    for _ in range(ranks):
        squares = 0.0
        for _ in range(sequences):
            left = float(sequence)
            while left > 0:
                length = min(left, draw.expovariate(1 / mean))
                squares += length**2
                left -= length
        work.append(squares)
    return max(work) * ranks / sum(work)


@figure("packed-imbalance")
def packed_imbalance(
    *,
    model: str = "llama-3-8b",
    sequence: int = 131072,
    nodes: int = 2,
    means: tuple[int, ...] = (2048, 8192, 32768),
    ranks: tuple[int, ...] = (2, 8, 64),
) -> Table:
    """Time that ranks wait for the one with the longest documents, by mean length and replicas.

    Each rank has four sequences of equal length.
    """
    check_between("ranks", max(ranks, default=0), 1, MOST_RANKS)
    check_between("means", min(means, default=0), max(1, sequence // MOST_DOCUMENTS), sequence)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for mean in means:
        found = _step(model, sequence, nodes, (mean,)).estimate
        share = dict(found.kinds)["attention"] / found.step_time_s
        row: list[Scalar] = [float(mean), share]
        for count in ranks:
            draw = random.Random(count)
            uneven = [squares_over_mean(sequence, mean, 4, count, draw) for _ in range(DRAWN_STEPS)]
            most = sum(uneven) / len(uneven)
            row += [most, share * (most - 1)]
            values[f"most_{mean}_{count}"] = Named(most)
            values[f"waits_{mean}_{count}"] = Named(share * (most - 1))
        rows.append(tuple(row))
    columns = [Column(label="mean tokens", spec=","), Column(label="attention", spec=".0%")]
    for count in ranks:
        columns += [
            Column(label=f"most of {count} ranks", spec=".2f"),
            Column(label="longer by", spec=".0%"),
        ]
    return Table(columns=tuple(columns), rows=tuple(rows), values=values)
