"""`make bench`: compares this site's build with other ways to publish computed figures, in one run.

One round takes six minutes. `ROUNDS=3` is the long run, and setting `ROUNDS` also benchmarks the
models and the tools. Rounds are interleaved, and the least time of each kind counts, so that a busy
moment of the machine doesn't affect a single contender. Nothing is asserted, since a clock is not a
test.

- floor: Material with the same pages and Markdown extensions, and captions instead of figures;
  the second floor also has, as HTML in its pages, everything that this site prints for a figure.
- markdown-exec, mkdocs-gallery, sphinx-gallery (2 jobs): the same pages and charts, drawn by
  `drawing.py`; tables are HTML everywhere and are not drawn. Numbers in their text are typed, so
  they compute nothing. They also have no data tables, downloads or interactive figures.
- markdown-exec, computed: the same, but its code blocks call this site's models for their charts,
  as its authors would; tables and the numbers in the text are still typed.
- this site with matplotlib: this site with `drawing.py` instead of its own renderers.

A peer that fails to build is skipped from then on, and the report gives the reason.

"Cold" has no caches and no output, "warm" repeats the same build, and "edit" changes one constant
of the catalog after a warm build. The three are the same for tools that keep nothing between
builds.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks import contenders, measure, report
from tests.benchmarks.contenders import Contender
from tests.benchmarks.content import Content, parse
from tests.benchmarks.report import Result
from tests.benchmarks.weight import pictures, weigh

# The constant to edit: the bandwidth of NVLink 4, in GB/s.
EDITED = "figgen/catalog/links.toml"
ENTRY = '[nvlink4]\ntitle = "NVLink 4 (H100/H200)"\nkind = "scale-up"\nbandwidth = "{} GB/s"'
VALUE = 450
OURS = ("this site", "floor")
"""Prefixes of the contenders without which there is nothing to compare."""


def main() -> None:
    rounds = int(os.environ.get("ROUNDS") or 1)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        root = contenders.snapshot(work / "site")
        pages = parse(measure.contents(root, work / "content-cache"))
        results = [Result(contender=contender) for contender in _contenders(pages, root, work)]
        ours = results[0].contender.site
        for number in range(1, rounds + 1):
            _round(results, f"round {number} of {rounds}")
            before = _figures(ours)
            edited = _edited(root, work, VALUE - number)
            for result in results:
                _measure(result, f"edit {number} of {rounds}", _rebuild)
        _say("")
        after = _figures(ours)
    moved = (_differences(_data(pages), _data(edited)), _differences(before, after), len(after))
    print(report.text(results, pages, moved, rounds))


def _contenders(pages: list[Content], root: Path, work: Path) -> Iterator[Contender]:
    data = work / "data"
    contenders.write_data(pages, data)
    yield contenders.own("this site", root, work)
    yield contenders.own("this site, matplotlib", root, work, "drawing.yml")
    yield contenders.floor(work / "floor", root, pages)
    yield contenders.literal_floor(work / "literal", root, pages)
    yield contenders.markdown_exec(work / "exec", root, pages, data)
    yield contenders.markdown_exec_computed(work / "computed", root, pages, data)
    yield contenders.mkdocs_gallery(work / "mkdocs-gallery", root, pages, data)
    yield contenders.sphinx_gallery(work / "sphinx-gallery", root, pages, data)


def _round(results: list[Result], what: str) -> None:
    for result in results:
        _measure(result, what, _both)


def _measure(result: Result, what: str, measured: Callable[[Result], None]) -> None:
    """Measure one contender; a peer that failed to build is not tried again."""
    if result.fault:
        return
    _say(f"{what}: {result.contender.name}")
    try:
        measured(result)
    except measure.Failed as fault:
        if result.contender.name.startswith(OURS):
            sys.exit(f"{result.contender.name} failed:\n{fault}")
        result.fault = str(fault)


def _both(result: Result) -> None:
    result.contender.forget()
    result.cold.add(taken := measure.build(result.contender))
    # What keeps nothing between builds does the same again; the floor's is what all are held to.
    again = result.contender.caches or result.contender.name.startswith("floor")
    result.warm.add(measure.build(result.contender) if again else taken)
    result.weight = result.weight or weigh(result.contender.site)


def _edited(root: Path, work: Path, value: int) -> list[Content]:
    """Change the constant, and write the resulting charts to the peers' JSON files."""
    file = root / EDITED
    before = file.read_text("utf-8")
    entry = re.escape(ENTRY).replace(r"\{\}", r"\d+")
    after, count = re.subn(entry, ENTRY.format(value), before)
    if count != 1:
        sys.exit(f"{EDITED} no longer has the entry that this benchmark edits")
    file.write_text(after, encoding="utf-8")
    pages = parse(measure.contents(root, work / "content-cache"))
    contenders.write_data(pages, work / "data")
    return pages


def _rebuild(result: Result) -> None:
    """Rebuild after the edit and count what was redrawn.

    This site reports the number itself; for the others, pictures that differ are counted.
    """
    if not result.contender.caches:
        return  # the same again, as cold
    before = pictures(result.contender.site)
    result.edit.add(measure.build(result.contender))
    told, _ = measure.drawn_and_cached(result.edit.log)
    result.redrawn = told or len(pictures(result.contender.site) - before)


def _data(pages: list[Content]) -> list[str]:
    return [drawing.data for page in pages for drawing in page.drawings]


def _figures(site: Path) -> list[str]:
    """Return the digest of every figure's data, including tables, in the order of the manifest."""
    entries = json.loads((site / "figures.json").read_text("utf-8"))
    return [entry["data_sha256"] for entry in entries if "data_sha256" in entry]


def _differences(before: list[str], after: list[str]) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))


def _say(what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[2K{what}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
