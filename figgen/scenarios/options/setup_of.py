"""The training setup of a job's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from figgen.json_text import record_of
from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.recipes import recipe
from figgen.scenarios.options.microbatches import microbatches_of


def layout_of(values: Mapping[str, Any]) -> ParallelLayout:
    """Return the layout for completed options. Raises InputError for sizes that do not fit."""
    return layout(
        nodes=values["nodes"],
        gpus_per_node=values["gpus_per_node"],
        tp=values["tp"],
        cp=values["cp"],
        pp=values["pp"],
        ep=values["ep"],
        etp=values["etp"],
        dp=values["dp"],
        order=values["order"],
    )


def setup_of(shape: ModelShape, values: Mapping[str, Any], framework: str) -> TrainingSetup:
    """Return the setup for completed options and a model of any shape.

    `framework` is the software whose memory use is modeled. Raises InputError for a combination
    that does not fit.
    """
    parallel, sequence = layout_of(values), values["sequence"]
    microbatches = microbatches_of(
        parallel, values["microbatches"], values["global_batch"], values["microbatch_size"]
    )
    return record_of(
        TrainingSetup,
        {
            **values,
            "shape": shape,
            "parallel": parallel,
            "microbatches": microbatches,
            "sequence": shape.sequence if sequence is None else sequence,
            "recipe": recipe(values["recipe"]),
            "framework": framework,
            "document_tokens": tuple(values["document_tokens"] or ()),
            "layers_per_stage": tuple(values["layers_per_stage"] or ()),
        },
    )
