"""Fine-tuning: adapters, quantized weights, and the memory and time of optimizers."""

from __future__ import annotations

from typing import Any

from figgen import catalog
from figgen.charts import Axis, Bars, Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.fine_tuning import factored_moment_numbers, newton_schulz_overhead
from figgen.models.memory.memory_lines import PARTS
from figgen.models.memory.trained_state import trained_parameters
from figgen.models.setup.layer_matrices import layer_matrices
from figgen.models.shape.adapters import FROZEN
from figgen.models.shape.recipes import EIGHT_BITS
from figgen.models.shape.transformer import flops_per_token
from figgen.models.step.newton_schulz import busiest_flops
from figgen.models.step.stage_work import unneeded_flops_per_token
from figgen.models.step.step_rows import sent_by_axis
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.registry import figure
from figgen.scenarios.options.option import Value
from figgen.scenarios.options.resolve import TrainingStep, training_step

STATE = ("weights", "gradients", "optimizer")


def fine_tuned(model: str, lora_rank: int, **sizes: Value) -> dict[str, TrainingStep]:
    """Return a job that trains everything with Adam, with 8-bit moments, and with adapters."""
    check_between("lora_rank", lora_rank, 1, 4096)
    ways: dict[str, dict[str, Any]] = {
        "Adam, all parameters": {},
        "8-bit Adam, all parameters": {"recipe": "adam10"},
        f"LoRA, rank {lora_rank}": {"lora_rank": lora_rank},
        f"QLoRA, rank {lora_rank}": {"lora_rank": lora_rank, "frozen_weights": "nf4"},
    }
    usual: dict[str, Any] = {"model": model, "recipe": "zero16", **sizes}
    return {name: training_step(**usual | chosen) for name, chosen in ways.items()}


@figure("fine-tuning-memory")
def fine_tuning_memory(
    *, model: str = "llama-3-8b", lora_rank: int = 16, sequence: int = 4096
) -> Bars:
    """Memory by part of one GPU that fine-tunes a model whole, or with adapters.

    There is one sequence at a time, and every layer is recomputed.
    """
    found = fine_tuned(
        model,
        lora_rank,
        nodes=1,
        gpus_per_node=1,
        microbatches=1,
        sequence=sequence,
        zero_stage=0,
        recompute="full",
    )
    ranks = [one.memory.fullest for one in found.values()]
    keys = ("adam", "adam8", "lora", "qlora")
    values = {
        key: Named(sum(rank.bytes_of(part) for part in STATE), "B")
        for key, rank in zip(keys, ranks, strict=True)
    } | {f"{key}_all": Named(rank.total_bytes, "B") for key, rank in zip(keys, ranks, strict=True)}
    setup = found[f"LoRA, rank {lora_rank}"].setup
    trained, count = trained_parameters(setup), ranks[0].parameters
    return Bars(
        labels=tuple(found),
        segments=segments(
            {
                name: [rank.bytes_of(name) for rank in ranks]
                for name in PARTS
                if any(rank.bytes_of(name) for rank in ranks)
            }
        ),
        axis=Axis(label="memory of a GPU", unit="B", low=0.0, spec="bytes"),
        values=values
        | {
            "trained": Named(trained),
            "share": Named(trained / count),
            "bits": Named(8 * FROZEN["nf4"].weight_bytes),
        },
    )


@figure("fine-tuning-step")
def fine_tuning_step(
    *,
    model: str = "llama-3-8b",
    lora_rank: int = 16,
    sequence: int = 4096,
    microbatches: int = 4,
) -> Table:
    """A fully sharded step of eight GPUs: FLOPs, messages and time, with and without adapters.

    Matmuls reach the same share of the peak as when everything is trained.
    """
    jobs = fine_tuned(
        model,
        lora_rank,
        nodes=1,
        gpus_per_node=8,
        microbatches=microbatches,
        sequence=sequence,
        zero_stage=3,
    )
    keys = dict(
        zip(("adam", "lora", "qlora"), [name for name in jobs if "8-bit" not in name], strict=True)
    )
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for key, name in keys.items():
        found = jobs[name]
        estimate, setup = found.estimate, found.setup
        whole = flops_per_token(setup.shape, sequence=sequence)
        work = whole - unneeded_flops_per_token(setup)
        sent = sum(sent_by_axis(estimate.rows).values())
        time_s = estimate.step_time_s
        rows.append((name, work, sent, time_s, estimate.tokens_per_s_per_gpu))
        values |= {
            f"{key}_work": Named(work, "FLOP"),
            f"{key}_sent": Named(sent, "B"),
            f"{key}_time": Named(time_s, "s"),
            f"{key}_rate": Named(estimate.tokens_per_s_per_gpu, "token/s"),
        }
    columns = (
        Column(label="training"),
        Column(label="work per token", unit="FLOP", spec="si"),
        Column(label="sent per GPU", unit="B", spec="bytes"),
        Column(label="step", unit="s", spec="time"),
        Column(label="tokens/s per GPU", spec=",.0f"),
    )
    whole_s = jobs[keys["adam"]].estimate.step_time_s
    faster = {
        f"{key}_faster": Named(whole_s / jobs[keys[key]].estimate.step_time_s)
        for key in ("lora", "qlora")
    }
    return Table(columns=columns, rows=tuple(rows), values=values | faster)


