"""Prints tables of how long an author waits, and how that grows up to a thousand figures.

    python -m tests.benchmarks.authoring            edits under serve, medians of ten, and the floor
    python -m tests.benchmarks.authoring 250 1000   cold, warm, memory and edits by figures

Processor seconds are shown next to wall time, so that a busy machine matters less.
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
from tests.benchmarks.content import Content, parse
from tests.browser.site import processor_s
from tests.sessions import Session, session

TIMES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """An edit by an author, and its reversal; `limit_s` is the limit in wall time until the page
    shows it that the author has open."""

    what: str
    file: str
    old: str
    new: str
    limit_s: float
    page: str = ""


EDITS = (
    Edit(
        what="one sentence",
        file="docs/guide/experts.md",
        old="\n## ",
        new="\nA sentence more.\n\n## ",
        limit_s=0.5,
        page="guide/experts/",
    ),
    Edit(
        what="a figure's code",
        file="figgen/figures/pipeline/timelines.py",
        old="Named(trace.makespan)",
        new="Named(1 + trace.makespan)",
        limit_s=1.0,
        page="guide/pipeline-schedules/",
    ),
    Edit(
        what="a formula",
        file="figgen/formulas/experts.py",
        old="/ ep",
        new="/ (1 * ep)",
        limit_s=1.1,
        page="guide/experts/",
    ),
    Edit(
        what="a constant",
        file="figgen/catalog/accelerators.toml",
        old='hbm_bandwidth = "3.35 TB/s"',
        new='hbm_bandwidth = "3.45 TB/s"',
        limit_s=2.5,
        page="reference/hardware/",
    ),
)
FLOOR = (
    Edit(
        what="one sentence",
        file="docs/guide/experts.md",
        old="\n## ",
        new="\nA sentence.\n\n## ",
        limit_s=2.0,
    ),
)
SCALED = (
    Edit(
        what="one sentence",
        file="docs/scale/index.md",
        old="A sentence.",
        new="A sentence more.",
        limit_s=1.0,
    ),
)


def edited(running: Session, edit: Edit, there: bool) -> tuple[float, float, float]:
    """Return the seconds from an edit, or its reversal, until readers can see the pages.

    Also return total wall and processor seconds, including work that is left for later, such as the
    search index.
    """
    running.replace(edit.file, *((edit.old, edit.new) if there else (edit.new, edit.old)))
    began, used = time.perf_counter(), processor_s(running.process.pid)
    shown_s = running.build(edit.page)
    return shown_s, time.perf_counter() - began, processor_s(running.process.pid) - used


def memory_mb(running: Session) -> float:
    """Return the server's memory in MB, if the system reports it."""
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1000


def begun(contender: Contender) -> AbstractContextManager[Session]:
    where = contender.folder, contender.configuration, contender.site
    return session(*where, dict(contender.environment))


def medians(running: Session, edit: Edit, times: int = TIMES) -> tuple[float, float, float]:
    shown, walls, processors = zip(
        *(edited(running, edit, there=number % 2 == 0) for number in range(times)), strict=True
    )
    return median(shown), median(walls), median(processors)


