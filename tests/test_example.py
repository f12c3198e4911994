"""A site about a different subject, the heat of a house, built by MkDocs and by ProperDocs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.canary import compared
from tests.warm import ROOT, run

EXAMPLE = ROOT / "tests" / "example"


def build(host: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Build the copy of the example in a folder."""
    words = ("-m", host, "build", "--config-file", "mkdocs.yml", *options)
    return run(folder, *words, fresh=host != "mkdocs")


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of figgen in a folder."""
    return run(folder, "-m", "figgen", *words, apart=True)


def copied(folder: Path) -> Path:
    """Return a copy of the example in a folder."""
    copy = folder / "example"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return copy


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The example as each of the two builds it."""
    found = {}
    for host in ("mkdocs", "properdocs"):
        folder = copied(tmp_path_factory.mktemp(host))
        done = build(host, folder, "--strict")
        assert done.returncode == 0, done.stdout
        found[host] = folder / "site"
    return found


def test_both_build_the_same_site(sites: dict[str, Path]) -> None:
    assert compared(sites["mkdocs"], sites["properdocs"]) == {
        "missing": [],
        "added": [],
        "pages that say something else": [],
        "other files and markup": [],
    }


def test_numbers_are_those_of_a_calculation_by_hand(sites: dict[str, Path]) -> None:
    """At 30 K: 110 m² × 1.4 + 18 m² × 2.8 + 80 m² × 1.0 = 284.4 W/K."""
    entries = json.loads((sites["mkdocs"] / "figures.json").read_text("utf-8"))
    values = {entry["id"]: entry["values"] for entry in entries if "values" in entry}
    total, unit = values["fig-heat-by-part-cottage"]["total"]
    assert (total, unit) == (pytest.approx(30 * 284.4), "W")
    shown = {entry["call"]: entry["shown"] for entry in entries if "call" in entry}
    assert shown['heating_energy(power="6 kW", hours="24 h")'] == "518\N{NO-BREAK SPACE}MJ"
    by_hand = 1.4 * 110 * 20
    assert (
        shown[
            'heat_loss(area=house("cottage").walls_area, '
            'transmittance=house("cottage").walls_transmittance, difference="20 K")'
        ]
        == f"{by_hand / 1000:.2f}\N{NO-BREAK SPACE}kW"
    )


def test_styles_scripts_math_and_search_come_along(sites: dict[str, Path]) -> None:
    site = sites["mkdocs"]
    page = (site / "index.html").read_text("utf-8")
    for path in re.findall(r'(?:href|src)="(assets/(?!images)[^"]+)"', page):
        assert (site / path).is_file(), path
    for path in (
        "assets/stylesheets/figures.css",
        "assets/javascripts/figures.js",
        "assets/fonts/math.woff2",
        "assets/javascripts/search/view.js",
        "search/head.json",
        "search/index.html",
        "assets/figures/index/fig-heat-by-wall.plotly.json",
    ):
        assert (site / path).is_file(), path
    assert "<math" in page
    assert "Cottage of 1960" in page, "tabs are called by the titles of presets"
    assert "A survey of the street, 2026" in page, "a number tells its source"


IN_KWH = "assets/figures/index/fig-heat-by-hour"


def test_an_axis_is_in_a_unit_of_the_site(sites: dict[str, Path]) -> None:
    """Of 6 kW, every hour of the day gives 6 kWh."""
    site = sites["mkdocs"]
    page = (site / "index.html").read_text("utf-8")
    assert ">heat (kWh)</text>" in page
    assert ">time (h)</text>" in page
    assert ">144\N{NO-BREAK SPACE}kWh</text>" in page, "the label of the mark"
    drawn = json.loads((site / f"{IN_KWH}.plotly.json").read_text("utf-8"))
    ticks = drawn["layout"]["yaxis"]
    assert ticks["title"]["text"] == "heat (kWh)"
    assert [float(text) * 3.6e6 for text in ticks["ticktext"]] == ticks["tickvals"]
    assert drawn["data"][0]["hovertext"][7].endswith(
        "8\N{NO-BREAK SPACE}h, 48\N{NO-BREAK SPACE}kWh"
    )
    csv = (site / f"{IN_KWH}.csv").read_text("utf-8").splitlines()
    assert csv[:2] == ["series,time (s),heat (J)", "heating,3600.0,21600000.0"], "SI"


