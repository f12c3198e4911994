"""Whether parallel sizes fit a cluster, and which sizes near them do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from figgen.errors import InputError
from figgen.models.machine.frameworks import Convention


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Requested parallel sizes; `dp` and `etp` are None if they are to be derived."""

    tp: int
    cp: int
    pp: int
    ep: int
    etp: int | None = None
    dp: int | None = None


def expert_tp(sizes: Sizes, convention: Convention) -> int:
    """Return ETP as given, or the framework's default."""
    if sizes.etp is not None:
        return sizes.etp
    return sizes.tp if convention.etp == "tp" else 1


def problem(world_size: int, sizes: Sizes, convention: Convention) -> InputError | None:
    """Return why `sizes` do not fit `world_size` ranks under `convention`, or None if they do.

    Checks that the sizes of each mesh multiply out, that the order names all axes, and that a
    pipeline is the same ranks in both meshes.
    """
    return (
        _order_problem(sizes, convention)
        or _dense_problem(world_size, sizes)
        or _expert_problem(world_size, sizes, convention)
    )


def _order_problem(sizes: Sizes, convention: Convention) -> InputError | None:
    for axis in ("tp", "cp", "pp", "ep"):
        size = getattr(sizes, axis)
        if axis not in convention.order and size > 1:
            what = f"order {convention.name!r} has no {axis} axis"
            return InputError(what, expected=f"{axis}=1", got=size)
    only = sizes.tp if convention.etp == "tp" else 1
    if convention.etp_fixed and expert_tp(sizes, convention) != only:
        return InputError(
            f"etp under order {convention.name!r}", expected=str(only), got=sizes.etp, key="etp"
        )
    return None


def _dense_problem(world_size: int, sizes: Sizes) -> InputError | None:
    model = sizes.tp * sizes.cp * sizes.pp
    if sizes.dp is not None and model * sizes.dp != world_size:
        return InputError(
            f"TP·CP·DP·PP = {sizes.tp}·{sizes.cp}·{sizes.dp}·{sizes.pp}",
            expected=f"{world_size} (nodes × GPUs per node)",
            got=_shown(model * sizes.dp),
            key="tp",
        )
    if model > world_size or world_size % model:
        return InputError(
            f"TP·CP·PP = {sizes.tp}·{sizes.cp}·{sizes.pp}",
            expected=f"a divisor of {world_size} (nodes × GPUs per node)",
            got=_shown(model),
            key="tp",
        )
    return None


def _expert_problem(world_size: int, sizes: Sizes, convention: Convention) -> InputError | None:
    etp = expert_tp(sizes, convention)
    model = etp * sizes.ep * sizes.pp
    if model > world_size or world_size % model:
        return InputError(
            f"ETP·EP·PP = {etp}·{sizes.ep}·{sizes.pp}",
            expected=f"a divisor of {world_size} (nodes × GPUs per node)",
            got=_shown(model),
            key="tp",
        )
    if "ep" not in convention.order or sizes.pp == 1:
        return None
    dense, expert = pipeline_strides(world_size, sizes, convention)
    if dense != expert:
        # Megatron asserts the same as EDP = DP "when not using pp-last rank ordering".
        return InputError(
            f"order {convention.name!r} gives dense and expert layers different pipelines",
            expected=f"one rank distance between stages, not {dense} and {expert}",
            key="order",
        )
    return None


def _shown(product: int) -> int | str:
    """Return multiplied sizes for a message; pages have no exact integers from 2**53 on."""
    return product if product <= 9007199254740991 else "2**53 or more"


def pipeline_strides(world_size: int, sizes: Sizes, convention: Convention) -> tuple[int, int]:
    """Rank distance between pipeline neighbors in the dense and in the expert mesh."""
    etp = expert_tp(sizes, convention)
    dp = world_size // (sizes.tp * sizes.cp * sizes.pp)
    edp = world_size // (etp * sizes.ep * sizes.pp)
    if "pp" not in convention.order:
        return world_size, world_size
    faster = convention.order[: convention.order.index("pp")]
    # An axis that the order leaves out is appended after pp, where it does not count.
    dense = {"tp": sizes.tp, "cp": sizes.cp, "ep": 1, "dp": dp}
    expert = {"tp": etp, "cp": 1, "ep": sizes.ep, "dp": edp}
    return math.prod(dense[axis] for axis in faster), math.prod(expert[axis] for axis in faster)


