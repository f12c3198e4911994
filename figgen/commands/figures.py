"""list, show, eval, stats: what the pages contain, without building them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from figgen.charts import Chart, canonical_json, payload
from figgen.commands import Answer, Verbs, add_verb
from figgen.errors import InputError, check_once, unknown
from figgen.markdown.yaml_text import read_yaml
from figgen.project import docs_here
from figgen.registry import all_figures, all_formulas, build
from figgen.subject import subject

ENDINGS = {
    "text": "txt",
    "svg": "svg",
    "png": "png",
    "pdf": "pdf",
    "html": "html",
    "matplotlib": "py",
    "plotly": "json",
    "csv": "csv",
    "json": "json",
}
"""The formats of a figure, and how the name of a file of each ends."""
FORMS = tuple(ENDINGS)
PRINTED = ("png", "pdf", "matplotlib")
"""Formats for papers and slides, which matplotlib draws, with the program that does it."""
FILED = ("png", "pdf", "html")
"""Formats that are written to a file by default, because a terminal cannot show them."""
LISTED = ("presets", "models", "accelerators", "links", "runs")
"""Tables of the guide's catalog that can be listed."""


def add(verbs: Verbs) -> None:
    """Register the verbs of this module."""
    listing = add_verb(verbs, "list", _list, "list the names that a page can use", "", "formulas")
    kinds = f"figures, formulas or a catalog (of the guide: {', '.join(LISTED)})"
    listing.add_argument("kind", nargs="?", default="", help=kinds)
    show = add_verb(
        verbs,
        "show",
        _show,
        "one figure",
        "pipeline-timeline schedule=1f1b microbatches=16",
        "bubble-curves 'stages=[4, 8]' --as csv",
        "bubble-curves 'stages=[4, 8]' --as pdf --width icml",
        "bubble-curves 'stages=[4, 8]' --as matplotlib --to bubbles.py",
    )
    show.add_argument("figure")
    show.add_argument("parameters", nargs="*", metavar="key=value", help="values are read as YAML")
    show.add_argument("--as", dest="form", choices=FORMS, default="text")
    show.add_argument(
        "--to",
        type=Path,
        help="the file to write (default for pdf, png and html: FIGURE with that ending)",
    )
    show.add_argument(
        "--width", help="width for paper: inches, or a template (icml, icml-wide, neurips …)"
    )
    evaluate = add_verb(
        verbs,
        "eval",
        _eval,
        "print one value, with its worked line and source",
        "bubble_fraction stages=4 microbatches=8",
        "'bubble_fraction(stages=4, microbatches=8):.1%'",
    )
    evaluate.add_argument("value", metavar="FORMULA | CALL[:SPEC]")
    evaluate.add_argument("arguments", nargs="*", metavar="key=value")
    stats = add_verb(
        verbs, "stats", _stats, "count words, figures and computed numbers of each page", ""
    )
    stats.add_argument("docs", nargs="?", type=Path)


def _list(options: argparse.Namespace) -> Answer:
    from figgen.tables import catalogs

    both, own = ("figures", "formulas"), catalogs()
    kinds = (*both, *(LISTED if subject().entries else ()), *own)
    if options.kind and options.kind not in kinds:
        raise unknown("kind", options.kind, kinds)
    if options.kind:
        rows = _named(options.kind)
        return Answer(rows, _rows(rows))
    every = {kind: _named(kind) for kind in (*both, *own)}
    return Answer(every, "\n\n".join(f"{kind}:\n{_rows(rows)}" for kind, rows in every.items()))


def _named(kind: str) -> dict[str, str]:
    """Return the names of a kind, each with a line that describes it."""
    if kind == "figures":
        return {name: figure.summary for name, figure in all_figures().items()}
    if kind == "formulas":
        return {name: formula.doc for name, formula in all_formulas().items()}
    from figgen.tables import catalogs

    if kind in (own := catalogs()):
        return {name: getattr(e, "title", e.source) for name, e in own[kind].items()}
    from figgen import catalog

    return {name: entry.title for name, entry in getattr(catalog, kind.upper()).items()}


def _rows(names: Mapping[str, str]) -> str:
    width = max(map(len, names), default=0)
    return "\n".join(f"{name:{width}}  {about}" for name, about in sorted(names.items()))


