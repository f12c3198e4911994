"""All-to-all inside nodes and a ring between them, against a ring or a gather over all ranks."""

from __future__ import annotations

from figgen.charts import Column, Named, Scalar, Table
from figgen.figures.training.step import step_interval
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.options.resolve import training_step


@figure("cp-grid")
def cp_grid(
    *,
    model: str = "llama-2-7b",
    accelerator: str = "a100-sxm-80gb",
    nic: str = "ib-hdr",
    nodes: int = 8,
    sequences: tuple[int, ...] = (262144, 524288, 1048576),
) -> Table:
    """Predicted steps of one long sequence on all GPUs, by exchange between context ranks."""
    ways = ("p2p", "all-gather", "a2a+p2p")
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    steps = []
    for sequence in sequences:
        found = [
            training_step(
                model=model,
                accelerator=accelerator,
                nic=nic,
                nodes=nodes,
                cp=8 * nodes,
                sequence=sequence,
                recompute="full",
                microbatches=1,
                context_exchange=way,
            )
            for way in ways
        ]
        times = [one.estimate.step_time_s for one in found]
        rows.append((float(sequence), *times, times[0] / times[2]))
        values |= {f"gain_{sequence // 1024}": Named(times[0] / times[2])}
        steps += found
    columns = (
        Column(label="tokens", spec=","),
        *headings("ring", "gather", "all-to-all in nodes, ring between", unit="s", spec="time"),
        Column(label="ring over that", spec=".2f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values | step_interval(*steps))
