"""The planner's results for a job: its fastest layouts, and time against memory."""

from __future__ import annotations

from figgen.charts import Axis, Column, Curves, Named, Rule, Scalar, Series, Table, interval_values
from figgen.errors import InputError, check_between
from figgen.lookups import remembered
from figgen.models.step.compute import MFU_LABEL
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.options.written import written_scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import TERMS, label, plan_rows
from figgen.scenarios.planning.planner import Plan, plan


@remembered(8)
def planned(preset: str, model: str, sizes: str, options: str) -> Plan:
    """Return the plan of a job as pages write it. Raises InputError if nothing fits."""
    found = plan(plan_question(written_scenario(preset, None, model, sizes, options)))
    if not found.fitting:
        least = f"{found.found.least_bytes / 1e9:.0f} GB at least"
        raise InputError("layouts of the job", expected="one that fits", got=least, key="sizes")
    return found


@figure("planned-layouts")
def planned_layouts(
    *, preset: str = "", model: str = "", sizes: str = "", options: str = "", most: int = 10
) -> Table:
    """The fastest layout of each mesh that fits, and why it is slower than the best."""
    check_between("most", most, 1, 100)
    found = planned(preset, model, sizes, options)
    shown = plan_rows(found, list(found.meshes)[:most])
    rows: list[tuple[Scalar, ...]] = [
        (
            label(row),
            found.meshes[row.place],
            row.step_s,
            row.model_flops_utilisation,
            row.memory_bytes,
            row.loses_s / shown[0].step_s,
            TERMS.get(row.loses_by, "–"),
            "yes" if row.apart else "no",
        )
        for row in shown
    ]
    return Table(
        columns=(
            Column(label="layout"),
            Column(label="fastest of", spec=","),
            Column(label="step", unit="s", spec="time"),
            Column(label=MFU_LABEL, spec=".1%"),
            Column(label="memory", unit="B", spec="bytes"),
            Column(label="loses", spec=".1%"),
            *headings("most by", "told apart"),
        ),
        rows=tuple(rows),
        values=_values(found) | {"shown": Named(len(rows))},
    )


def _values(found: Plan) -> dict[str, Named]:
    best = plan_rows(found, [0])[0]
    return {
        "tried": Named(found.layouts),
        "fitting": Named(found.fitting),
        "same": Named(found.same),
        "meshes": Named(len(found.meshes)),
        "gpus": Named(found.question.job.world_size, "GPU"),
        "best": Named(label(best)),
        "best_step": Named(best.step_s, "s"),
        "best_mfu": Named(best.model_flops_utilisation),
        "best_memory": Named(best.memory_bytes, "B"),
        **interval_values(found.question.residuals),
    }


@figure("planned-front")
def planned_front(
    *, preset: str = "", model: str = "", sizes: str = "", options: str = ""
) -> Curves:
    """Time against memory: the layouts of a job that no other one beats in both."""
    found = planned(preset, model, sizes, options)
    held = [float(found.found.memory_bytes[place]) for place in found.front]
    times = [float(found.found.step_s[place]) for place in found.front]
    capacity = found.question.job.capacity_bytes
    return Curves(
        x=Axis(label="memory of the fullest GPU", unit="B", spec="bytes", low=0.0),
        y=Axis(label="step", unit="s", spec="time", low=0.0),
        series=(
            Series(name="front", x=tuple(held), y=tuple(times), role="series-1", style="line"),
        ),
        rules=(Rule(axis="x", at=float(capacity), label="capacity"),),
        values=_values(found)
        | {
            "points": Named(len(held)),
            "front_memory": Named(held[0], "B"),
            "least_memory": Named(held[-1], "B"),
            "least_memory_step": Named(times[-1], "s"),
        },
    )
