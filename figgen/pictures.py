"""One build: figures are evaluated, and only pictures that are not in the cache are drawn.

The key of a picture is its data, its id, and what draws it (the renderers' source and the
libraries' versions).  Since the data are computed anew whenever any code changed, a stale picture
cannot be served: a changed model changes the key, a changed comment does not.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from figgen import cache
from figgen.charts import Chart, Curves, canonical_json
from figgen.progress import Progress, Spent
from figgen.registry import build, figure_named
from figgen.serving.answers import Answers
from figgen.serving.memory import Memory
from figgen.serving.second import end_with_parent

# What starts matplotlib; everything else is drawn in less time than a process takes to start.
SLOW_KINDS = (Curves,)
# In the time that a process takes to start matplotlib, another one draws as many plots.
PLOTS_PER_PROCESS = 12


Made = TypeVar("Made")

Drawing: TypeAlias = tuple[str, str]
"""The id of a picture and the digest of its data."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluated figure, ready to be drawn: its chart, the chart as JSON, and the cache key."""

    figure_id: str
    chart: Chart
    json: str
    key: str

    @property
    def shown(self) -> Drawing:
        """What it is counted as: one picture however many pages show it."""
        return self.figure_id, cache.digest(self.json)


@lru_cache(maxsize=1)
def renderer_fingerprint() -> str:
    """Changes whenever a picture could look different for the same data."""
    here = Path(__file__).parent
    sources = [*sorted((here / "renderers").glob("*.py")), here / "theme.py", here / "units.py"]
    parts = [source.read_text(encoding="utf-8") for source in sources]
    parts += [metadata.version(name) for name in ("matplotlib", "numpy", "plotly")]
    return cache.digest("\0".join(parts))


def draw(chart: Chart, figure_id: str) -> str:
    """The chart as inline SVG; also what the worker processes run."""
    from figgen.renderers import svg

    return svg.render(chart, figure_id)


def processes_for(plots: int) -> int:
    """How many workers pay: as many as there are processors beside the build's own."""
    return max(1, min((os.cpu_count() or 1) - 1, plots // PLOTS_PER_PROCESS))


@dataclass
class Pictures:
    """The pictures of one build.  Without a folder nothing is kept on disk."""

    folder: Path | None = None
    tell: Callable[[str], None] = lambda message: None
    memory: Memory | Answers | None = None
    spent: Spent = field(default_factory=Spent)
    _evaluated: dict[str, Evaluated] = field(default_factory=dict)
    _pictures: dict[str, str] = field(default_factory=dict)
    _pending: dict[str, tuple[Evaluated, Future[str]]] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    drawn: set[Drawing] = field(default_factory=set)
    _taken: set[Drawing] = field(default_factory=set)
    _pool: ProcessPoolExecutor | None = None

    @property
    def cached(self) -> set[Drawing]:
        """What was not drawn but taken from the cache."""
        return self._taken - self.drawn

    @property
    def busy(self) -> bool:
        """Whether workers draw."""
        return self._pool is not None

    def taken(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Count the pictures of a page that is taken over, by its entries of the manifest."""
        self._taken |= {(e["id"], e["data_sha256"]) for e in entries if "figure" in e}

    def evaluated(self, figure: str, arguments: Mapping[str, object], figure_id: str) -> Evaluated:
        """Evaluate a figure, once a build.  Raises InputError when it cannot be computed."""
        request = repr((figure, sorted(arguments.items()), figure_id))
        if request not in self._evaluated:
            chart, data = self._computed(figure, arguments)
            key = cache.digest(f"{renderer_fingerprint()}\0{figure_id}\0{data}")[:40]
            self._evaluated[request] = Evaluated(figure_id, chart, data, key)
        return self._evaluated[request]

    def _computed(self, figure: str, arguments: Mapping[str, object]) -> tuple[Chart, str]:
        def evaluate() -> tuple[Chart, str]:
            with self.spent.on("evaluating"):
                chart = build(figure, arguments)
                return chart, canonical_json(chart)

        return self.remembered("chart", figure, arguments, evaluate)

    def remembered(
        self, what: str, figure: str, arguments: Mapping[str, object], make: Callable[[], Made]
    ) -> Made:
        """What `make` gives of a figure, from memory as long as nothing of the figure's changed."""
        if self.memory is None:
            return make()
        request = repr((what, figure, sorted(arguments.items())))
        return self.memory.figure(request, figure_named(figure).function.__module__, make)

    def start(self, figures: Iterable[Evaluated]) -> None:
        """Begin to draw, in other processes, those slow figures that are not in the cache."""
        missing = {p.key: p for p in figures if not self._known(p)}
        slow = [p for p in missing.values() if isinstance(p.chart, SLOW_KINDS)]
        if len(slow) < 2:
            return
        # Never fork: a forked worker would draw with the code of the previous build under
        # `mkdocs serve`, and store the result under the new key.
        context = multiprocessing.get_context("spawn")
        processes = processes_for(len(slow))
        self._pool = ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent)
        self.tell(f"drawing {len(slow)} plots in {processes} process{'es' * (processes > 1)} …")
        progress = Progress("plots", len(slow))
        for p in slow:
            future = self._pool.submit(draw, p.chart, p.figure_id)
            future.add_done_callback(lambda _: progress.advance())
            self._pending[p.key] = (p, future)

    def picture(self, p: Evaluated) -> str:
        """The SVG of a figure: from this build, from the cache, from a worker, or drawn now."""
        if not self._known(p):
            with self.spent.on("drawing"):
                if p.key in self._pending:
                    picture = self._pending.pop(p.key)[1].result()
                else:
                    picture = draw(p.chart, p.figure_id)
                self._keep(p, picture)
        return self._pictures[p.key]

    def derived(self, p: Evaluated, kind: str, make: Callable[[Chart], str]) -> str:
        """What else is made of a chart (its table, its Plotly figure), kept like its picture."""
        key = f"{p.key}-{kind}"
        kept = cache.read(self.folder, key) if self.folder else None
        if kept is None:
            with self.spent.on("drawing"):
                kept = make(p.chart)
            if self.folder:
                cache.write(self.folder, key, kept)
        self._used.add(key)
        return kept

    def finish(self) -> str:
        """Close the worker processes; returns what was done, in words."""
        for p, _ in list(self._pending.values()):
            self.picture(p)
        if self._pool:
            self._pool.shutdown()
            self._pool = None
        if self.folder and self.drawn:
            others = self.memory.used if isinstance(self.memory, Answers) else set()
            cache.prune(self.folder, keep=self._used | set(self._pictures) | others)
        drawn, cached, work = len(self.drawn), len(self.cached), self.spent.words()
        found = f"{drawn + cached} figures: {drawn} drawn, {cached} from the cache"
        return f"{found}; {work}" if work else found

    def abandon(self) -> None:
        """Stop the workers without waiting for what they draw; for a build that failed."""
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
            self._pending.clear()

    def _known(self, p: Evaluated) -> bool:
        if p.key not in self._pictures and self.folder is not None:
            picture = cache.read(self.folder, p.key)
            if picture is not None:
                self._pictures[p.key] = picture
                self._taken.add(p.shown)
        return p.key in self._pictures

    def _keep(self, p: Evaluated, picture: str) -> None:
        self._pictures[p.key] = picture
        self.drawn.add(p.shown)
        if self.folder is not None:
            cache.write(self.folder, p.key, picture)
