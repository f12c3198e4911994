"""How many layouts of one job the rivals evaluate per processor second, compared with the planner.

`bench_planner` runs it in the rivals' environment and prints its output.
"""

from __future__ import annotations

import time
from dataclasses import replace
from types import ModuleType

from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import choices_of
from figgen.scenarios.planning.planner import Plan, plan
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.predicted import predicted_step
from tests.benchmarks.rivals import with_calculon, with_llm_analysis, with_mlsysim
from tests.benchmarks.rivals.refusal import Refusal

RIVALS: dict[str, ModuleType] = {
    "calculon": with_calculon, "llm-analysis": with_llm_analysis, "mlsysim": with_mlsysim,
}  # fmt: skip
SAMPLED = 300


def layouts() -> tuple[Plan, float]:
    """Return layouts of 70B on 64 GPUs that the rivals can express, and the seconds of
    the search."""
    asked = scenario(model="llama-3-70b", nodes=8, gpus_per_node=8, cp=1, recompute="full")
    question = plan_question(asked)
    plan(question)  # what a process computes once is not counted of anybody
    started = time.process_time()
    found = plan(question)
    return found, time.process_time() - started


def run_of(found: Plan, place: int) -> DescribedRun:
    """Return a layout of the plan as a run that rivals can be given."""
    given, columns = choices_of(found, place), found.found.columns
    axes = {name: int(given[name]) for name in ("tp", "cp", "pp", "ep", "etp", "zero_stage")}
    return replace(
        found.question.run,
        **axes,
        recompute="full",
        schedule=str(given["schedule"]),
        virtual_stages=int(given["chunks"] or 1),
        microbatch=int(given["microbatch_size"]),
        global_batch=int(columns["dp"][place] * columns["microbatches"][place])
        * int(given["microbatch_size"]),
    )


def rate(module: ModuleType, runs: list[DescribedRun]) -> tuple[float, int]:
    """Return layouts per processor second among those the rival can answer, and their number."""
    known = [run for run in runs if _answers(module, run)]
    started = time.process_time()
    for run in known:
        module.seconds(run, 1.0)
    return len(known) / (time.process_time() - started), len(known)


def _answers(module: ModuleType, run: DescribedRun) -> bool:
    try:
        module.seconds(run, 1.0)
    except Refusal:
        return False
    return True


def main() -> None:
    """Print a line for each tool."""
    found, seconds = layouts()
    ours = found.layouts / seconds
    print(f"planner: {ours:,.0f} layouts a CPU second, memory too ({found.layouts:,} of one job)")
    places = range(0, found.fitting, max(1, found.fitting // SAMPLED))
    runs = [run_of(found, place) for place in places]
    started = time.process_time()
    for run in runs:
        predicted_step(run)
    alone = len(runs) / (time.process_time() - started)
    print(f"planner's model of time, one by one: {alone:,.0f}")
    for name, module in RIVALS.items():
        theirs, answered = rate(module, runs)
        print(
            f"{name}: {theirs:,.0f} of the same layouts a CPU second, {answered} of {len(runs)} "
            f"answered; the planner is {ours / theirs:,.0f} times as fast"
        )


if __name__ == "__main__":
    main()
