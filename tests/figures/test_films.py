"""Films: what they show is the models' traces, and what the player loads is what they show."""

from __future__ import annotations

import json

import pytest

from figgen.charts import Film
from figgen.figures.experts.layer import routed
from figgen.models.collectives import trace
from figgen.models.collectives.numbers import carry_out
from figgen.models.context_parallel import chunks_of_rank
from figgen.models.pipeline_order import Action
from figgen.models.schedules import build as build_schedule
from figgen.registry import build
from figgen.renderers import svg, text
from figgen.renderers.film import film_json

FILMS = {
    "ring-film-3": ("ring-film", {"ranks": 3}),
    "ring-film-8": ("ring-film", {"ranks": 8, "schedule": "textbook"}),
    "pipeline-film": ("pipeline-film", {"stages": 3, "microbatches": 3}),
    "pipeline-film-gpipe": ("pipeline-film", {"schedule": "gpipe"}),
    "sharded-film": ("sharded-film", {}),
    "moe-film": ("moe-film", {}),
    "ring-attention-film": ("ring-attention-film", {"cp": 3}),
    "ring-attention-film-contiguous": ("ring-attention-film", {"scheme": "contiguous"}),
}
each = pytest.mark.parametrize("name", FILMS)


def film(name: str) -> Film:
    figure, arguments = FILMS[name]
    made = build(figure, arguments)
    assert isinstance(made, Film)
    return made


@each
def test_a_film_says_what_it_said(name, golden):
    if name in ("ring-film-3", "pipeline-film", "sharded-film", "ring-attention-film", "moe-film"):
        golden(name, text.render(film(name)))


@each
def test_what_the_player_loads_gives_every_scene_back(name):
    chart = film(name)
    loaded = json.loads(film_json(chart))
    shown: dict[str, list] = {}
    for scene, kept in zip(chart.scenes, loaded["scenes"], strict=True):
        for gone in kept.get("drop", ()):
            del shown[gone]
        shown |= {thing[0]: thing for thing in kept["set"]}
        wanted = {t.name: [round(t.x, 2), round(t.y, 2), t.text] for t in scene.things}
        assert {name: [*thing[1:3], thing[5]] for name, thing in shown.items()} == wanted
        assert scene.says == kept["says"]


@each
def test_every_thing_is_within_its_film_and_every_question_has_an_answer(name):
    chart = film(name)
    for scene in chart.scenes:
        names = [thing.name for thing in scene.things]
        assert len(names) == len(set(names))
        for thing in scene.things:
            assert 0 <= thing.x <= chart.width + 0.01
            assert thing.x + thing.width <= chart.width + 30 * (not thing.role) + 0.01, thing
            assert thing.y + thing.height <= chart.height + 0.01, thing
        if scene.asks:
            assert 0 <= scene.asks.right < len(set(scene.asks.choices))
    assert any(scene.asks for scene in chart.scenes)
    assert set(chart.stills) <= set(range(len(chart.scenes)))
    assert svg.render(chart, "fig-x").count('class="still"') == len(chart.stills)


@pytest.mark.parametrize(("ranks", "schedule"), [(3, "nccl"), (4, "textbook"), (8, "nccl")])
def test_the_numbers_of_the_ring_are_those_of_the_trace_carried_out(ranks, schedule):
    run = trace("all-reduce", "ring", ranks, schedule=schedule)
    start = [{c: float((r + 1) * (c + 1)) for c in range(ranks)} for r in range(ranks)]
    wanted = carry_out(run, start)
    chart = build("ring-film", {"ranks": ranks, "schedule": schedule})
    shown = {thing.name: thing for thing in chart.scenes[-1].things}
    for rank in range(ranks):
        for chunk in range(ranks):
            assert float(shown[f"r{rank}c{chunk}"].text) == wanted[rank][chunk]
            assert shown[f"r{rank}c{chunk}"].strong
    half = chart.scenes[2 * (ranks - 1)].things
    assert sum(thing.strong for thing in half) == ranks, "one finished sum a rank"


def test_the_pipeline_ends_with_every_action_and_nothing_held():
    chart = film("pipeline-film")
    last = {thing.name: thing for thing in chart.scenes[-1].things}
    schedule = build_schedule("1f1b", stages=3, microbatches=3)
    actions = {str(action) for order in schedule.orders for action in order}
    assert actions == {n for n, t in last.items() if t.role.startswith(("forward", "backward"))}
    assert {Action.parse(name).kind for name in actions} == {"F", "B"}
    assert [last[f"bar {rank}"].text for rank in range(3)] == ["", "", ""]


def test_ring_attention_computes_every_causal_box_once_on_the_rank_of_its_queries():
    chart = film("ring-attention-film")
    owner = {c: rank for rank in range(3) for c in chunks_of_rank("zig-zag", 3, rank)}
    seen: set[str] = set()
    for scene in chart.scenes[1:-1]:
        new = {thing.name for thing in scene.things if thing.strong}
        assert not new & seen
        seen |= new
    assert seen == {f"{q},{k}" for q in range(6) for k in range(q + 1)}
    boxes = {thing.name: thing.role for thing in chart.scenes[-1].things}
    assert all(boxes[name] == f"rank-{owner[int(name.split(',')[0])]}" for name in seen)


def test_a_gpu_holds_one_whole_layer_at_a_time_and_ends_with_its_sums():
    chart = film("sharded-film")
    for scene in chart.scenes:
        for gpu in range(4):
            whole = [t for t in scene.things if t.name.startswith(f"whole {gpu} ")]
            assert len(whole) in (0, 4)
            assert len({t.text for t in whole}) <= 1
    last = [t.name for t in chart.scenes[-1].things if t.name.startswith("sum ")]
    assert len(last) == 4 * 3
    assert chart.values["most"].value == 0.75 + 0.75


def test_every_copy_goes_to_the_rank_of_its_expert_and_home_again():
    routing = routed()
    chart = film("moe-film")
    sent, back = ({t.name: t for t in chart.scenes[at].things} for at in (2, 4))
    rows: dict[float, int] = {}
    for token, chosen in enumerate(routing.choices):
        for copy, expert in enumerate(chosen):
            there, here = sent[f"copy {token} {copy}"], back[f"copy {token} {copy}"]
            assert rows.setdefault(there.y, int(expert)) == int(expert)
            assert (there.origin, here.origin) == ((here.x, here.y), (there.x, there.y))
    places = {(t.x, t.y) for name, t in sent.items() if name.startswith("copy")}
    assert len(places) == 16
