// The search over numbers of nodes, which the planner's worker loads on request.

import { servedBy } from "../engine/job.js";
import { mapped, plain, record } from "../engine/records.js";
import { asdict } from "../engine/runtime.js";
import { NodesAsked, sized_nodes } from "../scenarios/tools/page_plan.js";
import { TABLES } from "../plan-memory.js";

/**
 * Yields one number of nodes after the other, in the order of the search, with `best` so far. The question is
 * `{ kind, days, budget, tokens, price, failures, chance }`, tokens in billions. Throws InputError.
 */
export function* sizedCounts(catalog, choices, { tokens, failures, ...question }) {
  const asked = record(NodesAsked, {
    ...question, tokens: tokens && tokens * 1e9, gpu_mtbf_s: TABLES.failures[failures][1], power_w: mapped(TABLES.power),
  });
  for (const [one, best] of sized_nodes(servedBy(catalog), mapped(choices), asked)) yield { ...plain(asdict(one)), best };
}
