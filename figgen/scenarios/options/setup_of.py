"""The training setup of a job's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from figgen.json_text import record_of
from figgen.models.machine.hardware import Chip
from figgen.models.machine.hosts import joined
from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.recipes import recipe
from figgen.scenarios.options.microbatches import microbatches_of


def layout_of(values: Mapping[str, Any]) -> ParallelLayout:
    """Return the layout for completed options, on nodes as they are launched.

    Raises InputError for sizes that do not fit.
    """
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


def joined_layout(values: Mapping[str, Any], chip: Chip) -> ParallelLayout:
    """Return the layout in which hosts of the chip that share fast links count as one node.

    With `join_hosts` off, it is that of `layout_of`. Raises InputError for sizes that do not fit.
    """
    launched = layout_of(values)
    share: bool = values["join_hosts"]
    return joined(launched, chip) if share else launched


def setup_of(
    shape: ModelShape, values: Mapping[str, Any], framework: str, chip: Chip
) -> TrainingSetup:
    """Return the setup for completed options and a model of any shape.

    `framework` is the software whose memory use is modeled. The layout is that of `joined_layout`.
    Raises InputError for a combination that does not fit.
    """
    parallel, sequence = joined_layout(values, chip), values["sequence"]
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
