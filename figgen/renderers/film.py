"""The JSON of a film for its player: each scene as the difference from the previous one."""

from __future__ import annotations

import json

from figgen.charts import Film, Scene, Thing


def film_json(chart: Film) -> str:
    """Return the JSON of a film: size, opening scene, and scenes with text, question, differences.

    A thing is [name, x, y, width, height, text, role, strong, origin x, origin y]; without an
    origin the last two are omitted.
    """
    scenes = []
    before: dict[str, Thing] = {}
    for scene in chart.scenes:
        now = {thing.name: thing for thing in scene.things}
        # A thing with an origin moves in each of its scenes.
        new = [t for name, t in now.items() if before.get(name) != t or t.origin]
        gone = [name for name in before if name not in now]
        scenes.append(_scene(scene, new, gone))
        before = now
    film = {"width": chart.width, "height": chart.height, "opens": chart.opens, "scenes": scenes}
    return json.dumps(film, ensure_ascii=False, separators=(",", ":")) + "\n"


def _scene(scene: Scene, new: list[Thing], gone: list[str]) -> dict[str, object]:
    made: dict[str, object] = {"says": scene.says, "set": [_thing(thing) for thing in new]}
    if gone:
        made["drop"] = gone
    if scene.asks:
        asks = scene.asks
        made["asks"] = [asks.text, list(asks.choices), asks.right, asks.because]
    return made


def _thing(thing: Thing) -> list[object]:
    place = [round(part, 2) for part in (thing.x, thing.y, thing.width, thing.height)]
    origin = [round(part, 2) for part in thing.origin or ()]
    return [thing.name, *place, thing.text, thing.role, int(thing.strong), *origin]