def nearest_valid(
    nodes: int, gpus_per_node: int, wanted: Sizes, convention: Convention
) -> tuple[str, ...]:
    """Return up to three configurations that fit, closest first, as in "tp=8 pp=2 dp=16".

    The distance is one per changed size plus the powers of two by which it changes; data
    parallelism, which follows from the other sizes, counts half. The last one may change `nodes`
    instead.
    """
    world_size = nodes * gpus_per_node
    found: list[tuple[float, str]] = []
    for sizes in _closest_dense(world_size, wanted, convention):
        completed = _closest_expert(world_size, sizes, wanted, convention)
        if completed is not None:
            found.append((_distance(completed, wanted), _written(completed, wanted)))
    found.sort(key=lambda entry: entry[0])
    kept = [text for cost, text in found[:2] if cost <= found[0][0] + 1]
    resized = _other_node_count(nodes, gpus_per_node, wanted, convention)
    return tuple(kept if resized is None else [*kept, resized])


def _closest_dense(world_size: int, wanted: Sizes, convention: Convention) -> list[Sizes]:
    found = []
    for pp in _divisors(world_size, "pp" in convention.order):
        for tp in _divisors(world_size // pp, "tp" in convention.order):
            for cp in _divisors(world_size // (pp * tp), "cp" in convention.order):
                dp = world_size // (pp * tp * cp)
                found.append(replace(wanted, tp=tp, cp=cp, pp=pp, dp=dp))
    found.sort(key=lambda sizes: _distance(sizes, wanted))
    return found[:48]


def _closest_expert(
    world_size: int, sizes: Sizes, wanted: Sizes, convention: Convention
) -> Sizes | None:
    expert_world = world_size // sizes.pp
    default = expert_tp(replace(sizes, etp=None), convention)
    etps: Iterable[int | None] = (None,)
    if wanted.etp is not None:
        etps = (default,) if convention.etp_fixed else _divisors(expert_world, True)
    eps = tuple(_divisors(expert_world, "ep" in convention.order))
    options = (
        replace(sizes, ep=ep, etp=etp)
        for etp in etps
        for ep in eps
        if expert_world % ((etp or default) * ep) == 0  # else it cannot fit: saves the asking
    )
    valid = [option for option in options if problem(world_size, option, convention) is None]
    return min(valid, key=lambda option: _distance(option, wanted), default=None)


def _other_node_count(
    nodes: int, gpus_per_node: int, wanted: Sizes, convention: Convention
) -> str | None:
    """Return the same sizes on the nearest number of nodes, more or fewer, on which they fit."""
    model = wanted.tp * wanted.cp * wanted.pp
    for step in range(1, min(8 * nodes, 2048)):
        for count in (nodes + step, nodes - step):
            ranks = count * gpus_per_node
            dp = ranks // model
            # Where it cannot fit, a message would be made for nothing.
            if dp > 0 and dp * model == ranks and problem(ranks, wanted, convention) is None:
                return f"nodes={count} {_written(replace(wanted, dp=dp), wanted)}"
    return None


def _distance(sizes: Sizes, wanted: Sizes) -> float:
    total = 0.0
    for axis in ("tp", "cp", "pp", "ep", "etp", "dp"):
        asked, offered = getattr(wanted, axis), getattr(sizes, axis)
        if asked is None or offered is None or asked == offered:
            continue
        price = 0.5 if axis == "dp" else 1.0
        total += price * (1.0 + abs(math.log2(offered / asked)))
    return total


def _written(sizes: Sizes, wanted: Sizes) -> str:
    shown = []
    for axis in ("tp", "cp", "pp", "ep", "etp", "dp"):
        size, asked = getattr(sizes, axis), getattr(wanted, axis)
        if size is not None and (size != 1 or asked not in (1, None) or axis == "dp"):
            shown.append(f"{axis}={size}")
    return " ".join(shown)


def _divisors(number: int, all_of_them: bool) -> Iterator[int]:
    """Return the divisors of `number` in order, or only 1 for an axis that the order lacks."""
    if not all_of_them:
        yield 1
        return
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    yield from small
    yield from (number // d for d in reversed(small) if d * d != number)
