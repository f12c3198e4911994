"""Time and memory of a step by algorithm, the tail of rollouts, and how to divide the GPUs."""

from __future__ import annotations

from figgen.catalog import accelerator, model
from figgen.catalog.post_training import PostTrainingRun, post_training_runs
from figgen.charts import Axis, Bars, Curves, Mark, Named, Rule
from figgen.errors import InputError, check_between, unknown
from figgen.figures.parameters import AcceleratorName, ModelName
from figgen.formulas.scale_and_state import model_state_bytes, weight_bytes
from figgen.models.algorithms.rollouts import Rollout
from figgen.plotting.series import line, segments
from figgen.registry import figure
from figgen.scenarios.stories.post_training import (
    PASSES,
    PostTrainingStep,
    predicted_post_training,
    written,
)

RUN = "nemo-rl-llama-3-8b-h100-16"
ALGORITHMS = ("SFT", "DPO", "GRPO", "PPO")


def _named(run: str) -> PostTrainingRun:
    known = post_training_runs()
    if run not in known:
        raise unknown("post-training run", run, known)
    return known[run]


def _phases(step: PostTrainingStep, recompute: str) -> dict[str, tuple[float, ...]]:
    """Return the seconds of generating, scoring and training for SFT, DPO, GRPO and PPO.

    Scores are forward passes: of the reference for DPO; of the policy and the reference for GRPO;
    and also of the critic and the reward model for PPO, which trains its critic too.
    """
    train_s, forward_s = step.train_s, step.train_s / PASSES[recompute]
    return {
        "write": (0.0, 0.0, step.generate_s, step.generate_s),
        "score": (0.0, forward_s, 2 * forward_s, 4 * forward_s),
        "train": (train_s, train_s, train_s, 2 * train_s),
        "synchronize": (0.0, 0.0, step.synchronize_s, step.synchronize_s),
    }


@figure("post-training-step")
def post_training_step(*, run: str = RUN) -> Bars:
    """One step of SFT, DPO, GRPO and PPO over the same tokens, by phase, on the GPUs of a run.

    All models are as large as the policy. Raises InputError for a run that is not in the catalog.
    """
    found = _named(run)
    step = predicted_post_training(found)
    phases = _phases(step, found.recompute)
    totals = [sum(each[place] for each in phases.values()) for place in range(len(ALGORITHMS))]
    return Bars(
        labels=ALGORITHMS,
        segments=segments(phases),
        axis=Axis(label="predicted time of a step", unit="s", low=0.0, spec="time"),
        values={
            "sft": Named(totals[0], "s"),
            "dpo": Named(totals[1], "s"),
            "grpo": Named(totals[2], "s"),
            "ppo": Named(totals[3], "s"),
            "write": Named(step.generate_s, "s"),
            "train": Named(step.train_s, "s"),
            "write_share": Named(step.generate_s / totals[2]),
            "synchronize": Named(step.synchronize_s, "s"),
            "answers": Named(found.answers),
            "mean": Named(found.mean),
            "gpus": Named(found.gpus),
        },
    )


def _answers(run: PostTrainingRun, longest: int, gpus: int | None = None) -> Rollout:
    return written(
        run.model,
        run.accelerator,
        gpus=gpus or run.generating or run.gpus,
        tp=run.generation_tp,
        answers=run.answers,
        mean=run.mean,
        longest=longest,
        precision=run.generation,
        gpus_per_node=run.gpus_per_node,
    )


@figure("rollout-tail")
def rollout_tail(*, run: str = RUN, longest: int | None = None) -> Curves:
    """Answers that one copy is still generating over time, and equal answers of as many tokens.

    Raises InputError for a longest answer below the mean.
    """
    found = _named(run)
    limit = found.longest if longest is None else longest
    if limit < found.mean:
        raise InputError("longest", expected=f"at least {found.mean}", got=limit)
    one, equal = (_answers(found, most) for most in (limit, found.mean))
    series = []
    for index, (name, rolled) in enumerate((("lengths differ", one), ("all equal", equal))):
        times = [time for time, _ in rolled.alive]
        series.append(
            line(name, times, [float(count) for _, count in rolled.alive], index, "steps")
        )
    first = one.alive[0][1]
    half = next(time for time, count in one.alive if count <= first / 2)
    tenth = next(time for time, count in one.alive if count <= first / 10)
    return Curves(
        x=Axis(label="time", unit="s", low=0.0, spec="time"),
        y=Axis(label="answers being written by one copy", low=0.0, spec=",.0f"),
        series=tuple(series),
        marks=(
            Mark(x=half, y=first / 2, label="half are done", role="neutral"),
            Mark(x=tenth, y=first / 10, label="nine in ten are done", role="neutral"),
        ),
        values={
            "time": Named(one.time_s, "s"),
            "equal": Named(equal.time_s, "s"),
            "longer": Named(one.time_s / equal.time_s),
            "half": Named(half, "s"),
            "tenth_share": Named(1 - tenth / one.time_s),
            "busy": Named(found.mean / limit),
            "first": Named(first),
            "mean": Named(found.mean),
            "longest": Named(limit),
        },
    )