def seconds(work: Path) -> None:
    """Time edits of the whole guide, and of Material's floor on the same pages."""
    root = contenders.snapshot(work / "site")
    pages = parse(measure.contents(root, work / "content-cache"))
    print(f"{'':>34} shown s limit s  all s   CPU s")
    for contender, edits in (
        (contenders.own("this site", root, work), EDITS),
        (contenders.literal_floor(work / "floor", root, pages), FLOOR),
    ):
        with begun(contender) as running:
            for edit in edits:
                shown, wall, processor = medians(running, edit)
                what = f"{contender.name}: {edit.what}"
                found = f"{shown:7.2f} {edit.limit_s:7.1f} {wall:6.2f}  {processor:6.2f}"
                print(f"{what:>34} {found}", flush=True)
            print(f"{contender.name}: {memory_mb(running):.0f} MB after {TIMES * len(edits)} edits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """The times and memory of one contender at some number of figures, in wall and processor
    seconds."""

    figures: int
    cold_s: float
    cold_cpu_s: float
    warm_s: float
    warm_cpu_s: float
    build_mb: float
    edit_s: float
    edit_cpu_s: float
    serve_mb: float

    def row(self, name: str) -> str:
        times = (self.cold_s, self.cold_cpu_s, self.warm_s, self.warm_cpu_s)
        edits = (self.edit_s, self.edit_cpu_s)
        cells = [f"{name:>26} {self.figures:7}", *(f"{one:7.1f}" for one in times)]
        cells += [f"{self.build_mb:6.0f}", *(f"{one:6.2f}" for one in edits)]
        return " ".join(cells) + f" {self.serve_mb:6.0f}"

    def growth(self, smaller: Scaled) -> str:
        """Return what each further figure costs: ms of processor time, and MB."""
        more = self.figures - smaller.figures
        times = [
            1000 * (mine - its) / more
            for mine, its in (
                (self.cold_cpu_s, smaller.cold_cpu_s),
                (self.warm_cpu_s, smaller.warm_cpu_s),
                (self.edit_cpu_s, smaller.edit_cpu_s),
            )
        ]
        held = [
            (self.build_mb - smaller.build_mb) / more,
            (self.serve_mb - smaller.serve_mb) / more,
        ]
        return " ".join([*(f"{ms:8.1f}" for ms in times), *(f"{mb:8.2f}" for mb in held)])


def scaled(work: Path, sizes: list[int]) -> None:
    """Measure builds, memory and an edit of a sentence at this number of figures, for all tools."""
    taken: dict[str, list[Scaled]] = {}
    print(f"{'':>26} figures  cold s     CPU  warm s     CPU     MB edit s    CPU  MB serving")
    for figures in sizes:
        folder = work / str(figures)
        root = contenders.snapshot(folder / "site")
        scale.rewrite(root, figures)
        pages = parse(measure.contents(root, folder / "content-cache"))
        own = contenders.own("this site", root, folder)
        floor = contenders.literal_floor(folder / "floor", root, pages)
        for contender in (own, floor, *_peers(folder, root, pages)):
            try:
                found = _scaled(contender, figures, TIMES if contender is own else 1)
            except (measure.Failed, RuntimeError) as fault:
                print(f"{contender.name:>26} {figures:7}  failed:\n{fault}", flush=True)
                continue
            taken.setdefault(contender.name, []).append(found)
            print(found.row(contender.name), flush=True)
    print("\nA further figure, CPU ms:  cold     warm     edit; MB: build  serving")
    for name, found_of in taken.items():
        if found_of[1:]:
            print(f"{name:>26} {found_of[-1].growth(found_of[0])}")


def _scaled(contender: Contender, figures: int, times: int) -> Scaled:
    """Measure cold, warm and edited builds; edits are under serve, or a new build
    without a server."""
    cold, warm = measure.build(contender), measure.build(contender)
    if "sphinx" in contender.command:
        page = contender.folder / "source" / "index.rst"
        page.write_text(page.read_text("utf-8").replace("A sentence.", "A sentence more."), "utf-8")
        again = measure.build(contender)
        edit_s, edit_cpu_s, serve_mb = again.wall_s, again.cpu_s, again.peak_mb
    else:
        with begun(contender) as running:
            edit_s, _, edit_cpu_s = medians(running, SCALED[0], times)
            serve_mb = memory_mb(running)
    return Scaled(
        figures=figures,
        cold_s=cold.wall_s,
        cold_cpu_s=cold.cpu_s,
        warm_s=warm.wall_s,
        warm_cpu_s=warm.cpu_s,
        build_mb=max(cold.peak_mb, warm.peak_mb),
        edit_s=edit_s,
        edit_cpu_s=edit_cpu_s,
        serve_mb=serve_mb,
    )


def _peers(folder: Path, root: Path, pages: list[Content]) -> list[Contender]:
    """Return the tools to compare with; none unless `make bench` has installed them."""
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
