"""A build of pages with mistakes lists every mistake with its page and line, and fails."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.warm import ROOT, run

CONFIGURATION = """site_name: Broken
site_url: http://127.0.0.1/
theme: {name: mkdocs}
markdown_extensions: [admonition]
validation: {anchors: warn}
plugins: [figgen: {modules: [figgen.guide]}]
exclude_docs: |
  /appendix/
  /reference/
  /validation/
  /search.md
"""

FIGURES = """# Figures

```figure
figure: pipelin-timeline
schedule: 1f1b
caption: A figure whose name is misspelt.
alt: Nothing.
```

```figure
figure: pipeline-timeline
schedule: 1f1b
stages: 0
caption: A parameter out of its range, told on its own line.
alt: Nothing.
```

```figure
figure: pipeline-timeline
id: other
shedule: 1f1b
caption: A parameter that does not exist.
alt: Nothing.
```

!!! note

    ```figure
    figure: pipeline-timeline
    id: mute
    schedule: 1f1b
    caption: A figure without a text for those who cannot see it, inside a note.
    ```

```figure
figure: pipeline-timeline
id: nameless
schedule: 1f1b
alt: A figure without a caption.
```

```figure
figure: pipeline-timeline
id: yaml
caption: Malformed: a colon that must be quoted.
```

```figure
figure: rank-grid
sizes: nodes=2 gpus_per_node=8 tp=3
caption: A mesh that does not fill its world.
alt: Nothing.
```

```figure
figure: stage-memory
model: gpt-3-175b
stages: 5
microbatches: 8
caption: Layers that cannot be divided among the stages.
alt: Nothing.
```

```figure id=two
figure: bubble-table
```

