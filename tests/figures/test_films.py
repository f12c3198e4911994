"""Films show the models' traces, and the player loads what the films show."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from figgen import catalog
from figgen.charts import Film
from figgen.figures.experts.layer import routed
from figgen.models.algorithms.context_parallel import chunks_of_rank
from figgen.models.collectives import trace
from figgen.models.collectives.numbers import carry_out
from figgen.models.pipeline.action import Action
from figgen.models.pipeline.schedules import build as build_schedule
from figgen.registry import build
from figgen.renderers import svg
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
    "split-film": ("split-film", {}),
    "bucket-film": ("bucket-film", {}),
    "bucket-film-node": ("bucket-film", {"ranks_per_node": 8, "bucket_mib": 500}),
    "room-film": ("room-film", {"sizes": "nodes=16 gpus_per_node=8 tp=8 pp=2"}),
    "room-film-cp": ("room-film", {"sizes": "nodes=4 gpus_per_node=8 tp=4 cp=2 pp=2"}),
}
each = pytest.mark.parametrize("name", FILMS)


def film(name: str) -> Film:
    figure, arguments = FILMS[name]
    made = build(figure, arguments)
    assert isinstance(made, Film)
    return made


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


def _matrix(scene, name):
    """Return the entries of a matrix as shown in a scene."""
    found = {}
    for thing in scene.things:
        if thing.name.startswith(f"{name} "):
            row, column = map(int, thing.name.removeprefix(name).split())
            found[row, column] = int(thing.text.replace("−", "-"))
    rows, columns = (1 + max(at[axis] for at in found) for axis in (0, 1))
    return np.array([[found[row, column] for column in range(columns)] for row in range(rows)])


def test_every_entry_of_the_split_pair_is_that_of_numpy():
    scenes = film("split-film").scenes
    x, a, b = (_matrix(scenes[0], f"all {name}") for name in "XAB")
    for gpu, half in enumerate((slice(0, 2), slice(2, 4))):
        assert (_matrix(scenes[1], f"X {gpu}") == x).all()
        assert (_matrix(scenes[1], f"A {gpu}") == a[:, half]).all()
        assert (_matrix(scenes[1], f"B {gpu}") == b[half]).all()
        hidden = x @ a[:, half]
        assert (hidden < 0).any(), "ReLU changes something on each"
        assert (_matrix(scenes[3], f"XA {gpu}") == hidden).all()
        assert (_matrix(scenes[4], f"XA {gpu}") == np.maximum(hidden, 0)).all()
        assert (_matrix(scenes[5], f"part {gpu}") == np.maximum(hidden, 0) @ b[half]).all()
        assert (_matrix(scenes[6], f"other {1 - gpu}") == _matrix(scenes[5], f"part {gpu}")).all()
        assert (_matrix(scenes[7], f"part {gpu}") == np.maximum(x @ a, 0) @ b).all()
    terms = x[0] * a[:, 0]
    values = film("split-film").values
    assert values["rows_first"].value == np.maximum(terms, 0).sum() != np.maximum(terms.sum(), 0)


@pytest.mark.parametrize("name", ["bucket-film", "bucket-film-node"])
def test_no_gradient_travels_before_it_is_final_and_the_network_sends_one_bucket_at_a_time(name):
    chart = film(name)
    for scene in chart.scenes:
        shown = {thing.name: thing for thing in scene.things}
        for sent in (n for n in shown if n.startswith("sent ")):
            work = shown[f"work {sent.split()[1]}"]
            assert shown[sent].x >= work.x + work.width - 0.01, "final before it is sent"
            hides = shown[sent].x + shown[sent].width <= shown["whole"].x + shown["whole"].width
            assert sent.endswith("hidden") == (hides or shown[sent].width < 0.01)
    last = {thing.name: thing for thing in chart.scenes[-1].things}
    sent = sorted(
        (t.x, t.x + t.width) for n, t in last.items() if n.startswith("sent ") and t.width > 1
    )
    assert all(end <= start + 0.01 for (_, end), (start, _) in pairwise(sent))


def test_buckets_send_what_one_all_reduce_would_and_end_by_what_sticks_out():
    chart = film("bucket-film")
    values = {name: value for name, (value, _) in chart.values.items()}
    node = catalog.hardware_preset("h100-ndr")
    # A ring of eight over one port each, 16-bit gradients, 14 steps; the film's axis is seconds.
    gradient = 2 * catalog.model("llama-3-1b").parameters
    ring = 2 * 7 / 8 * gradient / node.network_bandwidth_bytes_per_s
    steps = values["all_reduce_s"] - ring
    assert 14 * node.network_latency_s == pytest.approx(steps)
    last = {thing.name: thing for thing in chart.scenes[-1].things}
    scale = values["backward_s"] / last["whole"].width
    sent = [t.width * scale for n, t in last.items() if n.startswith("sent ")]
    assert sum(sent) == pytest.approx(ring + values["buckets"] * steps, rel=1e-6)
    ends = max(t.x + t.width for n, t in last.items() if n.startswith("sent "))
    assert (ends - last["whole"].x) * scale == pytest.approx(values["bucketed_s"])
    assert values["bucketed_s"] - values["backward_s"] == pytest.approx(values["exposed_s"])
    flops = 4 * catalog.model("llama-3-1b").parameters * 8192
    peak = 0.4 * node.accelerator.peak_flops_per_s("bf16")
    assert values["backward_s"] == pytest.approx(flops / peak)


def test_ranks_take_the_places_of_an_array_and_groups_are_its_rows():
    chart = film("room-film")
    world = np.arange(128).reshape(2, 8, 8)  # pp, dp, tp
    filled = [sum(bool(t.text) for t in s.things if t.name[0] == "g") for s in chart.scenes]
    assert filled[:6] == [0, 2, 8, 16, 64, 128]

    def strong(scene):
        return {int(t.name[1:]) for t in scene.things if t.name[0] == "g" and t.strong}

    groups = (world[0, 0], world[0, :, 0], world[:, 0, 0])
    assert [strong(scene) for scene in chart.scenes[6:9]] == [set(map(int, g)) for g in groups]
    turned = np.arange(128).reshape(2, 8, 8)  # pp, tp, dp
    assert strong(chart.scenes[10]) == set(map(int, turned[0, :, 0]))
    roles = {int(t.name[1:]): t.role for t in chart.scenes[9].things if t.name[0] == "g"}
    for axis, group in zip(("tp", "dp", "pp"), groups, strict=True):
        assert {rank for rank, role in roles.items() if role == axis} == set(map(int, group)) - {0}
    assert sum(role == "idle" for role in roles.values()) == 128 - 1 - 7 - 7 - 1
    rows: dict[float, set[int]] = {}
    for thing in chart.scenes[5].things:
        if thing.name[0] == "g":
            rows.setdefault((thing.y, thing.x > chart.width / 2), set()).add(int(thing.text) // 8)
    assert all(len(nodes) == 1 for nodes in rows.values())
    assert sorted(min(nodes) for nodes in rows.values()) == list(range(16))
    colours = {int(t.text) % 8: t.role for t in chart.scenes[5].things if t.name[0] == "g"}
    assert colours == {at: f"rank-{at}" for at in range(8)}
