"""Parameter types whose values are names; Explore offers the names in a list, with titles."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.catalog.interruptions import interruption
from figgen.lookups import OneOf
from figgen.models.algorithms.context_parallel import SCHEMES
from figgen.models.pipeline.schedules import TITLES
from figgen.models.planner.saving import WAYS
from figgen.models.shape.recipes import RECIPES

AcceleratorName: TypeAlias = Annotated[str, OneOf(catalog.accelerator)]
HardwareName: TypeAlias = Annotated[str, OneOf(catalog.hardware_preset)]
InterruptionsName: TypeAlias = Annotated[str, OneOf(interruption)]
LinkName: TypeAlias = Annotated[str, OneOf(catalog.link)]
ModelName: TypeAlias = Annotated[str, OneOf(catalog.model)]

CutName: TypeAlias = Annotated[str, OneOf(dict.fromkeys(SCHEMES))]
Dtype: TypeAlias = Annotated[str, OneOf(dict.fromkeys(DTYPES))]
RecipeName: TypeAlias = Annotated[str, OneOf(RECIPES)]
ScheduleName: TypeAlias = Annotated[str, OneOf(TITLES)]
WayName: TypeAlias = Annotated[str, OneOf(WAYS)]
