"""One build: figures are evaluated, and only pictures that are not in the cache are drawn.

The key of a picture is its data, its id, and what draws it (the renderers' source and the
libraries' versions).  Since the data are computed anew whenever any code changed, a stale picture
cannot be served: a changed model changes the key, a changed comment does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from figgen import cache
from figgen.charts import Chart, canonical_json
from figgen.progress import Spent
from figgen.registry import build, figure_named
from figgen.serving.answers import Answers
from figgen.serving.memory import Memory

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
    """The chart as inline SVG."""
    from figgen.renderers import svg

    return svg.render(chart, figure_id)


@dataclass
class Pictures:
    """The pictures of one build.  Without a folder nothing is kept on disk."""

    folder: Path | None = None
    memory: Memory | Answers | None = None
    spent: Spent = field(default_factory=Spent)
    _evaluated: dict[str, Evaluated] = field(default_factory=dict)
    _pictures: dict[str, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    drawn: set[Drawing] = field(default_factory=set)
    _taken: set[Drawing] = field(default_factory=set)

    @property
    def cached(self) -> set[Drawing]:
        """What was not drawn but taken from the cache."""
        return self._taken - self.drawn

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

    def picture(self, p: Evaluated) -> str:
        """The SVG of a figure: from this build, from the cache, or drawn now."""
        if not self._known(p):
            with self.spent.on("drawing"):
                self._keep(p, draw(p.chart, p.figure_id))
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
        """Keep the cache small; returns what was done, in words."""
        if self.folder and self.drawn:
            others = self.memory.used if isinstance(self.memory, Answers) else set()
            cache.prune(self.folder, keep=self._used | set(self._pictures) | others)
        drawn, cached, work = len(self.drawn), len(self.cached), self.spent.words()
        found = f"{drawn + cached} figures: {drawn} drawn, {cached} from the cache"
        return f"{found}; {work}" if work else found

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
