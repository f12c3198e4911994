"""The largest errors of predictions, and the constants that matter most."""

from __future__ import annotations

import numpy as np

from figgen.catalog.rates import JUDGEMENT, constants
from figgen.charts import Column, Named, Table
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.evidence.calibrate import Predictor
from figgen.scenarios.evidence.validation import JudgedRun, judged_runs
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.residual_classes import generation_of

REFERENCES = {
    "GPT-3 175B, 128 H100": "dgxc-v24.11.1-gpt3-175b-h100-bf16-g128-b256",
    "Llama 3.1 405B, 256 GB300, MXFP8": "mbridge-26.06-llama-3-405b-gb300-mxfp8-256",
    "DeepSeek-V3, 256 GB300, MXFP8": "mbridge-26.06-deepseek-v3-gb300-mxfp8-256",
    "MPT 7B, 16 A100, FSDP": "mpt-7b-a100_40gb-bf16-g16-s2048-mb16-b256",
    "8B of the sweep, 64 H100, TP 2 · PP 8": "ultrascale-8b-g64-dp4-tp2-pp8-mb2-ga32-z1",
}
"""Reference configurations: title and run."""

HALF = 0.5
"""Reasons that also apply to accurate runs do not explain a relative error above this one."""

LAST_IN_16_BITS = 26.4
"""Year and month/12 after the last release whose recipes compute attention in 16 bits."""

NUDGE = 0.1
"""The factor by which a constant is raised to see its effect."""


@figure("validation-misses")
def validation_misses(*, most: int = 20) -> Table:
    """The test runs with the largest errors, not counting those of the large sweep."""
    missed = [j for j in judged_runs() if j.tested and j.run.framework != "nanotron"]
    missed.sort(key=lambda judged: -abs(judged.error))
    return Table(
        columns=(
            *headings("run", "framework"),
            *headings("measured", "predicted", unit="s", spec="time"),
            Column(label="error", spec="+.0%"),
            Column(label="why, as far as we know"),
        ),
        rows=tuple(
            (j.run.name, j.run.framework, j.measured_s, j.predicted_s, j.error, explained(j))
            for j in missed[:most]
        ),
        values={"worst": Named(abs(missed[0].error)), "shown": Named(min(most, len(missed)))},
    )


def explained(judged: JudgedRun) -> str:
    """Return why a run is missed: how it differs from the runs of the fit.

    A reason for a slow run explains a prediction that is too short, not one that is too long.
    """
    run, too_short = judged.run, judged.error < 0
    if run.shape.experts and _waits_for_host(run):
        if too_short:
            return "bound by the host, which launches small kernels of many experts"
        return "predicted to wait for the host longer than it did"
    if abs(judged.error) > HALF:
        return "not explained"
    if run.shape.experts and run.shape.bias and too_short:
        return "in part the biases of its experts, whose addition is not counted"
    if _attends_in_8_bits(run) and not too_short:
        return "its recipe computes attention in 8 bits, here it is in 16"
    if run.shape.experts:
        return "releases of one season differ in how they sort and send tokens"
    if run.number_format == "fp8-rowwise":
        return "row-wise scaling; the two runs that fitted have 70B parameters"
    if run.framework == "torchtitan" and run.tp > 1 and run.name.endswith("async") != too_short:
        return "asynchronous and plain TP share one constant"
    if too_short and run.recompute == "full" and run.accelerator.name == "a100-sxm-40gb":
        return "close to its memory: offloading or retries of the allocator"
    if run.framework == "maxtext":
        return "what is recomputed is not printed"
    if generation_of(run.accelerator) == "blackwell":
        return "releases of Blackwell's first year, of which few fitted"
    return "not explained"


def _attends_in_8_bits(run: DescribedRun) -> bool:
    """Whether the recipe of a mixture of experts sets `fp8_dot_product_attention`.

    Those in MXFP8 do since 26.06, on GB300 and, but for DeepSeek-V3's, on GB200: Megatron-Bridge's
    tag v0.6.0, src/megatron/bridge/perf_recipes (deepseek, qwen, gpt_oss).
    """
    chips = ("gb300",) if run.shape.latent else ("gb200", "gb300")
    return (
        bool(run.shape.experts)
        and run.framework == "megatron-bridge"
        and run.number_format == "mxfp8"
        and run.accelerator.name.startswith(chips)
        and (run.version or 0) > LAST_IN_16_BITS
    )


def _waits_for_host(run: DescribedRun) -> bool:
    """Whether kernels of an expert layer are predicted to run faster than they are launched."""
    layer = predicted_step(run).parts.expert
    return bool(layer.host_s > layer.device_s)


@figure("validation-sensitivity")
def validation_sensitivity(*, most: int = 3) -> Table:
    """The constants that change the predicted time most, for reference configurations."""
    runs = {judged.run.name: judged.run for judged in judged_runs()}
    chosen = [runs[name] for name in REFERENCES.values()]
    free = list(constants().values())
    predictor = Predictor(chosen, free)
    point = np.log([constant.value for constant in free])
    usual = predictor(point)
    moved = np.array(
        [predictor(point + np.log(1 + NUDGE) * unit) / usual - 1 for unit in np.eye(len(free))]
    )
    rows = []
    for place, title in enumerate(REFERENCES):
        order = np.argsort(-np.abs(moved[:, place]))[:most]
        rows += [
            (title, free[index].name, free[index].value, float(moved[index, place]))
            for index in order
        ]
    return Table(
        columns=(
            *headings("configuration", "constant"),
            Column(label="value", spec=".3g"),
            Column(label="change of the step if raised by a tenth", spec="+.1%"),
        ),
        rows=tuple(rows),
        values={
            "configurations": Named(len(REFERENCES)),
            "most": Named(float(np.abs(moved).max())),
        },
    )


@figure("validation-constants")
def validation_constants() -> Table:
    """Every constant of the step model: value, guess with its source, and what determined it."""
    rows = tuple(
        (
            entry.name,
            entry.value,
            entry.known or "not fitted",
            entry.runs,
            entry.decided,
            entry.start,
            entry.spread or "not fitted",
            entry.source,
            entry.about,
        )
        for entry in constants().values()
    )
    alone = [entry for entry in constants().values() if entry.spread and entry.runs == 1]
    few = [entry for entry in constants().values() if entry.spread and 1 < entry.runs < 5]
    by_runs = [entry for entry in constants().values() if entry.decided == "runs"]
    return Table(
        columns=(
            Column(label="constant"),
            Column(label="value", spec=".3g"),
            Column(label="known to", spec=".0%"),
            Column(label="runs", spec=",d"),
            Column(label="decided by"),
            Column(label="first guess", spec=".3g"),
            Column(label="freedom", spec=".0%"),
            *headings("source of the guess", "what it is"),
        ),
        rows=rows,
        values={
            "count": Named(len(rows)),
            "fitted": Named(sum(entry.spread > 0 for entry in constants().values())),
            "decided": Named(len(by_runs)),
            "alone": Named(len(alone)),
            "alone_names": Named(" and ".join(entry.name for entry in alone)),
            "few": Named(len(few)),
            "unmoved": Named(sum(e.spread > 0 and not e.runs for e in constants().values())),
            "published": Named(sum(e.source != JUDGEMENT for e in constants().values())),
        },
    )
