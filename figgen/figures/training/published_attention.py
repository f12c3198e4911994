"""Published measurements of the attention core, next to the rate in the step model."""

from __future__ import annotations

from figgen.catalog.attention_tables import AttentionTable, attention_table, attention_tables
from figgen.catalog.rates import constants
from figgen.charts import Column, Named, Scalar, Table
from figgen.plotting.placed import headings
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.runs.residual_classes import generation_of


@figure("attention-rates")
def attention_rates(*, format: str = "bf16") -> Table:  # the tables' own word
    """Rates of the causal core by chip and length: forward, backward, and both as one rate.

    `fitted` is the share of the dense 16-bit peak in the step model for the generation.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for chip in attention_tables():
        table = attention_table(chip)
        peak = table.accelerator.peak_flops_per_s("bf16")
        key = identifier(chip)
        for sequence, (forward, backward, both) in sorted(_rates(table, format).items()):
            rows.append((
                table.accelerator.title, sequence, forward, backward, both, both / peak
            ))  # fmt: skip
            values |= {
                f"{key}_{sequence}": Named(both, "FLOP/s"),
                f"{key}_{sequence}_share": Named(both / peak),
            }
        fitted = constants()[f"attention_share.{generation_of(table.accelerator)}"].value
        values[f"{key}_fitted"] = Named(fitted)
    values["rows"] = Named(len(rows))
    return Table(
        columns=(
            Column(label="chip"),
            Column(label="tokens", spec=","),
            *headings("forward", "backward", "both", unit="FLOP/s", spec="flops"),
            Column(label="of the 16-bit peak", spec=".1%"),
        ),
        rows=tuple(rows),
        values=values,
    )


def _rates(table: AttentionTable, name: str) -> dict[int, tuple[float, float, float]]:
    """Return forward, backward and both by length; gradients may be non-deterministic."""
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for one in table.passes:
        if one.format == name and one.causal and not one.deterministic:
            found.setdefault(one.sequence, {})[one.way] = (one.flops, one.seconds)
    rates = {}
    for sequence, passes in found.items():
        (work, seconds), (more, longer) = passes["forward"], passes["backward"]
        rates[sequence] = (work / seconds, more / longer, (work + more) / (seconds + longer))
    return rates
