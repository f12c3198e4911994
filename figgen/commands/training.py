"""What verbs about training jobs share: their options, the scenario, and aligned tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from figgen.errors import InputError, unknown
from figgen.models.memory.trained_state import trained_parameters
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.adapters import ADAPTED
from figgen.quantity_shown import span_shown
from figgen.scenarios.options.config_json import named_model
from figgen.scenarios.options.option import Choices, Option, Value
from figgen.scenarios.options.own_model import SIZES, OwnModel, kind_of_size
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.options.scenario import Scenario, scenario
from figgen.scenarios.options.schema import OPTIONS, asked_by
from figgen.scenarios.options.typed import typed_amount, typed_batch
from figgen.scenarios.planning.plan_question import NOT_PLANNED, SEARCHED
from figgen.scenarios.runs.class_ends import UNKNOWN
from figgen.scenarios.taking.options import LAYOUT, answers_of, options_of, taken_from
from figgen.units import format_quantity

MOST_LISTED = 16
UNLISTED = ("model", "accelerator", "nic", "software", "recompute")
"""Options whose names the help does not list: reading all of them takes a fifth of a second of
every command, and the hint says what they are."""


def add_options(parser: argparse.ArgumentParser, question: str) -> None:
    """Add the options for one of the schema's questions, and the options for a starting point."""
    parser.add_argument("--preset", help="start from a preset of the catalog; options change it")
    parser.add_argument(
        "--run", dest="run_name", metavar="RUN", help="start from a published run of the catalog"
    )
    add_file(parser)
    if question != "layout":
        add_sizes(parser)
    for option in asked_by(question):
        flag, said = option.command_flag, _help(option)
        if option.kind == "switch":
            value = option.default is not True
            parser.add_argument(
                flag, dest=option.name, action="store_const", const=value, help=said
            )
        else:
            parser.add_argument(flag, dest=option.name, metavar=_kind(option), help=said)
        for name, values in option.former.items():
            parser.add_argument(
                f"--{name}", dest=option.name, type=_former(name, values), help=argparse.SUPPRESS
            )


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a file to read the job from, and the one that sets variables."""
    parser.add_argument(
        "--take", metavar="FILE",
        help="start from a script or configuration, as `figgen take` reads it; options change it",
    )  # fmt: skip
    parser.add_argument(
        "--set", dest="answers", metavar="NAME=VALUE", action="append", default=[],
        help="the value of a variable that the file of --take does not set; may be repeated",
    )  # fmt: skip


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add the options for the sizes of your own model, or for changed sizes of a named model."""
    for name, said in SIZES.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, dest=f"size_{name}", metavar=kind_of_size(name), help=said)


def _former(name: str, values: Mapping[str, str]) -> Callable[[str], str]:
    """Reads a value of an option by its former name, as the value's current name."""

    def read(value: str) -> str:
        if value not in values:
            raise argparse.ArgumentTypeError(str(unknown(name, value, values)))
        return values[value]

    return read


def _kind(option: Option) -> str:
    return {"whole": "N", "counts": "N,N", "number": "X", "quantity": option.unit}.get(
        option.kind, "NAME"
    )


def _help(option: Option) -> str:
    default = option.default
    if option.kind == "quantity" and isinstance(default, float):
        default = format_quantity(default, option.unit)
    taken = option.left_out or ("" if default in (None, True, False, ()) else str(default))
    usual = f"{taken} if left out" if taken else ""
    choices = option.choices() if option.choices and option.name not in UNLISTED else ()
    names = ", ".join(choices) if len(choices) <= MOST_LISTED else ""
    label = f"switch off: {option.label}" if option.default is True else option.label
    said = (label, option.hint, names, usual)
    return "; ".join(part for part in said if part).replace("%", "%%")


def chosen_of(options: argparse.Namespace) -> Choices:
    """Return the options that were typed.

    Raises InputError for a value that its option cannot have.
    """
    typed = {name: value for name, value in vars(options).items() if name in OPTIONS}
    tokens = _tokens_of(typed)
    chosen = {
        name: OPTIONS[name].read(value) if isinstance(value, str) else value
        for name, value in typed.items()
        if value is not None
    }
    if getattr(options, "take", None):
        chosen = _over(taken_options(options), chosen)
    sizes = {name: getattr(options, f"size_{name}", None) for name in SIZES}
    given = [f"{name}={value}" for name, value in sizes.items() if value is not None]
    if given:
        base = chosen.get("model")
        text = ",".join([str(base), *given] if base else given)
        chosen["model"] = OPTIONS["model"].read(text)
    if tokens:
        chosen["global_batch"] = typed_batch(tokens, _sequence_of(chosen), 1)
    return chosen


def _tokens_of(typed: dict[str, Any]) -> str:
    """Remove a global batch in tokens, such as "4M tokens", from what was typed, and return it."""
    batch = typed.get("global_batch")
    return str(typed.pop("global_batch")) if isinstance(batch, str) and "tok" in batch else ""


def _sequence_of(chosen: Choices) -> int:
    """Return the tokens of a sequence: the chosen number, or else the model's own.

    Raises InputError if there is neither, as with a preset.
    """
    if chosen.get("sequence"):
        return int(str(chosen["sequence"]))
    if not chosen.get("model"):
        expected = "--sequence together with a batch in tokens"
        raise InputError("global_batch", expected=expected, key="global_batch")
    return named_model(str(chosen["model"])).shape.sequence


