"""What the verbs about training steps share: their options, the setup, aligned tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from figgen.catalog import model
from figgen.errors import InputError, check_size
from figgen.models.activation_formats import FORMATS
from figgen.models.layout import ParallelLayout, layout
from figgen.models.model_shape import ModelShape
from figgen.models.recipes import RECIPES, recipe
from figgen.models.recomputation import MODULES
from figgen.models.schedules import SCHEDULES
from figgen.models.training_setup import CONTEXT_EXCHANGES, ZERO_STAGES, TrainingSetup
from figgen.units import format_quantity


def add_setup_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Options that make a `TrainingSetup`; model and cluster need not be said if not `required`."""
    parser.add_argument("--model", required=required, help="a model of the catalog")
    for name in ("nodes", "gpus-per-node"):
        parser.add_argument(f"--{name}", type=int, required=required)
    for name in ("tp", "cp", "pp", "ep"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--etp", type=int, help="what the framework takes when left out")
    parser.add_argument("--order", default="megatron", help="a framework, or tp-cp-dp-pp")
    parser.add_argument("--microbatches", type=int, help="per replica; 4·PP when left out")
    parser.add_argument("--global-batch", type=int, help="in sequences, instead of microbatches")
    parser.add_argument("--microbatch-size", type=int, default=1, help="in sequences")
    parser.add_argument("--sequence", type=int, help="tokens; the model's own when left out")
    parser.add_argument("--schedule", default="1f1b", help=", ".join(SCHEDULES))
    parser.add_argument("--chunks", type=int, help="virtual stages per pipeline rank")
    parser.add_argument("--zero", type=int, choices=ZERO_STAGES, default=1, help="ZeRO stage")
    parser.add_argument("--recipe", default="mcore18", help=", ".join(RECIPES))
    parser.add_argument(
        "--recompute",
        default="none",
        help=f"selective, full, uniform:N, block:N, or of {','.join(MODULES)}",
    )
    parser.add_argument("--activations", default="16-bit", help=", ".join(FORMATS))
    parser.add_argument("--context-exchange", choices=CONTEXT_EXCHANGES, default="p2p")
    parser.add_argument("--no-sequence-parallel", action="store_true")
    parser.add_argument("--no-flash-attention", action="store_true", help="store attention scores")
    parser.add_argument("--dropout", action="store_true", help="keep the masks of dropout")
    parser.add_argument("--buckets", type=int, help="messages of gradients; one per layer if not")
    parser.add_argument(
        "--layers-per-stage", help="of each virtual stage: 8,9,9,6; none is 0; even when left out"
    )
    parser.add_argument(
        "--no-double-buffering", action="store_true", help="no second buffer for keys or weights"
    )


def layout_of(options: argparse.Namespace, *, dp: int | None = None) -> ParallelLayout:
    """The layout of parsed options. Raises InputError for sizes, `dp` too, that do not fit."""
    return layout(
        nodes=options.nodes,
        gpus_per_node=options.gpus_per_node,
        tp=options.tp,
        cp=options.cp,
        pp=options.pp,
        ep=options.ep,
        etp=options.etp,
        dp=dp,
        order=options.order,
    )


def setup_of(options: argparse.Namespace, *, overlap: bool = True) -> TrainingSetup:
    """The setup of parsed options. Raises InputError for names or sizes that do not fit."""
    return setup_with(model(options.model).shape, options, overlap=overlap)


def setup_with(
    shape: ModelShape, options: argparse.Namespace, *, overlap: bool = True
) -> TrainingSetup:
    """The setup of parsed options for a model of any shape."""
    parallel = layout_of(options)
    return TrainingSetup(
        shape=shape,
        parallel=parallel,
        microbatches=microbatches_of(options, parallel),
        sequence=shape.sequence if options.sequence is None else options.sequence,
        microbatch_size=options.microbatch_size,
        schedule=options.schedule,
        chunks=options.chunks,
        recipe=recipe(options.recipe),
        zero_stage=options.zero,
        recompute=options.recompute,
        activations=options.activations,
        sequence_parallel=not options.no_sequence_parallel,
        flash_attention=not options.no_flash_attention,
        dropout=options.dropout,
        context_exchange=options.context_exchange,
        buckets=options.buckets,
        overlap_data_parallel=overlap,
        double_buffering=not options.no_double_buffering,
        layers_per_stage=counts_of(options.layers_per_stage),
    )


def microbatches_of(options: argparse.Namespace, parallel: ParallelLayout) -> int:
    """Microbatches of a replica: as given, out of the global batch, or four per stage.

    Raises InputError for a global batch that the replicas do not share evenly.
    """
    if options.global_batch is None:
        given: int | None = options.microbatches
        return 4 * parallel.pp if given is None else given
    share = parallel.dp * check_size("microbatch_size", options.microbatch_size)
    if check_size("global_batch", options.global_batch) % share:
        expected = f"a multiple of dp · microbatch_size = {share}"
        raise InputError("global_batch", expected=expected, got=options.global_batch)
    return int(options.global_batch // share)


def counts_of(text: str | None) -> tuple[int, ...]:
    """Whole numbers written with commas between them. Raises InputError for anything else."""
    words = text.split(",") if text else []
    if not all(word.strip().isdecimal() for word in words):
        raise InputError("layers_per_stage", expected="counts such as 8,9,9,6", got=text)
    return tuple(map(int, words))


def described(name: str, setup: TrainingSetup) -> str:
    """The setup in two lines."""
    parallel, experts = setup.parallel, setup.shape.experts
    axes = ("tp", "cp", "dp", "pp", *(("ep", "etp", "edp") if experts else ()))
    sizes = " ".join(f"{axis}={getattr(parallel, axis)}" for axis in axes)
    return (
        f"{name} on {parallel.world_size} GPUs: {sizes}, {setup.schedule}, "
        f"ZeRO {setup.zero_stage}, {setup.recipe.name}, recompute {setup.recompute}, "
        f"activations {setup.activations}\n"
        f"{setup.microbatches} microbatches of {setup.microbatch_size} × {setup.sequence:,} tokens "
        f"per replica, {format_quantity(setup.tokens_per_step, '1', 'si')} tokens per step"
    )


def setup_data(name: str, setup: TrainingSetup) -> dict[str, object]:
    """The setup for JSON."""
    parallel = setup.parallel
    return {
        "model": name,
        "world_size": parallel.world_size,
        **{axis: getattr(parallel, axis) for axis in ("tp", "cp", "dp", "pp", "ep", "etp", "edp")},
        "schedule": setup.schedule,
        "microbatches": setup.microbatches,
        "microbatch_size": setup.microbatch_size,
        "sequence": setup.sequence,
        "tokens_per_step": setup.tokens_per_step,
        "zero_stage": setup.zero_stage,
        "recipe": setup.recipe.name,
        "recompute": setup.recompute,
        "activations": setup.activations,
    }


def aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Rows as lines of equal columns, the first `left` of them flush left, numbers flush right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
