"""The author's second, and what becomes of it with a thousand figures, as tables.

    python -m tests.benchmarks.authoring            edits under serve, medians of ten, and the floor
    python -m tests.benchmarks.authoring 250 1000   cold, warm, memory and edits by figures

Processor seconds beside the clock's, so that a machine that does other things matters less.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.benchmarks import contenders, measure, scale
from tests.benchmarks.contenders import Contender
from tests.benchmarks.content import parse
from tests.browser.site import processor_s

SESSION = contenders.ROOT / "tests" / "serving_session.py"
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


class Session:
    """A server's builds one by one, on demand."""

    def __init__(self, contender: Contender) -> None:
        shutil.copy(SESSION, contender.folder)
        self.folder = contender.folder
        self.process = subprocess.Popen(
            [sys.executable, SESSION.name, contender.configuration, str(contender.site)],
            cwd=contender.folder, text=True,
            env=os.environ | dict(contender.environment) | {"NO_MKDOCS_2_WARNING": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._built()

    def _built(self) -> None:
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            if line == "built\n":
                return
            said.append(line)
        sys.exit("".join(said[-40:]))

    def edited(self, edit: Edit, there: bool) -> tuple[float, float]:
        """Wall and processor time of the build after an edit, or after it is taken back."""
        path = self.folder / edit.file
        old, new = (edit.old, edit.new) if there else (edit.new, edit.old)
        text = path.read_text(encoding="utf-8")
        if old not in text:
            sys.exit(f"{edit.file} has changed: say what to edit there now")
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        began, used = time.perf_counter(), processor_s(self.process.pid)
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self._built()
        return time.perf_counter() - began, processor_s(self.process.pid) - used

    def memory_mb(self) -> float:
        """What the server holds, where the system tells."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1000


@contextmanager
def session(contender: Contender) -> Iterator[Session]:
    running = Session(contender)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def medians(running: Session, edit: Edit) -> tuple[float, float]:
    walls, processors = zip(
        *(running.edited(edit, there=number % 2 == 0) for number in range(TIMES)), strict=True
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
        with session(contender) as running:
            for edit in edits:
                wall, processor = medians(running, edit)
                what = f"{contender.name}: {edit.what}"
                print(f"{what:>34}  {wall:6.2f}  {processor:6.2f}  {edit.limit_s:7.1f}", flush=True)
            print(
                f"{contender.name}: {running.memory_mb():.0f} MB after {TIMES * len(edits)} edits"
            )


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
                with session(contender) as running:
                    wall, processor = medians(running, SCALED[0])
                    row += f"  {wall:6.2f} {processor:6.2f}  {running.memory_mb():6.0f}"
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
