"""plan --within, --budget, --fewest-nodes: find the number of nodes, with days, price, energy."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from figgen.catalog.interruptions import interruption
from figgen.commands import Answer
from figgen.commands.plan_goodput import amount_of
from figgen.commands.training import aligned, hosts_lines, planned_scenario_of
from figgen.models.planner.node_counts import BUDGET, DEADLINE, MOST_NODES
from figgen.models.planner.saving import DAY_S
from figgen.scenarios.planning.plan_rows import label
from figgen.scenarios.planning.sizing import Sized, Sizing, sizing, wanted_of
from figgen.units import format_quantity

MOST_DAYS, MOST_MONEY = 36_500.0, 1e15


def add_questions(parser: argparse.ArgumentParser) -> None:
    """Add the options that ask for a number of nodes; `--nodes` then limits that number."""
    parser.add_argument(
        "--within",
        metavar="DAYS",
        type=amount_of("days", "s", DAY_S, MOST_DAYS),
        help="find the fewest nodes that train --tokens within this many days",
    )
    parser.add_argument(
        "--budget",
        metavar="MONEY",
        type=amount_of("money", "1", 1.0, MOST_MONEY),
        help="find the nodes that train --tokens soonest for this price; needs --gpu-hour-price",
    )
    parser.add_argument(
        "--fewest-nodes",
        action="store_true",
        help="find the fewest nodes on which the job fits with the chance of --fit-chance",
    )
    parser.add_argument(
        "--gpu-hour-price",
        metavar="MONEY",
        type=amount_of("money", "1", 1.0, MOST_MONEY),
        help="what you pay for one GPU for an hour, in the currency of --budget",
    )


def asks_for_nodes(options: argparse.Namespace) -> bool:
    """Return whether the user asks for a number of nodes."""
    return bool(options.within or options.budget or options.fewest_nodes)


def nodes_answer(options: argparse.Namespace) -> Answer:
    """Return the answer with every number of nodes that was tried."""
    most = MOST_NODES if options.nodes is None else int(options.nodes)
    wanted = wanted_of(
        days=options.within,
        budget=options.budget,
        fewest=options.fewest_nodes,
        tokens=options.tokens,
        price=options.gpu_hour_price,
        failures=interruption(options.failures),
        fit_chance=options.fit_chance / 100,
        most_nodes=most,
    )
    options.nodes = None
    found = sizing(planned_scenario_of(options).but(nodes=1), wanted)
    return Answer(_data(found), "\n".join(_text(found)))


def _data(found: Sizing) -> dict[str, Any]:
    question, wanted = found.question, found.wanted
    goal = wanted.goal
    return {
        "model": question.model.name,
        "accelerator": question.accelerator.name,
        "question": goal.kind,
        "tokens": wanted.tokens,
        "most_days": goal.most_s / DAY_S if goal.kind == DEADLINE else None,
        "budget": goal.budget if goal.kind == BUDGET else None,
        "gpu_hour_price": wanted.price,
        "fit_chance": wanted.fit_chance,
        "failures": wanted.failures.name,
        "interval_of": question.residuals.name,
        "best": None if found.best is None else asdict(found.best),
        "node_counts": [asdict(one) for one in found.found],
    }


def _text(found: Sizing) -> list[str]:
    question, wanted = found.question, found.wanted
    lines = [f"{question.model.name} on {question.accelerator.name}: {_asked(found)}"]
    best = found.best
    if best is None or best.row is None:
        lines.append(_none(found))
    else:
        lines.append(f"{best.nodes:,} nodes, {best.gpus:,} GPUs: {label(best.row)}")
        lines += hosts_lines(question.hosts_said(best.nodes))
        step = format_quantity(best.row.step_s, "s", "time")
        lines.append(f"{step} a step{''.join(f'; {part}' for part in _training(best))}")
    if best is not None and wanted.tokens is not None:
        lines.append(
            f"days include failures as in {wanted.failures.title}; energy is at most that of the "
            "GPUs at their power limit, without hosts, network and cooling"
        )
    return [*lines, *_table(found)]


def _asked(found: Sizing) -> str:
    wanted = found.wanted
    goal = wanted.goal
    tokens = "" if wanted.tokens is None else f"{wanted.tokens:.4g} tokens"
    if goal.kind == DEADLINE:
        return f"the fewest nodes for {tokens} within {goal.most_s / DAY_S:,.4g} days"
    if goal.kind == BUDGET:
        return f"the earliest finish of {tokens} for a price of {goal.budget:,.6g}"
    return f"the fewest nodes on which it fits with a chance of {100 * wanted.fit_chance:.4g}%"


def _none(found: Sizing) -> str:
    goal = found.wanted.goal
    fitting = [one for one in found.found if one.row is not None]
    if not fitting:
        return f"it doesn't fit on any number of nodes up to {goal.most_nodes:,}"
    if goal.kind == BUDGET:
        one = min(fitting, key=lambda one: one.price or 0.0)
        return f"no number of nodes is that cheap; {one.nodes:,} cost least, {one.price:,.4g}"
    one = min(fitting, key=lambda one: one.days or 0.0)
    return f"no number of nodes is that fast; {one.nodes:,} take {one.days:,.3g} days"


def _training(one: Sized) -> list[str]:
    if one.days is None:
        return []
    return [
        f"{one.days:,.3g} days ({one.low_days:,.3g} to {one.high_days:,.3g})",
        f"{one.gpu_hours:,.4g} GPU-hours",
        *([] if one.price is None else [f"a price of {one.price:,.4g}"]),
        *([] if one.energy_j is None else [f"at most {_energy(one.energy_j)}"]),
    ]


def _energy(joules: float) -> str:
    return f"{joules / 3.6e9:,.3g} MWh"


def _table(found: Sizing) -> list[str]:
    timed, priced = found.wanted.tokens is not None, found.wanted.price is not None
    more = ["days", "GPU-hours", *(["price"] if priced else []), "energy"] if timed else []
    head = ["nodes", "layout", "step", *more]
    body = []
    for one in found.found:
        if one.row is None:
            body.append([f"{one.nodes:,}", "does not fit", *[""] * (len(head) - 2)])
            continue
        mark = " ←" if one is found.best else ""
        cells = [
            f"{one.nodes:,}{mark}",
            label(one.row),
            format_quantity(one.row.step_s, "s", "time"),
        ]
        if timed:
            cells += [f"{one.days:,.3g}", f"{one.gpu_hours:,.4g}"]
            cells += [f"{one.price:,.4g}"] if priced else []
            cells += [_energy(one.energy_j) if one.energy_j is not None else ""]
        body.append(cells)
    return aligned([head, *body], left=2)
