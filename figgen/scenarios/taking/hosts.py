"""Reads where ranks run, and how that differs from a layout.

It reads host lists, hostfiles, rankfiles, and ranks as Slurm, NCCL and torch print them.
Sources: `scontrol show hostnames` and `srun --label` of Slurm; hostfiles and rankfiles of Open MPI
(`rank 0=node1 slot=0`) and DeepSpeed (`node1 slots=8`); nccl-tests and NCCL_DEBUG=INFO;
torch.distributed.device_mesh.DeviceMesh.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout, layout, mesh_of
from figgen.models.machine.mesh import coordinates_of, group_offsets, group_starts
from figgen.scenarios.texts.entry import is_whole


@dataclass(slots=True, kw_only=True)
class Hosts:
    """Hosts in order with their slots (0 if unknown), and where ranks run.

    `ranks` maps a rank to the index of its host and its GPU there. `groups` are groups of ranks as
    a program prints them, and `axes` the axis of each, "" if the text names none.
    """

    kind: str
    names: list[str] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    ranks: dict[int, tuple[int, int]] = field(default_factory=dict)
    groups: list[list[int]] = field(default_factory=list)
    axes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Sentences about differences from a layout, and the ranks that differ."""

    sentences: list[str]
    ranks: list[int]


MOST_HOSTS = 20_000
LONGEST_LINE = 20_000
"""Most characters of a line; one with a mesh of 4,096 ranks has about that many."""
AXES = (
    ("tensor", "tp"), ("pipeline", "pp"), ("context", "cp"), ("expert", "ep"), ("data", "dp"),
    ("dp_shard", "dp"), ("shard", "dp"), ("fsdp", "dp"), ("tp", "tp"), ("pp", "pp"), ("cp", "cp"),
    ("ep", "ep"), ("dp", "dp"),
)  # fmt: skip
"""Names of axes in programs, and in the layout."""


def read_hosts(text: str) -> Hosts | None:
    """Return the hosts or ranks in a text, or None."""
    lines = [line.strip() for line in text.replace("\r", "").split("\n")]
    lines = [line for line in lines if line and len(line) <= LONGEST_LINE]
    for read in (_rank_lines, _groups, _hostfile):
        found = read(lines)
        if found is not None:
            return found
    return None


RANK_LINES = (
    (r"^rank\s+(\d+)\s*=\s*(\S+)\s+slots?\s*=\s*(?:\d+:)?(\d+)", "rankfile"),
    (r"Rank\s+(\d+)\s.*\bon\s+(\S+)\s+device\s+(\d+)", "nccl-tests"),
)
"""Patterns of lines with a rank, its host and its GPU."""
LONGEST_RANK_LINE = 500


def _rank_lines(lines: list[str]) -> Hosts | None:
    """Read a rankfile, nccl-tests' list of ranks, NCCL's log, or `srun --label hostname`."""
    triples: list[tuple[int, str, int]] = []
    kind = ""
    for line in lines:
        if len(line) > LONGEST_RANK_LINE:
            continue
        for pattern, name in RANK_LINES:
            found = re.search(pattern, line)
            if found is not None:
                triples.append((int(found[1]), found[2], int(found[3])))
                kind = name
        nccl = re.search(r"^(\S+?):\d+:\d+ \[(\d+)\] NCCL INFO .*\brank (\d+) nranks", line)
        if nccl is not None:
            triples.append((int(nccl[3]), nccl[1], int(nccl[2])))
            kind = "NCCL"
    if not triples:
        return _labelled(lines)
    hosts = Hosts(kind=kind)
    for rank, name, gpu in sorted(triples):
        if rank not in hosts.ranks:
            hosts.ranks[rank] = (_number_of(hosts, name), gpu)
    _count_slots(hosts)
    return hosts


def _labelled(lines: list[str]) -> Hosts | None:
    """Read `3: node002` lines of `srun --label hostname`; GPUs count up in rank order."""
    pairs: list[tuple[int, str]] = []
    for line in lines:
        found = re.search(r"^\[?(?:rank)?(\d+)\]?:\s*([A-Za-z][\w.-]*)$", line)
        if found is None:
            return None
        pairs.append((int(found[1]), found[2]))
    if len(pairs) < 2:
        return None
    hosts = Hosts(kind="srun")
    for rank, name in sorted(pairs):
        number = _number_of(hosts, name)
        hosts.ranks[rank] = (number, hosts.slots[number])
        hosts.slots[number] += 1
    return hosts


