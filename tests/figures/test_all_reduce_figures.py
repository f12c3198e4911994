"""Every figure that compares all-reduces: its text, its lines, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from figgen.charts import Curves
from figgen.errors import InputError
from figgen.registry import build
from figgen.renderers import text


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("all-reduce-times", {"nodes": 3}, "power of two"),
        ("all-reduce-times", {"preset": "map-8"}, "hardware preset"),
        ("nccl-choices", {"preset": "map-8"}, "hardware preset"),
        ("all-reduce-nic-bytes", {"nodes": 1}, "nodes"),
        (
            "bus-bandwidth-table",
            {"measurements": ["h200-all-gather"], "names": ["a"]},
            "all-reduce",
        ),
        ("all-reduce-measured-by-size", {"measurement": "h200-all-reduce-by-gpus"}, "sizes"),
        (
            "all-reduce-measured-by-ranks",
            {"measurements": ["h200-all-reduce-by-gpus"], "names": []},
            "names",
        ),
    ],
)
def test_bad_arguments_are_refused(name: str, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(name, arguments)


MEASUREMENTS = [
    "h200-all-reduce-ring", "h200-all-reduce-nvls", "b200-all-reduce-1-node",
    "b200-all-reduce-4-nodes",
]  # fmt: skip
FORMS: dict[str, tuple[str, dict[str, object]]] = {
    "algorithms-8": ("all-reduce-algorithms", {"nodes": 1}),
    "algorithms-64": ("all-reduce-algorithms", {"nodes": 8}),
    "times-8": ("all-reduce-times", {"nodes": 1, "low_bytes": "1 MB"}),
    "times-64-relative": ("all-reduce-times", {"nodes": 8, "relative": True, "low_bytes": 1e6}),
    "regions": ("all-reduce-regions", {}),
    "nic-bytes": ("all-reduce-nic-bytes", {}),
    "bus-bandwidth": ("bus-bandwidth-table", {"measurements": MEASUREMENTS, "names": MEASUREMENTS}),
    "measured-by-ranks": (
        "all-reduce-measured-by-ranks",
        {"measurements": ["b200-all-reduce-by-gpus"], "names": ["B200"]},
    ),
    "measured-by-size": (
        "all-reduce-measured-by-size",
        {"measurement": "b200-all-reduce-1-node"},
    ),
    "nccl-times-8": ("nccl-all-reduce-times", {"nodes": 1, "low_bytes": "1 MB"}),
    "nccl-choices": ("nccl-choices", {}),
}


@pytest.mark.parametrize("name", FORMS)
def test_text_form_is_the_golden(golden: Callable[[str, str], None], name: str) -> None:
    figure, arguments = FORMS[name]
    golden(f"all-reduce-{name}", text.render(build(figure, arguments)))


def test_lines_have_as_many_points_as_sizes() -> None:
    for figure, arguments in FORMS.values():
        chart = build(figure, arguments)
        if isinstance(chart, Curves):
            assert all(len(line.x) == len(line.y) > 0 for line in chart.series)
