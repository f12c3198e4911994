"""Ten functions that compute in Python and notebooks what the pages and the command line show.

    >>> import figgen
    >>> figgen.formula("bubble_fraction", stages=4, microbatches=8).text
    '0.273'

Options of the command line are keywords: `--gpus-per-node 8` is `gpus_per_node=8`.
Bad input raises `figgen.errors.InputError`, which says what was expected.
"""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from html import escape
from typing import Any

from figgen import subject
from figgen.charts import Chart, Scalar
from figgen.errors import InputError
from figgen.project import use_site_here


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """A table: `columns` are its headings with units, and each row is a mapping by heading."""

    columns: tuple[str, ...]
    cells: tuple[tuple[Scalar, ...], ...]
    shown: str

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[dict[str, Scalar]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.cells)

    def column(self, name: str) -> tuple[Scalar, ...]:
        """Return the values of one column, in SI units."""
        if name not in self.columns:
            raise InputError("column", expected=", ".join(self.columns), got=name)
        at = self.columns.index(name)
        return tuple(row[at] for row in self.cells)

    def __repr__(self) -> str:
        return f"{len(self)} rows of {', '.join(self.columns)}"

    def _repr_html_(self) -> str:
        return self.shown


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureResult:
    """A figure with its numbers; a notebook shows both."""

    name: str
    chart: Chart

    @property
    def values(self) -> dict[str, Scalar]:
        """The numbers that captions quote, in SI units."""
        return {name: named.value for name, named in self.chart.values.items()}

    @property
    def svg(self) -> str:
        """The picture as a standalone file."""
        from figgen.renderers import svg

        return svg.standalone(svg.render(self.chart, self.name))

    @property
    def data(self) -> TableResult:
        """The data of the picture as a table."""
        from figgen.renderers import table

        found = table.data_table(self.chart)
        headings = tuple(f"{c.label} ({c.unit})" if c.unit else c.label for c in found.columns)
        return TableResult(
            columns=headings, cells=tuple(found.rows), shown=table.html(found, self.name)
        )

    @property
    def text(self) -> str:
        """The picture as text for a terminal."""
        from figgen.renderers import text

        return text.render(self.chart)

    def __repr__(self) -> str:
        return self.text

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        picture = b64encode(self.svg.encode()).decode()
        return (
            f'<img alt="{escape(self.name)}" src="data:image/svg+xml;base64,{picture}">'
            f"<details><summary>Data</summary>{self.data.shown}</details>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueResult:
    """A computed number in SI; `worked` is its equation with numbers substituted."""

    value: Scalar
    unit: str
    text: str
    worked: str
    source: str

    def __float__(self) -> float:
        return float(self.value)

    def _repr_html_(self) -> str:
        return (
            f"<p>{escape(self.worked or self.text)}</p><p><small>{escape(self.source)}</small></p>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult(Mapping[str, Any]):
    """The answer of a command: `data` as in its JSON, also accessible by key, and `text`."""

    data: dict[str, Any]
    text: str

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def formula(name: str, /, **arguments: object) -> ValueResult:
    """Compute a formula, or an inline value as a page writes it between double braces.

    Arguments are numbers in SI units, or strings with a unit.

    >>> idle = figgen.formula("bubble_fraction", stages=4, microbatches=8)
    >>> round(float(idle), 4)
    0.2727
    >>> figgen.formula('model("llama-3-70b").parameters:si').text
    '70.6B'
    """
    from figgen.equations.worked import worked
    from figgen.values import compute

    use_own_subject()
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    call = name if "(" in name else f"{name}({given})"
    found, spec = compute(call)
    line = worked(found.evaluation, spec).text if found.evaluation else ""
    return ValueResult(
        value=found.value, unit=found.unit, text=found.text(spec), worked=line, source=found.source
    )


def figure(name: str, /, **parameters: object) -> FigureResult:
    """Compute a figure with these parameters, as a fence on a page does.

    >>> lanes = figgen.figure("pipeline-timeline", schedule="1f1b", stages=4, microbatches=8)
    >>> round(lanes.values["bubble_fraction"], 4)
    0.2727
    >>> len(lanes.data)
    64
    """
    from figgen.registry import build

    use_own_subject()
    return FigureResult(name=name, chart=build(name, parameters))


def step(model: str | None = None, **options: object) -> CommandResult:
    """Predict the time of a training step, with its parts and an interval.

    >>> found = figgen.step("llama-3-70b", nodes=8, gpus_per_node=8, tp=8, pp=4)
    >>> found["world_size"], found["dp"]
    (64, 2)
    """
    return _asked("step", (), {"model": model, **options})


def memory(model: str | None = None, **options: object) -> CommandResult:
    """Estimate the memory of the fullest GPU, part by part.

    >>> found = figgen.memory("llama-3-70b", nodes=8, gpus_per_node=8, tp=8, pp=4)
    >>> found["model"]
    'llama-3-70b'
    """
    return _asked("memory", (), {"model": model, **options})


def plan(model: str | None = None, **options: object) -> CommandResult:
    """Find the layouts that fit, the fastest first.

    >>> found = figgen.plan("llama-3-8b", nodes=1, gpus_per_node=8)
    >>> len(found) > 0
    True
    """
    return _asked("plan", (), {"model": model, **options})


def ranks(*, nodes: int, gpus_per_node: int, **options: object) -> CommandResult:
    """List the process groups of a layout.

    >>> figgen.ranks(nodes=2, gpus_per_node=8, tp=2, pp=4)["dense"]["tp"][0]
    [0, 1]
    """
    return _asked("ranks", (), {"nodes": nodes, "gpus_per_node": gpus_per_node, **options})


def schedule(name: str, /, *, stages: int, microbatches: int, **options: object) -> CommandResult:
    """Order the work of a pipeline schedule, rank by rank.

    >>> figgen.schedule("1f1b", stages=2, microbatches=2)["order"][0]
    ['0F0', '0F1', '0B0', '0B1']
    """
    return _asked("schedule", (name,), {"stages": stages, "microbatches": microbatches, **options})


def trace(collective: str, /, *, ranks: int, **options: object) -> CommandResult:
    """Trace a collective message by message, with its result verified.

    >>> len(figgen.trace("all-reduce", algorithm="ring", ranks=4)["steps"])
    6
    """
    return _asked("trace", (collective,), {"ranks": ranks, **options})


def cost(
    collective: str, /, *, ranks: int, bytes: str, link: str, **options: object
) -> CommandResult:
    """Compute the time of a collective on a link.

    >>> found = figgen.cost(
    ...     "all-reduce", algorithm="ring", ranks=8, bytes="1 GB", link="nvlink4"
    ... )
    >>> round(1000 * found["time_s"], 2)
    3.94
    """
    return _asked("cost", (collective,), {"ranks": ranks, "bytes": bytes, "link": link, **options})


def take(file: str, /, **options: object) -> CommandResult:
    """Read a training job from a script, a configuration or a log.

    >>> figgen.take("docs/assets/examples/train.sh")["format"]
    'megatron-lm'
    """
    return _asked("take", (file,), options)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (formula, figure, step, memory, plan, ranks, schedule, trace, cost, take)
}
"""The functions of `figgen`, in the order of their page."""


def use_own_subject() -> None:
    """Use the subject of the site in the working folder, unless a different one is in use."""
    if not subject.modules():
        use_site_here()


def _asked(verb: str, positional: Sequence[str], options: Mapping[str, object]) -> CommandResult:
    """Return the answer of a verb of the command line to the same options."""
    from figgen.__main__ import parser_of

    use_own_subject()
    words = [verb, *positional]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words.append(f"{option}={value}")
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            parsed = parser_of(words).parse_args(words)
    except SystemExit:
        message = said.getvalue().partition(": ")[2].partition(" (try figgen")[0]
        raise InputError(message.strip()) from None
    found = parsed.run(parsed)
    data: object = json.loads(json.dumps(found.data))
    return CommandResult(data=data if isinstance(data, dict) else {"rows": data}, text=found.text)
