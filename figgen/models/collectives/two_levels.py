"""Times of flat collectives over ranks that share nodes, with fast links inside and slow between.

Every rank has one port to the network. A ring runs once for each port of a node, so that all ports
carry it. An all-to-all posts all of its messages at once, as NCCL does: it pays one latency, and
then a gap for each message that leaves the node rather than a latency for each peer.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLevels:
    """Ranks on equal nodes, with the latency (s) and bandwidth (B/s per rank) of both levels.

    With one node the network is not used. Raises InputError if the ranks do not fill whole nodes.
    """

    ranks: int
    ranks_per_node: int
    near_latency_s: float
    near_bytes_per_s: float
    far_latency_s: float
    far_bytes_per_s: float

    def __post_init__(self) -> None:
        if self.ranks_per_node < 1 or self.ranks % self.ranks_per_node:
            expected = f"a multiple of {self.ranks_per_node} per node"
            raise InputError("ranks", expected=expected, got=self.ranks)

    @property
    def nodes(self) -> int:
        return self.ranks // self.ranks_per_node


def ring_time_s(levels: TwoLevels, message_bytes: float, *, laps: int) -> float:
    """Return the time (s) of a ring that passes every chunk around `laps` times.

    An all-reduce takes two laps, other collectives one. A chunk crosses between nodes once per node
    and lap. The ring moves at the rate of its slower level; between nodes, all ports of a node
    together count as one link.
    """
    steps, across = laps * (levels.ranks - 1), laps * (levels.nodes - 1)
    rate = levels.near_bytes_per_s
    if levels.nodes > 1:
        rate = min(rate, levels.ranks_per_node * levels.far_bytes_per_s)
    latency_s = (steps - across) * levels.near_latency_s + across * levels.far_latency_s
    return latency_s + steps / levels.ranks * message_bytes / rate


def posted_all_to_all_time_s(
    levels: TwoLevels, message_bytes: float, *, message_gap_s: float
) -> float:
    """Return the time (s) of an all-to-all whose messages are all posted at once.

    Traffic inside the node and traffic that leaves it overlap. `message_gap_s` is the time between
    two messages that a rank hands to its port.
    """
    outside = levels.ranks - levels.ranks_per_node
    chunk = message_bytes / levels.ranks
    near_s = (levels.ranks_per_node - 1) * chunk / levels.near_bytes_per_s
    if not outside:
        return levels.near_latency_s + near_s
    far_s = outside * chunk / levels.far_bytes_per_s
    return levels.far_latency_s + outside * message_gap_s + max(near_s, far_s)
