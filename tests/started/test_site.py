"""What the site that `figgen start` wrote shows, records and lets its author change."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path

import yaml

from tests.started.kettles import SUBJECT_LINE, built, commit, put, told
from tests.warm import ROOT, run


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
    done = run(site / "pages", "-m", "figgen", "diff", "main")
    assert done.returncode == 0, done.stdout
    assert "- `kettles.toml, travel: power 650 W → 700 W`: 2 numbers" in done.stdout
    assert "- `1 × file of code: kettle.py`: 2 numbers" in done.stdout
    for folder in (site, site / "pages"):
        assert run(folder, "-m", "figgen", "lint").stdout == "every page follows the rules\n"
        assert run(folder, "-m", "figgen", "stats").stdout.startswith("page ")
        assert run(folder, "-m", "figgen", "agree").returncode == 0
    put(site / "pages/index.md", "figure: time-to-boil", "figure: time-to-bowl")
    words = ("-m", "properdocs", "build", "-f", "web/kettles/properdocs.yml")
    on_github = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)}
    built = run(tmp_path, *words, apart=True, fresh=True, **on_github)
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


def test_a_number_links_only_to_pages_that_the_site_has(site: Path) -> None:
    assert built(site).returncode == 0
    page = (site / "site/index.html").read_text("utf-8")
    assert "How 334" in page
    assert "reference/formulas" not in page


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
