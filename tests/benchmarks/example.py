"""The last part of `make bench`: builds the second example, a house's heat, with each tool.

Each tool gets the example's module and catalog, and draws the same bars and lines with matplotlib
from what the module computes; figgen builds the example's page as it is. Every tool has the theme
that its host comes with, since Material alone takes a third of a small build. "Cold" has no caches
and no output, "warm" repeats the build, and "edit" changes one entry of the catalog after a warm
build; a tool that then still shows the old total is stale. The least of the rounds counts, by the
clock and in processor time, and the tools take turns, so that other load favors none of them.
MyST-NB and Quarto, which are not in the lock file, are included if they are installed.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.contenders import Contender
from tests.benchmarks.measure import Best, Failed, build

EXAMPLE = Path(__file__).parents[1] / "example"
ROUNDS = 5
EDIT = ('windows_area = "18 m²"', 'windows_area = "28 m²"')
OLD, NEW = ("8532", "8.53\N{NO-BREAK SPACE}kW"), ("9372", "9.37\N{NO-BREAK SPACE}kW")
"""The cottage's total at 30 K: 8,532 W, and 30 K · 2.8 W/m²/K · 10 m² more after the edit."""

DRAWN = """\
import sys
sys.path.insert(0, {folder!r})
import matplotlib.pyplot as plt
from heat import PARTS, losses

for name in ("cottage", "passive"):
    figure, axes = plt.subplots()
    left = [0.0, 0.0, 0.0]
    for part in PARTS:
        found = [losses(name, kelvin)[part] for kelvin in (10, 20, 30)]
        axes.barh(["10 K", "20 K", "30 K"], found, left=left, label=part)
        left = [a + b for a, b in zip(left, found)]
    axes.legend()
    print(f"<p>{{name}}: {{left[-1]:.0f}} W</p>")
figure, axes = plt.subplots()
for walls in (1.4, 0.3):
    axes.plot([0, 30], [0, 30 * walls * 110], label=f"{{walls}} W/m²/K")
axes.legend()
figure, axes = plt.subplots()
axes.plot(range(1, 25), [6 * hour for hour in range(1, 25)], label="kWh")
"""


def figgen(folder: Path) -> Contender:
    """Set up the example's page, in the theme of the other sites."""
    shutil.copytree(EXAMPLE / "docs", folder / "docs")
    settings = (EXAMPLE / "mkdocs.yml").read_text("utf-8").splitlines(keepends=True)
    kept = (line for line in settings if not line.startswith("theme:"))
    (folder / "mkdocs.yml").write_text("".join(kept), encoding="utf-8")
    return _mkdocs("figgen", folder, folder / ".cache")


def markdown_exec(folder: Path) -> Contender:
    """Set up a page with a block of Python that prints its pictures as SVG."""
    shown = (
        "import io\nfor number in plt.get_fignums():\n    out = io.StringIO()\n"
        '    plt.figure(number).savefig(out, format="svg")\n    print(out.getvalue())\n'
        'plt.close("all")\n'
    )
    _page(folder, f'```python exec="1" html="1"\n{_drawn(folder)}{shown}```\n')
    _settings(folder, "markdown-exec", "markdown_extensions: [pymdownx.superfences]\n")
    return _mkdocs("markdown-exec", folder)


def mkdocs_gallery(folder: Path) -> Contender:
    """Set up a script in a gallery."""
    _page(folder, "[The gallery](generated/index.md)\n")
    _gallery(folder / "scripts", "README.md", "# Heat\n", "# Heat of a house")
    options = "examples_dirs: scripts, gallery_dirs: docs/generated"
    _settings(folder, f"gallery: {{ {options} }}", "nav: [index.md, generated]\n")
    return _mkdocs("mkdocs-gallery", folder, folder / "docs" / "generated")


def sphinx_gallery(folder: Path) -> Contender:
    """Set up the same script for Sphinx."""
    _gallery(folder / "scripts", "GALLERY_HEADER.rst", "Heat\n====\n", "Heat of a house\n===")
    options = {"examples_dirs": str(folder / "scripts"), "gallery_dirs": "made"}
    settings = f"extensions = ['sphinx_gallery.gen_gallery']\nsphinx_gallery_conf = {options!r}\n"
    return _sphinx("sphinx-gallery", folder, settings, "made/index", folder / "source" / "made")


def myst_nb(folder: Path) -> Contender:
    """Set up a notebook in Markdown, whose results jupyter-cache stores."""
    cells = f"```{{code-cell}} ipython3\n{_drawn(folder)}```\n"
    kernel = "kernelspec: { name: python3, display_name: Python 3 }"
    head = "jupytext: { text_representation: { extension: .md, format_name: myst } }"
    (folder / "source").mkdir()
    page = f"---\n{head}\n{kernel}\n---\n\n# Heat of a house\n\n{cells}"
    (folder / "source" / "heat.md").write_text(page, encoding="utf-8")
    settings = "extensions = ['myst_nb']\nnb_execution_mode = 'cache'\n"
    return _sphinx("MyST-NB", folder, settings, "heat", folder / ".jupyter_cache")


