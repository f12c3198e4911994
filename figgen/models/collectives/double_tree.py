"""NCCL's double binary tree: two trees, each carrying half of the vector.

In the first tree the odd ranks are leaves. The second is the same tree mirrored (n even) or shifted
by one rank (n odd), which turns leaves into inner ranks. So a rank that sends twice as much as it
receives in one tree sends little in the other, and no rank sends more than twice the vector (NCCL
src/graph/trees.cc; Sanders, Speck and Träff 2009). For even n every rank is a leaf of exactly one
tree; for odd n, n > 1, one rank is an inner rank of both, with one child in each.

NCCL builds these trees over nodes, with a chain inside each node. Here every rank is a node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from figgen.errors import check_size
from figgen.models.collectives.traces import CollectiveTrace, Move, Round, assemble

Parents = tuple[int | None, ...]
"""`parents[rank]`: the rank above in a tree, None for its root."""


def _first_parent(rank: int, ranks: int) -> int | None:
    if rank == 0:
        return None
    lowest = rank & -rank
    parent = (rank - lowest) | lowest << 1
    return parent if parent < ranks else rank - lowest


def double_binary_tree(ranks: int) -> tuple[Parents, Parents]:
    """Return NCCL's two trees over `ranks` ≥ 1 ranks, each as the parent of every rank."""
    first = [_first_parent(rank, check_size("ranks", ranks)) for rank in range(ranks)]
    image = [ranks - 1 - r if ranks % 2 == 0 else (r + 1) % ranks for r in range(ranks)]
    second: list[int | None] = [None] * ranks
    for rank, parent in enumerate(first):
        second[image[rank]] = None if parent is None else image[parent]
    return tuple(first), tuple(second)


def _depth(parents: Parents, rank: int) -> int:
    above = parents[rank]
    return 0 if above is None else 1 + _depth(parents, above)


def _messages(parents: Parents, chunks: Sequence[int]) -> tuple[list[Move], list[list[int]]]:
    """Return a tree's messages, up then down per chunk, and the messages that each waits for."""
    ranks = len(parents)
    bottom_up = sorted(range(ranks), key=lambda rank: (-_depth(parents, rank), rank))
    moves: list[Move] = []
    needs: list[list[int]] = []
    for chunk in chunks:
        reached: defaultdict[int, list[int]] = defaultdict(list)
        for rank in bottom_up:
            if (parent := parents[rank]) is not None:
                needs.append(reached[rank])
                reached[parent] = [*reached[parent], len(moves)]
                moves.append((rank, parent, (chunk,), True))
        for rank in reversed(bottom_up):
            if (parent := parents[rank]) is not None:
                needs.append(reached[parent])
                reached[rank] = [len(moves)]
                moves.append((parent, rank, (chunk,), False))
    return moves, needs


def _steps_after(needs: Sequence[Sequence[int]]) -> list[int]:
    """Return, for each message, the length in steps of the longest chain that starts with it."""
    longest = [1] * len(needs)
    for message in reversed(range(len(needs))):  # a message waits for earlier numbers only
        for earlier in needs[message]:
            longest[earlier] = max(longest[earlier], longest[message] + 1)
    return longest


def one_port_rounds(
    moves: Sequence[Move], needs: Sequence[Sequence[int]], urgency: Sequence[float]
) -> list[Round]:
    """Pack messages greedily into rounds in which every rank sends and receives at most one.

    `needs[i]` lists the messages that must arrive before message i leaves. Among the messages that
    are ready, the largest `urgency` goes first; ties go to the lower number.
    """
    missing = [len(needed) for needed in needs]
    wakes: defaultdict[int, list[int]] = defaultdict(list)
    for message, needed in enumerate(needs):
        for earlier in needed:
            wakes[earlier].append(message)
    ready = [message for message, count in enumerate(missing) if count == 0]
    rounds: list[Round] = []
    while ready:
        senders: set[int] = set()
        receivers: set[int] = set()
        leaving: list[int] = []
        for message in sorted(ready, key=lambda message: (-urgency[message], message)):
            source, target, *_ = moves[message]
            if source not in senders and target not in receivers:
                senders.add(source)
                receivers.add(target)
                leaving.append(message)
        rounds.append([moves[message] for message in leaving])
        gone = set(leaving)
        ready = [message for message in ready if message not in gone]
        for woken in (woken for message in leaving for woken in wakes[message]):
            missing[woken] -= 1
            if missing[woken] == 0:
                ready.append(woken)
    return rounds


def double_binary_tree_all_reduce(ranks: int, *, segments: int = 1) -> CollectiveTrace:
    """Send half of the vector up and down each of two trees, in `segments` (≥ 1) pieces per half.

    With k segments a step carries S/2k bytes, and the number of steps approaches 4k from above. A
    large message therefore takes 2S/B. The reductions and broadcasts of different segments overlap,
    so all steps are one phase.

    The packing is ours (one port, all messages of a step equally long): NCCL runs the same messages
    without steps, each as soon as its data arrives.
    """
    check_size("segments", segments)
    moves: list[Move] = []
    needs: list[list[int]] = []
    for tree, parents in enumerate(double_binary_tree(ranks)):
        chunks = range(tree * segments, (tree + 1) * segments)
        more, waits = _messages(parents, chunks)
        needs += [[earlier + len(moves) for earlier in needed] for needed in waits]
        moves += more
    # Each later segment is less urgent by one step. In strict order the segments would not
    # overlap; by chain length alone every reduction would run before the first broadcast.
    urgency = [
        after - move[2][0] % segments
        for after, move in zip(_steps_after(needs), moves, strict=True)
    ]
    return assemble(
        "all-reduce",
        "double-binary-tree",
        ranks,
        2 * segments,
        [("reduce and broadcast", one_port_rounds(moves, needs, urgency))],
        variant=f"{segments} segments per tree",
    )
