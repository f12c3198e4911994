"""Step traces: the text of each cell, and the ends of arrows."""

from __future__ import annotations

import gzip
import re
from xml.etree import ElementTree

import pytest

from figgen.charts import Frame, Steps, Transfer
from figgen.renderers import svg


def ring_all_reduce(ranks: int) -> Steps:
    """Return the ring in NCCL's order, run on sets of contributors."""
    held = [[{rank} for _ in range(ranks)] for rank in range(ranks)]
    frames = []
    for step in range(2 * (ranks - 1)):
        reduces = step < ranks - 1
        moves = [(rank, (rank + 1) % ranks, (rank - 1 - step) % ranks) for rank in range(ranks)]
        if not reduces:
            turn = step - (ranks - 1)
            moves = [(rank, (rank + 1) % ranks, (rank - turn) % ranks) for rank in range(ranks)]
        frames.append(frame(f"step {step + 1}", held, moves, reduces))
        sent = [(to, chunk, set(held[of][chunk])) for of, to, chunk in moves]
        for to, chunk, content in sent:
            held[to][chunk] = held[to][chunk] | content if reduces else content
    frames.append(frame("result", held, [], False))
    return Steps(ranks=ranks, chunk_count=ranks, frames=tuple(frames))


def frame(
    title: str, held: list[list[set[int]]], moves: list[tuple[int, int, int]], reduces: bool
) -> Frame:
    return Frame(
        title=title,
        phase="" if not moves else "reduce-scatter" if reduces else "all-gather",
        transfers=tuple(
            Transfer(source=of, target=to, chunks=(chunk,), reduces=reduces)
            for of, to, chunk in moves
        ),
        contents=tuple(tuple(tuple(sorted(chunk)) for chunk in rank) for rank in held),
    )


def frames(drawn: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(drawn)
    return [group for group in root.iter("g") if group.get("class") == "frame"]


def paths(group: ElementTree.Element, **look: str) -> str:
    return "".join(
        path.get("d", "")
        for path in group.findall("path")
        if all(path.get(name.replace("_", "-")) == value for name, value in look.items())
    )


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_one_frame_per_step_and_one_for_the_result(ranks: int) -> None:
    drawn = frames(svg.render(ring_all_reduce(ranks), "ring"))
    assert [group.get("data-step") for group in drawn] == [str(k) for k in range(2 * ranks - 1)]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_final_value_has_a_tick_and_nothing_else_has(ranks: int) -> None:
    chart = ring_all_reduce(ranks)
    for group, shown in zip(frames(svg.render(chart, "ring")), chart.frames, strict=True):
        full = sum(len(content) == ranks for rank in shown.contents for content in rank)
        assert paths(group, stroke="var(--fig-paper)").count("M") == full
        assert paths(group, fill="var(--fig-series-1)").count("M") == full


def test_a_bar_stands_at_the_place_of_each_contributor() -> None:
    chart = ring_all_reduce(4)
    group = frames(svg.render(chart, "ring"))[2]
    marks = paths(group, fill="var(--fig-series-3)")
    found = {
        (float(x), float(y)): float(width)
        for x, y, width in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", marks)
    }
    # Chunk 1 has come from rank 2 over rank 3 to rank 0.
    corners = re.findall(r"M([\d.]+) ([\d.]+)h20", paths(group, stroke="var(--fig-reference)"))
    columns, rows = (sorted({float(corner[axis]) for corner in corners}) for axis in (0, 1))
    assert chart.frames[2].contents[0][1] == (0, 2, 3)
    assert found[columns[0], rows[1]] == 5
    assert found[columns[0] + 10, rows[1]] == 10


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_an_arrow_leads_from_source_to_target_in_the_row_of_its_chunk(ranks: int) -> None:
    chart = ring_all_reduce(ranks)
    for group, shown in zip(frames(svg.render(chart, "ring")), chart.frames, strict=True):
        moves = [move for move in group.iter("g") if move.get("class") == "transfer"]
        said = [
            (move.get("data-source"), move.get("data-target"), move.get("data-chunks"))
            for move in moves
        ]
        assert said == [(str(t.source), str(t.target), str(t.chunks[0])) for t in shown.transfers]
        rows = {re.match(r"M[\d.]+ ([\d.]+)", move[1].get("d", ""))[1] for move in moves}  # type: ignore[index]
        assert len(rows) == len(moves)


def test_copying_and_adding_have_different_arrow_heads() -> None:
    drawn = frames(svg.render(ring_all_reduce(4), "ring"))
    heads = [
        {move[2].get("fill") for move in group.iter("g") if move.get("class") == "transfer"}
        for group in drawn[:-1]
    ]
    assert heads == [{"var(--fig-ink)"}] * 3 + [{"var(--fig-paper)"}] * 3


def test_messages_to_distant_ranks_arch_over_the_columns() -> None:
    held = [[{rank} for _ in range(4)] for rank in range(4)]
    chart = Steps(
        ranks=4,
        chunk_count=4,
        frames=(
            frame("exchange", held, [(0, 2, 2), (2, 0, 0), (1, 3, 3), (3, 1, 1)], True),
            frame("result", held, [], False),
        ),
    )
    first = frames(svg.render(chart, "far"))[0]
    moves = [move for move in first.iter("g") if move.get("class") == "transfer"]
    assert all("Q" in move[1].get("d", "") for move in moves)
    assert moves[0].findtext("title") == "rank 0 → rank 2: chunk 2, added"


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_frames_fit_the_column_and_do_not_overlap(ranks: int) -> None:
    drawn = svg.render(ring_all_reduce(ranks), "ring")
    root = ElementTree.fromstring(drawn)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    assert width <= 720
    boxes, cell = [], 20 if ranks <= 4 else 16
    for group in frames(drawn):
        shift = re.fullmatch(r"translate\((\S+) (\S+)\)", group.get("transform", ""))
        assert shift
        boxed = [p for p in group.findall("path") if p.get("fill") != "var(--fig-series-3)"]
        outlines = "".join(path.get("d", "") for path in boxed)
        numbers = re.findall(r"M([\d.]+) ([\d.]+)h", outlines)
        right = float(shift[1]) + max(float(x) for x, _ in numbers) + cell
        bottom = float(shift[2]) + max(float(y) for _, y in numbers) + 15
        assert right <= width
        assert bottom <= height
        boxes.append((float(shift[1]), float(shift[2]), right, bottom))
    for at, (x, y, _, _) in enumerate(boxes):
        assert not any(a <= x < c and b <= y < d for a, b, c, d in boxes[:at])


def test_eight_ranks_weigh_at_most_8_kb() -> None:
    assert len(gzip.compress(svg.render(ring_all_reduce(8), "ring").encode())) <= 8_000