def test_a_figure_for_paper_is_in_a_unit_of_the_site(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    assert re.search(r"time \(h\) +heating \(kWh\)\n +1 +6\n", show(folder, "text"))
    for form in ("svg", "plotly", "matplotlib"):
        assert "heat (kWh)" in show(folder, form)


def show(folder: Path, form: str) -> str:
    """Return the figure over the hours in a form."""
    done = command(folder, "show", "heat-by-hour", "--as", form)
    assert done.returncode == 0, done.stderr
    return done.stdout


MISTAKES = {
    "houses.toml": ('roof_area = "80 m²"', 'roof_area = "80 W"',
                    "houses.toml:14: [cottage] roof_area"),
    "heat.py": ('unit="W", source="ISO 6946"', 'unit="Q", source="ISO 6946"',
                "heat.py:40: unknown unit 'Q'"),
    "docs/index.md": ("figure: houses", "figure: house", "docs/index.md:27: unknown figure"),
    "mkdocs.yml": ("modules: [heat], ", "", "a module of yours in the plug-in's `modules`"),
}  # fmt: skip


OF_CODE = {
    "a module that isn't there": ("mkdocs.yml", "modules: [heat]", "modules: [haet]",
                                  "modules: there is no haet.py in this folder"),
    "a slip of syntax": ("heat.py", "SUBJECT = Subject(", "SUBJECT = Subject((",
                                        "heat.py:152: invalid syntax"),
    "a name that nobody defined": ("heat.py", 'unit("K")', 'unti("K")',
                                   "heat.py:28: NameError: name 'unti' is not defined"),
    "a unit that nobody declared": ("heat.py", 'unit("K")\n', "\n",
                                    "heat.py:40: argument 'transmittance' of heat_loss: unknown"),
}  # fmt: skip


def changed_example(tmp_path: Path, file: str, old: str, new: str) -> Path:
    """Return a copy of the example with one text of a file replaced."""
    folder = copied(tmp_path)
    text = (folder / file).read_text("utf-8")
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new), "utf-8")
    return folder


@pytest.mark.parametrize("what", OF_CODE)
def test_a_mistake_in_a_module_is_one_line_of_build_and_command(tmp_path: Path, what: str) -> None:
    file, old, new, told = OF_CODE[what]
    folder = changed_example(tmp_path, file, old, new)
    done = build("mkdocs", folder, "--strict")
    assert done.returncode != 0
    assert told in done.stdout
    assert "Traceback" not in done.stdout
    listed = command(folder, "list", "formulas")
    assert listed.returncode == 2
    assert told.partition(": ")[2] in listed.stderr
    assert listed.stderr.count("\n") == 1


@pytest.mark.parametrize("file", MISTAKES)
def test_a_mistake_fails_the_build_with_its_place(tmp_path: Path, file: str) -> None:
    old, new, told = MISTAKES[file]
    folder = changed_example(tmp_path, file, old, new)
    done = build("mkdocs", folder, "--strict")
    assert done.returncode != 0
    assert told in done.stdout


def test_a_changed_formula_or_entry_changes_what_the_next_build_shows(tmp_path: Path) -> None:
    """The cache tracks the code and data of a site's own modules."""
    folder = copied(tmp_path)
    energy = 'heating_energy(power="6 kW", hours="24 h")'

    def shown() -> tuple[str, float]:
        assert build("mkdocs", folder, "--strict").returncode == 0
        entries = json.loads((folder / "site" / "figures.json").read_text("utf-8"))
        number = next(entry["shown"] for entry in entries if entry.get("call") == energy)
        figure = next(e for e in entries if e.get("id") == "fig-heat-by-part-cottage")
        return number, figure["values"]["total"][0]

    assert shown() == ("518\N{NO-BREAK SPACE}MJ", pytest.approx(8532))
    for file, old, new in (
        ("heat.py", "return power * hours", "return 2 * power * hours"),
        ("houses.toml", 'windows_area = "18 m²"', 'windows_area = "28 m²"'),
    ):
        text = (folder / file).read_text("utf-8")
        (folder / file).write_text(text.replace(old, new), "utf-8")
    assert shown() == ("1.04\N{NO-BREAK SPACE}GJ", pytest.approx(8532 + 30 * 2.8 * 10))
