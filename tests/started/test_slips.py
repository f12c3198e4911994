"""An author's mistakes in the site that `figgen start` wrote, each told with its place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.started.kettles import SUBJECT_LINE, built, commit, put, told
from tests.warm import run


def test_a_revision_without_the_site_is_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-qb", "main"], cwd=tmp_path, check=True)
    (tmp_path / "readme").touch()
    commit(tmp_path)
    assert run(tmp_path, "-m", "figgen", "start", "web").returncode == 0
    again = run(tmp_path, "-m", "figgen", "start", "other/web").stdout
    assert ".github/workflows/web.yml exists: expected another name of the folder" in again
    said = run(tmp_path / "web", "-m", "figgen", "diff", "main").stdout
    assert re.fullmatch(r"figgen: revision \w+: expected one with the folder web/\n", said)


def test_each_formula_that_no_page_can_print_is_one_line_of_the_build(site: Path) -> None:
    put(site / "kettle.py", "return 4181 * mass * warming", "return max(4181 * mass * warming, 1)")
    put(site / "kettle.py", "return heat / power", "return heat / power if power else 0")
    with (site / "docs/index.md").open("a") as page:
        page.write('\nIt takes {{ heating_time(heat="1 J", power="1 W") }}, or {{ nothing() }}.\n')
    done = built(site)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
    for line, (place, message) in zip(
        told,
        (
            ("11: kettle.py:24", "cannot call max(4181 * mass * warming, 1)"),
            ("15: kettle.py:30", "expected where(power, heat / power, 0)"),
            ("15", "unknown formula 'nothing'"),
        ),
        strict=True,
    ):
        assert f"docs/index.md:{place}: " in line
        assert message in line


def test_each_mistake_of_a_catalog_is_an_error_with_its_own_place(site: Path) -> None:
    put(site / "kettles.toml", 'source = "label"', 'source = "lable"')
    errors = [line for line in built(site).stdout.splitlines() if "unknown source" in line]
    assert len(errors) == 2
    for line in errors:
        assert line.startswith("ERROR")
        assert "kettle.py" not in line
        assert "expected a key of [sources] of kettles.toml, got 'lable'" in line


def test_a_value_in_the_wrong_unit_is_an_error_of_its_line(site: Path) -> None:
    with (site / "docs/index.md").open("a") as page:
        page.write('\nIt takes {{ heating_time(heat=kettle("travel").power, power="1 kW") }}.\n')
        page.write(
            "It takes {{ heating_time(heat=heat_of_water(mass=1, warming=80), power=1) }}.\n"
        )
        inner = "heat_of_water(mass=1, warming=80)"
        page.write(f"It takes {{{{ heating_time(heat=1, power={inner}) }}}}.\n")
    done = built(site)
    told = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
    assert len(told) == 2
    assert "docs/index.md:15: heating_time: heat: expected J, got 'W'" in told[0]
    assert "docs/index.md:17: heating_time: power: expected W, got 'J'" in told[1]


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("cal", "not an SI unit (to show a value in it, a page writes `:in cal`): expected J"),
        ("", "unknown unit '': expected kg, cal, K, "),
        ("yd", '1 for a pure number, or a unit that the module adds: unit("yd")'),
    ],
)
def test_a_unit_that_no_result_has_is_told_with_what_to_do(
    site: Path, unit: str, told: str
) -> None:
    put(site / "kettle.py", 'unit("kg")\n', 'unit("kg")\nunit("cal", is_="4.184 J")\n')
    put(site / "kettle.py", 'symbol="Q", unit="J"', f'symbol="Q", unit="{unit}"')
    done = built(site)
    assert done.returncode == 1
    assert told in done.stdout
    assert "kettle.py:22: " in done.stdout


def test_a_caption_names_the_unit_of_a_number_that_is_shown_alone(site: Path) -> None:
    page = site / "docs/index.md"
    put(page, 'caption: "{{ power }} bring', 'caption: "{{ power:.1f}} bring')
    done = built(site)
    assert done.returncode == 1
    (told,) = {line for line in done.stdout.splitlines() if line.startswith("ERROR")}
    assert "power: format '.1f' shows a number without its unit: expected W in the text" in told
    assert "docs/index.md:4: " in told
    put(page, "{{ power:.1f}} bring", "{{ power:.1f}} W bring")
    assert built(site).returncode == 0
    put(page, "{{ power:.1f}} W bring", "{{ power:in.3 kW}} bring")
    assert built(site).returncode == 0
    assert "2.2\N{NO-BREAK SPACE}kW</data> bring" in (site / "site/index.html").read_text("utf-8")


def test_a_module_that_is_not_there_is_told_with_its_place_and_its_like(site: Path) -> None:
    put(site / "mkdocs.yml", "modules: [kettle]", "modules: [ketle]")
    told = "mkdocs.yml:4: modules: there is no ketle.py in this folder, and no such package"
    for said in (built(site).stdout, run(site, "-m", "figgen", "list").stdout):
        assert told in said
        assert "(did you mean kettle?)" in said


def test_a_misspelt_key_of_an_entry_is_told_with_its_like(site: Path) -> None:
    put(
        site / "kettle.py",
        "power = kettle(preset).power.value",
        "power = kettle(preset).powr.value",
    )
    said = built(site).stdout
    assert "unknown key of kitchen 'powr' (did you mean power?) (kettle.py:50)" in said


SECOND = """
@formula(symbol="Q", unit="J", source="a book")
def heat_of_water(mass):
    \"\"\"Heat again.\"\"\"
    return 2 * mass
