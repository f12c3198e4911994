"""The pieces of sharded matrices, multiplied and added as in the figure, give the whole matmul."""

from __future__ import annotations

import numpy as np
import pytest

from figgen.charts import Diagram
from figgen.errors import InputError
from figgen.registry import build

DIGITS = "₀₁₂₃"


@pytest.mark.parametrize(("dp", "tp"), [(2, 2), (1, 3), (1, 2)])
def test_pieces_as_drawn_add_up_to_the_product(dp: int, tp: int) -> None:
    chart = build("sharded-product", {"dp": dp, "tp": tp})
    assert isinstance(chart, Diagram)
    box = {each.name: each for each in chart.boxes}
    draw = np.random.default_rng(1).integers(-9, 9, (3, 12, 12))
    x, a, b = draw
    pieces = {
        **{f"x{DIGITS[d]}": part for d, part in enumerate(np.split(x, dp, axis=0))},
        **{f"A{DIGITS[t]}": part for t, part in enumerate(np.split(a, tp, axis=1))},
        **{f"B{DIGITS[t]}": part for t, part in enumerate(np.split(b, tp, axis=0))},
    }
    added: dict[str, np.ndarray] = {}
    for link in chart.links:
        if link.source.startswith("part"):
            (text,) = box[link.source].lines
            one, two, three = (pieces[text[at : at + 2]] for at in (0, 2, 4))
            term = one @ two @ three
            added[link.target] = added.get(link.target, np.zeros_like(term)) + term
    for link in chart.links:
        if link.target.startswith("y"):
            replica = DIGITS.index(box[link.target].lines[0][-1])
            assert (added[link.source] == np.split(x @ a @ b, dp, axis=0)[replica]).all()


def test_a_mesh_of_more_than_four_gpus_is_refused() -> None:
    with pytest.raises(InputError, match="GPUs"):
        build("sharded-product", {"dp": 3, "tp": 2})
