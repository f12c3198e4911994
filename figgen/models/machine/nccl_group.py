"""A communicator as NCCL's tuning sees it, with its constants and its candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.errors import InputError, check_size, unknown
from figgen.models.machine.nccl_channels import Channels

PROTOCOLS = ("ll", "ll128", "simple")
ARCHITECTURES = ("volta", "ampere", "hopper", "blackwell")
HOSTS = ("intel_x86", "amd_x86", "other")
TRANSPORTS = ("nvlink", "pci")

# collective -> algorithms that have an implementation of it
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "all-reduce": ("tree", "ring", "nvls", "nvls_tree"),
    "reduce-scatter": ("ring", "nvls", "pat"),
    "all-gather": ("ring", "nvls", "pat"),
    "broadcast": ("ring",),
    "reduce": ("ring",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningConstants:
    """NCCL's constants in SI units (s, B/s), under the keys of the published table.

    `base_latency_s` and each of `step_latency_s["nvlink" | "pci" | "net"]`: keys such as
    "ring_ll". `network_overhead_s`: one per host. `bandwidth_caps[architecture]`: keys such as
    "tree_ll128_2nodes" ("1node", "2nodes", "4nodes" for more than two), per channel except for
    "ll_max", and "nvls_efficiency" (a share).
    """

    base_latency_s: Mapping[str, float]
    step_latency_s: Mapping[str, Mapping[str, float]]
    network_overhead_s: Mapping[str, float]
    bandwidth_caps: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclGroup:
    """The ranks of one communicator, and the channels that NCCL found for them.

    `ranks` are spread evenly over `nodes`. A channel carries `channel_bytes_per_s` between GPUs and
    `network_bytes_per_s` between nodes, per direction; NCCL uses the first for two nodes too.
    `host` is the make of the CPU, `transport` the link between GPUs of a node. `switched` are the
    channels of NVLS, for which NCCL searches separately; without them the others are used. Raises
    InputError for impossible sizes and bandwidths.
    """

    ranks: int
    channels: int
    channel_bytes_per_s: float
    network_bytes_per_s: float = 0.0
    nodes: int = 1
    architecture: str = "hopper"
    host: str = "intel_x86"
    transport: str = "nvlink"
    switched: Channels | None = None

    def __post_init__(self) -> None:
        check_size("nodes", self.nodes)
        check_size("channels", self.channels)
        if self.channel_bytes_per_s <= 0:
            raise InputError("channel_bytes_per_s", expected="> 0", got=self.channel_bytes_per_s)
        if self.ranks < 2 or self.ranks % self.nodes:
            raise InputError(
                "ranks", expected=f"2 or more, equal on {self.nodes} nodes", got=self.ranks
            )
        if self.nodes > 1 and self.network_bytes_per_s <= 0:
            raise InputError("network_bytes_per_s", expected="> 0", got=self.network_bytes_per_s)
        for kind, name, known in (
            ("architecture", self.architecture, ARCHITECTURES),
            ("host", self.host, HOSTS),
            ("transport", self.transport, TRANSPORTS),
        ):
            if name not in known:
                raise unknown(kind, name, known)

    @property
    def ranks_per_node(self) -> int:
        return self.ranks // self.nodes


def step_count(collective: str, ranks: int) -> int:
    """Return the steps of a ring of `ranks`. Raises InputError for an unknown collective."""
    if collective not in ALGORITHMS:
        raise unknown("NCCL collective", collective, ALGORITHMS)
    return {
        "all-reduce": 2 * (ranks - 1),
        "reduce-scatter": ranks - 1,
        "all-gather": ranks - 1,
    }.get(collective, ranks)


def candidates(
    constants: TuningConstants, group: NcclGroup, collective: str
) -> tuple[tuple[str, str], ...]:
    """Return the (algorithm, protocol) pairs that NCCL has for `collective` on this group.

    Raises InputError for an unknown collective.
    """
    if collective not in ALGORITHMS:
        raise unknown("NCCL collective", collective, ALGORITHMS)
    switched = (
        group.transport == "nvlink"
        and (group.switched.count if group.switched else group.channels) > 1
        and constants.bandwidth_caps[group.architecture]["nvls_efficiency"] > 0
    )
    usable = {
        "tree": True,
        "ring": True,
        "nvls": switched and group.nodes == 1,
        "nvls_tree": switched and group.nodes > 1,
        "pat": group.nodes == group.ranks,
    }
    return tuple(
        (algorithm, protocol)
        for algorithm in ALGORITHMS[collective]
        if usable[algorithm]
        for protocol in (PROTOCOLS if algorithm in ("tree", "ring") else ("simple",))
    )
