"""A site that `figgen start` wrote, with an author's first changes and mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    settings = {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "mkdocs", "build", "--strict")


def put(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    assert run(tmp_path, "-m", "figgen", "start", "kettles").returncode == 0
    return tmp_path / "kettles"


@pytest.fixture(params=("kettles.toml", "data/by_maker/kettles.toml"))
def catalog(request: pytest.FixtureRequest, site: Path) -> str:
    """Return the path of the site's catalog: next to the module, or in a folder that it names."""
    beside, path = "kettles.toml", str(request.param)
    if path != beside:
        (site / path).parent.mkdir(parents=True)
        (site / beside).rename(site / path)
        put(site / "kettle.py", '.with_name("kettles.toml")', f'.parent / "{path}"')
    return path


def test_a_changed_formula_and_a_changed_entry_each_explain_their_numbers(
    site: Path, catalog: str
) -> None:
    subprocess.run(["git", "init", "-qb", "main"], cwd=site, check=True)
    commit(site)
    mistaken = run(site, "-m", "figgen", "diff", "mian").stdout
    assert mistaken == "figgen: unknown revision 'mian' (did you mean main?)\n"
    put(site / "kettle.py", "4181", "4190")
    put(site / catalog, "650 W", "700 W")
    done = run(site, "-m", "figgen", "diff", "main")
    assert done.returncode == 0, done.stdout
    assert f"- `{catalog}, travel: power 650 W → 700 W`: 2 numbers" in done.stdout
    assert "- `1 × file of code: kettle.py`: 2 numbers" in done.stdout
    assert "Figures whose data changed: `index.md#fig-time-to-boil-kitchen`, " in done.stdout


def test_a_site_in_a_subfolder_is_built_and_compared_by_its_own_host(tmp_path: Path) -> None:
    """Its configuration is for ProperDocs and inherits the plug-in; its workflow is at the top."""
    subprocess.run(["git", "init", "-qb", "main"], cwd=tmp_path, check=True)
    started = run(tmp_path, "-m", "figgen", "start", "web/kettles")
    assert "../../.github/workflows/kettles.yml" in started.stdout
    workflow = yaml.safe_load((tmp_path / ".github/workflows/kettles.yml").read_text("utf-8"))
    assert workflow["defaults"]["run"]["working-directory"] == "web/kettles"
    assert workflow["jobs"]["build"]["steps"][-1]["with"]["path"] == "web/kettles/site"
    site = tmp_path / "web/kettles"
    put(
        site / "mkdocs.yml",
        "{ name: mkdocs, highlightjs: false }",
        "{ name: material, font: false }",
    )
    (site / "mkdocs.yml").rename(site / "common.yml")
    (site / "docs").rename(site / "pages")
    (site / "properdocs.yml").write_text("INHERIT: common.yml\ndocs_dir: pages\n")
    commit(tmp_path)
    put(site / "kettle.py", "4181", "4190")
    put(site / "kettles.toml", "650 W", "700 W")
    for folder in (site, site / "pages"):
        done = run(folder, "-m", "figgen", "diff", "main")
        assert done.returncode == 0, done.stdout
        assert "- `kettles.toml, travel: power 650 W → 700 W`: 2 numbers" in done.stdout
        assert "- `1 × file of code: kettle.py`: 2 numbers" in done.stdout
        assert run(folder, "-m", "figgen", "lint").stdout == "every page follows the rules\n"
        assert run(folder, "-m", "figgen", "stats").stdout.startswith("page ")
        assert run(folder, "-m", "figgen", "agree").returncode == 0
    put(site / "pages/index.md", "figure: time-to-boil", "figure: time-to-bowl")
    words = (sys.executable, "-m", "properdocs", "build", "-f", "web/kettles/properdocs.yml")
    on_github = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    built = subprocess.run(
        words, cwd=tmp_path, env=os.environ | on_github, capture_output=True, text=True
    )
    assert "web/kettles/pages/index.md:4: unknown figure 'time-to-bowl'" in built.stderr
    assert "::error file=web/kettles/pages/index.md,line=4::unknown figure" in built.stdout
    elsewhere = run(tmp_path, "-m", "figgen", "diff", "main").stdout
    assert "figgen diff: expected a folder of a site" in elsewhere


TERMS = """["heating power"]
means = "The heat that a kettle gives off in a second, at most $5$ kW."
short = "HP"
see = "index.md"

["boiling point"]
means = "The temperature at which water boils."
"""


