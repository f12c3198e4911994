"""Jobs of the large sweep: each mesh measured, next to its prediction."""

from __future__ import annotations

from typing import Literal

from figgen.charts import Axis, Bars, Named
from figgen.errors import InputError, unknown
from figgen.plotting.series import segments
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.evidence.validation import JudgedRun, judged_runs, swept_model

SweptAxis = Literal["tp", "pp"]


@figure("swept-layouts")
def swept_layouts(*, model: str = "8B", gpus: int = 64) -> Bars:
    """Measured and predicted step of every mesh (TP, PP, DP) that the sweep ran, each at its best.

    Raises InputError for a model or number of GPUs that it did not run.
    """
    own = _runs_of(model, gpus)
    fastest: dict[tuple[int, int], JudgedRun] = {}
    for judged in own:
        fastest.setdefault((judged.run.tp, judged.run.pp), judged)
    shown = list(fastest.values())
    chosen = min(shown, key=lambda one: one.predicted_s)
    return Bars(
        labels=tuple(_mesh(one) for one in shown),
        segments=segments(
            {
                "measured": [one.measured_s for one in shown],
                "predicted": [one.predicted_s for one in shown],
            }
        ),
        axis=Axis(label="step", unit="s", low=0.0, spec="time"),
        stacked=False,
        values={
            "layouts": Named(len(own)),
            "meshes": Named(len(shown)),
            "tested": Named(sum(one.tested for one in shown)),
            "best": Named(_mesh(shown[0])),
            "best_s": Named(shown[0].measured_s, "s"),
            "worst": Named(_mesh(shown[-1])),
            "worst_factor": Named(shown[-1].measured_s / shown[0].measured_s),
            "chosen": Named(_mesh(chosen)),
            "largest_error": Named(max(abs(one.error) for one in shown)),
            **{
                f"longer_tp{one.run.tp}_pp{one.run.pp}": Named(one.measured_s / one.predicted_s - 1)
                for one in shown
            },
        },
    )


@figure("swept-axis")
def swept_axis(
    *,
    jobs: tuple[str, ...] = ("3B on 64", "8B on 128"),
    axes: tuple[SweptAxis, ...] = ("tp",),
    alike: bool = False,
) -> Bars:
    """Measured and predicted tokens per second per GPU as TP or PP grows, the other being 1.

    A job is written "MODEL on GPUS". The fastest run of each size is drawn, with its microbatch
    ("mb"); `alike` adds runs with the microbatch that is fastest for a smaller size.
    Shares are relative to the first size. Values `alike_…` compare two sizes at the microbatch
    that is fastest for the smaller one. Raises InputError for a job that the sweep did not run.
    """
    shown: list[tuple[str, JudgedRun]] = []
    values: dict[str, Named] = {}
    for job in jobs:
        model, _, gpus = job.partition(" on ")
        if not gpus.isdigit():
            raise InputError("jobs", expected='"MODEL on GPUS", as in "3B on 64"', got=job)
        for axis in axes:
            own = _runs_of(model, int(gpus))
            found = _along(axis, own)
            drawn = {(size, judged.run.microbatch): judged for size, judged in found}
            values |= {
                f"share_{identifier(model)}_{axis}{size}": Named(
                    found[0][1].measured_s / judged.measured_s
                )
                for size, judged in found
            }
            for least, judged in found:
                same = [one for one in own if one.run.microbatch == judged.run.microbatch]
                larger = [(size, one) for size, one in _along(axis, same) if size > least]
                values |= {
                    f"alike_{identifier(model)}_{axis}{least}_{size}": Named(
                        judged.measured_s / one.measured_s
                    )
                    for size, one in larger
                }
                if alike:
                    drawn |= {(size, one.run.microbatch): one for size, one in larger}
            shown += [
                (f"{job}, {axis.upper()} {size}, mb {microbatch}", one)
                for (size, microbatch), one in sorted(drawn.items())
            ]
    return Bars(
        labels=tuple(label for label, _ in shown),
        segments=segments(
            {
                "measured": [_tokens_per_s(one, one.measured_s) for _, one in shown],
                "predicted": [_tokens_per_s(one, one.predicted_s) for _, one in shown],
            }
        ),
        axis=Axis(label="tokens per second per GPU", low=0.0, spec=",.0f"),
        stacked=False,
        values={**values, "bars": Named(len(shown))},
    )


def _along(axis: SweptAxis, own: list[JudgedRun]) -> list[tuple[int, JudgedRun]]:
    """Return the fastest run of each size of an axis, without the other axes."""
    fastest: dict[int, JudgedRun] = {}
    for judged in own:
        sizes = {"tp": judged.run.tp, "pp": judged.run.pp}
        size = sizes.pop(axis)
        if judged.run.cp == 1 and set(sizes.values()) == {1}:
            fastest.setdefault(size, judged)
    return sorted(fastest.items())


def _runs_of(model: str, gpus: int) -> list[JudgedRun]:
    """Return the sweep's runs of a model on a number of GPUs, fastest first."""
    swept = [judged for judged in judged_runs() if judged.run.framework == "nanotron"]
    jobs = [f"{swept_model(judged.run)} on {judged.run.gpus}" for judged in swept]
    asked = f"{model} on {gpus}"
    if asked not in jobs:
        raise unknown("job of the sweep", asked, jobs)
    own = [judged for judged, job in zip(swept, jobs, strict=True) if job == asked]
    return sorted(own, key=lambda one: one.measured_s)


def _tokens_per_s(judged: JudgedRun, step_s: float) -> float:
    run = judged.run
    return run.global_batch * run.sequence / step_s / run.gpus


def _mesh(judged: JudgedRun) -> str:
    run = judged.run
    axes = (("TP", run.tp), ("PP", run.pp), ("DP", run.gpus // (run.tp * run.pp * run.cp)))
    return " · ".join(f"{name} {size}" for name, size in axes if size != 1)
