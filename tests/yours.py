"""The jobs of a page of the journey on a reader's cluster, from the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from figgen import catalog
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.options.written import written_options, written_sizes
from figgen.scenarios.stories.journey import JourneyJob, of_step
from figgen.scenarios.stories.journey_ladder import RUNGS
from figgen.scenarios.stories.on_a_cluster import choices_on


def shape_of(model: str) -> ModelShape:
    return catalog.model(model).shape


def lookups(page: int, yours: Mapping[str, Any]) -> dict[str, Callable[..., JourneyJob]]:
    """Return the functions `rung` and `job` that page `page` calls, for the cluster `yours`.

    They raise InputError for a job that cannot run on the cluster.
    """

    def made(at: int, model: str, sizes: str, options: str) -> TrainingStep:
        asked = {"model": model, **written_sizes(sizes), **written_options(options)}
        lead = RUNGS[min(at, len(RUNGS)) - 1].model
        return training_step(**choices_on(lead, asked, yours, shape_of))

    def step(at: int) -> TrainingStep:
        found = RUNGS[at - 1]
        return made(at, found.model, found.sizes, found.options)

    def rung(at: int) -> JourneyJob:
        return of_step(step(at), step(1))

    def job(model: str, sizes: str, options: str = "") -> JourneyJob:
        return of_step(made(page, model, sizes, options), step(1))

    return {"rung": rung, "job": job}