def test_terms_and_formulas_have_pages_to_which_others_link(site: Path) -> None:
    (site / "docs/glossary.toml").write_text(TERMS, "utf-8")
    (site / "docs/more").mkdir()
    (site / "docs/more/page.md").write_text(
        "# More\n\nHP decides, and so does the [boil](../glossary.md#boiling-point).\n"
        "Again HP is at work, by [the law](../formulas.md#heating_time).\n"
        "See [](../index.md#fig-time-to-boil).\n",
        "utf-8",
    )
    assert told(site) == ""
    page = (site / "site/more/page/index.html").read_text("utf-8")
    assert page.count('class="first-use"') == 1
    places = re.findall(r'href="\.\./\.\./((?:glossary/|formulas/|)#[^"]*)"', page)
    assert set(places) == {
        "glossary/#heating-power",
        "glossary/#boiling-point",
        "formulas/#heating_time",
        "#fig-time-to-boil",
    }
    for place in places:
        folder, _, anchor = place.partition("#")
        assert f'id="{anchor}"' in (site / "site" / folder / "index.html").read_text("utf-8")
    formulas = (site / "site/formulas/index.html").read_text("utf-8")
    assert "Time in which a power gives off a heat" in formulas
    assert "Source: definition of power" in formulas
    popovers = (site / "site/index.html").read_text("utf-8")
    assert '<a href="formulas/#heat_of_water">About this formula</a>' in popovers
    assert run(site, "-m", "figgen", "lint").stdout == "every page follows the rules\n"


def test_its_text_is_as_large_as_in_the_theme_for_which_styles_are_written(site: Path) -> None:
    """A rem is 16 px in most themes and 20 px in Material."""
    written = (ROOT / "figgen/assets/stylesheets/figures.css").read_text("utf-8")
    assert told(site) == ""
    sheet = (site / "site/assets/stylesheets/figures.css").read_text("utf-8")
    assert "font-size: 0.8125rem" in sheet
    assert "font-size: .65rem" not in sheet
    put(site / "mkdocs.yml", "name: mkdocs, highlightjs: false", "name: material, font: false")
    assert told(site) == ""
    assert (site / "site/assets/stylesheets/figures.css").read_text("utf-8") == written


AGENT = """
from figgen.agents import called, schema, server
server()
print(schema("formula")["properties"]["name"]["description"].partition("arguments: ")[2])
print(called("formula", {"name": "heating_time", "arguments": {"heat": "335 kJ", "power": 650}}))
"""


def test_an_agent_gets_its_formulas_and_figures(site: Path) -> None:
    assert "serve-tools" in run(site, "-m", "figgen", "--help").stdout.partition("about dist")[0]
    skill = run(site, "-m", "figgen", "serve-tools", "--skill").stdout
    assert "this site" in skill
    assert "training" not in skill
    listed, answer = run(site, "-c", AGENT).stdout.splitlines()
    assert listed == "heat_of_water(mass, warming), heating_time(heat, power)"
    assert "definition of power" in answer


def test_its_pages_become_one_book_in_its_own_name(site: Path) -> None:
    (site / "docs/more").mkdir()
    (site / "docs/more/page.md").write_text("# More\n\n[](../index.md#fig-time-to-boil).\n")
    assert told(site) == ""
    made = run(site, "-m", "figgen", "paper", "site", "book.epub").stdout
    assert made == "book.epub: 3 chapters\n"
    with zipfile.ZipFile(site / "book.epub") as book:
        assert {"book/index.xhtml", "book/formulas.xhtml", "book/more-page.xhtml"} <= {
            *book.namelist()
        }
        package = book.read("book/book.opf").decode()
    assert "<dc:title>Kettles</dc:title>" in package
    assert "dc:rights" not in package, "the license of its pages is its author's to name"


def test_a_page_of_terms_that_the_author_wrote_is_kept(site: Path) -> None:
    (site / "docs/glossary.toml").write_text(TERMS, "utf-8")
    (site / "docs/glossary.md").write_text("# My terms\n", "utf-8")
    assert told(site) == ""
    assert "My terms" in (site / "site/glossary/index.html").read_text("utf-8")


def test_a_site_records_its_own_code_and_of_the_package_the_version(site: Path) -> None:
    assert built(site).returncode == 0
    recorded = json.loads((site / "site/sources.json").read_text("utf-8"))
    assert set(recorded["code"]) == {"kettle.py"}
    assert "mkdocs-figgen" in recorded["libraries"]


