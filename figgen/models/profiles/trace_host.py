"""Which operator and which module on the host launched each event of the device.

Kineto gives a kernel the number ("External id") of the innermost operator that launched it. If
Python's stacks were recorded, a module's call encloses the launch on its thread. A backward node
has the sequence number of the forward operator, whose module it belongs to.
Source: pytorch/kineto libkineto/src/output_json.cpp; torch/autograd/profiler_util.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from figgen.models.profiles.trace_kinds import BACKWARD, MODULE
from figgen.models.profiles.trace_ranks import NONE, DeviceEvents, Launch, RecordedRank, TraceScope

OPTIMIZER_STEP = "Optimizer.step#"
"""Prefix of PyTorch's annotation of an optimizer step."""


def operator_of(kept: RecordedRank, events: DeviceEvents, at: int) -> str:
    """Return the innermost operator that launched an event of the device, or "" if unknown."""
    number = events.operators[at]
    if number not in kept.operators:
        launch = kept.launched.get(events.launches[at])
        number = NONE if launch is None else launch.operator
    name = kept.operators.get(number, NONE)
    return "" if name == NONE else kept.names[name]


def scopes_of_launches(kept: RecordedRank) -> dict[int, str]:
    """Return the innermost module or optimizer step around each launch, by correlation id."""
    by_thread: dict[str, list[tuple[float, int]]] = {}
    for number, launch in kept.launched.items():
        by_thread.setdefault(launch.thread, []).append((launch.start, number))
    modules: dict[int, str] = {}
    for thread, operators in kept.sequences.items():
        _sequences_of(kept.scopes.get(thread, []), sorted(operators), modules)
    found: dict[int, str] = {}
    for thread, launches in by_thread.items():
        scopes = sorted(kept.scopes.get(thread, []), key=lambda scope: (scope.start, -scope.end))
        for number, around in _enclosed(scopes, sorted(launches)):
            named = _scope_of(around, modules)
            if named:
                found[number] = named
    return found


def _sequences_of(
    scopes: Sequence[TraceScope], operators: Sequence[tuple[float, int]], modules: dict[int, str]
) -> None:
    """Record the module of every forward operator by its sequence number."""
    some = sorted(
        [scope for scope in scopes if scope.name.startswith(MODULE)],
        key=lambda scope: (scope.start, -scope.end),
    )
    for sequence, around in _enclosed(some, operators):
        if around and sequence not in modules:
            modules[sequence] = module_name(around[-1].name)


def _enclosed(
    scopes: Sequence[TraceScope], moments: Sequence[tuple[float, int]]
) -> list[tuple[int, list[TraceScope]]]:
    """Return, for each moment, its number and the scopes around it, outermost first.

    Both `scopes` and `moments` are sorted.
    """
    found: list[tuple[int, list[TraceScope]]] = []
    stack: list[TraceScope] = []
    following = 0
    for moment, number in moments:
        while following < len(scopes) and scopes[following].start <= moment:
            while stack and stack[-1].end < scopes[following].start:
                stack.pop()
            stack.append(scopes[following])
            following += 1
        while stack and stack[-1].end < moment:
            stack.pop()
        found.append((number, list(stack)))
    return found


def _scope_of(around: Sequence[TraceScope], modules: Mapping[int, str]) -> str:
    """Return the innermost module, the module of a backward node, or the optimizer step."""
    for scope in reversed(around):
        if scope.name.startswith(MODULE):
            return module_name(scope.name)
        if scope.name.startswith(BACKWARD) and scope.sequence in modules:
            return modules[scope.sequence]
        if scope.name.startswith(OPTIMIZER_STEP):
            return OPTIMIZER_STEP.removesuffix("#")
    return ""


def module_name(name: str) -> str:
    """Return a module's class without the number that the profiler gives each instance."""
    plain = name.removeprefix(MODULE)
    head, _, number = plain.rpartition("_")
    return head if head and number.isdigit() else plain


def launch_of(kept: RecordedRank, events: DeviceEvents, at: int) -> Launch | None:
    """Return the host's call that launched an event of the device, or None."""
    return kept.launched.get(events.launches[at])
