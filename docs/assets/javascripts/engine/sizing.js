// How many nodes a job needs for a deadline, a budget, or to fit: one search after another.

import { InputError } from "./errors.js";
import { fastestOf } from "./plan.js";
import { planJob } from "./plan_job.js";
import { asdict } from "./runtime.js";
import { plain } from "./records.js";
import {
  FEWEST, SAVED, answer, counted, goal_of, least_nodes, next_nodes, training_cost, within_ranks,
} from "../models/planner/node_counts.js";
import { checkpoint_bytes_of, saved_training } from "../models/planner/saving.js";
import { usual_batch } from "../scenarios/planning/plan_question.js";
import { TABLES } from "../plan-memory.js";

/** The batch that stays the same for all numbers of nodes. */
export function heldBatch(catalog, choices) {
  const { job, batch_assumed } = planJob(catalog, { ...choices, nodes: 1 });
  return batch_assumed ? usual_batch(job.setup.sequence, 1) : job.global_batch;
}

/**
 * Yields one number of nodes after the other, as the search asks them, with `best` so far. The question is
 * `{ kind, days, budget, tokens, price, failures, chance }`, tokens in billions. Throws InputError.
 */
export function* sizedCounts(catalog, choices, question) {
  const { kind, days, budget, tokens, price, chance } = question;
  const asked = { ...choices, global_batch: heldBatch(catalog, choices) };
  const { job } = planJob(catalog, { ...asked, nodes: 1 }, { chance });
  const [least, found] = [least_nodes(job), []];
  const goal = within_ranks(goal_of(kind, days, budget, tokens, price), choices.gpus_per_node);
  for (let nodes; (nodes = next_nodes(goal, found, least));) {
    const one = sized(catalog, { ...asked, nodes }, question);
    found.push(counted(nodes, one.layout !== null, one.days, one.price));
    yield { ...one, best: answer(goal, found)?.nodes ?? null };
  }
}

function sized(catalog, choices, { tokens, price, failures, kind, chance }) {
  const { job, about: { accelerator }, residuals } = planJob(catalog, choices, { chance });
  const { setup, global_batch } = job;
  const { world_size: gpus } = setup.parallel;
  const none = { nodes: choices.nodes, gpus, global_batch, layout: null, days: null, interval: null, gpu_hours: null, price: null, energy_j: null };
  let layout = null;
  try {
    layout = fastestOf(job);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  if (!layout || kind === FEWEST) return { ...none, layout };
  const saved = saved_training(SAVED, checkpoint_bytes_of(setup), gpus, TABLES.failures[failures][1]);
  const steps = [1, ...residuals].map((share) => layout.step_s * share);
  const { low_days, high_days, ...taken } = plain(asdict(training_cost(
    saved, tokens * 1e9, global_batch * setup.sequence, steps, gpus, price, TABLES.power[accelerator] ?? null)));
  return { ...none, layout, ...taken, interval: [low_days, high_days] };
}
