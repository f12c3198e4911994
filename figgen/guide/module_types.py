"""The TypeScript types of `figgen.js`, the module with the models for other pages and programs."""

from __future__ import annotations

from collections.abc import Iterable

from figgen.equations.definition import Formula
from figgen.scenarios.options.option import Option

KINDS = {
    "switch": "boolean",
    "whole": "number",
    "number": "number",
    "quantity": "number",
    "counts": "readonly number[]",
}
"""The type of an option's value by its kind; all others are names."""

ANSWERS = """\
/** What an estimate says first: the job as it was understood. */
export interface Setup {
  model: string; world_size: number; nodes: number; gpus_per_node: number; tp: number; cp: number;
  dp: number; pp: number; ep: number; etp: number; edp: number; schedule: string;
  microbatches: number; microbatch_size: number; sequence: number; tokens_per_step: number;
  zero_stage: number; recipe: string; recompute: string; activations: string;
}

/** A predicted step, as `figgen step --json` prints it; seconds, bytes and FLOPs. */
export interface Step extends Setup {
  accelerator: string; nic: string; software: string; compute_efficiency: number;
  step_time_s: number; compute_s: number; recompute_s: number; bubble_s: number;
  bubble_fraction: number; bubble_overhead: number; pipeline_rank: number;
  kinds_s: Record<string, number>; exposed_s: Record<string, number>;
  tokens_per_s_per_gpu: number; model_flops_utilisation: number | null;
  hardware_flops_utilisation: number | null; utilisation: Record<string, number | null>;
  levels: Record<string, string | number | null>[];
  communication: Record<string, string | number | null>[];
  gradient_buckets: Record<string, string | number | null> | null;
  /** Eight in ten measured steps of such jobs lie between. */
  step_time_interval_s?: [number, number]; interval_of?: string;
  orthogonalising_flops?: number; orthogonalising_s?: number; step_and_orthogonalising_s?: number;
}

/** The memory of the ranks, as `figgen memory --json` prints it, in bytes. */
export interface Memory extends Setup {
  ranks: RankMemory[]; fullest_rank: number; printed_bytes: number; capacity_bytes: number | null;
  free_bytes: number | null; fits: boolean | null; fit_probability: number | null;
  /** The standard deviation of what the fullest rank needs around its prediction. */
  spread_bytes: number | null;
}

export interface RankMemory {
  pipeline_rank: number; layers: number; parameters: number; in_flight: number;
  bytes: Record<string, number>; lines: [part: string, what: string, bytes: number][];
  allocated_bytes: number; reserved_bytes: number; outside_bytes: number; total_bytes: number;
}

/** The step and the memory of a job. Throws an Error named InputError, which says what fits. */
export function estimate(job: Job): { step: Step; memory: Memory };

/** The value of a formula in SI units; outside the formula's domain it means nothing. */
export function formula<Name extends keyof Formulas>(name: Name, given: Formulas[Name]): number;

/** The names that a job and `formula` may give. */
export const names: {
  models: string[]; accelerators: string[]; links: string[]; presets: string[];
  formulas: (keyof Formulas)[];
};
"""


def module_types(options: Iterable[Option], formulas: Iterable[Formula]) -> str:
    """Return `figgen.d.ts`: the options of a job, the arguments of formulas, and the answers."""
    fields = "".join(map(_field, options))
    calls = "".join(map(_call, sorted(formulas, key=lambda formula: formula.name)))
    return (
        "// Types of figgen.js, printed from the options and formulas of figgen.\n\n"
        "/** A training job; what is left out follows from the rest, or from a preset. */\n"
        f"export interface Job {{\n  preset?: string;\n{fields}}}\n\n"
        "/** The arguments of each formula, in SI units. */\n"
        f"export interface Formulas {{\n{calls}}}\n\n{ANSWERS}"
    )


def _field(option: Option) -> str:
    about = ", ".join(filter(None, (option.label, option.expected)))
    return f"  /** {about} */\n  {option.name}?: {KINDS.get(option.kind, 'string')} | null;\n"


def _call(formula: Formula) -> str:
    inside = "; ".join(f"{argument.name}: number" for argument in formula.args)
    return f"  /** {formula.doc} In {formula.unit}. */\n  {formula.name}: {{ {inside} }};\n"
