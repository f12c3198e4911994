// How many nodes a job needs for a deadline, a budget, or to fit: one search after another.

import { InputError } from "./errors.js";
import { fastestOf } from "./plan.js";
import { planJob } from "./plan_job.js";
import { asdict } from "./runtime.js";
import { plain, record } from "./records.js";
import { MOST_RANKS } from "../models/machine/layout.js";
import {
  BUDGET, Counted, DEADLINE, FEWEST, Goal, MOST_NODES, SAVED, answer, least_nodes, next_nodes, training_cost,
} from "../models/planner/node_counts.js";
import { DAY_S, checkpoint_bytes_of, saved_training } from "../models/planner/saving.js";
import { usual_batch } from "../scenarios/planning/plan_question.js";
import { TABLES } from "../plan-memory.js";

/** What a reader asks for, or an InputError: `{ kind, days, budget, tokens, price, failures, chance }`, tokens in billions. */
export function goalOf({ kind, days, budget, tokens, price }, gpusPerNode) {
  if (kind === BUDGET && price === null) throw new InputError("price", { expected: "what you pay for one GPU for an hour", got: "none" });
  if (kind !== FEWEST && tokens === null) throw new InputError("tokens", { expected: "the tokens to train on", got: "none" });
  return record(Goal, {
    kind, most_nodes: Math.min(MOST_NODES, Math.floor(MOST_RANKS / gpusPerNode)),
    most_s: kind === DEADLINE ? days * DAY_S : Infinity, budget: kind === BUDGET ? budget : Infinity,
  });
}

/** The batch that stays the same for all numbers of nodes. */
export function heldBatch(catalog, choices) {
  const { job, batch_assumed } = planJob(catalog, { ...choices, nodes: 1 });
  return batch_assumed ? usual_batch(job.setup.sequence, 1) : job.global_batch;
}

/** Yields one number of nodes after the other, as the search asks them, with `best` so far. Throws InputError. */
export function* sizedCounts(catalog, choices, question) {
  const asked = { ...choices, global_batch: heldBatch(catalog, choices) };
  const { job } = planJob(catalog, { ...asked, nodes: 1 }, { chance: question.chance });
  const [goal, least, counted] = [goalOf(question, choices.gpus_per_node), least_nodes(job), []];
  for (let nodes; (nodes = next_nodes(goal, counted, least));) {
    const one = sized(catalog, { ...asked, nodes }, question);
    counted.push(record(Counted, {
      nodes, fits: one.layout !== null, training_s: one.days === null ? Infinity : one.days * DAY_S, price: one.price ?? 0,
    }));
    yield { ...one, best: answer(goal, counted)?.nodes ?? null };
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