@figure("optimizer-states")
def optimizer_states(*, model: str = "llama-3-8b", batch_tokens: float = 4e6) -> Table:
    """State of each optimizer for one model, in 32 bits unless stated."""
    check_between("batch_tokens", batch_tokens, 1, 1e12)
    found = catalog.model(model)
    count = found.parameters
    matrices = list(layer_matrices(found.shape, experts=False)) * found.layers
    inner = sum(one.weights for one in matrices)
    outer = count - inner
    factored = sum(int(factored_moment_numbers(one.inputs, one.outputs)) for one in matrices)
    tables = 2 * int(factored_moment_numbers(found.vocab, found.hidden))
    vectors = outer - 2 * found.vocab * found.hidden
    shorter = max(min(one.inputs, one.outputs) for one in matrices)
    share = float(newton_schulz_overhead(shorter, 5, batch_tokens))
    kept = {
        "SGD": (0.0, "nothing"),
        "SGD with momentum, Lion": (4.0 * count, "nothing"),
        "Adam, AdamW": (8.0 * count, "nothing"),
        "Adam, moments in BF16": (4.0 * count, "nothing"),
        "8-bit Adam": (2 * EIGHT_BITS * count, "two conversions"),
        "Adafactor, no momentum": (
            4.0 * (factored + tables + max(0, vectors)),
            "row and column sums",
        ),
        "Muon, Adam for tables and norms": (
            4.0 * inner + 8.0 * outer,
            f"{share:.1%} of the matmuls, at most",
        ),
    }
    rows: list[tuple[Scalar, ...]] = [
        (name, size, size / count, work) for name, (size, work) in kept.items()
    ]
    keys = ("sgd", "momentum", "adam", "adam_bf16", "adam8", "adafactor", "muon")
    values = {key: Named(size, "B") for key, (size, _) in zip(keys, kept.values(), strict=True)}
    columns = (
        Column(label="optimizer"),
        Column(label="state", unit="B", spec="bytes"),
        Column(label="bytes per parameter", spec=".3g"),
        Column(label="more work"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values | {"muon_work": Named(share)})


@figure("muon-update")
def muon_update(
    *,
    model: str = "llama-3-70b",
    tp: int = 8,
    pp: int = 4,
    batch: int = 1024,
    sequence: int = 4096,
) -> Table:
    """Muon's matmuls per step of one batch, by number of GPUs; matrices stay whole."""
    rows: list[tuple[Scalar, ...]] = []
    for nodes in (4, 16, 64, 256):
        found = training_step(
            model=model,
            nodes=nodes,
            gpus_per_node=8,
            tp=tp,
            pp=pp,
            global_batch=batch,
            sequence=sequence,
            recipe="muon14",
        )
        setup, update_s = found.setup, found.orthogonalising_s
        share = update_s / (found.estimate.step_time_s + update_s)
        work = busiest_flops(setup)
        rows.append((setup.parallel.world_size, setup.parallel.dp, work, update_s, share))
    columns = (
        *headings("GPUs", "replicas", spec=","),
        Column(label="matmuls on the busiest GPU", unit="FLOP", spec="si"),
        Column(label="time", unit="s", spec="time"),
        Column(label="of the step", spec=".1%"),
    )
    setup = found.setup
    matrices = len(layer_matrices(setup.shape, experts=False)) * setup.shape.layers // pp
    values = {
        "first": Named(float(str(rows[0][-1]))),
        "last": Named(float(str(rows[-1][-1]))),
        "first_s": Named(float(str(rows[0][-2])), "s"),
        "last_s": Named(float(str(rows[-1][-2])), "s"),
        "matrices": Named(matrices),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)
