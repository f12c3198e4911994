"""A site about a different subject: what the press prints for a module that is not ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import markdown
import pytest

from figgen import subject
from figgen.equations.definition import FORMULAS
from figgen.errors import InputError
from figgen.registry import FIGURES, all_figures, all_formulas
from figgen.values import compute

HOUSE = '''
from functools import partial

from figgen.charts import Column, Table
from figgen.equations.definition import registered
from figgen.equations.notation import Notation, positive
from figgen.registry import figure
from figgen.subject import Subject

formula = partial(registered, Notation(
    positive("area_m2", "A", "1", "area of the wall"),
    positive("difference_k", r"\\Delta T", "1", "difference of temperatures"),
))


@formula(symbol="Q", unit="W", source="Fourier 1822")
def heat_loss(area_m2, difference_k):
    """Heat that a wall loses, at 2 W per square metre and kelvin."""
    return 2 * area_m2 * difference_k


class Wall:
    source = "a ruler"
    area_m2 = 12


@figure("walls")
def walls(*, areas: tuple[int, ...]) -> Table:
    """Heat by area."""
    rows = tuple((area, 2 * area) for area in areas)
    return Table(columns=(Column(label="area"), Column(label="heat", unit="W")), rows=rows)


SUBJECT = Subject(lookups={"wall": lambda name: Wall()})
'''


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A subject with one module outside of this package."""
    (tmp_path / "heat_of_a_house.py").write_text(HOUSE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(subject, "_modules", [])
    subject.use("heat_of_a_house")
    yield
    for registered in (FORMULAS, FIGURES):
        registered.pop("heat_loss", None)
        registered.pop("walls", None)
    sys.modules.pop("heat_of_a_house", None)


@pytest.mark.usefixtures("house")
def test_formulas_figures_and_lookups_come_by_importing_a_module() -> None:
    assert {"heat_loss"} <= set(all_formulas())
    assert {"walls"} <= set(all_figures())
    found, spec = compute('heat_loss(area_m2=wall("north").area_m2, difference_k=20):unit')
    assert (found.text(spec), found.source) == ("480\N{NO-BREAK SPACE}W", "Fourier 1822")
    assert compute('wall("north").area_m2')[0].source == "a ruler"


@pytest.mark.usefixtures("house")
def test_a_page_shows_a_figure_and_a_number_of_it() -> None:
    fence = "```figure\nfigure: walls\nareas: [10]\ncaption: Two walls.\nalt: A table.\n```"
    html = markdown.markdown(
        f"{fence}\n\n{{{{ heat_loss(area_m2=1, difference_k=1):unit }}}}", extensions=["figgen"]
    )
    assert re.search(r"<td[^>]*>10</td>", html)
    assert "2\N{NO-BREAK SPACE}W</data>" in html
    assert "Held by" not in html  # nothing says which tests hold it


@pytest.mark.usefixtures("house")
def test_nothing_of_this_sites_subject_can_be_asked_for() -> None:
    with pytest.raises(InputError, match="unknown formula 'preset'"):
        compute('preset("h100-ndr").title')


def test_without_a_subject_there_is_nothing_to_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_modules", [])
    assert subject.subject().lookups == {}
    with pytest.raises(InputError, match="unknown formula 'model'"):
        compute('model("gpt-3-175b").hidden')
