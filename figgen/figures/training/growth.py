"""Why one GPU is not enough: models and memories over the years, and the work of training."""

from __future__ import annotations

from math import ceil

from figgen.catalog import accelerator, model
from figgen.charts import Axis, Column, Curves, Mark, Named, Rule, Scalar, Table
from figgen.errors import InputError, check_between, check_share
from figgen.figures.parameters import RecipeName
from figgen.formulas.compute_and_roofline import training_flops
from figgen.formulas.scale_and_state import (
    doubling_time,
    growth_for_loss_ratio,
    largest_replicated_model,
    power_law_loss,
)
from figgen.models.shape.recipes import recipe as named_recipe
from figgen.plotting.series import line
from figgen.plotting.words import identifier
from figgen.registry import figure

DENSE = (
    "bert-large", "gpt-2-xl", "gpt-3-175b", "mt-nlg-530b", "palm-540b", "opt-175b", "glm-130b",
    "bloom-176b", "llama-1-65b", "llama-2-70b", "nemotron-4-340b", "llama-3-405b",
)  # fmt: skip
SPARSE = ("grok-1", "deepseek-v2", "deepseek-v3", "qwen-3-235b-a22b", "kimi-k2")
GPUS = ("v100-sxm2-32gb", "a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "b300-sxm-hgx")
NAMED = {"gpt-2-xl": "GPT-2", "gpt-3-175b": "GPT-3", "palm-540b": "PaLM", "llama-3-405b": "Llama 3"}
SPARSE_NAMED = {"kimi-k2": "Kimi K2"}
SECONDS_PER_YEAR = 365.25 * 86400


def _year(name: str) -> float:
    """Return the middle of the month of a model's report, as a year."""
    months = model(name).released_months
    if months is None:
        raise InputError(f"model {name!r} has no month of release")
    return (months + 0.5) / 12


def _parameters(name: str) -> float:
    return float(model(name).parameters)


@figure("model-growth", explorable=True, recomputed=True)
def model_growth(*, recipe: RecipeName = "zero16") -> Curves:
    """Parameters of published models by month, and the largest model for one GPU."""
    per_param = named_recipe(recipe).total_bytes
    held = {
        name: float(largest_replicated_model(accelerator(name).hbm_bytes, 1, per_param))
        for name in GPUS
    }
    years = (*(accelerator(name).year for name in GPUS), 2026)
    most = (*held.values(), held[GPUS[-1]])
    first, last = "gpt-2-xl", "palm-540b"
    growth = model(last).parameters / model(first).parameters
    months = round(12 * (_year(last) - _year(first)))
    memory_growth = held[GPUS[-1]] / held[GPUS[0]]
    package = (accelerator(GPUS[-1]).hbm_package or accelerator(GPUS[-1]).hbm_capacity).value
    return Curves(
        x=Axis(label="year", low=2018.0, high=2026.0, spec=".5g"),
        y=Axis(label="parameters", unit="param", scale="log10", low=1e8, high=1e13),
        series=(
            line("dense", map(_year, DENSE), map(_parameters, DENSE), 0, "points"),
            line("with experts", map(_year, SPARSE), map(_parameters, SPARSE), 3, "points"),
            line("one GPU's memory", map(float, years), most, 1, "steps"),
        ),
        marks=tuple(
            Mark(x=_year(name), y=_parameters(name), label=label, role=role)
            for names, role in ((NAMED, "series-1"), (SPARSE_NAMED, "series-4"))
            for name, label in names.items()
        ),
        values={
            "models": Named(len(DENSE) + len(SPARSE)),
            "growth": Named(growth),
            "months": Named(months, "month"),
            "doubling_months": Named(float(doubling_time(months, growth)), "month"),
            "memory_growth": Named(memory_growth),
            "package_growth": Named(package / accelerator(GPUS[0]).hbm_bytes),
            "last_memory": Named(accelerator(GPUS[-1]).hbm_bytes, "B"),
            "last_package": Named(package, "B"),
            "first_held": Named(held[GPUS[0]], "param"),
            "last_held": Named(held[GPUS[-1]], "param"),
            "largest": Named(model("kimi-k2").parameters, "param"),
            "bytes_per_param": Named(per_param, "B"),
        },
    )


@figure("loss-by-parameters", explorable=True, recomputed=True)
def loss_by_parameters(*, decades: int = 6) -> Curves:
    """The power law of test loss over parameters when neither data nor time limits."""
    check_between("decades", decades, 2, 12)
    x = tuple(10 ** (6 + k / 8) for k in range(8 * decades + 1))
    start = 1e8
    half = start * float(growth_for_loss_ratio(1.25))
    return Curves(
        x=Axis(label="non-embedding parameters", unit="param", scale="log10"),
        y=Axis(label="test loss, nats per token", scale="log10", low=1.0, spec="g"),
        series=(line("power law", x, map(float, map(power_law_loss, x))),),
        rules=tuple(
            Rule(axis="x", at=at, label=label)
            for at, label in ((start, "100M"), (half, "a fifth less loss"))
        ),
        values={
            "start": Named(start, "param"),
            "fifth_less": Named(half, "param"),
            "fifth_growth": Named(half / start),
            "halving_growth": Named(float(growth_for_loss_ratio(2))),
            "tenth": Named(float(power_law_loss(10 * start) / power_law_loss(start))),
        },
    )


TRAINED = ("llama-1-65b", "gpt-3-175b", "llama-2-70b", "llama-3-8b", "llama-3-70b", "llama-3-405b")


@figure("training-work")
def training_work(
    *, gpu: str = "h100-sxm-80gb", dtype: str = "bf16", utilization: float = 0.4, days: int = 60
) -> Table:
    """Published trainings: FLOPs, years on one GPU, the fewest GPUs for a deadline."""
    check_share("utilization", utilization)
    check_between("days", days, 1, 3650)
    rate = accelerator(gpu).peak_flops_per_s(dtype) * utilization
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {
        "utilization": Named(utilization),
        "days": Named(days),
        "count": Named(len(TRAINED)),
    }
    for name in TRAINED:
        found = model(name)
        if found.tokens is None:
            raise InputError(f"model {name!r} has no published number of tokens")
        flops = float(training_flops(found.active_parameters, found.tokens.value))
        years = flops / rate / SECONDS_PER_YEAR
        gpus = ceil(flops / rate / (days * 86400))
        rows.append((found.title, found.parameters, found.tokens.value, flops, years, gpus))
        key = identifier(name)
        values |= {f"{key}_years": Named(years), f"{key}_gpus": Named(gpus, "GPU")}
    return Table(
        columns=(
            Column(label="model"),
            Column(label="parameters", unit="param", spec="si"),
            Column(label="tokens", unit="token", spec="si"),
            Column(label="work", unit="FLOP", spec="si"),
            Column(label="years on one GPU", spec=",.0f"),
            Column(label=f"GPUs for {days} days", spec=","),
        ),
        rows=tuple(rows),
        values=values,
    )
