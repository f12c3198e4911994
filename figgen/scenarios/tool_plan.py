"""What the planner's script has besides its own: memory in closed form, tables of the search."""

from __future__ import annotations

import json

from figgen.formulas.functions_javascript import printed_module
from figgen.models import plan_memory
from figgen.models.plan import REASONS
from figgen.models.plan_loads import LOADED
from figgen.models.plan_space import CHUNKS, SCHEDULES_OF
from figgen.models.schedules import MOST_VISITS
from figgen.scenarios.plan_question import USUAL_TOKENS
from figgen.scenarios.plan_rows import TERMS
from figgen.scenarios.schema import SMALL


def plan_module() -> str:
    """The model of memory of the planner as an ES module, with the tables of its search."""
    tables = {
        "schedules_of": dict(SCHEDULES_OF),
        "chunks": dict(CHUNKS),
        "loaded": LOADED,
        "reasons": REASONS,
        "terms": TERMS,
        "small": SMALL,
        "most_visits": MOST_VISITS,
        "usual_tokens": USUAL_TOKENS,
    }
    printed = printed_module((plan_memory,), ("rank_bytes",))
    return f"{printed}export const TABLES = {json.dumps(tables, separators=(',', ':'))};\n"
