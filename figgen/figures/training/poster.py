"""Every strategy on one page: what it splits, sends and costs, and when to use it."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.charts import Box, Diagram, Named, interval_values
from figgen.errors import InputError
from figgen.plotting.placed import box_at
from figgen.registry import figure
from figgen.scenarios.stories.journey import JourneyJob, job
from figgen.units import format_quantity

GPUS = 4
"""GPUs in each card's picture."""

WIDTH, HIGH, GAP, HEAD = 5.1, 1.87, 0.08, 0.76
PICTURE, CELL, TALL = 1.15, 0.22, 0.66
"""Grid units: a card and what stands above all of them, the space of a picture, a GPU in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A card: its words, how its figure cuts a GPU, the job for its price, and what it changes."""

    title: str
    role: str
    cut: str
    splits: str
    sends: str
    use: str
    model: str
    sizes: str
    options: str
    of: str = ""


DENSE, BATCH = "llama-3-8b", "sequence=8192 global_batch=16"
NODE = "nodes=1 gpus_per_node=8"
STRATEGIES = {
    "dp": Strategy(
        title="DP: data parallelism",
        role="dp",
        cut="whole",
        splits="the batch; every GPU has the whole model",
        sends="gradients, once a step",
        use="when a whole copy fits: always first",
        model=DENSE,
        sizes=NODE,
        options=f"{BATCH} zero_stage=0",
    ),
    "fsdp": Strategy(
        title="FSDP, ZeRO-3: sharded data parallelism",
        role="dp",
        cut="shard",
        splits="the batch, and the model between uses",
        sends="weights and gradients, with every microbatch",
        use="when a copy doesn't fit, with a few thousand tokens per GPU per microbatch",
        model=DENSE,
        sizes=NODE,
        options=f"{BATCH} zero_stage=3",
    ),
    "tp": Strategy(
        title="TP: tensor parallelism",
        role="tp",
        cut="column",
        splits="every matrix of every layer",
        sends="activations, four times in every layer; the GPU waits for part of it",
        use="inside a node, when that isn't enough",
        model=DENSE,
        sizes=f"{NODE} tp=8",
        options=BATCH,
    ),
    "pp": Strategy(
        title="PP: pipeline parallelism",
        role="pp",
        cut="row",
        splits="the layers into stages",
        sends="one activation per boundary per microbatch, least of all",
        use="between nodes, with several microbatches per stage",
        model=DENSE,
        sizes=f"{NODE} pp=8",
        options=BATCH,
    ),
    "cp": Strategy(
        title="CP: context parallelism",
        role="cp",
        cut="tokens",
        splits="each sequence, with its activations",
        sends="keys and values, around a ring in every layer",
        use="when a sequence is too long",
        of=", for two sequences of 65,536 tokens:",
        model=DENSE,
        sizes=f"{NODE} cp=8",
        options="sequence=65536 global_batch=2 zero_stage=3",
    ),
    "ep": Strategy(
        title="EP: expert parallelism",
        role="ep",
        cut="expert",
        splits="the experts of an MoE model",
        sends="tokens to experts and back, in every MoE layer",
        use="when the model has experts",
        model="qwen-3-30b-a3b",
        sizes="nodes=4 gpus_per_node=8 ep=8",
        options="sequence=4096 global_batch=64 zero_stage=1",
        of=", for Qwen3 30B-A3B on 32 GPUs:",
    ),
}


@figure("strategy-poster")
def strategy_poster(*, strategies: tuple[str, ...] = tuple(STRATEGIES)) -> Diagram:
    """A card for each strategy, with four GPUs and the part of the model that each holds."""
    boxes = [box_at("job", (_common(),), (0, 0), (WIDTH, HEAD - GAP), "")]
    jobs: list[JourneyJob] = []
    values: dict[str, Named] = {}
    for at, name in enumerate(strategies):
        if name not in STRATEGIES:
            raise InputError("strategy", expected=" ".join(STRATEGIES), got=name)
        card = STRATEGIES[name]
        found = job(card.model, card.sizes, card.options)
        boxes += _card(card, found, HEAD + at * (HIGH + GAP))
        jobs.append(found)
        values |= {
            f"{name}_memory": Named(found.total_bytes, "B"),
            f"{name}_sent": Named(found.near_bytes + found.far_bytes, "B"),
            f"{name}_step": Named(found.step_time_s, "s"),
        }
    values["capacity"] = Named(jobs[0].capacity_bytes, "B")
    values |= interval_values(*(one.predicted.residuals for one in jobs))
    return Diagram(
        boxes=tuple(boxes),
        links=(),
        width=WIDTH,
        height=HEAD + len(strategies) * (HIGH + GAP) - GAP,
        values=values,
    )


def _common() -> str:
    """Return the job of most cards."""
    found = job(DENSE, NODE, f"{BATCH} zero_stage=3")
    room = format_quantity(found.capacity_bytes, "B", "bytes")
    return (
        f"Outline: the model, on each of four GPUs; colored: what a GPU keeps of it. Costs are for "
        f"{found.found.model.title} on {found.gpus} H100s with {room} each, and "
        f"{found.setup.global_batch} sequences of {found.setup.sequence:,} tokens in a step."
    )


def _card(card: Strategy, found: JourneyJob, y: float) -> list[Box]:
    frame = box_at(card.title, (card.title,), (0, y), (WIDTH, HIGH), card.role, frame=True)
    lines = (
        f"splits {card.splits}",
        f"sends {card.sends}",
        f"costs{card.of} {_price(found)}",
        f"use it {card.use}",
    )
    words = box_at(
        f"{card.title}, in words",
        lines,
        (PICTURE + 0.1, y + 0.28),
        (WIDTH - PICTURE - 0.18, HIGH - 0.3),
        "",
    )
    return [frame, words, *_picture(card, y + 0.55)]


def _price(found: JourneyJob) -> str:
    """Return memory, bytes and predicted time of the card's job."""
    held = format_quantity(found.total_bytes, "B", "bytes")
    sent = format_quantity(found.near_bytes + found.far_bytes, "B", "bytes")
    step = format_quantity(found.step_time_s, "s", "time")
    fits = "" if found.total_bytes <= found.capacity_bytes else ", too much"
    return f"{held} a GPU{fits}; {sent} sent and {step} a step"


def _picture(card: Strategy, y: float) -> list[Box]:
    """Return four GPUs: the outline is the model, the filled part what each of them holds."""
    boxes = []
    for gpu in range(GPUS):
        x = 0.1 + gpu * (CELL + 0.04)
        wide, high = CELL / GPUS, TALL / GPUS
        across, down = x + gpu * wide, y + gpu * high
        places = {
            "whole": [(x, y, CELL, TALL, card.role)],
            "shard": [(x, y, CELL, TALL, "idle"), (across, y, wide, TALL, card.role)],
            "column": [(across, y, wide, TALL, card.role)],
            "row": [(x, down, CELL, high, card.role)],
            "tokens": [(x, y, CELL, TALL, "idle"), (x, down, CELL, high, card.role)],
            "expert": [
                (x, y, CELL, TALL / 2, "neutral"),
                (across, y + TALL / 2, wide, TALL / 2, card.role),
            ],
        }[card.cut]
        boxes.append(
            box_at(f"{card.title} GPU {gpu}", (), (x, y), (CELL, TALL), "muted", frame=True)
        )
        boxes += [
            box_at(f"{card.title} GPU {gpu} part {at}", (), (left, top), (across_, down_), role)
            for at, (left, top, across_, down_, role) in enumerate(places)
        ]
    return boxes