@figure("post-training-memory", recomputed=True)
def post_training_memory(
    *, model_name: ModelName = "llama-3-8b", chip: AcceleratorName = "h100-sxm-80gb", gpus: int = 16
) -> Bars:
    """State per GPU of each algorithm, with every model as large as the policy, sharded evenly.

    Trained models keep weights, gradients and Adam's state, frozen ones their 16-bit weights. The
    generating copy is whole on every GPU; caches and activations are not counted.
    """
    check_between("gpus", gpus, 1, 100_000)
    found, held = model(model_name), accelerator(chip)
    count = float(found.parameters)
    weights = float(weight_bytes(count, 2))
    trained = float(model_state_bytes(count, 2, 4, 12)) / gpus
    frozen = weights / gpus
    parts = {
        "policy in training": (trained,) * 4,
        "reference": (0.0, frozen, frozen, frozen),
        "critic in training": (0.0, 0.0, 0.0, trained),
        "reward model": (0.0, 0.0, 0.0, frozen),
        "copy that writes": (0.0, 0.0, weights, weights),
    }
    totals = [sum(each[place] for each in parts.values()) for place in range(4)]
    return Bars(
        labels=ALGORITHMS,
        segments=segments(parts),
        axis=Axis(label="state per GPU", unit="B", low=0.0, spec="bytes"),
        rules=(Rule(axis="x", at=held.capacity_bytes, label="memory of the GPU"),)
        if max(totals) > held.capacity_bytes / 2
        else (),
        values={
            name.lower(): Named(total, "B") for name, total in zip(ALGORITHMS, totals, strict=True)
        }
        | {
            "copy": Named(weights, "B"),
            "trained": Named(trained, "B"),
            "gpus": Named(gpus),
            "left": Named(held.capacity_bytes - totals[3], "B"),
        },
    )


@figure("post-training-split")
def post_training_split(*, run: str = "nemo-rl-llama-3-8b-h100-16-async") -> Curves:
    """Time of a step over the number of generating GPUs, if the others train at the same time.

    Training scales with its GPUs; generation is computed for each split. The dashed line is all
    GPUs in turn. Raises InputError for a run whose GPUs do not divide.
    """
    found = _named(run)
    unit = found.tp * found.cp * found.pp
    splits = [each for each in range(unit, found.gpus, unit) if not each % found.generation_tp]
    if not splits:
        raise InputError("run", expected="GPUs for two groups", got=run)
    base = predicted_post_training(found)
    work = (base.score_s + base.train_s) * (found.gpus - found.generating)
    write = [_answers(found, found.longest, each).time_s for each in (*splits, found.gpus)]
    train = [work / (found.gpus - each) for each in splits]
    in_turn = write[-1] + work / found.gpus
    kept = [
        at for at, pair in enumerate(zip(write, train, strict=False)) if max(pair) < 2 * in_turn
    ]
    splits = [splits[at] for at in kept]
    write, train = [write[at] for at in kept], [train[at] for at in kept]
    step = [max(pair) for pair in zip(write, train, strict=True)]
    best = step.index(min(step))
    return Curves(
        x=Axis(
            label=f"GPUs that write, of {found.gpus}", low=0.0, high=float(found.gpus), spec=",.0f"
        ),
        y=Axis(label="predicted time", unit="s", low=0.0, spec="time"),
        series=(
            line("write", map(float, splits), write, 0),
            line("score and train", map(float, splits), train, 1),
        ),
        marks=(Mark(x=float(splits[best]), y=step[best], label="balanced", role="neutral"),),
        rules=(Rule(axis="y", at=in_turn, label="all GPUs, in turn"),),
        values={
            "best": Named(splits[best]),
            "best_s": Named(step[best], "s"),
            "in_turn": Named(in_turn, "s"),
            "gain": Named(in_turn / step[best]),
            "first": Named(splits[0]),
            "last": Named(splits[-1]),
            "first_write": Named(write[0], "s"),
            "last_write": Named(write[-1], "s"),
            "gpus": Named(found.gpus),
        },
    )