def _show(options: argparse.Namespace) -> Answer:
    given = [_parameter(text) for text in options.parameters]
    check_once(f"parameter of {options.figure}", (name for name, _ in given))
    if options.width is not None and options.form not in PRINTED:
        raise InputError(
            "--width", expected=f"--as {' or '.join(PRINTED)}", got=f"--as {options.form}"
        )
    if options.to is not None:
        _check_ending(options.to, options.form)
    chart = build(options.figure, dict(given))
    made = _shown(chart, options.figure, options.form, options.width)
    if options.to is None and options.form not in FILED:
        return Answer(payload(chart), str(made).rstrip("\r\n"))
    file = options.to or Path(f"{options.figure}.{options.form}")
    content = made if isinstance(made, bytes) else made.encode()
    try:
        file.write_bytes(content)
    except OSError as error:
        raise InputError("--to", expected="a file that can be written", got=str(error)) from None
    return Answer(payload(chart), f"{file}: {len(content):,} bytes")


def _check_ending(file: Path, form: str) -> None:
    """Raise InputError if a file's name ends like one of a different format."""
    ending = file.suffix.removeprefix(".").lower()
    if ending != ENDINGS[form] and ending in ENDINGS.values():
        forms = [f"--as {other}" for other, its in ENDINGS.items() if its == ending]
        expected = f"a name that ends in .{ENDINGS[form]}, or {' or '.join(forms)}"
        raise InputError("--to", expected=expected, got=str(file))


def _shown(chart: Chart, name: str, form: str, width: str | None) -> str | bytes:
    """Return a chart in one of the `FORMS`."""
    from figgen.renderers import plotly, svg, table, text

    match form:
        case "text":
            return text.render(chart)
        case "svg":
            return svg.standalone(svg.render(chart, name))
        case "csv":
            return table.csv(table.data_table(chart))
        case "json":
            return canonical_json(chart)
        case "html":
            return plotly.document(chart, name)
        case "plotly":
            return plotly.light(chart)
    from figgen.paper.printed import printed
    from figgen.paper.script import script
    from figgen.paper.widths import width_in

    inches = None if width is None else width_in(width)
    if form == "matplotlib":
        return script(svg.render(chart, name), chart.values, name, inches)
    return printed(svg.render(chart, name), form, name, inches)


def _parameter(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError("a parameter", expected="key=value", got=text)
    try:
        return name, read_yaml(value)
    except InputError as error:
        what = f"the value of {name}"
        raise InputError(what, expected=error.expected, got=error.got) from None
    except (
        yaml.YAMLError,
        ValueError,
        RecursionError,
    ):  # an impossible date, too many digits
        raise InputError(f"the value of {name}", expected="YAML", got=value) from None


EXPONENT = r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]{1,3}"
"""Matches numbers that YAML 1.1 reads as text, such as 6.7e9."""


def _argument(text: str) -> str:
    """Return an argument of a formula, from `key=value`. Raises InputError for any other text."""
    name, _, value = text.partition("=")
    if re.fullmatch(EXPONENT, value):
        return f"{name}={float(value)!r}"
    name, found = _parameter(text)
    return f"{name}={found!r}"


def _eval(options: argparse.Namespace) -> Answer:
    from figgen.equations.worked import worked
    from figgen.values import compute

    text = options.value
    if options.arguments or "(" not in text:
        pairs = ", ".join(map(_argument, options.arguments))
        name, colon, spec = text.partition(":")
        text = f"{name}({pairs}){colon}{spec}"
    computed, spec = compute(text)
    line = worked(computed.evaluation, spec).text if computed.evaluation else ""
    data = {
        "value": computed.value,
        "unit": computed.unit,
        "low": computed.low,
        "high": computed.high,
        "worked": line,
        "source": computed.source,
    }
    parts = [computed.text(spec), line, computed.source and f"source: {computed.source}"]
    return Answer(data, "\n".join(part for part in parts if part))


DENSITIES = ("in 100 words", "in captions")
"""Numbers per 100 words of running text, and per 100 words of captions."""


def _stats(options: argparse.Namespace) -> Answer:
    from figgen.prose.counts import page_counts, page_densities

    docs = docs_here(options.docs)
    head = ("words", "figures", "numbers", "problems")
    counted = page_counts(docs)
    dense = page_densities(docs)
    rows: list[tuple[str, ...]] = [("page", *head, *DENSITIES)]
    for name, counts in counted:
        rows.append((name, *map(str, counts), *(f"{share:.1f}" for share in dense.get(name, ()))))
    rows = [(*row, *[""] * (len(rows[0]) - len(row))) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(pairs))
        for pairs in (zip(row, widths, strict=True) for row in rows)
    )
    data: dict[str, dict[str, float]] = {
        name: {
            **dict(zip(head, counts, strict=True)),
            **dict(zip(DENSITIES, dense.get(name, ()), strict=False)),
        }
        for name, counts in counted
    }
    return Answer(data, "\n".join(line.rstrip() for line in lines))
