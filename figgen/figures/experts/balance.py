"""Balanced routing: the auxiliary loss, drops by capacity, and balancing by a bias."""

from __future__ import annotations

from figgen.charts import Axis, Curves, Named, Rule, Series
from figgen.errors import check_between
from figgen.formulas.experts import expert_capacity
from figgen.models.shape.routing import bias_balancing, expected_overflow
from figgen.plotting.series import line
from figgen.registry import figure


@figure("moe-balance", explorable=True, recomputed=True)
def moe_balance(*, experts: int = 8, top_k: int = 2) -> Curves:
    """Auxiliary loss over the load of the most popular expert, with and without its 1/k.

    The other experts share the rest evenly, and mean probabilities equal the shares of copies.
    """
    check_between("experts", experts, 2, 512)
    check_between("top_k", top_k, 1, experts - 1)
    most = experts / top_k
    x = tuple(1 + (most - 1) * at / 12 for at in range(13))
    y: list[float] = []
    for load in x:
        hot = load / experts
        rest = (1 - hot) / (experts - 1)
        y.append(experts * (hot * hot + (experts - 1) * rest * rest))
    wrong = tuple(top_k * value for value in y)
    series = (
        Series(name="f divided by k", x=x, y=tuple(y), role="ep"),
        line("f not divided", x, wrong, 1, "dashed"),
    )
    values = {
        "even": Named(y[0]),
        "even_wrong": Named(wrong[0]),
        "worst": Named(y[-1]),
        "worst_load": Named(most),
        "experts": Named(experts),
        "top_k": Named(top_k),
    }
    return Curves(
        x=Axis(label="load of the most popular expert, over the mean", low=1.0, spec="g"),
        y=Axis(label="auxiliary loss", low=0.0, spec="g"),
        series=series,
        rules=(Rule(axis="y", at=1.0, label="even"),),
        values=values,
    )


@figure("moe-capacity", explorable=True, recomputed=True)
def moe_capacity(
    *, experts: int = 64, top_k: int = 8, tokens: tuple[int, ...] = (128, 512, 4096)
) -> Curves:
    """Expected share of token copies that are dropped, over the capacity factor.

    A fair router chooses every expert with equal probability, and still overfills some. In the last
    line half of the experts are three times as popular as the other half.
    """
    check_between("experts", experts, 2, 512)
    check_between("top_k", top_k, 1, experts)
    check_between("tokens", max(tokens), 1, 2**20)
    factors = tuple(1 + step / 10 for step in range(11))
    lines: list[tuple[str, int, tuple[float, ...]]] = [
        (f"fair, {n * top_k // experts} per expert", n, (1.0,)) for n in tokens
    ]
    lines.append((f"skewed, {tokens[-1] * top_k // experts} per expert", tokens[-1], (1.5, 0.5)))
    values = {"experts": Named(experts), "top_k": Named(top_k), "popular": Named(1.5 / 0.5)}
    series = []
    for index, (name, count, kinds) in enumerate(lines):
        y = tuple(_dropped(experts, top_k, count, kinds, factor) for factor in factors)
        series.append(line(name, factors, y, index, "line" if len(kinds) == 1 else "dashed"))
        label = "skewed" if len(kinds) > 1 else f"fair_{count * top_k // experts}"
        for factor in (0, 2, 5):
            values[f"{label}_{100 + 10 * factor}"] = Named(y[factor])
    return Curves(
        x=Axis(label="capacity factor", spec="g"),
        y=Axis(label="share of copies dropped", low=0.0, spec=".0%"),
        series=tuple(series),
        values=values,
    )


def _dropped(
    experts: int, top_k: int, tokens: int, kinds: tuple[float, ...], factor: float
) -> float:
    """Return the expected dropped share with experts `kind` times as popular as the mean."""
    capacity = int(expert_capacity(tokens, top_k, experts, factor))
    mean = tokens * top_k / experts
    beyond = [expected_overflow(tokens, kind * top_k / experts, capacity) for kind in kinds]
    return sum(beyond) / len(kinds) / mean


@figure("moe-bias", explorable=True)
def moe_bias(
    *,
    experts: int = 16,
    top_k: int = 2,
    tokens: int = 512,
    steps: int = 120,
    rates: tuple[float, ...] = (0.0, 0.002, 0.02),
) -> Curves:
    """Load of the fullest expert over the mean, step by step, as a bias follows the loads."""
    check_between("top_k", top_k, 1, experts)
    check_between("steps · tokens · experts", steps * tokens * experts, 1, 2**22)
    shown = range(0, steps, 4)
    series, values = [], {}
    for index, rate in enumerate(rates, 1):
        found = bias_balancing(experts=experts, top_k=top_k, tokens=tokens, steps=steps, rate=rate)
        name = f"bias moves by {rate:g}" if rate else "no bias"
        series.append(line(name, map(float, shown), (found[step] for step in shown), index - 1))
        values[f"first_{index}"] = Named(found[0])
        values[f"last_{index}"] = Named(sum(found[-20:]) / 20)
    values["steps"] = Named(steps)
    return Curves(
        x=Axis(label="training step", low=0.0, spec="g"),
        y=Axis(label="largest load over the mean", low=1.0, spec="g"),
        series=tuple(series),
        values=values,
    )
