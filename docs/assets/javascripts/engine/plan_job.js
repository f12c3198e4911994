// The job of a search, from a page's options.

import { attainedOf, untimedJob } from "./job.js";
import { record } from "./records.js";
import { SAFE } from "../models/memory/fit_probability.js";
import { PlannedJob } from "../models/planner/plan.js";
import { recomputations_tried, schedules_tried, usual_batch } from "../scenarios/planning/plan_question.js";

const SIZES = ["tp", "cp", "pp", "ep", "etp", "dp", "chunks", "microbatch_size", "zero_stage"];

/** Options that the planner chooses unless they are given. */
export const SEARCHED = [...SIZES, "schedule", "recompute"];

/**
 * The search that `choices` ask for, named as the catalog's options: those of `SEARCHED` hold for
 * all layouts where they are not null. Layouts fit that do so with a `chance` above 0 and below 1.
 * { job, about, interval_of, residuals, capacity_bytes, batch_assumed }. Throws InputError as
 * Python does.
 */
export function planJob(catalog, choices, { every = false, chance = SAFE } = {}) {
  const alone = Object.fromEntries(["tp", "cp", "pp", "ep"].map((name) => [name, 1]));
  const about = untimedJob(catalog, {
    ...choices, ...alone, etp: null, dp: null, schedule: "1f1b", chunks: null, microbatch_size: 1, microbatches: 1,
    zero_stage: 1, recompute: "none", global_batch: null, layers_per_stage: null, compute_efficiency: null,
  });
  const { setup, given, capacity_bytes } = about;
  const { attained, rates, interval_of, residuals } = attainedOf(catalog, about);
  const batch = choices.global_batch ?? null;
  const job = record(PlannedJob, {
    setup, attained, capacity_bytes: capacity_bytes ?? Infinity, fit_chance: chance, reserve_bytes: given.reserve_bytes,
    global_batch: batch ?? usual_batch(setup.sequence, setup.parallel.world_size),
    schedules: schedules_tried(choices.schedule ?? null, rates.framework, every),
    recompute: recomputations_tried(choices.recompute ?? null, setup),
    fixed: new Map(SIZES.map((name) => [name, choices[name] ?? null])),
    quantized: rates.quantized, per_tensor: Number(rates.framework === "nanotron"),
  });
  return { job, about, interval_of, residuals, capacity_bytes, batch_assumed: batch === null };
}
