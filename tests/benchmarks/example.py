"""The last part of `make bench`: builds the second example, a house's heat, with each tool.

Each tool gets the example's module and catalog, and draws the same bars and lines with matplotlib
from what the module computes; figgen builds the example as it is. "Cold" has no caches and no
output, "warm" repeats the build, and "edit" changes one entry of the catalog after a warm build; a
tool that then still shows the old total is stale. The least of three rounds counts. MyST-NB and
Quarto, which are not in the lock file, are included if they are installed.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.contenders import Contender
from tests.benchmarks.measure import Best, Failed, build

EXAMPLE = Path(__file__).parents[1] / "example"
ROUNDS = 3
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
"""


def figgen(folder: Path) -> Contender:
    """Set up the example as it is."""
    shutil.copytree(EXAMPLE / "docs", folder / "docs")
    shutil.copy(EXAMPLE / "mkdocs.yml", folder)
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


def measured(contender: Contender) -> tuple[Best, Best, Best, str]:
    """Return times of cold, warm and edited builds, and what the site shows then. Raises Failed."""
    cold, warm, edited, shows = Best(), Best(), Best(), ""
    entries = contender.folder / "houses.toml"
    for _ in range(ROUNDS):
        shutil.copy(EXAMPLE / "houses.toml", entries)
        contender.forget()
        cold.add(build(contender))
        warm.add(build(contender))
        entries.write_text(entries.read_text("utf-8").replace(*EDIT), encoding="utf-8")
        edited.add(build(contender))
        shows = shown(contender.site)
    return cold, warm, edited, shows


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
    print(f"{'tool':16}{'cold s':>8}{'warm s':>8}{'edit s':>8}  after the edit")
    for name, make in TOOLS.items():
        if not (shutil.which(name) if name == "quarto" else find_spec(name)):
            print(f"{name:16}is not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="bench-example-") as work:
            folder = Path(work) / "project"
            folder.mkdir()
            for file in ("heat.py", "houses.toml"):
                shutil.copy(EXAMPLE / file, folder)
            contender = make(folder)
            try:
                *times, shows = measured(contender)
            except Failed as fault:
                print(f"{contender.name:16}failed: {str(fault).strip().splitlines()[-1]}")
                continue
            columns = "".join(f"{best.wall_s:8.2f}" for best in times)
            print(f"{contender.name:16}{columns}  {shows}", flush=True)


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
