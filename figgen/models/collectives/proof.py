"""What ranks hold while a trace runs, and the machine check that a trace keeps its promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from figgen.errors import InputError, unknown
from figgen.models.collectives.traces import (
    CONTRACTS,
    CollectiveTrace,
    Send,
    destinations,
    origins,
    require_rank,
)

State = tuple[tuple[frozenset[int], ...], ...]
"""`state[rank][chunk]`: the ranks whose contributions this rank holds, empty if it holds none."""

# Inside this module a set of contributors is an int with one bit per rank: 256 ranks times
# 256 chunks of frozensets would take hundreds of megabytes.
_Held = list[dict[int, int]]


def _initial(trace: CollectiveTrace) -> _Held:
    held: _Held = [{} for _ in range(trace.ranks)]
    for chunk in range(trace.chunk_count):
        for rank in origins(trace, chunk):
            held[rank][chunk] = 1 << rank
    return held


def _deliver(held: _Held, sends: tuple[Send, ...]) -> None:
    # every message of a step leaves before any of them arrives
    leaving = [[held[send.source].get(chunk, 0) for chunk in send.chunks] for send in sends]
    for send, contents in zip(sends, leaving, strict=True):
        target = held[send.target]
        for chunk, content in zip(send.chunks, contents, strict=True):
            target[chunk] = target.get(chunk, 0) | content if send.reduces else content


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(rank for rank in range(mask.bit_length()) if mask >> rank & 1)


def states(trace: CollectiveTrace) -> Iterator[State]:
    """Yield what every rank holds before the first step and after each step (`len(steps) + 1`).

    Each state is computed when you ask for it; with hundreds of ranks, keep only those you need.
    """
    held = _initial(trace)
    for sends in ((), *trace.steps):
        _deliver(held, sends)
        yield _state(trace, held)


def final_state(trace: CollectiveTrace) -> State:
    """Return what every rank holds after the last step."""
    held = _initial(trace)
    for sends in trace.steps:
        _deliver(held, sends)
    return _state(trace, held)


def _state(trace: CollectiveTrace, held: _Held) -> State:
    sets: dict[int, frozenset[int]] = {}

    def contributors(mask: int) -> frozenset[int]:
        if mask not in sets:
            sets[mask] = frozenset(_bits(mask))
        return sets[mask]

    return tuple(
        tuple(contributors(of_rank.get(chunk, 0)) for chunk in range(trace.chunk_count))
        for of_rank in held
    )


def _names(mask: int) -> str:
    return ", ".join(map(str, _bits(mask)))


def _check_form(trace: CollectiveTrace) -> None:
    name = f"{trace.collective} {trace.algorithm} trace"
    if trace.collective not in CONTRACTS:
        raise unknown("collective", trace.collective, CONTRACTS)
    if len(trace.phases) != len(trace.steps):
        raise InputError(
            f"{name}: phases", expected=f"{len(trace.steps)}, one per step", got=len(trace.phases)
        )
    if trace.collective == "all-to-all" and trace.chunk_count != trace.ranks**2:
        raise InputError(
            f"{name}: chunks", expected=f"{trace.ranks**2}, one per pair", got=trace.chunk_count
        )
    require_rank(trace.root, trace.ranks, f"{name}: root")
    if "owner" in CONTRACTS[trace.collective]:
        share = trace.chunk_count // trace.ranks
        if Counter(trace.owners) != dict.fromkeys(range(trace.ranks), share):
            raise InputError(
                f"{name}: owners", expected=f"every rank {share} times", got=trace.owners
            )


def _check_step(trace: CollectiveTrace, step: int, where: str) -> None:
    sends = trace.steps[step]
    if not sends:
        raise InputError(f"{where}: no message")
    for send in sends:
        for rank in (send.source, send.target):
            require_rank(rank, trace.ranks, f"{where}: rank")
        if send.source == send.target:
            raise InputError(f"{where}: rank {send.source} sends to itself")
        if send.step != step:
            raise InputError(f"{where}: number of the step in a message", got=send.step)
        if not send.chunks or len(set(send.chunks)) != len(send.chunks):
            raise InputError(
                f"{where}: chunks of a message", expected="distinct chunks", got=send.chunks
            )
        if not all(0 <= chunk < trace.chunk_count for chunk in send.chunks):
            raise InputError(
                f"{where}: chunk", expected=f"0 to {trace.chunk_count - 1}", got=send.chunks
            )
    for verb, busy in (
        ("sends", Counter(send.source for send in sends)),
        ("receives", Counter(send.target for send in sends)),
    ):
        [(rank, count)] = busy.most_common(1)
        if count > 1:
            raise InputError(f"{where}: rank {rank} {verb} {count} messages", expected="at most 1")


def _check_contents(held: _Held, sends: tuple[Send, ...], where: str) -> None:
    # A rank receives at most one message a step, so what it holds now is what it will add to.
    for source, target, chunks, reduces in (
        (send.source, send.target, send.chunks, send.reduces) for send in sends
    ):
        for chunk in chunks:
            content, present = held[source].get(chunk, 0), held[target].get(chunk, 0)
            if not content:
                raise InputError(f"{where}: rank {source} sends chunk {chunk}, which it lacks")
            if reduces and content & present:
                raise InputError(
                    f"{where}: chunk {chunk} from rank {source} to {target} adds the contribution "
                    f"of rank {_names(content & present)} a second time"
                )
            if not reduces and present & ~content:
                raise InputError(
                    f"{where}: chunk {chunk} from rank {source} to {target} overwrites the "
                    f"contribution of rank {_names(present & ~content)}"
                )


def verify(trace: CollectiveTrace) -> CollectiveTrace:
    """Prove that `trace` does what its collective promises, and return it.

    The checks: every message names ranks and chunks that exist; in each step a rank sends at most
    one message and receives at most one (full duplex, one port); a rank sends only what it holds;
    no contribution is added twice, and none is lost by overwriting; after the last step every
    destination holds exactly the contributions of all origins, for every chunk.

    Raises InputError with the step and the rank of the first defect.
    """
    _check_form(trace)
    held = _initial(trace)
    for step, sends in enumerate(trace.steps):
        where = f"{trace.collective} {trace.algorithm} trace, step {step}"
        _check_step(trace, step, where)
        _check_contents(held, sends, where)
        _deliver(held, sends)
    for chunk in range(trace.chunk_count):
        due = sum(1 << rank for rank in origins(trace, chunk))
        for rank in destinations(trace, chunk):
            got = held[rank].get(chunk, 0)
            if got != due:
                raise InputError(
                    f"{trace.collective} {trace.algorithm} trace: contributions to chunk {chunk} "
                    f"that rank {rank} ends with",
                    expected=f"those of ranks {_names(due)}",
                    got=_names(got) or "none",
                )
    return trace
