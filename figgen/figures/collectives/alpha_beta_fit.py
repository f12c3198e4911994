"""α and β from measured all-reduces: fitted lines, their parameters and their errors."""

from __future__ import annotations

from figgen.catalog import Measurement
from figgen.catalog import measurement as catalog_measurement
from figgen.charts import Axis, Column, Curves, Named, Rule, Scalar, Series, Table
from figgen.errors import InputError, check_equal_lengths
from figgen.formulas.alpha_beta import inverse_bandwidth_from_slope
from figgen.formulas.collectives import all_reduce_bytes_sent
from figgen.models.algorithms.alpha_beta_fit import Fit, fit_line
from figgen.plotting.placed import headings
from figgen.plotting.series import line, logarithmic
from figgen.registry import figure

WEIGHTS = {True: "misses in percent", False: "misses in seconds"}
"""Labels of the two ways to weigh a fit."""


def measured_times(name: str) -> tuple[Measurement, tuple[float, ...], tuple[float, ...]]:
    """Return a measured all-reduce, its message sizes, and times derived from its busbw."""
    found = catalog_measurement(name)
    if found.collective != "all_reduce" or found.over != "message" or found.ranks is None:
        raise InputError("measurement", expected="an all-reduce over message sizes", got=name)
    sizes = tuple(size for size, _ in found.points)
    times = tuple(float(all_reduce_bytes_sent(found.ranks, s)) / bus for s, bus in found.points)
    return found, sizes, times


@figure("alpha-beta-fit", explorable=True)
def alpha_beta_fit(*, measurement: str) -> Curves:
    """Measured times of an all-reduce over its size, and the two least-squares lines.

    One line minimizes relative errors, the other errors in seconds.
    """
    _, sizes, times = measured_times(measurement)
    fits = {relative: fit_line(sizes, times, relative=relative) for relative in (True, False)}
    dense = logarithmic(sizes[0], sizes[-1], per_decade=12)
    series = [line("measured", sizes, times, 0, "points")]
    for relative, fit in fits.items():
        # a logarithmic axis has no room for the times below 0 of a fit that has gone wrong
        x = tuple(size for size in dense if fit.time_s(size) > min(times) / 10)
        index = 2 if relative else 1
        y = map(fit.time_s, x)
        series.append(line(WEIGHTS[relative], x, y, index, "line" if relative else "dashed"))
    values = {
        "first": Named(times[0], "s"),
        "last": Named(times[-1], "s"),
        "first_size": Named(sizes[0], "B"),
        "last_size": Named(sizes[-1], "B"),
    }
    for name, fit in (("relative", fits[True]), ("absolute", fits[False])):
        values |= {
            f"{name}_intercept": Named(fit.intercept_s, "s"),
            f"{name}_worst": Named(fit.worst),
            f"{name}_first": Named(fit.time_s(sizes[0]), "s"),
        }
    return Curves(
        x=Axis(label="message size S", unit="B", scale="log10", spec="bytes"),
        y=Axis(label="time", unit="s", scale="log10", spec="time"),
        series=tuple(series),
        values=values,
    )


def link_bandwidth(ranks: int, fit: Fit) -> float:
    """Return the bandwidth (B/s) of a link whose ring has the slope of this fit."""
    return 1 / float(inverse_bandwidth_from_slope(ranks, fit.seconds_per_byte))


@figure("alpha-beta-fits")
def alpha_beta_fits(*, measurements: tuple[str, ...], names: tuple[str, ...]) -> Table:
    """Both fits of each measured all-reduce: intercept, α of a ring's step, B, n½, worst miss."""
    check_equal_lengths(measurements=measurements, names=names)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for index, (name, title) in enumerate(zip(measurements, names, strict=True)):
        found, sizes, times = measured_times(name)
        ranks = found.ranks or 0
        for relative in (True, False):
            fit = fit_line(sizes, times, relative=relative)
            alpha = fit.intercept_s / (2 * (ranks - 1))
            bandwidth = link_bandwidth(ranks, fit)
            rows.append(
                (
                    title,
                    WEIGHTS[relative],
                    fit.intercept_s,
                    alpha,
                    bandwidth,
                    fit.half_bytes,
                    fit.worst,
                )
            )
            key = f"{'relative' if relative else 'absolute'}_{index}"
            values |= {
                f"{key}_intercept": Named(fit.intercept_s, "s"),
                f"{key}_alpha": Named(alpha, "s"),
                f"{key}_bandwidth": Named(bandwidth, "B/s"),
                f"{key}_half": Named(fit.half_bytes, "B"),
                f"{key}_worst": Named(fit.worst),
            }
    columns = (
        *headings("measured", "fitted to"),
        *headings("intercept", "per ring step", unit="s", spec="time"),
        Column(label="ring bandwidth B", unit="B/s", spec="si"),
        Column(label="n½", unit="B", spec="bytes"),
        Column(label="worst miss", spec="+.0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("alpha-beta-residuals", explorable=True)
def alpha_beta_residuals(*, measurements: tuple[str, ...], names: tuple[str, ...]) -> Curves:
    """The error of the relative fit at each measured time, over the message size."""
    check_equal_lengths(measurements=measurements, names=names)
    series: list[Series] = []
    values: dict[str, Named] = {}
    for index, (name, title) in enumerate(zip(measurements, names, strict=True)):
        _, sizes, times = measured_times(name)
        fit = fit_line(sizes, times)
        series.append(line(title, sizes, fit.residuals, index))
        values |= {
            f"least_{index}": Named(min(fit.residuals)),
            f"most_{index}": Named(max(fit.residuals)),
            f"least_at_{index}": Named(sizes[fit.residuals.index(min(fit.residuals))], "B"),
            f"most_at_{index}": Named(sizes[fit.residuals.index(max(fit.residuals))], "B"),
            f"first_size_{index}": Named(sizes[0], "B"),
            f"last_size_{index}": Named(sizes[-1], "B"),
        }
    return Curves(
        x=Axis(label="message size S", unit="B", scale="log10", spec="bytes"),
        y=Axis(label="fitted over measured time, minus 1", spec="+.0%"),
        series=tuple(series),
        rules=(Rule(axis="y", at=0.0, label="as measured"),),
        values=values,
    )
