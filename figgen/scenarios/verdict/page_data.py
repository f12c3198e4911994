"""The data with which the modeler judges a measured speed."""

from __future__ import annotations

import json

from figgen import catalog
from figgen.catalog.rates import constants
from figgen.scenarios.runs.classes import chips_of, stack_of
from figgen.scenarios.runs.software import known_software, read_software
from figgen.scenarios.verdict.like import published_columns


def like_runs_json() -> str:
    """Return the published runs by column, classes of chips and software, and two constants.

    The constants, of eager software, are those of `TimedJob`.
    """
    frameworks = {read_software(name)[0] for name in known_software()}
    values = constants()
    more = {
        "chips": {name: chips_of(chip) for name, chip in catalog.ACCELERATORS.items()},
        "stacks": {name: stack_of(name) for name in sorted(frameworks)},
        "eager": [values["elementwise.eager"].value, values["loss_bytes.eager"].value],
    }
    return json.dumps({**published_columns(), **more}, separators=(",", ":"))
