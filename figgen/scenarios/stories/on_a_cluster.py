"""Places a job of the journey on a reader's cluster. The module is printed as JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from figgen.json_text import record_of
from figgen.models.shape.model_shape import ModelShape

SEQUENCE = 8192
"""Tokens of a sequence on pages that are not about its length; the reader's value replaces it."""
_KEPT = ("accelerator", "nic", "software", "dtype")
_UNSPLIT: Mapping[str, int] = {"tp": 1, "cp": 1, "pp": 1, "ep": 1, "microbatch_size": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSizes:
    """Sizes of a job on a page, or of a reader's job; 0 means the page's value.

    `chunks` is 0 without interleaving; `global_batch` counts sequences.
    """

    nodes: int = 0
    gpus_per_node: int = 0
    tp: int = 0
    cp: int = 0
    pp: int = 0
    ep: int = 0
    chunks: int = 0
    microbatch_size: int = 0
    global_batch: int = 0


def choices_on(
    lead: str,
    asked: Mapping[str, Any],
    yours: Mapping[str, Any],
    shape_of: Callable[[str], ModelShape],
) -> dict[str, Any]:
    """Return the options of a page's job on the cluster `yours`; without options it is the page's.

    `lead` is the page's main model, and `shape_of` returns a model's shape.
    """
    found: dict[str, Any] = {**asked}
    if not yours:
        return found
    model = _model_for(lead, asked["model"], yours.get("model"), shape_of)
    batch, own = yours.get("global_batch") or 0, yours.get("sequence") or SEQUENCE
    batch = batch_on_page(batch, own, asked.get("sequence") or SEQUENCE)
    page, reader = _sizes({**_UNSPLIT, **asked}), _sizes({**yours, "global_batch": batch})
    found |= {"model": model, **asdict(on_a_cluster(page, reader, shape_of(model)))}
    found |= {name: yours[name] for name in _KEPT if name in yours and name not in asked}
    if asked.get("sequence") == SEQUENCE:
        found["sequence"] = own
    if not found["chunks"]:
        found["chunks"] = None
        if found.get("schedule") == "interleaved-1f1b":
            del found["schedule"]
    return found


def _sizes(given: Mapping[str, Any]) -> PlacedSizes:
    return record_of(PlacedSizes, {name: size for name, size in given.items() if size})


def _model_for(
    lead: str, asked: str, wanted: str | None, shape_of: Callable[[str], ModelShape]
) -> str:
    """Return the reader's model, unless the job is about a specific model or needs experts."""
    if wanted is None or asked != lead:
        return asked
    needs = shape_of(lead).experts is not None
    return lead if needs and shape_of(wanted).experts is None else wanted


def on_a_cluster(page: PlacedSizes, yours: PlacedSizes, shape: ModelShape) -> PlacedSizes:
    """Return the sizes of a page's job on a reader's cluster.

    A page about one or two GPUs keeps them, a page about one node takes the reader's node size, and
    a page about several nodes takes all of the reader's nodes. The page's parallelism is kept as
    far as it divides the cluster and the model; TP stays inside a node. A job on all nodes takes
    the reader's batch; any other job keeps the page's sequences per GPU.
    """
    nodes, width = cluster_of_page(page, yours)
    gpus = nodes * width
    tp = dividing(width, yours.tp if page.tp > 1 and yours.tp else page.tp, shape.heads, True)
    pp = dividing(
        gpus // tp, yours.pp if page.pp > 1 and yours.pp else page.pp, shape.layers, False
    )
    cp = dividing(gpus // (tp * pp), page.cp, 1, False)
    experts = shape.experts.count if shape.experts is not None else 1
    ep = dividing(gpus // (tp * pp), page.ep, experts, True)
    chunks = min(page.chunks, shape.layers // pp) if pp > 1 and page.chunks > 1 else 0
    small = yours.microbatch_size if yours.microbatch_size else page.microbatch_size
    each = gpus // (tp * pp * cp) * small * (pp if chunks else 1)
    asked = page.global_batch * gpus // (page.nodes * page.gpus_per_node)
    if yours.global_batch and page.nodes > 1 and page.gpus_per_node > 1:
        asked = yours.global_batch
    return PlacedSizes(
        nodes=nodes,
        gpus_per_node=width,
        tp=tp,
        cp=cp,
        pp=pp,
        ep=ep,
        chunks=chunks,
        microbatch_size=small,
        global_batch=max(1, asked // each) * each,
    )


def batch_on_page(batch: int, sequence: int, page_sequence: int) -> int:
    """Return the reader's batch as sequences of the page's length with the same tokens, or 0.

    `sequence` is the reader's sequence length in tokens.
    """
    if page_sequence == SEQUENCE or not batch:
        return batch
    return max(1, batch * sequence // page_sequence)


def cluster_of_page(page: PlacedSizes, yours: PlacedSizes) -> tuple[int, int]:
    """Return the nodes of a page's job, and the GPUs in each."""
    width = yours.gpus_per_node if yours.gpus_per_node else 8
    nodes = yours.nodes if yours.nodes else page.nodes
    if page.gpus_per_node == 1 and page.nodes > 1 and nodes > 1:
        return min(page.nodes, nodes), 1
    if page.nodes > 1:
        return nodes, width
    return 1, width if page.gpus_per_node == 8 else min(page.gpus_per_node, width)


def dividing(whole: int, wanted: int, parts: int, evenly: bool) -> int:
    """Return the largest size up to `wanted` that divides `whole` and gives each rank `parts`."""
    for size in range(wanted, 1, -1):
        if whole % size == 0 and (parts == 1 or (parts % size == 0 if evenly else size <= parts)):
            return size
    return 1