def _number_of(hosts: Hosts, name: str) -> int:
    if name in hosts.names:
        return hosts.names.index(name)
    if len(hosts.names) >= MOST_HOSTS:
        raise InputError("hosts", expected=f"at most {MOST_HOSTS:,}")
    hosts.names.append(name)
    hosts.slots.append(0)
    return len(hosts.names) - 1


def _count_slots(hosts: Hosts) -> None:
    for number, _ in hosts.ranks.values():
        hosts.slots[number] += 1


def _groups(lines: list[str]) -> Hosts | None:
    """Read a DeviceMesh as torch prints it, or groups of ranks after the name of an axis."""
    whole = " ".join(lines)
    _, call, rest = whole.partition("DeviceMesh(")
    nested = _first_list(rest) if call else ""
    if nested:
        names = rest.partition("mesh_dim_names=(")[2].partition(")")[0]
        return _mesh_groups(nested, names)
    hosts = Hosts(kind="groups")
    for line in lines:
        pieces = line.split("[")
        named = pieces[0] if _tells_of_groups(pieces[0]) else ""
        for piece in pieces[1:]:
            inner, bracket, after = piece.partition("]")
            if bracket and re.fullmatch(r"\s*\d+(?:\s*,\s*\d+)*\s*", inner) is not None:
                hosts.groups.append([int(one) for one in inner.split(",")])
                hosts.axes.append(_axis(named))
            named = after if _tells_of_groups(after) else named
    told = any(axis for axis in hosts.axes)
    return hosts if told and max(len(group) for group in hosts.groups) > 1 else None


def _first_list(text: str) -> str:
    """Return the first bracketed part of a text up to its closing bracket, or ""."""
    start = text.find("[")
    depth = 0
    for at in range(max(start, 0), len(text)):
        if text[at] == "[":
            depth += 1
        elif text[at] == "]":
            depth -= 1
            if depth == 0:
                return text[start : at + 1]
    return ""


def _tells_of_groups(said: str) -> bool:
    plain = said.lower()
    return "group" in plain or "rank" in plain


def _axis(said: str) -> str:
    plain = said.lower().replace("-", "_")
    for name, axis in AXES:
        if re.search(f"(^|[^a-z]){name}([^a-z]|$)", plain) is not None:
            return axis
    return ""


def _mesh_groups(nested: str, names: str) -> Hosts:
    """Return the groups along every axis of a printed array, whose last axis is the fastest."""
    ranks = [int(one) for one in re.findall(r"\d+", nested)]
    depth = 0
    while depth < len(nested) and nested[depth] == "[":
        depth += 1
    return _of_array(ranks, _shape(nested, depth), names)


def _shape(nested: str, depth: int) -> list[int]:
    """Return the sizes of a nested list, slowest first."""
    sizes = [0 for _ in range(depth)]
    level = -1
    counts = [0 for _ in range(depth)]
    for at in range(len(nested)):
        letter = nested[at]
        if letter == "[":
            level += 1
            if level < depth:
                counts[level] = 1
        elif letter == "," and 0 <= level < depth:
            counts[level] += 1
        elif letter == "]":
            if 0 <= level < depth:
                sizes[level] = max(sizes[level], counts[level])
            level -= 1
    return sizes


