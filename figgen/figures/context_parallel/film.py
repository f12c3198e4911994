"""Ring attention as a film: blocks of keys and values travel, and the mask fills up."""

from __future__ import annotations

from collections.abc import Iterator

from figgen.charts import Film, Named, Question, Scene, Thing
from figgen.errors import check_between
from figgen.models.algorithms.context_parallel import chunks_of_rank, pairs_by_step
from figgen.plotting.placed import thing_at
from figgen.registry import figure

BEFORE = ("the rank before it", "the rank two before it", "the rank three before it")
CELL, TOP, LEFT, BOX = 21.0, 20.0, 24.0, 34.0


@figure("ring-attention-film")
def ring_attention_film(*, scheme: str = "zig-zag", cp: int = 4) -> Film:
    """Which rank computes which pairs of query chunk and key chunk at each step.

    Rows are chunks of queries, columns chunks of keys; a box on the diagonal is half masked. At
    step t rank r has the keys and values of rank r − t.
    """
    check_between("cp", cp, 2, 4)
    chunks = {rank: chunks_of_rank(scheme, cp, rank) for rank in range(cp)}
    counted = pairs_by_step(scheme, cp, 2 * cp * 512)
    done: dict[tuple[int, int], int] = {}
    scenes = [
        Scene(
            says="Each rank holds two chunks of the sequence: their queries, keys and values.",
            things=_things(cp, chunks, done, None, frozenset()),
        )
    ]
    for step in range(cp):
        new: set[tuple[int, int]] = set()
        for rank in range(cp):
            pairs = {(q, k) for q in chunks[rank] for k in chunks[(rank - step) % cp] if k <= q}
            new |= pairs
            done |= dict.fromkeys(pairs, rank)
        work = [counted[rank][step] for rank in range(cp)]
        scenes.append(
            Scene(
                says=_caption(step, cp, work),
                things=_things(cp, chunks, done, step, frozenset(new)),
                asks=_question(step, cp, work),
            )
        )
    totals = [sum(row) for row in counted]
    scenes.append(
        Scene(
            says=f"All {len(done)} boxes are computed, each once; the fullest rank did "
            f"{max(totals) / sum(totals):.0%} of the work.",
            things=_things(cp, chunks, done, cp - 1, frozenset()),
        )
    )
    values = {
        "cp": Named(cp, "rank"),
        "boxes": Named(len(done)),
        "most": Named(max(totals) / sum(totals)),
        "even": Named(1 / cp),
    }
    side = 2 * cp * CELL
    return Film(
        width=LEFT + side + 20 + 2 * BOX + 30,
        height=TOP + side + 18,
        scenes=tuple(scenes),
        stills=(1, 2, 3, len(scenes) - 1),
        opens=2,
        values=values,
    )


def _caption(step: int, cp: int, work: list[int]) -> str:
    what = "its own keys and values" if step == 0 else f"those of {BEFORE[step - 1]}"
    idle = sum(1 for pairs in work if not pairs)
    waits = f"; {idle} of {cp} find nothing to do" if idle else ""
    return f"Step {step + 1} of {cp}: each rank attends to {what}{waits}."


def _question(step: int, cp: int, work: list[int]) -> Question | None:
    if step != 1:
        return None
    idle = sum(1 for pairs in work if not pairs)
    return Question(
        text=f"The blocks move on by one rank. How many of the {cp} ranks have work now?",
        choices=(str(cp), str(cp - 1), str(cp // 2)),
        right=0 if not idle else 1,
        because="Cut in a zig-zag each rank has an early and a late chunk, so always some work."
        if not idle
        else "Rank 0 has only the earliest tokens, which may not look at later keys.",
    )


def _things(
    cp: int,
    chunks: dict[int, tuple[int, int]],
    done: dict[tuple[int, int], int],
    step: int | None,
    new: frozenset[tuple[int, int]],
) -> tuple[Thing, ...]:
    count = 2 * cp
    owner = {chunk: rank for rank, held in chunks.items() for chunk in held}
    things = [
        thing_at(f"q{q}", (0, TOP + q * CELL), (CELL - 3, CELL - 2), str(q), f"rank-{owner[q]}")
        for q in range(count)
    ]
    things += [
        thing_at(f"k{k}", (LEFT + k * CELL + 6, 0), (CELL, 14), str(k)) for k in range(count)
    ]
    side = count * CELL
    things.append(thing_at("keys", (LEFT + side + 8, 0), (40, 14), "keys"))
    things.append(thing_at("queries", (0, TOP + side), (60, 16), "queries"))
    for (q, k), rank in sorted(done.items()):
        things.append(
            thing_at(
                f"{q},{k}",
                (LEFT + k * CELL, TOP + q * CELL),
                (CELL - 2, CELL - 2),
                "½" if q == k else "1",
                f"rank-{rank}",
                strong=(q, k) in new,
            )
        )
    moves = bool(step and new)
    return (*things, *_rank_column(chunks, LEFT + count * CELL + 20, step or 0, moves))


def _rank_column(
    chunks: dict[int, tuple[int, int]], left: float, step: int, moves: bool
) -> Iterator[Thing]:
    """Yield the ranks in a column, each with the block that it has."""
    cp, high = len(chunks), 2 * CELL - 8
    for rank in range(cp):
        y = TOP + rank * 2 * CELL
        yield thing_at(f"rank {rank}", (left, y), (BOX - 6, high), f"r{rank}", f"rank-{rank}")
        block = (rank - step) % cp
        before = (block + step - 1) % cp
        yield thing_at(
            f"kv {block}",
            (left + BOX, y),
            (BOX + 22, high),
            "kv " + ",".join(map(str, chunks[block])),
            f"rank-{block}",
            origin=(left + BOX, TOP + before * 2 * CELL) if moves else None,
        )
