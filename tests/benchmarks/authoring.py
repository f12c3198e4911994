"""The author's second, and what becomes of it with a thousand figures, as tables.

    python -m tests.benchmarks.authoring            edits under serve, medians of ten, and the floor
    python -m tests.benchmarks.authoring 250 1000   cold, warm, memory and edits by figures

Processor seconds beside the clock's, so that a machine that does other things matters less.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.benchmarks import contenders, measure, scale
from tests.benchmarks.contenders import Contender
from tests.benchmarks.content import parse
from tests.browser.site import processor_s
from tests.sessions import Session, session

TIMES = 10


@dataclass(frozen=True, slots=True)
class Edit:
    """What an author changes, there and back; `limit_s` is the limit by the clock."""

    what: str
    file: str
    old: str
    new: str
    limit_s: float


EDITS = (
    Edit("one sentence", "docs/guide/experts.md", "\n## ", "\nA sentence more.\n\n## ", 1.0),
    Edit("a figure's code", "figgen/figures/pipeline/timelines.py", "Named(trace.makespan)",
         "Named(1 + trace.makespan)", 2.5),
    Edit("a formula", "figgen/formulas/experts.py", "/ ep", "/ (1 * ep)", 2.5),
    Edit("a constant", "figgen/catalog/accelerators.toml", 'hbm_bandwidth = "3.35 TB/s"',
         'hbm_bandwidth = "3.45 TB/s"', 4.0),
)  # fmt: skip
FLOOR = (Edit("one sentence", "docs/guide/experts.md", "\n## ", "\nA sentence.\n\n## ", 2.0),)
SCALED = (Edit("one sentence", "docs/scale/index.md", "A sentence.", "A sentence more.", 1.0),)


def edited(running: Session, edit: Edit, there: bool) -> tuple[float, float]:
    """Wall and processor time of the build after an edit, or after it is taken back."""
    running.replace(edit.file, *((edit.old, edit.new) if there else (edit.new, edit.old)))
    began, used = time.perf_counter(), processor_s(running.process.pid)
    running.build()
    return time.perf_counter() - began, processor_s(running.process.pid) - used


def memory_mb(running: Session) -> float:
    """What the server holds, where the system tells."""
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1000


def begun(contender: Contender) -> AbstractContextManager[Session]:
    where = contender.folder, contender.configuration, contender.site
    return session(*where, dict(contender.environment))


def medians(running: Session, edit: Edit) -> tuple[float, float]:
    walls, processors = zip(
        *(edited(running, edit, there=number % 2 == 0) for number in range(TIMES)), strict=True
    )
    return median(walls), median(processors)


def seconds(work: Path) -> None:
    """Edits of the whole guide, and of Material's floor on the same pages."""
    root = contenders.snapshot(work / "site")
    pages = parse(measure.contents(root, work / "content-cache"))
    print(f"{'':>34}  wall s   CPU s  limit s")
    for contender, edits in (
        (contenders.own("this site", root, work), EDITS),
        (contenders.literal_floor(work / "floor", root, pages), FLOOR),
    ):
        with begun(contender) as running:
            for edit in edits:
                wall, processor = medians(running, edit)
                what = f"{contender.name}: {edit.what}"
                print(f"{what:>34}  {wall:6.2f}  {processor:6.2f}  {edit.limit_s:7.1f}", flush=True)
            print(f"{contender.name}: {memory_mb(running):.0f} MB after {TIMES * len(edits)} edits")


def scaled(work: Path, sizes: list[int]) -> None:
    """Cold and warm builds, memory and an edit with so many figures, beside the other tools."""
    print(f"{'':>26} figures  cold s    CPU  warm s    CPU  edit s    CPU      MB")
    for figures in sizes:
        folder = work / str(figures)
        root = contenders.snapshot(folder / "site")
        scale.rewrite(root, figures)
        own = contenders.own("this site", root, folder)
        pages = parse(measure.contents(root, folder / "content-cache"))
        everyone = [own, contenders.literal_floor(folder / "floor", root, pages)]
        if figures == sizes[-1]:
            everyone += _peers(folder, root, pages)
        for contender in everyone:
            cold, warm = measure.build(contender), measure.build(contender)
            row = f"{contender.name:>26} {figures:7}"
            row += "".join(f"  {one.wall_s:6.1f} {one.cpu_s:6.1f}" for one in (cold, warm))
            if contender in everyone[:2]:
                with begun(contender) as running:
                    wall, processor = medians(running, SCALED[0])
                    row += f"  {wall:6.2f} {processor:6.2f}  {memory_mb(running):6.0f}"
            print(row, flush=True)


def _peers(folder: Path, root: Path, pages: list[contenders.Content]) -> list[Contender]:
    """Where the tools that the site is compared with are installed: `make bench` does that."""
    try:
        import markdown_exec  # noqa: F401  # type: ignore[import-not-found]
    except ImportError:
        return []
    data = folder / "data"
    contenders.write_data(pages, data)
    return [
        contenders.markdown_exec(folder / "exec", root, pages, data),
        contenders.mkdocs_gallery(folder / "mkdocs-gallery", root, pages, data),
        contenders.sphinx_gallery(folder / "sphinx-gallery", root, pages, data),
    ]


def main(*sizes: str) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        if sizes:
            scaled(Path(folder), list(map(int, sizes)))
        else:
            seconds(Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