def _of_array(ranks: list[int], sizes: list[int], names: str) -> Hosts:
    words = [word.strip().strip("'\"") for word in names.split(",") if word.strip()]
    hosts = Hosts(kind="mesh")
    stride = 1
    for at in range(len(sizes) - 1, -1, -1):
        size = sizes[at]
        axis = _axis(words[at]) if at < len(words) else ""
        for start in range(len(ranks)):
            if (start // stride) % size == 0 and start + stride * (size - 1) < len(ranks):
                hosts.groups.append(sorted([ranks[start + stride * one] for one in range(size)]))
                hosts.axes.append(axis)
        stride *= size
    return hosts


def _hostfile(lines: list[str]) -> Hosts | None:
    """Read a hostfile, or host names on separate lines or in Slurm's brackets."""
    hosts = Hosts(kind="hostnames")
    sure = False
    for line in lines:
        if line.startswith("#"):
            continue
        found = re.search(
            r"^([A-Za-z0-9][\w.-]*?)(?:\s+(?:max_)?slots\s*=\s*(\d+).*|:(\d+))?$", line
        )
        if found is None:
            expanded = expanded_names(line)
            if not expanded or len(lines) > 1:
                return None
            for name in expanded:
                _number_of(hosts, name)
            return hosts
        name = found[1]
        if is_whole(name) or name.endswith((".sh", ".py", ".json", ".toml", ".yaml", ".yml")):
            return None
        number = _number_of(hosts, name)
        slots = found[2] or found[3]
        if slots:
            hosts.slots[number] += int(slots)
            hosts.kind = "hostfile"
            sure = True
    numbered = all(re.search(r"\d", name) is not None for name in hosts.names)
    return hosts if hosts.names and (sure or (len(hosts.names) > 1 and numbered)) else None


def expanded_names(line: str) -> list[str]:
    """Return the hosts of Slurm's `node[001-003,007],gpu1`, or nothing for other texts."""
    found: list[str] = []
    for part in re.findall(r"[A-Za-z][\w.-]*(?:\[[\d,-]+\])?[\w.-]*", line):
        start, bracket, rest = part.partition("[")
        if not bracket:
            found.append(part)
            continue
        inner, _, end = rest.partition("]")
        for piece in inner.split(","):
            low, _, high = piece.partition("-")
            last = int(high or low)
            if last - int(low) >= MOST_HOSTS:
                raise InputError("hosts", expected=f"at most {MOST_HOSTS:,}")
            for number in range(int(low), last + 1):
                digits = str(number)
                while len(digits) < len(low):
                    digits = "0" + digits
                found.append(start + digits + end)
    named = re.fullmatch(r"[\w.,\[\]-]+", line.strip()) is not None  # and no JSON
    return found if "[" in line and named else []


def differences(parallel: ParallelLayout, hosts: Hosts) -> Differences:
    """Return how hosts, ranks or groups differ from a layout with rank r on node r // GPUs."""
    if hosts.groups:
        return _groups_against(parallel, hosts)
    sentences: list[str] = []
    if len(hosts.names) != parallel.nodes:
        sentences.append(
            f"the text names {_plural(len(hosts.names), 'host')}, but the layout has "
            f"{_plural(parallel.nodes, 'node')}"
        )
    uneven = [
        f"{name} has {slots}"
        for name, slots in zip(hosts.names, hosts.slots, strict=True)
        if slots and slots != parallel.gpus_per_node
    ]
    if uneven:
        sentences.append(
            f"the layout has {_plural(parallel.gpus_per_node, 'GPU')} per node, but "
            f"{', '.join(uneven[:4])}{f' and {len(uneven) - 4} more differ' if uneven[4:] else ''}"
        )
    moved: list[int] = []
    for rank, (node, gpu) in hosts.ranks.items():
        if (node, gpu) != (rank // parallel.gpus_per_node, rank % parallel.gpus_per_node):
            moved.append(rank)
    moved = [rank for rank in sorted(moved) if rank < parallel.world_size]
    if moved:
        first = moved[0]
        node, gpu = hosts.ranks[first]
        sentences.append(
            f"{_plural(len(moved), 'rank')} of {parallel.world_size:,} run elsewhere than in the "
            f"layout: rank {first} on GPU {gpu} of {hosts.names[node]} instead of GPU "
            f"{first % parallel.gpus_per_node} of node {first // parallel.gpus_per_node}"
        )
        sentences.extend(_torn(parallel, hosts))
    return Differences(sentences=sentences, ranks=moved)


def _torn(parallel: ParallelLayout, hosts: Hosts) -> list[str]:
    """Return axes whose groups leave a node on these hosts but not in the layout."""
    found: list[str] = []
    for axis in ("tp", "cp", "dp", "pp"):
        mesh = mesh_of(parallel, axis)
        torn = 0
        for start in group_starts(mesh, axis):
            group = [start + offset for offset in group_offsets(mesh, axis)]
            planned = {rank // parallel.gpus_per_node for rank in group}
            real = {hosts.ranks[rank][0] for rank in group if rank in hosts.ranks}
            torn += 1 if len(real) > len(planned) else 0
        if torn:
            found.append(
                f"{_plural(torn, 'group')} of {axis.upper()} span more nodes than in the layout"
            )
    return found


def _groups_against(parallel: ParallelLayout, hosts: Hosts) -> Differences:
    known: dict[str, list[list[int]]] = {}
    for axis in ("tp", "cp", "dp", "pp", "ep"):
        if axis != "ep" or parallel.has_experts:
            mesh = mesh_of(parallel, axis)
            offsets = group_offsets(mesh, axis)
            starts = group_starts(mesh, axis)
            known[axis] = [[start + offset for offset in offsets] for start in starts]
    every = {_key(group) for groups in known.values() for group in groups}
    by_axis = {axis: {_key(group) for group in groups} for axis, groups in known.items()}
    sentences: list[str] = []
    ranks: list[int] = []
    for group, axis in zip(hosts.groups, hosts.axes, strict=True):
        if _key(group) in by_axis.get(axis, every):
            continue
        ranks.extend([rank for rank in group if rank < parallel.world_size and rank not in ranks])
        usual = [one for one in known[axis] if group[0] in one] if axis in known else []
        instead = f" instead of {_few(usual[0])}" if usual else ""
        said = f"{axis.upper()} group" if axis else "a group"
        sentences.append(f"the text has the {said} {_few(group)}{instead}")
    if len(sentences) > MOST_SENTENCES:
        more = len(sentences) - MOST_SENTENCES
        sentences = [*sentences[:MOST_SENTENCES], f"{_plural(more, 'more group')} differ"]
    return Differences(sentences=sentences, ranks=sorted(ranks))


MOST_SENTENCES = 6


def _key(group: list[int]) -> str:
    return ",".join([str(rank) for rank in group])


def _few(group: list[int]) -> str:
    shown = ", ".join([str(rank) for rank in group[:8]])
    return f"[{shown}{', …' if group[8:] else ''}]"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def host_names(parallel: ParallelLayout, hosts: Hosts | None) -> list[str]:
    """Return a name for every node: those of the hosts, then node0, node1 and so on."""
    given = hosts.names if hosts is not None else []
    return [given[at] if at < len(given) else f"node{at}" for at in range(parallel.nodes)]


def hostfile(parallel: ParallelLayout, names: list[str]) -> str:
    """Return a hostfile for Open MPI and DeepSpeed, with a line per node."""
    return "\n".join([f"{name} slots={parallel.gpus_per_node}" for name in names])


def rankfile(parallel: ParallelLayout, names: list[str]) -> str:
    """Return a rankfile for Open MPI that places Megatron-LM's ranks by the layout.

    Each rank runs where the layout has its part of the model.
    """
    usual = layout(
        nodes=parallel.nodes,
        gpus_per_node=parallel.gpus_per_node,
        tp=parallel.tp,
        cp=parallel.cp,
        pp=parallel.pp,
    ).dense
    strides: dict[str, int] = {}
    stride = 1
    for name, size in parallel.dense.axes:
        strides[name] = stride
        stride *= size
    lines: list[str] = []
    for rank in range(parallel.world_size):
        place = 0
        for name, at in coordinates_of(usual, rank).items():
            place += at * strides[name]
        node = names[place // parallel.gpus_per_node]
        lines.append(f"rank {rank}={node} slot={place % parallel.gpus_per_node}")
    return "\n".join(lines)


RANKFILE_NOTE = (
    "For mpirun --rankfile: each rank in Megatron-LM's default order runs where the map has its "
    "part of the model. Ranks of a node take its GPUs in ascending order."
)
HOSTFILE_NOTE = (
    "For mpirun --hostfile and deepspeed --hostfile, with nodes in the order of the map. To use "
    "your host names, paste them under Bring your job."
)


def write_hosts(kind: str, parallel: ParallelLayout, names: list[str]) -> tuple[str, str]:
    """Return the text and the note of a "hostfile" or a "rankfile"."""
    if kind == "hostfile":
        return hostfile(parallel, names), HOSTFILE_NOTE
    return rankfile(parallel, names), RANKFILE_NOTE
