"""Evaluates the figures of a build, and draws the pictures that are not in the cache.

The key of a picture is made of its data, its id, the renderers' source and the libraries' versions.
A picture is never stale, because its data are computed again whenever code changed: a changed model
changes the key, a changed comment does not.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """An evaluated figure, ready to be drawn: its chart, the chart as JSON, and the cache key."""

    figure_id: str
    chart: Chart
    json: str
    key: str

    @property
    def shown(self) -> Drawing:
        """The key by which it is counted: one picture, however many pages show it."""
        return self.figure_id, cache.digest(self.json)


@lru_cache(maxsize=1)
def renderer_fingerprint() -> str:
    """Return a digest that changes whenever the same data could look different."""
    here = Path(__file__).parent
    sources = [*sorted((here / "renderers").glob("*.py")), here / "theme.py", here / "units.py"]
    parts = [source.read_text(encoding="utf-8") for source in sources]
    parts += [metadata.version(name) for name in ("matplotlib", "numpy", "plotly")]
    return cache.digest("\0".join(parts))


def draw(chart: Chart, figure_id: str) -> str:
    """Return a chart as inline SVG."""
    from figgen.renderers import svg

    return svg.render(chart, figure_id)


@dataclass(kw_only=True)
class Pictures:
    """The pictures of one build. Without a folder, nothing is stored on disk."""

    folder: Path | None = None
    memory: Memory | Answers | None = None
    spent: Spent = field(default_factory=Spent)
    _evaluated: dict[str, Evaluated] = field(default_factory=dict)
    _pictures: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    drawn: set[Drawing] = field(default_factory=set)
    _taken: set[Drawing] = field(default_factory=set)

    @property
    def cached(self) -> set[Drawing]:
        """Pictures that were taken from the cache instead of being drawn."""
        return self._taken - self.drawn

    def restart(self) -> None:
        """Reset the counts of pictures drawn and cache entries used, and the times."""
        self.drawn, self.used = set(), set()
        self.spent.seconds.clear()

    def taken(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Count the pictures of a page from an earlier build, by its entries of the manifest."""
        self._taken |= {(e["id"], e["data_sha256"]) for e in entries if "figure" in e}

    def evaluated(self, figure: str, arguments: Mapping[str, object], figure_id: str) -> Evaluated:
        """Evaluate a figure, once per build. Raises InputError if it cannot be computed."""
        request = repr((figure, sorted(arguments.items()), figure_id))
        if request not in self._evaluated:
            chart, data = self._computed(figure, arguments)
            key = cache.digest(f"{renderer_fingerprint()}\0{figure_id}\0{data}")[:40]
            self._evaluated[request] = Evaluated(
                figure_id=figure_id, chart=chart, json=data, key=key
            )
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
        """Return the result of `make` for a figure, cached until its code or data change."""
        if self.memory is None:
            return make()
        request = repr((what, figure, sorted(arguments.items())))
        return self.memory.figure(request, figure_named(figure).function.__module__, make)

    def picture(self, p: Evaluated) -> str:
        """Return the SVG of a figure: from this build, from the cache, or drawn now."""
        if p.key not in self._pictures:
            picture, cached = self._stored(p.key, lambda: draw(p.chart, p.figure_id))
            (self._taken if cached else self.drawn).add(p.shown)
            self._pictures[p.key] = picture
        return self._pictures[p.key]

    def derived(self, p: Evaluated, kind: str, make: Callable[[Chart], str]) -> str:
        """Return a rendering of a chart (a table, a Plotly figure), cached like pictures."""
        return self._stored(f"{p.key}-{kind}", lambda: make(p.chart))[0]

    def finish(self) -> str:
        """Remove old entries from the cache, and return a summary of the build."""
        if self.folder and self.drawn:
            others = self.memory.used if isinstance(self.memory, Answers) else set()
            cache.prune(self.folder, keep=self.used | others)
        drawn, cached, work = len(self.drawn), len(self.cached), self.spent.words()
        found = f"{drawn + cached} figures: {drawn} drawn, {cached} from the cache"
        return f"{found}; {work}" if work else found

    def _stored(self, key: str, make: Callable[[], str]) -> tuple[str, bool]:
        """Return the value of a key, made now if it is not cached, and whether it was cached."""
        self.used.add(key)
        kept = cache.read(self.folder, key) if self.folder else None
        if kept is not None:
            return kept, True
        with self.spent.on("drawing"):
            made = make()
        if self.folder:
            cache.write(self.folder, key, made)
        return made, False
