"""The poster: its cards agree with closed forms and contain their text."""

from __future__ import annotations

import pytest

from figgen.charts import Diagram
from figgen.errors import InputError
from figgen.figures.training.poster import GPUS, STRATEGIES
from figgen.registry import build
from figgen.renderers.markup import wrapped
from figgen.renderers.svg_diagram import LINE, unit


def poster() -> Diagram:
    chart = build("strategy-poster", {})
    assert isinstance(chart, Diagram)
    return chart


def test_the_poster_and_its_caption_fit_one_printed_page() -> None:
    """A4 at 96 px per inch, without margins, leaves about 1,000 px; a caption takes 80."""
    assert poster().height * unit(poster()) <= 920


def test_costs_are_those_of_closed_forms() -> None:
    values = {name: float(value) for name, (value, unit) in poster().values.items() if unit != "1"}
    parameters, ring = 8_030_261_248, 2 * 7 / 8
    # DDP: 32-bit gradients once around the ring.
    assert values["dp_sent"] == pytest.approx(ring * 4 * parameters, rel=0.01)
    # FSDP: two gathers of 16 bits and a scatter of 32, in two microbatches of 16 sequences on 8.
    assert values["fsdp_sent"] == pytest.approx(2 * 7 / 8 * 8 * parameters, rel=0.01)
    # A boundary and back, 16 times: 8,192 tokens of 4,096 numbers in 16 bits.
    assert values["pp_sent"] == pytest.approx(16 * 8192 * 4096 * 2, rel=0.01)
    assert values["fsdp_memory"] < values["capacity"] < values["dp_memory"]
    assert values["tp_memory"] == min(v for name, v in values.items() if name.endswith("memory"))
    steps = {name: values[f"{name}_step"] for name in ("dp", "fsdp", "tp", "pp")}
    assert max(steps, key=steps.__getitem__) == "pp"
    assert values["fsdp_step"] <= values["dp_step"]


def test_a_card_shows_four_gpus_that_hold_parts_of_one_model() -> None:
    boxes = poster().boxes
    for card in STRATEGIES.values():
        parts = [box for box in boxes if box.name.startswith(f"{card.title} GPU")]
        outlines = [box for box in parts if box.frame]
        assert len(outlines) == GPUS
        held = [box for box in parts if box.role == card.role]
        whole = outlines[0].width * outlines[0].height
        area = sum(box.width * box.height for box in held) / whole
        assert area == pytest.approx({"whole": GPUS, "expert": 0.5}.get(card.cut, 1.0))


def test_text_stays_in_its_card_on_a_phone() -> None:
    chart = poster()
    scale = unit(chart)
    for box in chart.boxes:
        if not box.role:
            lines = [part for line in box.lines for part in wrapped(line, box.width * scale)]
            assert len(lines) * LINE <= box.height * scale, box.name


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(InputError, match="dp fsdp tp pp cp ep"):
        build("strategy-poster", {"strategies": ["zp"]})