[](#fig-nowhere) is a figure that is not there.
"""

NUMBERS = """# Numbers

A misspelt formula, {{ buble_fraction(stages=4, microbatches=8):.1% }}, and a sound one,
{{ bubble_fraction(stages=4, microbatches=8):.1% }}.

| an argument that is missing | {{ bubble_fraction(stages=4):.1% }} |
|---|---|
| outside the domain | {{ bubble_fraction(stages=0, microbatches=8):.1% }} |

A format that does not exist: {{ bubble_fraction(stages=4, microbatches=8):percent }}.
A citation of nothing: [@hockney1949].
Math that cannot be read: $\\nosuchcommand{x}$.
"""

ENDLESS = f"# Endless\n\n## Before\n\n{'[' * 50_000}\n\n## After\n"
INNOCENT = """# Innocent

[](figures.md#fig-yaml), [](figures.md#fig-two) and [](figures.md#fig-mesh) of a page with mistakes,
[before](endless.md#before) and [](endless.md#fig-after) of one that is given up.
"""
GUILTY = """# Guilty

[](index.md#fig-none) of a page without mistakes.
"""

PIPELINE = "figure 'pipeline-timeline'"
EXPECTED = (
    "docs/endless.md:5: this page takes too long to convert: expected less markup in a paragraph,"
    f" and less deeply nested lists, got '{'[' * 60}'",
    "docs/figures.md:4: unknown figure 'pipelin-timeline'"
    " (did you mean pipeline-timeline or fsdp-timeline or pipeline-volumes?)",
    f"docs/figures.md:13: {PIPELINE}: stages of schedule '1f1b': expected an integer ≥ 1, got 0",
    f"docs/figures.md:21: {PIPELINE}: unknown parameter 'shedule' (did you mean schedule?)",
    f"docs/figures.md:29: {PIPELINE}: 'alt' is missing: expected alt: a sentence",
    f"docs/figures.md:36: {PIPELINE}: 'caption' is missing: expected caption: a sentence",
    "docs/figures.md:45: malformed YAML in line 3 of the figure, mapping values are not allowed in"
    " this context: quote text that contains ': ' or starts with '{'",
    "docs/figures.md:49: figure 'rank-grid': TP·CP·PP = 3·1·1: expected a divisor of 16"
    " (nodes × GPUs per node), got 3"
    " (did you mean tp=4 dp=4 or tp=2 dp=8 or nodes=3 tp=3 dp=8?)",
    "docs/figures.md:58: figure 'stage-memory': stages does not divide the 96 layers of"
    " gpt-3-175b: expected a divisor of the layers, got 5 (did you mean 4 or 6?)",
    "docs/figures.md:64: a figure fence: expected ```figure alone, got 'figure id=two'",
    "docs/figures.md:68: unknown figure 'fig-nowhere' (did you mean fig-other or fig-nameless?)",
    "docs/guilty.md:3: unknown figure 'fig-none'",
    "docs/numbers.md:3: unknown formula 'buble_fraction'"
    " (did you mean bubble_fraction or interleaved_bubble_fraction?)",
    "docs/numbers.md:6: bubble_fraction needs microbatches",
    "docs/numbers.md:8: bubble_fraction is not defined there: expected stages ≥ 1, got 0",
    "docs/numbers.md:10: bad format: expected a Python format spec or one of"
    " si, bytes, gib, time, flops, unit, in UNIT, got 'percent'",
    "docs/numbers.md:11: unknown reference 'hockney1949' (did you mean hockney1994?)",
    "docs/numbers.md:12: math: \\nosuchcommand is not understood, got '\\\\nosuchcommand{x}'",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "mkdocs.yml").write_text(CONFIGURATION, encoding="utf-8")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "references.toml", folder / "docs")
    pages = {
        "index.md": "# Home\n",
        "figures.md": FIGURES,
        "numbers.md": NUMBERS,
        "endless.md": ENDLESS,
        **{f"innocent-{number}.md": INNOCENT for number in range(3)},
        "guilty.md": GUILTY,
    }
    for name, text in pages.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    return folder


def build(project: Path, *options: str, host: str = "mkdocs") -> subprocess.CompletedProcess[str]:
    """Build as continuous integration does."""
    words = ("-m", host, "build", *options)
    return run(project, *words, fresh=host != "mkdocs", GITHUB_ACTIONS="true")


@pytest.fixture(scope="module")
def strict(project: Path) -> subprocess.CompletedProcess[str]:
    return build(project, "--strict")


def by_place(line: str) -> tuple[str, int]:
    path, number = line.split(":")[:2]
    return path, int(number)


def test_one_strict_build_lists_every_mistake_with_its_line(
    strict: subprocess.CompletedProcess[str],
) -> None:
    assert strict.returncode == 1, strict.stdout
    told = re.findall(r"^ERROR +-  figgen: (.*)$", strict.stdout, flags=re.M)
    assert tuple(sorted(told, key=by_place)) == EXPECTED
    assert f"Aborted with {len(EXPECTED)} errors in strict mode!" in strict.stdout


@pytest.mark.parametrize("host", ["mkdocs", "properdocs"])
def test_a_quiet_strict_build_fails_too(project: Path, tmp_path: Path, host: str) -> None:
    """The hosts count only what they log, and a quiet build logs no warnings."""
    (tmp_path / "docs").mkdir()
    shutil.copy(project / "docs" / "guilty.md", tmp_path / "docs" / "index.md")
    settings = CONFIGURATION.replace("{name: mkdocs}", "{name: material, font: false}")
    settings = settings.replace("{modules: [figgen.guide]}", "{}")
    (tmp_path / "mkdocs.yml").write_text(settings, encoding="utf-8")
    ended = build(tmp_path, "--strict", "--quiet", "--config-file", "mkdocs.yml", host=host)
    assert ended.returncode == 1
    assert "ERROR   -  figgen: docs/index.md:3: unknown figure 'fig-none'" in ended.stdout
    assert "Aborted with 1 errors in strict mode!" in ended.stdout
    assert build(tmp_path, "--quiet", "--config-file", "mkdocs.yml", host=host).returncode == 0


def test_mistakes_are_annotated_where_a_review_can_show_them(
    strict: subprocess.CompletedProcess[str],
) -> None:
    told = re.findall(r"^::error file=(.*?),line=(\d+)::(.*)$", strict.stdout, flags=re.M)
    assert {f"{path}:{line}: {message}" for path, line, message in told} == set(EXPECTED)


def test_mistakes_are_red_in_their_place_and_the_rest_is_published(
    strict: subprocess.CompletedProcess[str], project: Path
) -> None:
    figures = (project / "site" / "figures" / "index.html").read_text(encoding="utf-8")
    numbers = (project / "site" / "numbers" / "index.html").read_text(encoding="utf-8")
    assert figures.count('class="admonition failure figgen-error"') == 8
    assert numbers.count("figgen-error") == 6
    assert re.search(r'<data value="0.27\d+">27.3%</data>', numbers)


def test_a_mistake_is_reported_where_it_is_made_and_once(
    strict: subprocess.CompletedProcess[str],
) -> None:
    """Three pages that refer to a page with mistakes used to be blamed, by figgen and
    by its host."""
    assert "innocent" not in strict.stdout
    assert strict.stdout.count("fig-none") == 2  # as a warning, and as an annotation of its line


def test_a_list_that_cannot_be_read_is_one_line(project: Path, tmp_path: Path) -> None:
    """It used to be a traceback of which only the last line helped."""
    shutil.copytree(project / "docs", tmp_path / "docs")
    shutil.copy(project / "mkdocs.yml", tmp_path)
    (tmp_path / "docs" / "glossary.toml").write_text("[tp]\nmeans = 3\n", encoding="utf-8")
    ended = build(tmp_path)
    assert ended.returncode == 1
    assert "ERROR   -  glossary.toml:2: [tp] means: a value: expected text, got 3" in ended.stdout
    assert "Traceback" not in ended.stdout
