"""Savings and costs of recomputing parts of a layer, and how DeepSeek-V3 fits."""

from __future__ import annotations

from figgen.charts import Bars, Column, Named, Scalar, Table
from figgen.figures.training.step import fullest_bars
from figgen.models.memory.activations import layer_bytes, peak_activation_bytes
from figgen.models.setup.stage_layers import StageShare
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recomputation import MODULES, NOT_MEGATRON, SECOND
from figgen.models.step.stage_work import stage_work
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.options.option import Choices
from figgen.scenarios.options.resolve import resolve, training_step
from figgen.scenarios.options.scenario import scenario

BEFORE = "megatron-lm 24.12"
"""Megatron-LM before it multiplied gates inside experts, which was the first thing it saved."""


@figure("recompute-modules")
def recompute_modules(*, model: str = "deepseek-v3", ep: int = 64) -> Table:
    """For each module: bytes saved per layer per sequence, and matmuls repeated.

    The layer is a mixture of experts if the model has one, otherwise dense. FlashAttention stores
    no scores.
    """
    asked = scenario(
        model=model,
        nodes=max(1, ep // 8),
        gpus_per_node=min(8, ep),
        ep=ep,
        software=BEFORE,
    )

    def found(recompute: str) -> TrainingSetup:
        return resolve(asked.but(recompute=recompute)).setup

    plain = found("none")
    experts = plain.shape.experts is not None
    one = StageShare(
        first_layer=0, layers=1, expert_layers=int(experts), embedding=False, head=False
    )
    whole, forward = layer_bytes(plain, experts=experts), stage_work(plain, one).forward
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name, said in [*MODULES.items(), ("full", "the whole layer")]:
        if experts and name == SECOND:
            continue  # what torchtitan does to dense layers
        setup = found(name)
        saved = whole - layer_bytes(setup, experts=experts)
        again = stage_work(setup, one).recomputed / forward
        if saved:
            flag = "granularity full" if name == "full" else NOT_MEGATRON.get(name, "accepted")
            rows.append((name, said, flag, saved, saved / whole, again))
            values |= {name: Named(saved, "B"), f"{name}_share": Named(saved / whole)}
            values[f"{name}_again"] = Named(again)
    rows.sort(key=lambda row: float(row[3]))
    columns = (
        *headings("module", "what is made again", "Megatron-LM's flag"),
        Column(label="saved per layer", unit="B", spec="bytes"),
        *headings("of what it keeps", "of its forward again", spec=".1%"),
    )
    values |= {"kept": Named(whole, "B"), "sequence": Named(plain.sequence, "token")}
    values["own"] = Named(sum(row[0] in NOT_MEGATRON for row in rows))
    return Table(columns=columns, rows=tuple(rows), values=values | {"modules": Named(len(rows))})


PRINTED = (
    ("activations, all kept", "16-bit", "", 131.0),
    ("gates before the down-projection", "16-bit", "moe_gate", 26.3),
    ("latent up-projections", "16-bit", "mla_up_proj", 30.4),
    ("SwiGLU of experts, in FP8", "fp8", "moe_act", 3.8),
    ("norms, in FP8", "fp8", "layernorm", 8.2),
    ("FP8 inputs of matmuls", "fp8", "", 16),
)
"""GiB of Yan et al. 2026, arXiv:2603.07685, tables 3 and 4 and section 4.1."""


@figure("recompute-published")
def recompute_published() -> Table:
    """Activations of DeepSeek-V3 under Megatron-LM and their savings, printed and computed.

    They are those of the third of four pipeline ranks, whose chunks have four layers each, as in
    the printed sums.
    """

    def held(recompute: str, activations: str) -> float:
        step = training_step(
            model="deepseek-v3",
            accelerator="gb200-nvl72",
            nodes=64,
            gpus_per_node=4,
            pp=4,
            ep=64,
            schedule="interleaved-1f1b",
            chunks=4,
            microbatches=32,
            recompute=recompute or "none",
            activations=activations,
            software=BEFORE,
        )
        return peak_activation_bytes(step.setup)[2]

    rows: list[tuple[Scalar, ...]] = []
    for said, activations, module, printed in PRINTED:
        size = held(module, activations)
        if module:
            size = held("", activations) - size
        elif activations != "16-bit":
            size = held("", "16-bit") - size
        rows.append((said, size, printed * 2**30, size / (printed * 2**30) - 1))
    columns = (
        Column(label="what"),
        *headings("computed", "printed", unit="B", spec="gib"),
        Column(label="difference", spec="+.1%"),
    )
    return Table(
        columns=columns,
        rows=tuple(rows),
        values={
            "activations": Named(float(rows[0][1]), "B"),
            "largest": Named(max(abs(float(row[3])) for row in rows)),
            "rows": Named(len(rows)),
        },
    )


WIDE: Choices = {"activations": "16-bit", "recipe": "mcore18"}
LADDER: dict[str, Choices] = {
    "everything kept, in 16 bits": {**WIDE, "recompute": "none", "software": BEFORE},
    "gates in the experts": {**WIDE, "recompute": "none"},
    "norms, up-projections, SwiGLU again": WIDE,
    "activations in 8 bits": {"recipe": "mcore18"},
    "moments in 16 bits": {},
}
"""Measures that are added one by one; each row includes the measures of the rows above it."""


@figure("recompute-ladder")
def recompute_ladder(*, preset: str = "deepseek-v3") -> Bars:
    """Memory of the fullest GPU of a run as measures are added one by one."""
    found = {
        label: training_step(preset=preset, **chosen).memory for label, chosen in LADDER.items()
    }
    return fullest_bars(found, ("kept", "gates", "again", "eight_bit", "all"))
