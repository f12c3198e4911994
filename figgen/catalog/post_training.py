"""Published steps of reinforcement learning: whole steps of jobs, and the times of their phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.catalog import load
from figgen.catalog.hardware import Accelerator
from figgen.catalog.models import Model
from figgen.entries.read import read_entries, referred
from figgen.entries.schema import choice, count, quantity, text
from figgen.errors import EntryPlace, InputError
from figgen.lookups import remembered

RUN_FILE = "post-training.toml"
PHASE_FILE = "post-training-phases.toml"
PHASES = ("generate", "score", "train", "synchronize")

RUN_KEYS = {
    "title": text(required=True),
    "framework": text(required=True),
    "model": text(required=True),
    "accelerator": text(required=True),
    "gpus_per_node": count(1, 144, required=True),
    "gpus": count(1, 100_000, required=True),
    "generating": count(1, 100_000),
    "steps_old": count(0, 100),
    "answers": count(1, 1_000_000, required=True),
    "updates": count(1, 1000, required=True),
    "longest": count(1, 10_000_000, required=True),
    "mean": count(1, 10_000_000, required=True),
    "generation": choice("bf16", "fp8", required=True),
    "generation_tp": count(1, 1024, required=True),
    "tp": count(1, 1024, required=True),
    "cp": count(1, 1024, required=True),
    "ep": count(1, 1024, required=True),
    "pp": count(1, 1024, required=True),
    "recompute": choice("none", "full", required=True),
    "step": quantity("s", "1 s", "100000 s", required=True),
}
PHASE_KEYS = {
    "title": text(required=True),
    "framework": text(required=True),
    "step": quantity("s", "1 s", "100000 s", required=True),
    **{phase: quantity("s", "1 ms", "100000 s", required=True) for phase in PHASES[:3]},
    "synchronize": quantity("s", "1 ms", "100000 s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PostTrainingRun:
    """A published step of GRPO: `answers` are written, scored and used for `updates` updates.

    `generating` GPUs write while the others train, with answers `steps_old`; it is 0 if the same
    GPUs do both in turn. `longest` and `mean` are tokens of a prompt with its answer.
    """

    name: str
    title: str
    framework: str
    model: Model
    accelerator: Accelerator
    gpus_per_node: int
    gpus: int
    generating: int
    steps_old: int
    answers: int
    updates: int
    longest: int
    mean: int
    generation: str
    generation_tp: int
    tp: int
    cp: int
    ep: int
    pp: int
    recompute: str
    step_s: float
    source: str
    note: str

    @property
    def apart(self) -> bool:
        """Whether some GPUs write and others train."""
        return self.generating > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimes:
    """Seconds of one step by phase, as a log prints them; `step_s` is the whole step."""

    name: str
    title: str
    framework: str
    step_s: float
    phases: Mapping[str, float]
    source: str
    note: str


@remembered(1)
def post_training_runs() -> dict[str, PostTrainingRun]:
    """Return all published steps by name."""
    sources, models, chips = load.sources(), load.models(), load.accelerators()
    return read_post_training(load.content(RUN_FILE), sources, models, chips)


@remembered(1)
def phase_times() -> dict[str, PhaseTimes]:
    """Return all printed phases by name."""
    return read_phase_times(load.content(PHASE_FILE), load.sources())


def read_post_training(
    content: str,
    sources: Mapping[str, str],
    models: Mapping[str, Model],
    chips: Mapping[str, Accelerator],
) -> dict[str, PostTrainingRun]:
    """Return the entries of `post-training.toml`. Raises InputError for any mistake in it."""
    found = {}
    for name, entry in read_entries(RUN_FILE, content, RUN_KEYS, sources).items():
        place = EntryPlace(file=RUN_FILE, entry=name, content=content)
        run = entry.fill(
            PostTrainingRun,
            model=referred(entry, "model", models, load.MODEL_FILES[0]),
            accelerator=referred(entry, "accelerator", chips, load.ACCELERATOR_FILES[0]),
            generating=entry.whole("generating"),
            steps_old=entry.whole("steps_old"),
            step_s=entry.plain("step"),
        )
        if run.mean > run.longest:
            raise place.fault("mean", expected=f"at most longest, {run.longest}", got=run.mean)
        if run.generating >= run.gpus or bool(run.generating) != bool(run.steps_old):
            raise place.fault("generating", expected="fewer than gpus, with steps_old")
        for key, gpus in (("generation_tp", run.generating or run.gpus), ("tp", run.gpus)):
            if gpus % getattr(run, key):
                raise place.fault(key, expected=f"a divisor of {gpus}", got=getattr(run, key))
        found[name] = run
    return found


def read_phase_times(content: str, sources: Mapping[str, str]) -> dict[str, PhaseTimes]:
    """Return the entries of `post-training-phases.toml`.

    Raises InputError for any mistake in it.
    """
    found = {}
    for name, entry in read_entries(PHASE_FILE, content, PHASE_KEYS, sources).items():
        phases = {phase: entry.plain(phase) or 0.0 for phase in PHASES}
        step_s = entry.plain("step") or 0.0
        if sum(phases.values()) > step_s * 1.001:
            raise InputError(
                f"{PHASE_FILE}: [{name}]", expected=f"phases within {step_s} s", got=phases
            )
        found[name] = entry.fill(PhaseTimes, step_s=step_s, phases=phases)
    return found
