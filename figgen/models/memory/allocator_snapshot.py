"""What a snapshot of PyTorch's CUDA allocator says: who holds memory, what is lost between blocks.

The structure is that of `torch.cuda.memory._dump_snapshot`: segments got from the driver, each a
row of blocks, and a trace of events that may begin in the middle. What a tensor is for is told by
the frames of its allocation.
Source: pytorch/pytorch@0044eb67, torch/cuda/_memory_viz.py and docs, "Understanding CUDA Memory".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from figgen.errors import InputError

KINDS = (
    ("optimizer", r"optim(izer)?s?[/_.]|_init_group|adam|muon"),
    ("communication", r"torch/distributed|c10d|nccl|all_gather|reduce_scatter|fsdp"),
    ("loss", r"cross_?entropy|log_softmax|loss"),
    ("gradients", r"autograd|backward|grad_accum|main_grad|grad_buffer"),
    ("weights", r"__init__|load_state_dict|materialize|reset_parameters|to_empty|_apply"),
    ("activations", r"forward|_call_impl|nn/functional|modeling_|/models?/"),
)  # fmt: skip
"""Kinds of tensors with what names them in a file or function, the more special first."""

OTHER, BEFORE = "other", "before the trace"
PART_OF = {"loss": "working"}
"""Parts of the memory model that kinds belong to, where they are not called alike."""

USED, WAITING, FREE = "active_allocated", "active_awaiting_free", "inactive"
OLDER_STATES = {"active_pending_free": WAITING}


SAID = {
    "allocated": "in use by tensors",
    "rounded": "rounding of their blocks",
    "waiting": "freed, waiting for a stream",
    "torn": "free between blocks in use (torn)",
    "idle": "free segments",
    "reserved": "reserved from the driver",
}
"""What the parts of a device's state are called; the last is the sum of the others."""


@dataclass(frozen=True, slots=True)
class AllocatorState:
    """Bytes of one device: `reserved` from the driver is the sum of all others.

    `allocated` are asked for by tensors, `rounded` added to fill blocks, `waiting` freed but not
    yet given back by a stream, `torn` free between blocks in use, `idle` free segments.
    """

    reserved: int
    allocated: int
    rounded: int
    waiting: int
    torn: int
    idle: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes in use during the trace, by kind, and after how many events that was."""

    bytes: int
    event: int
    kinds: Mapping[str, int]


def kind_of(frames: Sequence[Mapping[str, Any]]) -> str:
    """What a tensor is for, by the innermost frame that tells."""
    for frame in frames:
        text = f"{frame.get('filename', '')}:{frame.get('name', '')}".lower()
        for kind, pattern in KINDS:
            if re.search(pattern, text):
                return kind
    return OTHER


def state_of(snapshot: Mapping[str, Any], device: int) -> AllocatorState:
    """The state of `device` at the snapshot. Raises InputError for another structure."""
    found: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for segment in _segments(snapshot, device):
        blocks = list(_blocks(segment))
        used = any(state != FREE for _, _, state, _ in blocks)
        for size, asked, state, frames in blocks:
            if state == USED:
                found["allocated"] += asked
                found["rounded"] += size - asked
                kinds[kind_of(frames)] += asked
            else:
                found["waiting" if state == WAITING else "torn" if used else "idle"] += size
    names = ("allocated", "rounded", "waiting", "torn", "idle")
    return AllocatorState(
        reserved=sum(found.values()),
        **{name: found[name] for name in names},
        kinds=dict(kinds.most_common()),
    )


def peak_of(snapshot: Mapping[str, Any], device: int) -> Peak | None:
    """The most in use during the trace of `device`; None without one.

    Tensors older than the trace are known by their size alone, unless they are still there.
    """
    traces = snapshot.get("device_traces") or []
    events = [_event(event) for event in traces[device]] if device < len(traces) else []
    if not any(action == "alloc" for action, *_ in events):
        return None
    held = dict(_older(snapshot, device, events))
    total, totals = sum(size for size, _ in held.values()), list[int]()
    for action, address, size, kind in events:
        if action == "alloc":
            held[address] = (size, kind)
            total += size
        elif action == "free_completed":
            total -= held.pop(address, (0, ""))[0]
        totals.append(total)
    peak = max(totals)
    at = totals.index(peak) + 1
    return Peak(peak, at, _kinds_at(dict(_older(snapshot, device, events)), events[:at]))


def _kinds_at(
    held: dict[int, tuple[int, str]], events: Sequence[tuple[str, int, int, str]]
) -> dict[str, int]:
    for action, address, size, kind in events:
        if action == "alloc":
            held[address] = (size, kind)
        elif action == "free_completed":
            held.pop(address, None)
    kinds: Counter[str] = Counter()
    for size, kind in held.values():
        kinds[kind] += size
    return dict(kinds.most_common())


def _older(
    snapshot: Mapping[str, Any], device: int, events: Sequence[tuple[str, int, int, str]]
) -> Iterator[tuple[int, tuple[int, str]]]:
    """What was in use before the trace: freed in it without having been made, or still there."""
    made: set[int] = set()
    gone: set[int] = set()
    for action, address, size, _ in events:
        if action == "alloc":
            made.add(address)
        elif action == "free_completed":
            if address not in made and address not in gone:
                yield address, (size, BEFORE)
            gone.add(address)
    for segment in _segments(snapshot, device):
        address = int(segment.get("address", 0))
        for size, asked, state, frames in _blocks(segment):
            if state == USED and address not in made:
                yield address, (asked, kind_of(frames))
            address += size


def _event(event: Any) -> tuple[str, int, int, str]:
    if not isinstance(event, dict) or "action" not in event:
        raise InputError("an event of the trace", expected="a dict with an action", got=event)
    kind = kind_of(event.get("frames") or ()) if event["action"] == "alloc" else ""
    return str(event["action"]), int(event.get("addr", 0)), int(event.get("size", 0)), kind


def _segments(snapshot: Mapping[str, Any], device: int) -> list[Mapping[str, Any]]:
    segments = snapshot.get("segments")
    if not isinstance(segments, list) or not all(isinstance(one, dict) for one in segments):
        raise InputError("a snapshot", expected="a dict with a list of segments", got=segments)
    return [one for one in segments if one.get("device", 0) == device]


def _blocks(segment: Mapping[str, Any]) -> Iterator[tuple[int, int, str, Sequence[Any]]]:
    """Size, what was asked for, state and frames of every block, in older formats too."""
    for block in segment.get("blocks") or ():
        state = str(block.get("state"))
        state = OLDER_STATES.get(state, state)
        if state not in (USED, WAITING, FREE):
            expected = f"{USED}, {WAITING} or {FREE}"
            raise InputError("state of a block", expected=expected, got=state)
        size = int(block["size"])
        history = (block.get("history") or [{}])[0]
        asked = int(block.get("requested_size", history.get("real_size", size)))
        yield size, asked, state, block.get("frames") or history.get("frames") or ()
