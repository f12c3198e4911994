"""Published steps of reinforcement learning with predictions, and their printed phases."""

from __future__ import annotations

from math import exp, fsum, log
from statistics import median

from figgen.catalog.post_training import PHASES, PostTrainingRun, phase_times, post_training_runs
from figgen.charts import Axis, Bars, Column, Named, Scalar, Table
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.registry import figure
from figgen.scenarios.stories.post_training import predicted_post_training


def _placed(run: PostTrainingRun) -> str:
    if not run.apart:
        return "in turn"
    return f"apart, {run.steps_old} old"


@figure("post-training-published")
def post_training_published() -> Table:
    """Published steps of GRPO and the least time of their phases, by placement and chip."""
    rows: list[tuple[Scalar, ...]] = []
    ratios: dict[str, list[float]] = {"in_turn": [], "apart": [], "h100": [], "gb200": []}
    found = sorted(
        post_training_runs().values(),
        key=lambda run: (run.apart, run.accelerator.name != "h100-sxm-80gb", run.title, run.gpus),
    )
    for run in found:
        step = predicted_post_training(run)
        ratio = run.step_s / step.time_s
        chip = "H100" if run.accelerator.name.startswith("h100") else "GB200"
        ratios["apart" if run.apart else "in_turn"].append(ratio)
        ratios[chip.lower()].append(ratio)
        rows.append(
            (
                run.title,
                f"{run.gpus} {chip}" + (", FP8" if run.generation == "fp8" else ""),
                _placed(run),
                step.generate_s,
                step.score_s,
                step.train_s,
                step.time_s,
                run.step_s,
                ratio,
            )
        )
    every = [ratio for name in ("in_turn", "apart") for ratio in ratios[name]]
    values = {
        "count": Named(len(every)),
        "least": Named(min(every)),
        "most": Named(max(every)),
        "middle": Named(median(every)),
        "mean": Named(exp(fsum(map(log, every)) / len(every))),
        "error": Named(fsum(abs(1 / each - 1) for each in every) / len(every)),
    } | {f"{name}_middle": Named(median(those)) for name, those in ratios.items()}
    columns = (
        *headings("model", "GPUs", "placement"),
        *headings("write", "score", "train", "step, at least", "measured", unit="s", spec="time"),
        Column(label="measured over floor", spec=".2f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("post-training-phases")
def post_training_phases() -> Bars:
    """Shares of a step in four logs: generate, score, train, synchronize, and the rest."""
    found = list(phase_times().values())
    shares = {phase: [each.phases[phase] / each.step_s for each in found] for phase in PHASES}
    rest = [1 - sum(shares[phase][place] for phase in PHASES) for place in range(len(found))]
    return Bars(
        labels=tuple(f"{each.framework}: {each.title}" for each in found),
        segments=segments({**shares, "other": [max(0.0, share) for share in rest]}),
        axis=Axis(label="share of the step", low=0.0, high=1.0, spec=".0%"),
        values={
            "least": Named(min(shares["generate"])),
            "most": Named(max(shares["generate"])),
            "synchronize": Named(max(shares["synchronize"])),
            "count": Named(len(found)),
        },
    )
