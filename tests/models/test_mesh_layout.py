"""Layouts: the source document's presets, invalid layouts, and the suggested alternatives."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import pytest

from figgen.errors import InputError
from figgen.models.machine.frameworks import CONVENTIONS, convention
from figgen.models.machine.layout import ParallelLayout, layout, mesh_of
from figgen.models.machine.mesh import axis_stride, groups, rank_of
from figgen.models.machine.nearest import Sizes, _divisors, nearest_valid, problem
from figgen.models.machine.placement import communicator

# The visualizer's presets, checked: dense (TP, CP, DP, PP), expert (ETP, EP, EDP, PP) and the
# nodes touched by the TP / CP / EP / DP / PP group of rank 0. The last one is repaired.
PRESETS = [
    ({"nodes": 1, "tp": 8}, (8, 1, 1, 1), (8, 1, 1, 1), (1, 1, 1, 1, 1)),
    ({"nodes": 2, "tp": 8, "pp": 2}, (8, 1, 1, 2), (8, 1, 1, 2), (1, 1, 1, 1, 2)),
    ({"nodes": 4, "tp": 8, "dp": 2, "pp": 2}, (8, 1, 2, 2), (8, 1, 2, 2), (1, 1, 1, 2, 2)),
    ({"nodes": 8, "tp": 8, "dp": 4, "pp": 2}, (8, 1, 4, 2), (8, 1, 4, 2), (1, 1, 1, 4, 2)),
    (
        {"nodes": 16, "tp": 8, "dp": 2, "pp": 4, "cp": 2},
        (8, 2, 2, 4),
        (8, 1, 4, 4),
        (1, 2, 1, 2, 4),
    ),
    (
        {"nodes": 32, "tp": 8, "pp": 2, "dp": 16, "ep": 8},
        (8, 1, 16, 2),
        (8, 8, 2, 2),
        (1, 1, 8, 16, 2),
    ),
    (
        {"nodes": 32, "tp": 8, "pp": 2, "dp": 16, "ep": 8, "etp": 1},
        (8, 1, 16, 2),
        (1, 8, 16, 2),
        (1, 1, 1, 16, 2),
    ),
]


@pytest.mark.parametrize(("sizes", "dense", "expert", "nodes_touched"), PRESETS)
def test_the_visualizer_presets_have_these_meshes(
    sizes: dict[str, int],
    dense: tuple[int, ...],
    expert: tuple[int, ...],
    nodes_touched: tuple[int, ...],
) -> None:
    parallel = layout(gpus_per_node=8, **sizes)
    assert parallel.dense.names == ("tp", "cp", "dp", "pp")
    assert parallel.expert.names == ("etp", "ep", "edp", "pp")
    assert (parallel.dense.sizes, parallel.expert.sizes) == (dense, expert)
    assert parallel.dense.world_size == parallel.expert.world_size == parallel.world_size
    touched = (communicator(parallel, axis) for axis in ("tp", "cp", "ep", "dp", "pp"))
    assert tuple(summary.nodes_touched_max for summary in touched) == nodes_touched


def test_the_unrepaired_sixth_preset_is_refused_and_dp_16_offered() -> None:
    with pytest.raises(InputError) as caught:
        layout(nodes=32, gpus_per_node=8, tp=8, ep=8, dp=4, pp=2)
    assert str(caught.value).startswith(
        "TP·CP·DP·PP = 8·1·4·2: expected 256 (nodes × GPUs per node), got 64"
    )
    assert caught.value.nearest[0] == "tp=8 pp=2 ep=8 dp=16"


@pytest.mark.parametrize(
    ("world", "sizes", "dp", "edp"),
    [
        (256, {"tp": 8, "pp": 2}, 16, 16),
        (128, {"tp": 8, "cp": 2, "pp": 4}, 2, 4),
        (256, {"tp": 8, "pp": 2, "ep": 8}, 16, 2),
        (256, {"tp": 8, "pp": 2, "ep": 8, "etp": 1}, 16, 16),
        (512, {"tp": 8, "pp": 8, "ep": 8}, 8, 1),
    ],
)
def test_dp_and_edp_are_what_is_left_over(
    world: int, sizes: dict[str, int], dp: int, edp: int
) -> None:
    parallel = layout(nodes=world // 8, gpus_per_node=8, **sizes)
    assert (parallel.dp, parallel.edp) == (dp, edp)


def test_expert_ranks_147_and_221_of_256() -> None:
    folded = layout(nodes=32, gpus_per_node=8, tp=8, pp=2, ep=8, etp=1).expert
    assert rank_of(folded, {"ep": 3, "edp": 2, "pp": 1}) == 147
    default = layout(nodes=32, gpus_per_node=8, tp=8, pp=2, ep=8).expert
    assert rank_of(default, {"etp": 5, "ep": 3, "edp": 1, "pp": 1}) == 221


def test_cp_and_ep_groups_coincide_on_8_gpus_with_tp_2_cp_2_ep_2() -> None:
    parallel = layout(nodes=1, gpus_per_node=8, tp=2, cp=2, ep=2)
    expected = ((0, 2), (1, 3), (4, 6), (5, 7))
    assert groups(parallel.dense, "cp") == groups(parallel.expert, "ep") == expected


def divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def dividing(world: int) -> Iterator[dict[str, int]]:
    """Return every TP, CP, PP, EP, ETP whose two products divide the world."""
    for pp in divisors(world):
        for tp, ep in itertools.product(divisors(world // pp), repeat=2):
            for cp, etp in itertools.product(
                divisors(world // pp // tp), divisors(world // pp // ep)
            ):
                yield {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "etp": etp}


ORDERS = ["-".join(order) for order in itertools.permutations(("tp", "cp", "ep", "dp", "pp"))]


def test_every_layout_of_8_gpus_in_every_order_keeps_its_pipelines_in_both_meshes() -> None:
    accepted = 0
    for order in ORDERS:
        for sizes in dividing(8):
            if problem(8, Sizes(**sizes), convention(order)) is not None:
                continue
            parallel = ParallelLayout(nodes=2, gpus_per_node=4, **sizes, order=order)
            dense, expert = parallel.dense, parallel.expert
            assert dense.world_size == expert.world_size == 8
            assert parallel.pp == 1 or axis_stride(dense, "pp") == axis_stride(expert, "pp")
            accepted += 1
    assert accepted > 120 * 20


@pytest.mark.parametrize("name", ["megatron", "megatron-tp-pp-dp"])
def test_what_fits_24_gpus_is_what_megatron_accepts(name: str) -> None:
    sizes = (1, 2, 3, 4, 5, 8)
    for tp, cp, pp, ep, etp in itertools.product(sizes, repeat=5):
        fits = 24 % (tp * cp * pp) == 0 and 24 % (etp * ep * pp) == 0
        if name == "megatron-tp-pp-dp" and pp > 1:
            # Megatron's own assertion, in its words: attention and MoE have the same DP size.
            fits = fits and tp * cp == etp * ep
        found = problem(24, Sizes(tp=tp, cp=cp, pp=pp, ep=ep, etp=etp), CONVENTIONS[name])
        assert (found is None) == fits


def refusal(**sizes: int | None) -> InputError | None:
    try:
        layout(**sizes)  # type: ignore[arg-type]
    except InputError as error:
        return error
    return None


def test_every_configuration_offered_for_12_gpus_fits_when_typed() -> None:
    sizes = (1, 2, 3, 5, 8)
    refused = 0
    for tp, pp, ep, dp in itertools.product(sizes, sizes, sizes, (None, 1, 4)):
        error = refusal(nodes=3, gpus_per_node=4, tp=tp, pp=pp, ep=ep, dp=dp)
        if error is None:
            continue
        refused += 1
        assert error.nearest
        for text in error.nearest:
            typed = {name: int(size) for name, size in (w.split("=") for w in text.split())}
            layout(**{"nodes": 3, "gpus_per_node": 4} | typed)
    assert refused > 200


def changed(offered: Sizes, wanted: Sizes) -> float:
    """Return one per changed size and one per doubling; half of that for DP."""
    cost = 0.0
    for axis in ("tp", "cp", "pp", "ep", "etp", "dp"):
        new, old = getattr(offered, axis), getattr(wanted, axis)
        if None not in (new, old) and new != old:
            cost += (1 + abs(math.log2(new) - math.log2(old))) * (0.5 if axis == "dp" else 1)
    return cost


@pytest.mark.parametrize("order", ["megatron", "torchtitan", "nanotron", "deepspeed", "llama3"])
def test_what_is_offered_is_the_nearest_of_all_that_fit(order: str) -> None:
    known, draw, compared = convention(order), random.Random(order), 0
    for nodes, width in ((2, 6), (4, 4)):
        world = nodes * width
        fitting = [
            Sizes(tp=tp, cp=cp, pp=pp, ep=ep, etp=etp, dp=world // (tp * cp * pp))
            for tp, cp, pp, ep in itertools.product(range(1, world + 1), repeat=4)
            if world % (tp * cp * pp) == 0
            for etp in (None, *range(1, world + 1))
            if problem(world, Sizes(tp=tp, cp=cp, pp=pp, ep=ep, etp=etp), known) is None
        ]
        for _ in range(12):
            tp, cp, pp, ep = (draw.randint(1, 9) for _ in range(4))
            etp, dp = draw.choice((None, 1, 2, 3)), draw.choice((None, 1, 4, 5))
            wanted = Sizes(tp=tp, cp=cp, pp=pp, ep=ep, etp=etp, dp=dp)
            if problem(world, wanted, known) is None:
                continue
            best: dict[tuple[int, int, int], float] = {}
            for one in fitting:
                if (one.etp is None) == (etp is None):
                    dense = (one.tp, one.cp, one.pp)
                    best[dense] = min(best.get(dense, math.inf), changed(one, wanted))
            offered = nearest_valid(nodes, width, wanted, known)
            texts = [text for text in offered if "nodes=" not in text]
            costs = [changed(read_sizes(text, etp), wanted) for text in texts]
            first, *others = sorted(best.values())
            expected = [first, *(cost for cost in others[:1] if cost <= first + 1)]
            assert costs == pytest.approx(expected), wanted
            others_fit = [
                count
                for count in range(1, 9 * nodes)
                if problem(count * width, wanted, known) is None
            ]
            resized = [text.split()[0] for text in offered if "nodes=" in text]
            nearest = sorted(others_fit, key=lambda count: (abs(count - nodes), -count))
            assert resized == [f"nodes={count}" for count in nearest[:1]]
            compared += 1
    assert compared > 15


def read_sizes(text: str, etp: int | None) -> Sizes:
    typed = {name: int(size) for name, size in (word.split("=") for word in text.split())}
    return Sizes(**{"tp": 1, "cp": 1, "pp": 1, "ep": 1, "etp": etp and 1} | typed)


def test_a_wrong_dp_alone_is_repaired_by_changing_dp_alone() -> None:
    for tp, cp, pp in itertools.product((1, 2, 4), repeat=3):
        right = 64 // (tp * cp * pp)
        for dp in (d for d in (1, 3, 7, 128) if d != right):
            with pytest.raises(InputError) as caught:
                layout(nodes=8, gpus_per_node=8, tp=tp, cp=cp, pp=pp, dp=dp)
            typed = dict(word.split("=") for word in caught.value.nearest[0].split())
            assert typed.pop("dp") == str(right)
            given = {"tp": tp, "cp": cp, "pp": pp}
            assert typed == {axis: str(size) for axis, size in given.items() if size > 1}


@pytest.mark.parametrize(
    ("sizes", "message", "offered"),
    [
        ({"tp": 3}, "TP·CP·PP = 3·1·1: expected a divisor of 16", "tp=4 dp=4"),
        ({"tp": 8, "ep": 8}, "ETP·EP·PP = 8·8·1: expected a divisor of 16", "tp=8 ep=2 dp=2"),
        ({"tp": 8, "ep": 8}, "ETP·EP·PP = 8·8·1", "tp=2 ep=8 dp=8"),
        ({"tp": 8, "ep": 8}, "ETP·EP·PP = 8·8·1", "nodes=8 tp=8 ep=8 dp=8"),
        ({"ep": 2, "etp": 3}, "ETP·EP·PP = 3·2·1: expected a divisor", "ep=2 etp=4 dp=16"),
        ({"tp": 2, "ep": 2, "order": "llama3"}, "order 'llama3' has no ep axis", "tp=2 ep=1 dp=8"),
        ({"cp": 2, "order": "deepspeed"}, "order 'deepspeed' has no cp axis", "cp=1 dp=16"),
        ({"tp": 2, "etp": 2, "order": "torchtitan"}, "etp under order 'torchtitan'", "etp=1"),
        (
            {"tp": 2, "cp": 2, "pp": 2, "order": "megatron-tp-pp-dp"},
            "one rank distance between stages, not 4 and 2",
            "tp=2 cp=2 pp=2 ep=2 dp=2",
        ),
        ({"tp": 0}, "tp: expected a whole number ≥ 1, got 0", ""),
        ({"ep": -1}, "ep: expected a whole number ≥ 1, got -1", ""),
        ({"dp": 1.5}, "dp: expected a whole number ≥ 1, got 1.5", ""),
        ({"nodes": 0}, "nodes: expected a whole number ≥ 1, got 0", ""),
        ({"ep": None}, "ep: expected a whole number ≥ 1", ""),
        ({"order": "megatorn"}, "unknown rank order 'megatorn' (did you mean megatron", ""),
        ({"order": "tp-dq-pp"}, "unknown axis of a rank order 'dq'", ""),
        ({"order": "tp-tp-pp"}, "expected each axis once", ""),
    ],
)
def test_impossible_layouts_are_refused_with_a_reason_and_a_way_out(
    sizes: dict[str, object], message: str, offered: str
) -> None:
    with pytest.raises(InputError) as caught:
        layout(**{"nodes": 2, "gpus_per_node": 8} | sizes)  # type: ignore[arg-type]
    assert message in str(caught.value)
    if offered:
        assert any(offered in text for text in caught.value.nearest)


def test_a_layout_built_by_hand_is_checked_too() -> None:
    with pytest.raises(InputError, match="TP·CP·PP"):
        ParallelLayout(nodes=2, gpus_per_node=8, tp=5, cp=1, pp=1, ep=1, etp=1, order="megatron")


def test_axes_of_a_communicator_are_on_one_mesh() -> None:
    parallel = layout(nodes=2, gpus_per_node=8, tp=2, ep=4)
    assert mesh_of(parallel, "dp-cp") == parallel.dense
    assert mesh_of(parallel, "etp-ep") == parallel.expert
    assert mesh_of(parallel, "pp") == parallel.dense
    for axes in ("tp-ep", "dp-edp", "tq"):
        with pytest.raises(InputError, match="axes of a communicator"):
            mesh_of(parallel, axes)


def test_an_order_without_ep_lays_out_no_experts() -> None:
    parallel = layout(nodes=2, gpus_per_node=8, tp=2, order="tp-cp-dp-pp")
    assert not parallel.has_experts
    with pytest.raises(InputError, match="lays out no experts"):
        mesh_of(parallel, "ep")


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_layout_up_to_64_gpus_fills_both_meshes_and_keeps_its_pipelines(name: str) -> None:
    known, accepted, asked = CONVENTIONS[name], 0, 0
    for world in range(1, 65):
        for sizes in dividing(world):
            asked += 1
            if problem(world, Sizes(**sizes), known) is not None:
                continue
            accepted += 1
            parallel = ParallelLayout(nodes=1, gpus_per_node=world, **sizes, order=name)
            dense = parallel.dense
            assert (
                dense.world_size == parallel.tp * parallel.cp * parallel.dp * parallel.pp == world
            )
            if parallel.has_experts:
                expert = parallel.expert
                assert (
                    expert.world_size
                    == world
                    == parallel.etp * parallel.ep * parallel.edp * sizes["pp"]
                )
                assert sizes["pp"] == 1 or axis_stride(dense, "pp") == axis_stride(expert, "pp")
    assert asked == 27_642
    # Where the pipeline is outermost, nothing but the two products is asked for.
    assert (accepted == asked) == (name == "megatron")
    assert accepted > 500


@pytest.mark.parametrize(("order", "only"), [("llama3", 2), ("torchtitan", 1), ("nanotron", 2)])
def test_experts_have_the_tensor_parallel_size_that_the_framework_gives_them(
    order: str, only: int
) -> None:
    """Smaller and larger sizes are refused; giving the framework's own size is accepted."""
    for etp in (1, 2, 4):
        found = problem(8, Sizes(tp=2, cp=1, pp=1, ep=1, etp=etp), CONVENTIONS[order])
        assert (found is None) == (etp == only)
        assert found is None or "etp under order" in str(found)


@pytest.mark.parametrize("order", ["megatron", "megatron-tp-pp-dp", "deepspeed", "nanotron-moe"])
def test_experts_have_any_tensor_parallel_size_where_the_framework_asks(order: str) -> None:
    for etp in (1, 2, 4):
        assert problem(8, Sizes(tp=2, cp=1, pp=1, ep=1, etp=etp), CONVENTIONS[order]) is None


def test_divisors_are_all_numbers_that_divide() -> None:
    for number in range(1, 200):
        found = list(_divisors(number, all_of_them=True))
        assert found == [d for d in range(1, number + 1) if number % d == 0]
        assert list(_divisors(number, all_of_them=False)) == [1]