def taken_options(options: argparse.Namespace) -> Choices:
    """Return the options of the file given with `--take`.

    Raises InputError for a file that describes no job, and for unset variables in it.
    """
    return options_of(taken_from(options.take, answers_of(options.answers)))


def _over(taken: Choices, chosen: Choices) -> dict[str, Value]:
    """Merge typed options into a file's, and drop the file's values that typed ones contradict."""
    kept = dict(taken)
    if any(name in chosen for name in LAYOUT):
        kept.pop("dp", None)
    if "microbatches" in chosen:
        kept.pop("global_batch", None)
    if "global_batch" in chosen:
        kept.pop("microbatches", None)
    return {**kept, **chosen}


def scenario_of(options: argparse.Namespace) -> Scenario:
    """Return the scenario of parsed options. Raises InputError if it is impossible."""
    return scenario(preset=options.preset, run=options.run_name, **chosen_of(options))


def planned_scenario_of(options: argparse.Namespace) -> Scenario:
    """Return the scenario for a search, which is free to change the layout that a file describes.

    Raises InputError if the scenario is impossible.
    """
    if not options.take:
        return scenario_of(options)
    taken = dict(taken_options(options))
    options.take = None
    count, replicas = taken.get("microbatches"), taken.get("dp")
    if isinstance(count, int) and isinstance(replicas, int) and "global_batch" not in taken:
        taken["global_batch"] = count * replicas * int(str(taken.get("microbatch_size", 1)))
    kept = {name: taken[name] for name in taken if name not in (*SEARCHED, *NOT_PLANNED)}
    chosen = {**kept, **chosen_of(options)}
    return scenario(preset=options.preset, run=options.run_name, **chosen)


def described(name: str, setup: TrainingSetup) -> str:
    """Return the setup in two lines."""
    parallel, experts = setup.parallel, setup.shape.experts
    axes = ("tp", "cp", "dp", "pp", *(("ep", "etp", "edp") if experts else ()))
    sizes = " ".join(f"{axis}={getattr(parallel, axis)}" for axis in axes)
    lora = ""
    if setup.lora_rank is not None:
        count = trained_parameters(setup)
        lora = (
            f"\nLoRA of rank {setup.lora_rank} next to {ADAPTED[setup.lora_matrices]}: {count:,} "
            f"parameters trained, the others frozen in {setup.frozen_format.label}"
        )
    packed = packed_words(setup.document_tokens)
    return (
        f"{name} on {parallel.world_size} GPUs: {sizes}, {setup.schedule}, "
        f"ZeRO {setup.zero_stage}, {setup.recipe.name}, recompute {setup.recompute}, "
        f"activations {setup.activations}\n"
        f"{setup.microbatches} microbatches of {setup.microbatch_size} × {setup.sequence:,} tokens "
        f"per replica{packed}, {format_quantity(setup.tokens_per_step, '1', 'si')} tokens per step"
        f"{lora}"
    )


def packed_words(documents: tuple[int, ...]) -> str:
    """Return in words how many documents a sequence packs; empty if it is one document."""
    if not documents:
        return ""
    if len(documents) == 1:
        return f", packed with documents of {documents[0]:,} tokens on average"
    return f", packed with {len(documents)} documents of {sum(map(int, documents)):,} tokens"


def interval_data(found: TrainingStep) -> dict[str, object]:
    """Return the interval of a predicted step for JSON, empty if none was measured."""
    if not found.has_interval:
        return {}
    return {
        "step_time_interval_s": list(found.interval_s),
        "interval_of": found.predicted.residuals.name,
    }


def interval_lines(found: TrainingStep) -> list[str]:
    """Return the interval as a line for a terminal, empty if none was measured."""
    if found.time_factor is not None:
        return [f"all times are {found.time_factor:.3g} × the prediction, as you asked"]
    if not found.has_interval:
        return []
    between = span_shown(*found.interval_s)
    software = f"{found.software}{' on what was measured' if found.measured else ''}"
    if found.predicted.residuals.name == UNKNOWN:
        return [
            f"as predicted for {software}; no similar run was part of the fit, so the interval is "
            f"wide, {between}"
        ]
    return [
        f"as predicted for {software}; eight in ten runs of the class "
        f"{found.predicted.residuals.name!r} are within {between}"
    ]


def hosts_lines(said: str) -> list[str]:
    """Return what the nodes count as for a terminal, nothing where there is only one way."""
    return [said] if said else []


def model_notes(asked: TrainingStep) -> tuple[str, ...]:
    """Return notes on what the shape leaves out of the model's file."""
    return asked.model.notes if isinstance(asked.model, OwnModel) else ()


def model_notes_data(asked: TrainingStep) -> dict[str, object]:
    """Return the notes on a model's file for JSON, empty if there are none."""
    notes = model_notes(asked)
    return {"model_notes": list(notes)} if notes else {}


def aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return rows as lines of equal columns, the first `left` of them flush left, others right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def seconds_of(text: str | None) -> float | None:
    """Parse a time such as `9.5 s` or `2h30`, or a plain number of seconds.

    Raises InputError for other text.
    """
    return None if text is None else typed_amount("step_time", text, "s", 1.0)