def test_a_revision_without_the_site_is_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-qb", "main"], cwd=tmp_path, check=True)
    (tmp_path / "readme").touch()
    commit(tmp_path)
    assert run(tmp_path, "-m", "figgen", "start", "web").returncode == 0
    again = run(tmp_path, "-m", "figgen", "start", "other/web").stdout
    assert ".github/workflows/web.yml exists: expected another name of the folder" in again
    said = run(tmp_path / "web", "-m", "figgen", "diff", "main").stdout
    assert re.fullmatch(r"figgen: revision \w+: expected one with the folder web/\n", said)


def commit(folder: Path) -> None:
    author = ("-c", "user.name=A", "-c", "user.email=a@localhost")
    for words in (("add", "."), (*author, "commit", "-qm", "begin")):
        subprocess.run(["git", *words], cwd=folder, check=True)


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


def test_a_server_watches_the_catalogs(site: Path, catalog: str) -> None:
    program = (
        "from mkdocs.config import load_config; config = load_config('mkdocs.yml'); "
        "config.plugins['figgen']._begin(config); print(*config.watch, sep='\\n')"
    )
    watched = {Path(line) for line in run(site, "-c", program).stdout.splitlines()}
    assert {site / "kettle.py", site / catalog} <= watched


def test_a_page_shows_a_result_in_a_unit_of_the_site(site: Path) -> None:
    """One calorie is 4.184 J."""
    put(site / "kettle.py", 'unit("kg")\n', 'unit("kg")\nunit("cal", is_="4.184 J")\n')
    put(site / "docs/index.md", 'warming="80 K") }}', 'warming="80 K"):in.4 cal }}')
    done = built(site)
    assert done.returncode == 0, done.stdout
    entries = json.loads((site / "site/figures.json").read_text("utf-8"))
    shown = [one["shown"] for one in entries if one.get("call", "").startswith("heat_of_water")]
    assert shown == [f"{4181 * 80 / 4.184:,.0f}\N{NO-BREAK SPACE}cal"]


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


def test_a_number_links_only_to_pages_that_the_site_has(site: Path) -> None:
    assert built(site).returncode == 0
    page = (site / "site/index.html").read_text("utf-8")
    assert "How 334" in page
    assert "reference/formulas" not in page


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


def test_a_formula_is_titled_without_the_word_that_its_arguments_follow(site: Path) -> None:
    put(site / "mkdocs.yml", "search: true", "search: true, formulas: true")
    put(site / "kettle.py", "def heating_time(", "def heating_time_of(")
    for file in ("kettle.py", "docs/index.md", "tests/test_kettle.py"):
        text = (site / file).read_text("utf-8").replace('"heating_time"', '"heating_time_of"')
        text = text.replace("{{ heating_time(", "{{ heating_time_of(")
        (site / file).write_text(text, "utf-8")
    done = built(site)
    assert done.returncode == 0, done.stdout
    page = (site / "site/formulas/index.html").read_text("utf-8")
    assert '<span id="heating_time_of"></span>Heating time</h2>' in page


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


def test_lint_knows_the_units_of_the_site(site: Path) -> None:
    """Also a unit that needs no definition, in the company of one that does."""
    put(site / "kettle.py", 'unit("kg")\n', 'unit("kg")\nunit("m", prefixes=True)\nunit("m²")\n')
    put(site / "kettle.py", 'unit("m²")\n', 'unit("m²")\nunit("Wh", is_="3600 J", prefixes=True)\n')
    typed = ("6.1 m", "198 m/s", "50 km", "300 m²", "4 kg", "2 kJ", "5 W/m²/K", "4 min", "3 kWh")
    with (site / "docs/index.md").open("a") as page:
        page.write("\n")
        page.writelines(f"It has {quantity} somewhere.\n" for quantity in typed)
        page.write("It has 1 kg of water, 3 mugs and 4 Km.\n")
    done = run(site, "-m", "figgen", "lint", "docs")
    assert done.returncode == 1
    assert [line.rpartition(", got ")[2] for line in done.stdout.splitlines()[: len(typed)]] == [
        repr(quantity) for quantity in typed
    ]
    assert "docs/index.md:24" not in done.stdout


