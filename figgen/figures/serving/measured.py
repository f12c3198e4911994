"""Published decoding rates next to the bound that memory bandwidth sets."""

from __future__ import annotations

from figgen.catalog import accelerator, model
from figgen.charts import Column, Named, Scalar, Table
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.evidence.decoding import TENSORRT_LLM, decode_step


@figure("decode-measured")
def decode_measured(*, chip: str = "h100-sxm-80gb") -> Table:
    """Published seconds of a step against reading weights and caches once, in FP8."""
    memory = accelerator(chip).hbm_bandwidth_bytes_per_s
    rows: list[tuple[Scalar, ...]] = []
    shares: list[float] = []
    for one in TENSORRT_LLM:
        found = model(one.model)
        held, cached, least, measured = decode_step(one, memory)
        shares.append(least / measured)
        rows.append((
            found.title, one.gpus, one.sequences, one.prompt, held + one.sequences * cached,
            least, measured, least / measured,
        ))  # fmt: skip
    columns = (
        *headings("model", "H100", "answers at once", "tokens of a prompt"),
        Column(label="read in a step", unit="B", spec="bytes"),
        *headings("at least", "measured", unit="s", spec="time"),
        Column(label="of the bandwidth", spec=".0%"),
    )
    (answer,) = {one.answer for one in TENSORRT_LLM}
    values = {"least": Named(min(shares)), "most": Named(max(shares)), "answer": Named(answer)}
    return Table(columns=columns, rows=tuple(rows), values=values)
