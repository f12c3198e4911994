// Uses a job that a reader brings, or measured rates, in the planner's state. Loaded on demand.

import { measuredChanges } from "./measured_file.js";
import { readJob } from "./modeler_taken.js";
import { told } from "./taken.js";
import { defaults } from "./state.js";
import { OF_A_LAYOUT } from "./job_carried.js";
import { jobRecord, replicasOf, schemaOf } from "./modeler_state.js";
import { fromQuery, planSchema } from "./planner_state.js";

export { measuredChanges };

/** The answer to a reader's text, and a form for missing values; `apply(changes)` gets the job without layout. */
export async function readPlanJob(catalog, state, brought, apply) {
  const schema = schemaOf(catalog);
  const known = Object.fromEntries(Object.keys(schema).filter((key) => state[key] !== null && state[key] !== undefined).map((key) => [key, state[key]]));
  let layout = null;
  const take = (changes) => {
    if (!("tp" in changes)) return apply(changes); // only a model
    const batch = changes.microbatches && replicasOf(changes) * changes.microbatch_size * changes.microbatches;
    const job = jobRecord(schema, catalog, changes);
    for (const key of OF_A_LAYOUT) job.delete(key);
    job.set("global_batch", batch || "auto");
    apply(fromQuery(planSchema(catalog), catalog, job).state);
    layout = changes;
  };
  const said = await readJob(catalog, { ...defaults(schema), ...known, preset: "" }, brought, take);
  if (!layout) return said;
  const { tp, pp, cp, ep } = layout;
  return [...said, told(["plain", `Its layout, TP ${tp}, PP ${pp}, CP ${cp}, EP ${ep}, isn't fixed: the planner tries all of them.`])];
}