def test_the_commands_help_is_about_any_site(site: Path) -> None:
    said = run(site, "-m", "figgen", "--help").stdout
    assert "    lint " in said
    assert not {"ranks", "schedule", "memory", "plan"} & set(said.split())
    listed = run(site, "-m", "figgen", "list").stdout
    assert "time-to-boil" in listed
    assert "heat_of_water" in listed


def test_a_site_starts_with_a_module_of_a_chosen_name(tmp_path: Path) -> None:
    start = ("-m", "figgen", "start", "boats", "--module")
    refused = run(tmp_path, *start, "json")
    assert (refused.returncode, "--module" in refused.stdout) == (2, True)
    assert run(tmp_path, *start, "boat").returncode == 0
    folder = tmp_path / "boats"
    assert (folder / "boat.py").is_file()
    assert (folder / "boats.toml").is_file()
    assert not (folder / "kettles.toml").exists()
    done = built(folder)
    assert done.returncode == 0, done.stdout
    tested = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_boat.py")
    assert "1 passed" in tested.stdout


def test_python_and_the_commands_know_the_site_from_any_of_its_folders(site: Path) -> None:
    shown = "import figgen; print(figgen.figure('time-to-boil', preset='travel').values['power'])"
    assert run(site, "-c", shown).stdout == "650\n"
    docs = site / "docs"
    assert run(docs, "-c", shown).stdout == "650\n"
    listed = run(docs, "-m", "figgen", "list").stdout
    assert {"time-to-boil", "heat_of_water", "kitchen"} <= set(listed.split())
    assert "presets" not in run(docs, "-m", "figgen", "list", "plans").stdout
    assert "did you mean kettle?" in run(docs, "-m", "figgen", "list", "kettles").stdout
    assert run(docs, "-m", "figgen", "list", "kettle").stdout.splitlines() == [
        "kitchen  Kettle in the kitchen",
        "travel   Travel kettle",
    ]
    assert run(docs, "-m", "figgen", "lint").stdout == "every page follows the rules\n"
    assert "write in the site's module" in run(docs, "-m", "figgen", "new", "page", "x").stdout


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


def told(site: Path) -> str:
    """Return what a build says of the site's mistakes, without its other lines."""
    lines = built(site).stdout.splitlines()
    return "\n".join(line for line in lines if line.startswith(("WARNING", "ERROR")))


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
SUBJECT_LINE = "SUBJECT = Subject("
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


POTS = """
@figure("time-by-pot")
def time_by_pot(*, preset: str) -> Curves:
    \"\"\"A figure with presets of its own.\"\"\"
    return time_to_boil(preset="kitchen", litres={"small": 1.0, "big": 3.0}[preset])
"""


def test_a_preset_that_has_no_title_is_called_by_its_name(site: Path) -> None:
    put(site / "kettle.py", SUBJECT_LINE, f"{POTS}\n\n{SUBJECT_LINE}")
    put(site / "docs/index.md", "figure: time-to-boil", "figure: time-by-pot")
    put(site / "docs/index.md", "presets: [kitchen, travel]", "presets: [small, big]")
    put(site / "docs/index.md", "#fig-time-to-boil", "#fig-time-by-pot")
    assert told(site) == ""
    page = (site / "site/index.html").read_text("utf-8")
    assert '"fig-tab-1" checked> small<' in page


def test_the_bars_and_the_table_of_the_tutorial_show_the_catalog(site: Path) -> None:
    tutorial = (ROOT / "docs/about/your-own-site.md").read_text("utf-8")
    code = tutorial.partition('```python\n@figure("boil-by-kettle")')[2].partition("\n```")[0]
    added = f'@figure("boil-by-kettle"){code}\n\n\n{SUBJECT_LINE}'
    put(site / "kettle.py", SUBJECT_LINE, added)
    put(site / "kettle.py", "Axis, Curves,", "Axis, Bars, Column, Curves, Segment, Table,")
    with (site / "docs/index.md").open("a") as page:
        for name in ("boil-by-kettle", "kettles"):
            page.write(f"\n[](#fig-{name}) compares them.\n\n```figure\nfigure: {name}\n")
            page.write('caption: "All kettles."\nalt: "Two kettles."\n```\n')
    assert told(site) == ""
    shown = run(site, "-m", "figgen", "show", "kettles", "--as", "csv").stdout
    assert shown.splitlines()[1:] == ["Kettle in the kitchen,2200", "Travel kettle,650"]
    bars = run(site, "-m", "figgen", "show", "boil-by-kettle").stdout
    assert "Travel kettle" in bars


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
