"""Multi-token prediction: the work that a module adds to the last stage."""

from __future__ import annotations

from figgen.catalog import model
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.models.machine.layout import layout
from figgen.models.memory.activations import stage_bytes
from figgen.models.memory.rank_parameters import stage_parameters
from figgen.models.setup.stage_layers import layers_of_stages, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.stage_work import stage_work
from figgen.plotting.placed import headings
from figgen.registry import figure


@figure("mtp-stages")
def mtp_stages(
    *, model_name: str = "deepseek-v3", stages: int = 16, ep: int = 8, sequence: int = 4096
) -> Table:
    """The last stage and a middle one: no module, a module with an even cut, the common cut."""
    check_between("stages", stages, 2, 128)
    shape = model(model_name).shape
    parallel = layout(nodes=stages * ep // 8 or 1, gpus_per_node=8, pp=stages, ep=ep, etp=1)
    even = layers_of_stages(shape.layers, stages)
    runs = [
        TrainingSetup(
            shape=shape,
            parallel=parallel,
            microbatches=stages,
            sequence=sequence,
            mtp_layers=modules,
            layers_per_stage=given,
        )
        for modules, given in ((0, even), (1, even), (1, ()))
    ]
    rows: list[tuple[Scalar, ...]] = []
    values = {"stages": Named(stages), "ep": Named(ep)}
    titles = ("none", "one, layers spread evenly", "one, the usual cut")
    for place, (title, run) in enumerate(zip(titles, runs, strict=True)):
        for stage in (stages - 1, stages // 2):
            share = virtual_stage_shares(run)[stage]
            held = sum(part.count for part in stage_parameters(run, stage))
            work, kept = stage_work(run, share).forward, stage_bytes(run, share)
            last = stage == stages - 1
            layers = f"{share.layers - share.mtp_layers} + {share.mtp_layers}"
            rows.append((title, "last" if last else "another", layers, held, work, kept))
            name = "work" if last else "other"
            values[f"{name}_{place}"] = Named(work, "FLOP")
            if last:
                values[f"parameters_{place}"] = Named(held)
                values[f"kept_{place}"] = Named(kept, "B")
    cut = virtual_stage_shares(runs[2])[-1]
    values["given"] = Named(even[-1] - cut.layers + cut.mtp_layers)
    columns = (
        *headings("modules", "stage", "layers + module's"),
        Column(label="parameters per GPU", spec="si"),
        Column(label="forward pass per microbatch", unit="FLOP", spec="flops"),
        Column(label="kept of it", unit="B", spec="bytes"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
