"""One job of the big sweep: each mesh measured, beside what is predicted for it."""

from __future__ import annotations

from figgen.charts import Axis, Bars, Named
from figgen.errors import unknown
from figgen.plotting.series import segments
from figgen.registry import figure
from figgen.scenarios.evidence.validation import JudgedRun, judged_runs, swept_model


@figure("swept-layouts")
def swept_layouts(*, model: str = "8B", gpus: int = 64) -> Bars:
    """Measured and predicted step of every mesh (TP, PP, DP) that the sweep ran, each at its best.

    Raises InputError for a model or number of GPUs that it did not run.
    """
    swept = [judged for judged in judged_runs() if judged.run.framework == "nanotron"]
    jobs = [f"{swept_model(judged.run)} on {judged.run.gpus}" for judged in swept]
    asked = f"{model} on {gpus}"
    if asked not in jobs:
        raise unknown("job of the sweep", asked, jobs)
    own = [judged for judged, job in zip(swept, jobs, strict=True) if job == asked]
    fastest: dict[tuple[int, int], JudgedRun] = {}
    for judged in sorted(own, key=lambda one: one.measured_s):
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
        },
    )


def _mesh(judged: JudgedRun) -> str:
    run = judged.run
    axes = (("TP", run.tp), ("PP", run.pp), ("DP", run.gpus // (run.tp * run.pp * run.cp)))
    return " · ".join(f"{name} {size}" for name, size in axes if size != 1)