def quarto(folder: Path) -> Contender:
    """Set up a document whose results Quarto freezes."""
    page = f"---\ntitle: Heat of a house\n---\n\n```{{python}}\n{_drawn(folder)}```\n"
    (folder / "index.qmd").write_text(page, encoding="utf-8")
    settings = "project: { type: website, output-dir: site }\nexecute: { freeze: auto }\n"
    (folder / "_quarto.yml").write_text(settings, encoding="utf-8")
    command = ("quarto", "render", str(folder))
    caches = (folder / "_freeze", folder / ".quarto")
    return Contender(
        name="Quarto", folder=folder, command=command, site=folder / "site", caches=caches
    )


TOOLS: dict[str, Callable[[Path], Contender]] = {
    "figgen": figgen,
    "markdown_exec": markdown_exec,
    "mkdocs_gallery": mkdocs_gallery,
    "sphinx_gallery": sphinx_gallery,
    "myst_nb": myst_nb,
    "quarto": quarto,
}
"""Tools by the module that must be installed; Quarto is a program."""


@dataclass(kw_only=True)
class Measured:
    """The least times of a tool's cold, warm and edited builds, and what its pages show then."""

    contender: Contender
    cold: Best = field(default_factory=Best)
    warm: Best = field(default_factory=Best)
    edited: Best = field(default_factory=Best)
    shows: str = ""

    def round(self) -> None:
        """Build once cold, once warm and once after the edit. Raises Failed."""
        entries = self.contender.folder / "houses.toml"
        shutil.copy(EXAMPLE / "houses.toml", entries)
        self.contender.forget()
        self.cold.add(build(self.contender))
        self.warm.add(build(self.contender))
        entries.write_text(entries.read_text("utf-8").replace(*EDIT), encoding="utf-8")
        self.edited.add(build(self.contender))
        self.shows = shown(self.contender.site)

    @property
    def row(self) -> str:
        """The tool's line of the table: seconds by the clock, then of the processor."""
        each = (self.cold, self.warm, self.edited)
        seconds = (*(best.wall_s for best in each), *(best.cpu_s for best in each))
        return f"{self.contender.name:16}{''.join(f'{s:9.2f}' for s in seconds)}  {self.shows}"


def shown(site: Path) -> str:
    """Return which total the pages show, of before or after the edit: `new`, `stale` or
    `neither`."""
    pages = " ".join(page.read_text(encoding="utf-8") for page in site.rglob("*.html"))
    said = re.sub(r"<[^>]*>|,", "", pages)
    if any(text in said for text in NEW):
        return "new"
    return "stale" if any(text in said for text in OLD) else "neither"


def main() -> None:
    """Print a table, which also lists tools that are missing or fail."""
    with tempfile.TemporaryDirectory(prefix="bench-example-") as work:
        tools = list(_installed(Path(work)))
        for _ in range(ROUNDS):
            for tool in tools[:]:
                try:
                    tool.round()
                except Failed as fault:
                    tools.remove(tool)
                    said = str(fault).strip().splitlines()[-1]
                    print(f"{tool.contender.name:16}failed: {said}")
    kinds = ("cold", "warm", "edit")
    heads = (*(f"{kind} s" for kind in kinds), *(f"{kind} cpu" for kind in kinds))
    print(f"{'tool':16}{''.join(f'{head:>9}' for head in heads)}  after the edit")
    for tool in tools:
        print(tool.row)


def _installed(work: Path) -> Iterator[Measured]:
    """Set up every tool that is installed, and say which is not."""
    for name, make in TOOLS.items():
        if not (shutil.which(name) if name == "quarto" else find_spec(name)):
            print(f"{name:16}is not installed")
            continue
        folder = work / name / "project"
        folder.mkdir(parents=True)
        for file in ("heat.py", "houses.toml"):
            shutil.copy(EXAMPLE / file, folder)
        yield Measured(contender=make(folder))


def _drawn(folder: Path) -> str:
    return DRAWN.format(folder=str(folder))


def _page(folder: Path, text: str) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text(f"# Heat of a house\n\n{text}", encoding="utf-8")


def _settings(folder: Path, plugin: str, more: str = "") -> None:
    text = f"site_name: Heat\n{more}plugins:\n  - {plugin}\n"
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")


def _gallery(scripts: Path, header: str, head: str, title: str) -> None:
    scripts.mkdir()
    (scripts / header).write_text(head, encoding="utf-8")
    text = f'"""\n{title}\n"""\n{_drawn(scripts.parent)}plt.show()\n'
    (scripts / "plot_heat.py").write_text(text, encoding="utf-8")


def _contender(
    name: str, folder: Path, command: tuple[str, ...], site: Path, caches: tuple[Path, ...]
) -> Contender:
    return Contender(
        name=name,
        folder=folder,
        command=command,
        site=site,
        caches=caches,
        environment=(("PYTHONPATH", f"{Path(__file__).parents[2]}:{folder}"),),
    )


def _mkdocs(name: str, folder: Path, *caches: Path) -> Contender:
    site = folder / "site"
    command = (sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site))
    return _contender(name, folder, command, site, caches)


def _sphinx(name: str, folder: Path, settings: str, page: str, *caches: Path) -> Contender:
    source, site = folder / "source", folder / "site"
    source.mkdir(exist_ok=True)
    index = f"Site\n====\n\n.. toctree::\n\n   {page}\n"
    (source / "index.rst").write_text(index, encoding="utf-8")
    (source / "conf.py").write_text(f"project = 'Heat'\n{settings}", encoding="utf-8")
    command = (sys.executable, "-m", "sphinx", str(source), str(site))
    return _contender(name, folder, command, site, caches)


if __name__ == "__main__":
    main()
