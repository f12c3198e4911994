"""All closed-form formulas of the guide, each defined once.

Importing this package registers every formula in `FORMULAS`. Pages, figures, tools and tests all
use the same functions; `latex`, `javascript` and `worked` print them.
"""

from __future__ import annotations

from figgen.equations.definition import FORMULAS, Formula
from figgen.equations.evaluation import Evaluation, evaluate
from figgen.equations.javascript import javascript, module
from figgen.equations.latex import domain_latex, latex
from figgen.equations.notation import Argument
from figgen.equations.syntax import domain
from figgen.equations.worked import Worked, worked
from figgen.formulas import (
    activation_memory,
    alpha_beta,
    collectives,
    compute_and_roofline,
    context_parallel,
    data_parallel,
    experts,
    fine_tuning,
    hierarchical_collectives,
    modern_layers,
    pipeline,
    placement,
    rank_mapping,
    reliability,
    scale_and_state,
    serving,
    tensor_parallel,
    topology,
)
from figgen.formulas.notation import NOTATION, formula

# The modules in the order in which the guide needs them.
TOPICS = (
    scale_and_state,
    activation_memory,
    alpha_beta,
    collectives,
    hierarchical_collectives,
    rank_mapping,
    data_parallel,
    compute_and_roofline,
    tensor_parallel,
    pipeline,
    context_parallel,
    experts,
    placement,
    topology,
    reliability,
    modern_layers,
    fine_tuning,
    serving,
)

__all__ = [
    "FORMULAS",
    "NOTATION",
    "TOPICS",
    "Argument",
    "Evaluation",
    "Formula",
    "Worked",
    "domain",
    "domain_latex",
    "evaluate",
    "formula",
    "javascript",
    "latex",
    "module",
    "worked",
]