"""
AGAIN = """
@figure("time-to-boil")
def again(*, preset: str) -> Curves:
    \"\"\"The same name.\"\"\"
"""
MODULE_SLIPS = {
    "a figure that returns nothing": (
        "    return Curves(",
        "    Curves(",
        "figure 'time-to-boil' (kettle.py:47): its function returns nothing: expected return "
        "Curves, Bars, Table, Timeline, Diagram or the like",
    ),
    "a formula twice": (
        SUBJECT_LINE,
        f"{SECOND}\n\n{SUBJECT_LINE}",
        "two formulas are named heat_of_water; kettle.py:21 is the first",
    ),
    "a figure twice": (
        SUBJECT_LINE,
        f"{AGAIN}\n\n{SUBJECT_LINE}",
        "two figures are named 'time-to-boil'; kettle.py:47 is the first",
    ),
    "a formula without a source": (
        ', source="definition of power"',
        "",
        "kettle.py:27: formula heating_time has no source: expected in @formula(…): source=",
    ),
    "a decorator without parentheses": (
        '@formula(symbol="t", unit="s", source="definition of power")',
        "@formula",
        'kettle.py:27: formula heating_time: expected @formula(symbol="Q", unit="J", source="…")',
    ),
    "an absolute value": (
        "return 4181 * mass * warming",
        "return abs(mass - warming)",
        "kettle.py:24: formula heat_of_water cannot call abs(mass - warming): "
        "expected maximum(mass - warming, -(mass - warming))",
    ),
    "an argument that nothing defines": (
        "def heating_time(heat, power)",
        "def heating_time(heat, powr)",
        "argument 'powr' of heating_time: expected in the notation, formulas(…): "
        'positive("powr", symbol, unit, meaning) (did you mean power?)',
    ),
    "a name that the module defines": (
        "return 4181 * mass * warming",
        "return (\n        C * mass * warming\n    )",
        "kettle.py:25: formula heat_of_water uses the unknown name 'C'",
    ),
    "a line without points": (
        "range(1, 18)",
        "()",
        "figure 'time-to-boil' (kettle.py:47): its series 'Kettle in the kitchen' has no points",
    ),
    "a line that isn't Python": (
        "return heat / power",
        "return heat / / power",
        "kettle.py:30: invalid syntax: return heat / / power",
    ),
    "a color of another site": (
        'role="series-1"',
        'role="serie-1"',
        "unknown role 'serie-1': expected series-1, series-2",
    ),
}


def test_lint_tells_a_slip_in_the_module_once_and_as_the_build_does(site: Path) -> None:
    put(site / "kettle.py", 'unit("kg")', 'unit("kg", is_="1 lbs")')
    done = run(site, "-m", "figgen", "lint", "docs")
    assert done.returncode == 2
    assert done.stdout.startswith("figgen: kettle.py:10: unknown unit 'lbs': expected ")
    assert done.stdout.count("\n") == 1


def test_a_slip_in_a_catalog_is_told_with_its_folder_in_the_words_of_the_author(
    site: Path, catalog: str
) -> None:
    put(site / catalog, '"2.2 kW"', '"2.2 MW"')
    expected = "implausible: expected a quantity in W from 100 W to 5 kW, got '2.2 MW'"
    assert f"ERROR   -  {catalog}:" in told(site)
    assert f"[kitchen] power: {expected}" in told(site)
    put(site / catalog, "[travel]", "[kitchen]")
    assert "not TOML: Cannot declare [kitchen] twice" in told(site)


@pytest.mark.parametrize("slip", MODULE_SLIPS)
def test_a_slip_in_the_module_is_told_with_its_place_and_what_to_write(
    site: Path, slip: str
) -> None:
    old, new, message = MODULE_SLIPS[slip]
    put(site / "kettle.py", old, new)
    assert message in told(site)


FENCE_SLIPS = {
    "a word that no figure knows": (
        "presets: [",
        "colour: red\npresets: [",
        ":5: figure 'time-to-boil': unknown parameter 'colour': expected one of preset, litres, "
        "figure, id, caption, alt, as, presets",
    ),
    "several names for one": (
        "presets: [",
        "preset: [",
        ":5: figure 'time-to-boil': preset: expected one name; with `presets:`, each name",
    ),
    "a word for a number": (
        "presets: [kitchen, travel]",
        "preset: kitchen\nlitres: soon",
        ":6: figure 'time-to-boil': litres: not a quantity: expected a number, got 'soon'",
    ),
}


@pytest.mark.parametrize("slip", FENCE_SLIPS)
def test_a_slip_in_a_fence_is_told_with_its_parameter(site: Path, slip: str) -> None:
    old, new, message = FENCE_SLIPS[slip]
    put(site / "docs/index.md", old, new)
    assert f"docs/index.md{message}" in told(site)


CATALOG_SLIPS = {
    "text without quotes": (
        'title = "Travel kettle"',
        "title = Dover",
        'kettles.toml:15: not TOML: Invalid value: expected text in quotes: title = "Dover"',
    ),
    "an unknown confidence": (
        'confidence = "read"',
        'confidence = "high"',
        '"read" (seen in the source itself) or "secondary" (seen in a work that cites it) or '
        '"memory" (not looked up; quantities then need low and high)',
    ),
}


@pytest.mark.parametrize("slip", CATALOG_SLIPS)
def test_a_slip_in_a_catalog_is_told_with_what_to_write(site: Path, slip: str) -> None:
    old, new, message = CATALOG_SLIPS[slip]
    put(site / "kettles.toml", old, new)
    assert message in told(site)


def test_a_citation_is_checked_before_the_build_and_says_where_references_stand(site: Path) -> None:
    with (site / "docs/index.md").open("a") as page:
        page.write("\nIt boils at 100 °C [@label].\n")
    wanted = 'expected in docs/references.toml, [label] with authors = "…" and title = "…"'
    assert f"docs/index.md:15: unknown reference 'label': {wanted}" in told(site)
    said = run(site, "-m", "figgen", "lint").stdout
    assert said == f"docs/index.md:15: a citation: {wanted}, got '[@label]'\n"
    entry = '[label]\nauthors = "The maker"\ntitle = "The label below the kettle"\n'
    (site / "docs/references.toml").write_text(entry)
    assert told(site) == ""
    assert run(site, "-m", "figgen", "lint").stdout == "every page follows the rules\n"
