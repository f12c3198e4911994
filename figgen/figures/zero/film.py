"""A film of fully sharded layers: gathered, used, freed, and gradients sent to owners."""

from __future__ import annotations

from figgen.charts import Film, Named, Question, Scene, Thing
from figgen.errors import check_between
from figgen.models.algorithms.sharded_step import GATHER, SCATTER, ShardedAction, sharded_step
from figgen.plotting.placed import thing_at
from figgen.registry import figure

PART, HIGH, TOP, LEFT, GAP, ROW = 22.0, 20.0, 22.0, 40.0, 5.0, 32.0


@figure("sharded-film")
def sharded_film(*, ranks: int = 4, layers: int = 3) -> Film:
    """One step of `layers` fully sharded layers on `ranks` GPUs, one collective or pass a scene.

    A box is the part of a layer that one GPU owns, in that GPU's color. Weights are gathered
    before a layer's forward and again before its backward; its gradient is reduce-scattered.
    """
    check_between("ranks", ranks, 2, 4)
    check_between("layers", layers, 2, 3)
    actions = sharded_step(layers, gather_s=1, forward_s=1, backward_s=2, scatter_s=1, prefetch=0)
    ordered = _serial(actions)
    scenes = [
        Scene(
            says=f"Each of {ranks} GPUs keeps 1/{ranks} of the model's weights: "
            "its own part of every layer.",
            things=_things(ranks, layers, None, frozenset()),
        )
    ]
    reduced: set[int] = set()
    first = {GATHER: True, SCATTER: True}
    peak = 0
    for action in ordered:
        if action.kind == SCATTER:
            reduced.add(action.layer)
        says, whole = _caption(action, ranks)
        peak = max(peak, ranks * (whole is not None))
        asks = _question(action, ranks, layers) if first.pop(action.kind, False) else None
        things = _things(ranks, layers, whole, frozenset(reduced), action)
        scenes.append(Scene(says=says, things=things, asks=asks))
    end = Scene(
        says="Every GPU updates its own parts; nothing whole is left.",
        things=_things(ranks, layers, None, frozenset(range(layers))),
    )
    scenes.append(end)
    scatter = next(i for i, a in enumerate(ordered) if a.kind == SCATTER) + 1
    values = {
        "ranks": Named(ranks),
        "layers": Named(layers),
        "own": Named(layers / ranks),
        "most": Named(layers / ranks + (peak - 1) / ranks),
        "gathers": Named(sum(a.kind == GATHER for a in actions)),
        "scatters": Named(sum(a.kind == SCATTER for a in actions)),
    }
    width = LEFT + (layers + ranks + layers) * PART + 4 * GAP + 20
    return Film(
        width=width,
        height=TOP + ranks * ROW,
        scenes=tuple(scenes),
        stills=(0, 1, scatter, len(scenes) - 1),
        opens=2,
        values=values,
    )


def _serial(actions: tuple[ShardedAction, ...]) -> list[ShardedAction]:
    """Return the actions in sequence; a gradient is scattered as soon as its backward is done.

    In practice the network gathers the next layer meanwhile, which another figure shows.
    """
    done = {a.layer: a.end_s for a in actions if a.kind == "backward"}

    def due(action: ShardedAction) -> tuple[float, bool]:
        scatters = action.kind == SCATTER
        return (done[action.layer] if scatters else action.start_s), not scatters

    return sorted(actions, key=due)


def _caption(action: ShardedAction, ranks: int) -> tuple[str, int | None]:
    """Return the text of a scene, and the layer that is whole in it."""
    layer = action.layer
    if action.kind == GATHER:
        return f"All-gather: every GPU sends its part of layer {layer} to the others.", layer
    if action.kind == SCATTER:
        return (
            f"Reduce-scatter: the gradients of layer {layer} are added up, "
            f"each GPU keeps 1/{ranks} of the sum; the whole layer is freed.",
            None,
        )
    after = "; then the layer is freed" if action.kind == "forward" else ""
    return f"Every GPU runs the {action.kind} of layer {layer} on its own data{after}.", layer


def _question(action: ShardedAction, ranks: int, layers: int) -> Question:
    own = layers / ranks
    if action.kind == GATHER:
        most = own + (ranks - 1) / ranks
        return Question(
            text=f"A GPU keeps {own:g} layers' worth of weights. How much while layer 0 is whole?",
            choices=(f"{own + 1:g}", f"{most:g}", f"{layers}"),
            right=1,
            because=f"Its own part of the layer is there already: {own:g} + {ranks - 1}/{ranks}.",
        )
    return Question(
        text="Each GPU has gradients of the whole layer, from its own data. What must it keep?",
        choices=("all of them", f"1/{ranks} of their sum", "nothing"),
        right=1,
        because="It updates only the weights that it owns.",
    )


def _things(
    ranks: int,
    layers: int,
    whole: int | None,
    reduced: frozenset[int],
    action: ShardedAction | None = None,
) -> tuple[Thing, ...]:
    held = LEFT + layers * PART + GAP
    sums = held + ranks * PART + 2 * GAP
    heads = (("own", LEFT), ("gathered", held), ("gradients", sums))
    things = [thing_at(t, (x, 0), (60, 16), t) for t, x in heads]
    for rank in range(ranks):
        y = TOP + rank * ROW
        things.append(thing_at(f"g{rank}", (0, y), (36, HIGH), f"gpu {rank}"))
        things += [
            _part(f"own {rank} {layer}", (LEFT + layer * PART, y), layer, rank)
            for layer in range(layers)
        ]
        if whole is not None:
            moving = action is not None and action.kind == GATHER
            working = action is not None and action.kind in ("forward", "backward")
            for owner in range(ranks):
                origin = (LEFT + whole * PART, TOP + owner * ROW) if moving else None
                name, corner = f"whole {rank} {owner}", (held + owner * PART, y)
                things.append(_part(name, corner, whole, owner, origin, strong=working))
        for at, layer in enumerate(sorted(reduced, reverse=True)):
            new = action is not None and action.kind == SCATTER and action.layer == layer
            origin = (held + rank * PART, TOP + (rank + 1) % ranks * ROW) if new else None
            name, corner = f"sum {rank} {layer}", (sums + at * PART, y)
            things.append(_part(name, corner, layer, rank, origin, strong=True))
    return tuple(things)


def _part(
    name: str,
    corner: tuple[float, float],
    layer: int,
    owner: int,
    origin: tuple[float, float] | None = None,
    *,
    strong: bool = False,
) -> Thing:
    """Return a rank's part of a layer, labeled with the layer and colored by its owner."""
    size, role = (PART - 2, HIGH), f"rank-{owner}"
    return thing_at(name, corner, size, str(layer), role, origin=origin, strong=strong)
