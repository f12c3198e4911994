"""The contenders: the project folder, build command and caches of each.

Every contender that shows figures draws them with `drawing.py`, from the same JSON files, on pages
with the same text. The peers are configured to be as fast as their options allow.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from mkdocs.utils.yaml import yaml_load

from tests.benchmarks import gallery
from tests.benchmarks.content import Content, Shown

ROOT = Path(__file__).parents[2]
# What the figgen extension brings along, as a site without it names it.
BROUGHT = ("pymdownx.superfences", {"pymdownx.arithmatex": {"generic": True, "smart_dollar": True}},
           "abbr")  # fmt: skip
QUICK = {
    "download_all_examples": False,
    "show_signature": False,
    "inspect_global_variables": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One tool's project; `caches` are the folders that a cold build must not have."""

    name: str
    folder: Path
    command: tuple[str, ...]
    site: Path
    caches: tuple[Path, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    configuration: str = "mkdocs.yml"

    def forget(self) -> None:
        """Make the next build a cold one.

        Caches are moved aside and only deleted at the very end: for some seconds after deleting
        files, ext4 does not reuse their inodes and checks each of them again for every new file.
        """
        aside = Path(tempfile.mkdtemp(prefix="forgotten-", dir=self.folder.parent))
        for index, made in enumerate((self.site, *self.caches)):
            if made.exists():
                made.rename(aside / str(index))


def snapshot(folder: Path, only: Collection[str] = ()) -> Path:
    """Copy everything that a build of this site reads, so that concurrent edits don't matter.

    With `only` the copy has just these pages, which takes seconds instead of minutes.
    """
    ignore = shutil.ignore_patterns("__pycache__", ".*")
    # The pages of formulas take their examples from the frozen points.
    for name in ("figgen", "hooks", "docs", "tests/benchmarks", "tests/oracles"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    (folder / "tests" / "__init__.py").touch()
    if only:
        keep_pages(folder, only)
    hooks = [*_configuration(folder)["hooks"], "tests/benchmarks/own.py"]
    _write_configuration(folder, {"INHERIT": "mkdocs.yml", "hooks": hooks}, "drawing.yml")
    return folder


def keep_pages(folder: Path, only: Collection[str]) -> None:
    """Keep only these pages in a snapshot, and no tools."""
    docs = folder / "docs"
    for path in docs.rglob("*.md"):
        if path.relative_to(docs).as_posix() not in only:
            path.unlink()
    shutil.rmtree(docs / "assets" / "javascripts" / "tools")
    loose = {"anchors": "ignore", "not_found": "ignore", "unrecognized_links": "ignore"}
    config = _configuration(folder) | {"nav": list(only), "validation": loose}
    config["exclude_docs"] += "/reference/\n/appendix/\n/validation/\n"
    _write_configuration(folder, config, "mkdocs.yml")


def own(name: str, root: Path, work: Path, config: str = "mkdocs.yml") -> Contender:
    """This site as it is, or with the shared drawing module if configured by `drawing.yml`."""
    cache, site = work / f"{config}-cache", work / f"{config}-site"
    command = (*_mkdocs(site), "--strict", "--config-file", config)
    return Contender(
        name=name,
        folder=root,
        command=command,
        site=site,
        caches=(cache,),
        environment=(("FIGGEN_CACHE", str(cache)),),
    )


def write_data(pages: list[Content], folder: Path) -> None:
    """Write one JSON file per picture, which is all that the peers know about it."""
    folder.mkdir(parents=True, exist_ok=True)
    for drawing in (drawing for page in pages for drawing in page.drawings):
        (folder / f"{drawing.name}.json").write_text(drawing.data, encoding="utf-8")


def floor(folder: Path, root: Path, pages: list[Content]) -> Contender:
    """Material with the same pages, with captions for figures and HTML for tables."""
    return _material(
        "floor", folder, root, pages, lambda shown: f"{shown.tables}\n\n{shown.caption}"
    )


def literal_floor(folder: Path, root: Path, pages: list[Content]) -> Contender:
    """Material with the same pages and everything that this site prints for figures, as HTML."""
    return _material("floor with literal figures", folder, root, pages, lambda shown: shown.html)


def markdown_exec(folder: Path, root: Path, pages: list[Content], data: Path) -> Contender:
    """The floor's pages with a block of Python for each picture."""

    def show(shown: Shown) -> str:
        return f"{_executed(shown, data)}\n{shown.tables}\n\n{shown.caption}"

    return _material("markdown-exec", folder, root, pages, show, "markdown-exec")


def markdown_exec_computed(folder: Path, root: Path, pages: list[Content], _: Path) -> Contender:
    """The same pages, but the blocks call this site's models instead of reading stored charts."""

    def show(shown: Shown) -> str:
        calls = (f"svg_computed({d.call}, {d.name!r})" for d in shown.drawings)
        blocks = "".join(_block("svg_computed", call) for call in calls)
        return f"{blocks}\n{shown.tables}\n\n{shown.caption}"

    return _material("markdown-exec, computed", folder, root, pages, show, "markdown-exec")


def _executed(shown: Shown, data: Path) -> str:
    calls = (f'svg_file("{data / drawing.name}.json")' for drawing in shown.drawings)
    return "".join(_block("svg_file", call) for call in calls)


def _block(function: str, call: str) -> str:
    return (
        f'```python exec="1" html="1"\nfrom tests.benchmarks.drawing import {function}\n'
        f"print({call})\n```\n\n"
    )


def mkdocs_gallery(folder: Path, root: Path, pages: list[Content], data: Path) -> Contender:
    """A script for each page with pictures, and the other pages unchanged."""
    plain = [page for page in pages if not page.drawings]
    made = folder / "docs" / "generated"
    plugin = {"gallery": {"examples_dirs": "scripts", "gallery_dirs": "docs/generated", **QUICK}}
    contender = _material("mkdocs-gallery", folder, root, plain, lambda shown: shown.tables, plugin)
    config = _configuration(folder) | {"nav": [*(page.path for page in plain), "generated"]}
    _write_configuration(folder, config, "mkdocs.yml")
    _write_scripts(folder / "scripts", "README.md", "# Pages\n", pages, data, str, "{html}")
    return replace(contender, caches=(made,))


def sphinx_gallery(folder: Path, root: Path, pages: list[Content], data: Path) -> Contender:
    """The same scripts with text in reStructuredText, in two jobs, with Sphinx's lightest theme."""
    source, site = folder / "source", folder / "site"
    source.mkdir(parents=True)
    plain = [page for page in pages if not page.drawings]
    for page in plain:
        text = gallery.rst(page.markdown(lambda shown: shown.caption).removeprefix(page.front))
        (source / f"{Path(page.path).stem}.rst").write_text(text, encoding="utf-8")
    names = "".join(f"   {Path(page.path).stem}\n" for page in plain)
    index = f"Site\n====\n\n.. toctree::\n\n   pages/index\n{names}"
    (source / "contents.rst").write_text(index, encoding="utf-8")
    options = {**QUICK, "examples_dirs": str(folder / "scripts"), "gallery_dirs": "pages"}
    options |= {"parallel": 2, "write_computation_times": False}
    (source / "conf.py").write_text(
        "project = 'Site'\nextensions = ['sphinx_gallery.gen_gallery']\nroot_doc = 'contents'\n"
        f"html_theme = 'alabaster'\nsphinx_gallery_conf = {options!r}\n",
        encoding="utf-8",
    )
    table = ".. raw:: html\n\n   {html}"
    header = "Pages\n=====\n"
    _write_scripts(
        folder / "scripts", "GALLERY_HEADER.rst", header, pages, data, gallery.rst, table
    )
    command = (sys.executable, "-m", "sphinx", "-j", "2", str(source), str(site))
    caches = (source / "pages", source / "sg_execution_times.rst")
    return Contender(
        name="sphinx-gallery",
        folder=folder,
        command=command,
        site=site,
        caches=caches,
        environment=_path(root),
    )


def _write_scripts(
    folder: Path,
    header_name: str,
    header: str,
    pages: list[Content],
    data: Path,
    prose: Callable[[str], str],
    table: str,
) -> None:
    folder.mkdir()
    (folder / header_name).write_text(header, encoding="utf-8")
    for page in pages:
        if page.drawings:
            script = gallery.script(page, data, prose, table)
            (folder / f"plot_{Path(page.path).stem}.py").write_text(script, encoding="utf-8")


def _material(
    name: str,
    folder: Path,
    root: Path,
    pages: list[Content],
    show: Callable[[Shown], str],
    *plugins: Any,
) -> Contender:
    """Set up a project like this site's, without figgen and with the stock theme."""
    ours = shutil.ignore_patterns("*.md", "overrides")
    shutil.copytree(root / "docs", folder / "docs", ignore=ours)
    for page in pages:
        path = folder / "docs" / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.markdown(show), encoding="utf-8")
    config = _configuration(root)
    for key in ("hooks", "watch", "nav"):
        config.pop(key, None)
    config["theme"].pop("custom_dir")
    config["markdown_extensions"] += BROUGHT
    config["plugins"] = [entry for entry in config["plugins"] if "figgen" not in entry]
    config["plugins"] += plugins
    _write_configuration(folder, config, "mkdocs.yml")
    return Contender(
        name=name,
        folder=folder,
        command=_mkdocs(folder / "site"),
        site=folder / "site",
        caches=(),
        environment=_path(root),
    )


def _mkdocs(site: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site))


def _path(root: Path) -> tuple[tuple[str, str], ...]:
    return (("PYTHONPATH", str(root)),)


def _configuration(folder: Path) -> dict[str, Any]:
    with (folder / "mkdocs.yml").open("rb") as file:
        return dict(yaml_load(file))


def _write_configuration(folder: Path, config: dict[str, Any], name: str) -> None:
    (folder / name).write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
