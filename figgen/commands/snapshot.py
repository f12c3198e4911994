"""memory-snapshot: what holds the memory in a snapshot of PyTorch's allocator, and in the model."""

from __future__ import annotations

import argparse
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from figgen.commands import Answer, Verbs, add_verb, whole
from figgen.commands.training import add_options, aligned, scenario_of
from figgen.errors import InputError
from figgen.models.memory.allocator_snapshot import (
    PART_OF,
    AllocatorState,
    Moment,
    history_of,
    peak_of,
    refused_of,
    state_of,
)
from figgen.models.memory.memory import RankMemory
from figgen.models.memory.memory_lines import PARTS
from figgen.models.memory.plain_pickle import plain_pickle
from figgen.models.memory.snapshot_summary import REMEDIES, summary_of
from figgen.models.memory.snapshot_text import (
    kinds_sentences,
    refusals,
    state_rows,
    summary_sentence,
)
from figgen.models.profiles.unpacked import PACKED
from figgen.progress import Share
from figgen.scenarios.options.resolve import resolve

LARGEST_FILE = 2**31


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "memory-snapshot",
        _snapshot,
        "compare a snapshot of PyTorch's CUDA allocator with the memory model",
        "snapshot.pickle",
        "snapshot.pickle.gz --model llama-3-8b --nodes 1 --gpus-per-node 8 --zero 3 --json",
    )
    parser.add_argument(
        "file", help="a snapshot written by torch.cuda.memory._dump_snapshot, plain or compressed"
    )
    parser.add_argument("--device", type=whole(0, 1023), default=0, help="number of the GPU")
    parser.add_argument(
        "--rank",
        type=whole(0, 1023),
        default=0,
        help="pipeline rank of the memory model to compare with",
    )
    add_options(parser, "memory")


def read_snapshot(path: str) -> Mapping[str, Any]:
    """Return the snapshot in a file without executing any code in it.

    Raises InputError for a file that is too large, cannot be read, or is not a snapshot.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        if size > LARGEST_FILE:
            raise InputError("snapshot", expected=f"at most {LARGEST_FILE:,} bytes", got=size)
        with file.open("rb") as opened:
            packed = opened.read(len(PACKED)) == PACKED
            opened.seek(0)
            content: Any = gzip.GzipFile(fileobj=opened) if packed else opened
            found = _read(content, opened, Share(what=f"read of {path}", bytes=2 * size))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError("snapshot", expected="a readable file", got=str(error)) from None
    except OverflowError:
        expected = f"at most {LARGEST_FILE:,} bytes, unpacked"
        raise InputError("snapshot", expected=expected) from None
    if not isinstance(found, dict):
        raise InputError("snapshot", expected="a dict with segments", got=type(found).__name__)
    return found


def _read(content: BinaryIO, file: BinaryIO, shown: Share) -> Any:
    """Return the objects in `content`, which may be unpacked from `file`.

    Raises OverflowError if the unpacked content exceeds the size limit.
    """
    last, before = 0, 0

    def tell(read: int) -> None:
        nonlocal last, before
        if read > LARGEST_FILE:
            raise OverflowError
        if read < last:
            before = shown.bytes // 2
        last = read
        shown.reached(before + min(file.tell(), shown.bytes // 2))

    try:
        return plain_pickle(content, tell)
    finally:
        shown.end()


def _snapshot(options: argparse.Namespace) -> Answer:
    snapshot = read_snapshot(options.file)
    state, history = state_of(snapshot, options.device), history_of(snapshot, options.device)
    peak, refused = peak_of(history), refused_of(snapshot, options.device)
    summary = summary_of(state, peak)
    data: dict[str, object] = {
        "device": options.device,
        "summary": None if summary is None else asdict(summary) | asdict(REMEDIES[summary.remedy]),
        "state": asdict(state),
        "peak": None if peak is None else asdict(peak),
        "oom": [asdict(one) for one in refused],
        "history": [asdict(moment) for moment in history],
    }
    lines = [] if summary is None else [summary_sentence(summary, peak), ""]
    lines += [*refusals(refused), ""] if refused else []
    lines += [*aligned(state_rows(state), left=1), "", *kinds_sentences(state, peak)]
    if options.preset or options.run_name or options.model:
        ranks = resolve(scenario_of(options)).memory.ranks
        if options.rank >= len(ranks):
            raise InputError("rank", expected=f"under {len(ranks)}", got=options.rank)
        beside = _beside(ranks[options.rank], state, peak)
        data["model"] = [
            dict(zip(("part", "model", "snapshot"), row, strict=True)) for row in beside
        ]
        lines += ["", *_table(beside)]
    return Answer(data, "\n".join(lines))


def _beside(
    rank: RankMemory, state: AllocatorState, peak: Moment | None
) -> list[tuple[str, float, float]]:
    """Return (part, the model's bytes, the snapshot's bytes) for every part.

    The snapshot is taken at `peak`, or in its final state if there is none.
    """
    kinds = state.kinds if peak is None else peak.kinds
    held: dict[str, float] = dict.fromkeys((*PARTS, "untold"), 0.0)
    for kind, size in kinds.items():
        part = PART_OF.get(kind, kind)
        held[part if part in PARTS else "untold"] += size
    held["reserve"] = state.reserved - state.allocated
    if peak is not None:
        held["reserve"] = peak.reserved - peak.bytes
    modelled = {part.name: part.bytes for part in rank.parts} | {"untold": 0.0}
    modelled["reserve"] -= rank.outside_bytes
    return [(part, modelled[part], held[part]) for part in held]


def _table(rows: list[tuple[str, float, float]]) -> list[str]:
    head = ["part", "model GB", "snapshot GB", "difference"]
    body = [
        [part, f"{a / 1e9:.3f}", f"{b / 1e9:.3f}", f"{(b - a) / 1e9:+.3f}"] for part, a, b in rows
    ]
    return aligned([head, *body], left=1)
