"""The journey's jobs on a reader's cluster, as a page's script requests them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from figgen import catalog
from figgen.scenarios.options.option import Value
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.options.written import written_options, written_sizes
from figgen.scenarios.stories.journey import JourneyJob, of_step
from figgen.scenarios.stories.journey_ladder import RUNGS
from figgen.scenarios.stories.on_a_cluster import SEQUENCE, PlacedSizes, batch_on_page, on_a_cluster

KEPT = ("accelerator", "nic", "software", "dtype")
_SIZES = tuple(field.name for field in fields(PlacedSizes))


def choices_on(lead: str, asked: Mapping[str, Value], yours: Mapping[str, Value]) -> dict[str, Any]:
    """Return the options of a page's job on the cluster `yours`;

    `lead` is the page's default model.
    """
    if not yours:
        return dict(asked)
    model = _model_for(lead, str(asked["model"]), yours)
    usual = dict.fromkeys(_SIZES, 1) | {"chunks": 0, "global_batch": 0}
    reader = _sizes(dict.fromkeys(_SIZES, 0), {**yours, "global_batch": _batch(asked, yours)})
    page = _sizes(usual, asked)
    sizes = asdict(on_a_cluster(page, reader, catalog.model(model).shape))
    found: dict[str, Any] = {**asked, "model": model, **sizes}
    found |= {name: yours[name] for name in KEPT if name not in asked and name in yours}
    if asked.get("sequence") == SEQUENCE and yours.get("sequence"):
        found["sequence"] = yours["sequence"]
    if not found["chunks"]:
        found["chunks"] = None
        if found.get("schedule") == "interleaved-1f1b":
            del found["schedule"]
    return found


def _batch(asked: Mapping[str, Value], yours: Mapping[str, Value]) -> int:
    batch, sequence = (int(str(yours.get(name) or 0)) for name in ("global_batch", "sequence"))
    return batch_on_page(batch, sequence or SEQUENCE, int(str(asked.get("sequence", SEQUENCE))))


def _sizes(usual: Mapping[str, int], given: Mapping[str, Value]) -> PlacedSizes:
    """Return the sizes of a job; a size that is not given has its `usual` value."""
    found = {name: int(str(given.get(name) or usual[name])) for name in _SIZES}
    return PlacedSizes(**found)


def _model_for(lead: str, asked: str, yours: Mapping[str, Value]) -> str:
    """Return the reader's model, unless the job is about a specific model or needs experts."""
    wanted = yours.get("model")
    if wanted is None or asked != lead:
        return asked
    experts = [catalog.model(name).shape.experts is not None for name in (lead, str(wanted))]
    return lead if experts == [True, False] else str(wanted)


def lookups(page: int, yours: Mapping[str, Value]) -> dict[str, Callable[..., JourneyJob]]:
    """Return the functions `rung` and `job` that page `page` calls, for the cluster `yours`.

    They raise InputError for a job that cannot run on the cluster.
    """

    def made(at: int, model: str, sizes: str, options: str) -> TrainingStep:
        asked = {"model": model, **written_sizes(sizes), **written_options(options)}
        lead = RUNGS[min(at, len(RUNGS)) - 1].model
        return training_step(**choices_on(lead, asked, yours))

    def step(at: int) -> TrainingStep:
        found = RUNGS[at - 1]
        return made(at, found.model, found.sizes, found.options)

    def rung(at: int) -> JourneyJob:
        return of_step(step(at), step(1))

    def job(model: str, sizes: str, options: str = "") -> JourneyJob:
        return of_step(made(page, model, sizes, options), step(1))

    return {"rung": rung, "job": job}
