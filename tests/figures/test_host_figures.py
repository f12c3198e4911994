"""What leaves the GPU: offloaded state and checkpoints, compared with printed numbers and
definitions."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from figgen.charts import Bars, Curves, Table
from figgen.errors import InputError
from figgen.figures.host.checkpoints import packed
from figgen.registry import build


def test_what_leaves_the_gpu_is_in_the_host() -> None:
    """Every row has 18 bytes per parameter, as in Megatron-LM's recipe."""
    chart = build("offload-memory", {"gpus": 4})
    assert isinstance(chart, Bars)
    for place in range(len(chart.labels)):
        total = sum(each.lengths[place] for each in chart.segments)
        assert total == pytest.approx(18 * 8_030_261_248 / 4)


def test_fractions_are_predicted_within_an_eighth_of_nemo_rl() -> None:
    assert build("offload-fractions", {}).values["worst"].value < 0.125


def test_copies_free_and_add_what_prime_rl_printed() -> None:
    values = build("offload-inputs", {}).values
    assert values["size_error"].value < 0.05
    assert values["alone_error"].value < 0.12
    assert 0 < values["shared_error"].value < 0.36


def test_longer_steps_are_held_up_less_and_faster_gpus_more() -> None:
    chart = build("offload-overhead", {"microbatches": (1, 8, 64)})
    assert isinstance(chart, Curves)
    for series in chart.series:
        assert list(series.y) == sorted(series.y, reverse=True)
    first = {series.name: series.y[0] for series in chart.series}
    assert first["A100"] < first["H100"] < first["GB200"]


def test_steps_of_prime_rl_are_near_the_longer_of_computing_and_update() -> None:
    """30.5 billion parameters with 28 bytes each at 285 GB/s; a third off if the update decides."""
    values = build("offload-measured", {}).values
    assert values["update"].value == pytest.approx(30.53e9 * 28 / 285e9, rel=0.01)
    for key in ("8", "16", "64"):
        assert values[f"ratio_{key}"].value == pytest.approx(1, abs=0.33)


def test_links_hide_what_their_ratio_of_rates_lets_them() -> None:
    """A weight of two bytes needs two operations per token, so tokens equal FLOPs per byte."""
    values = build("offload-links", {}).values
    assert values["h100_tokens"].value == pytest.approx(794.5e12 / 55.4e9, rel=1e-3)
    assert values["gh200_rate"].value == 2 * float(values["gb200_rate"].value)
    assert values["gh200_width"].value < 4096 < values["h100_width"].value


def test_a_checkpoint_with_adam_is_seven_times_the_weights() -> None:
    values = build("checkpoint-sizes", {}).values
    assert values["larger"].value == 7
    assert values["whole"].value == pytest.approx(14 * 70_553_706_496)


def test_copies_of_eight_gpus_take_what_automodel_measured() -> None:
    """NVIDIA-NeMo/Automodel pull request 635: training is blocked for 0.54 s."""
    assert build("checkpoint-published", {}).values["nemo_copied"].value == pytest.approx(
        0.54, rel=0.1
    )


def test_each_gpu_that_joins_shortens_the_copy_but_not_the_storage() -> None:
    values = build("checkpoint-stall", {}).values
    assert values["behind_4096"].value == pytest.approx(float(values["behind_64"].value) / 64)
    assert values["storage_4096"].value == values["storage_512"].value


def test_packing_needs_as_many_sequences_as_the_best_of_all_ways() -> None:
    """Best-fit decreasing, compared with every assignment of small sets."""

    def fewest(lengths: tuple[int, ...], sequence: int) -> int:
        best = len(lengths)
        stack: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        while stack:
            place, free = stack.pop()
            if len(free) >= best:
                continue
            if place == len(lengths):
                best = len(free)
                continue
            stack.append((place + 1, (*free, sequence - lengths[place])))
            for at, space in enumerate(free):
                if space >= lengths[place]:
                    left = (*free[:at], space - lengths[place], *free[at + 1 :])
                    stack.append((place + 1, left))
        return best

    worse = 0
    for lengths in combinations_with_replacement((3, 4, 6), 6):
        found, best = packed(lengths, 12), fewest(lengths, 12)
        assert best <= found <= best + 1
        worse += found > best
    assert worse <= 2


def test_packed_padding_is_what_the_sequences_hold_beyond_the_samples() -> None:
    table = build("packing", {"samples": 64, "means": (1024,)})
    assert isinstance(table, Table)
    values = table.values
    assert values["alone_1024"].value == pytest.approx(0.75, abs=0.02)
    assert values["faster_1024"].value == pytest.approx(
        (1 - float(values["packed_1024"].value)) / (1 - float(values["alone_1024"].value))
    )
    with pytest.raises(InputError, match="samples"):
        build("packing", {"samples": 0})
