"""The measurements as text: seconds and ratios of one run, then sizes."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from math import isfinite

from tests.benchmarks.contenders import Contender
from tests.benchmarks.content import Content
from tests.benchmarks.measure import Best, drawn_and_cached
from tests.benchmarks.weight import Weight

VERSIONS = ("mkdocs-material", "markdown-exec", "mkdocs-gallery", "sphinx-gallery", "matplotlib")
COLUMNS = ("", "cold", "× ours", "CPU", "warm", "× floor", "CPU", "edit", "× ours", "CPU",
           "redrawn")  # fmt: skip
SIZES = ("kB as sent", "largest picture", "median", "heaviest page", "median")


@dataclass(kw_only=True)
class Result:
    """The measurements of one contender; `redrawn` counts pictures after an edit.

    If it has a `fault`, it failed to build, and comparisons with it are omitted.
    """

    contender: Contender
    cold: Best = field(default_factory=Best)
    warm: Best = field(default_factory=Best)
    edit: Best = field(default_factory=Best)
    redrawn: int = 0
    weight: Weight | None = None
    fault: str = ""


def text(
    results: list[Result], pages: list[Content], moved: tuple[int, int, int], rounds: int
) -> str:
    """Return the whole report; the edit changed the data of `moved` pictures, figures and so on."""
    counts = [len(page.drawings) for page in pages]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in VERSIONS)
    lines = [
        f"{len(pages)} pages with {sum(counts)} pictures; least of {rounds} interleaved rounds, "
        f"in seconds; {os.cpu_count()} processors, Python {platform.python_version()}, {versions}",
        "",
        *_aligned([COLUMNS, *(_times(result, results) for result in results)]),
        "",
        f"The edit moves the data of {moved[1]} of {moved[2]} figures: {moved[0]} of the "
        f"{sum(counts)} pictures, and tables, which this site draws for download.",
        *(line for result in results[:2] for line in _cache_lines(result)),
        "",
        *_aligned([SIZES, *(_sizes(result) for result in results)]),
        "",
        "Pictures: SVG in the page compressed with gzip, or PNG files. Pages: the longest and the",
        "median one of those with pictures, with all that a browser fetches before a reader acts.",
        "",
        *_reached(results),
        *(f"\n{found.contender.name} failed:\n{found.fault}" for found in results if found.fault),
    ]
    return "\n".join(lines)


def _times(result: Result, results: list[Result]) -> tuple[str, ...]:
    ours, floor = results[0], results[2]
    if result.fault:
        return (result.contender.name, "failed", *[""] * (len(COLUMNS) - 2))
    edit = ("", "", "", "")
    if result.edit.log:
        edit = (
            f"{result.edit.wall_s:.2f}",
            f"{result.edit.wall_s / ours.edit.wall_s:.1f}",
            f"{result.edit.cpu_s:.2f}",
            str(result.redrawn) if result.redrawn else "0, stale",
        )
    return (
        result.contender.name,
        f"{result.cold.wall_s:.2f}",
        f"{result.cold.wall_s / ours.cold.wall_s:.1f}",
        f"{result.cold.cpu_s:.2f}",
        f"{result.warm.wall_s:.2f}",
        f"{result.warm.wall_s / floor.warm.wall_s:.1f}",
        f"{result.warm.cpu_s:.2f}",
        *edit,
    )


def _cache_lines(result: Result) -> list[str]:
    told = [
        f"{what}: {drawn} drawn, {cached} from the cache"
        for what, best in (("cold", result.cold), ("warm", result.warm), ("edit", result.edit))
        for drawn, cached in [drawn_and_cached(best.log)]
    ]
    return [f"{result.contender.name}, tables included: {'; '.join(told)}."]


def _sizes(result: Result) -> tuple[str, ...]:
    if result.weight is None or not result.weight.picture[0]:
        return (result.contender.name, "", "", "", "")
    numbers = [f"{number / 1000:.1f}" for number in result.weight.picture]
    pages = [f"{number / 1000:.1f}" for number in result.weight.page or ()] or ["?", "?"]
    return (result.contender.name, *numbers, *pages)


def _reached(results: list[Result]) -> list[str]:
    """Return each goal and what this run reached: wall time, and processor time."""
    ours, _, floor, literal, executed, computed, *galleries = results

    def ratio(over: Callable[[Best], float]) -> list[str]:
        best = min(over(gallery.cold) for gallery in galleries)
        values = (
            over(ours.warm) / over(floor.warm),
            over(ours.warm) / over(literal.warm),
            over(executed.cold) / over(ours.cold),
            over(computed.cold) / over(ours.cold),
            best / over(ours.cold),
        )
        return [f"{value:.2f}" if isfinite(value) else "not measured" for value in values]

    names = ["warm / floor", "warm / floor with literal figures", "markdown-exec / cold",
             "markdown-exec, computed / cold", "best gallery / cold"]  # fmt: skip
    wanted = ["≤ 2", "≤ 2", "≥ 4", "≥ 4", "≥ 2.5"]
    columns = (names, wanted, ratio(lambda best: best.wall_s), ratio(lambda best: best.cpu_s))
    return _aligned([("reach", "set", "wall", "CPU"), *zip(*columns, strict=True)])


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
