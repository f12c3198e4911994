// What many layouts of a search share: sizes of layers and of stages, from the printed models.

import { InputError } from "./errors.js";
import { rankLoads } from "./plan_space.js";
import { filling } from "../models/pipeline/filling.js";
import { layer_sizes, stage_numbers } from "../models/planner/plan_sizes.js";
import { sharding_of } from "../models/setup/training_setup.js";
import { recomputation } from "../models/shape/recomputation.js";
import { repeated } from "../models/step/stage_work.js";

const knownOf = new WeakMap(); // job → what many layouts share
/** What `make` gives, once for a job and a key. */
export function kept(job, key, make) {
  if (!knownOf.has(job)) knownOf.set(job, new Map());
  const known = knownOf.get(job);
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
}

/** What all layouts of a schedule on so many stages share. */
export const pipelineOf = (job, { pp, schedule, chunks }) => kept(job, `${schedule} ${pp} ${chunks}`, () => {
  const stages = stage_numbers(job.setup, pp, chunks, schedule === "dualpipe" ? 2 : 1);
  const sharded = [0, 1, 2, 3].map((zero) => {
    const [gathers, scatters, overlapped] = sharding_of(job.setup, zero, pp);
    return { gathers, scatters, overlapped: Number(overlapped) };
  });
  return { stages, sharded, again: new Map(), full: new Map() };
});

/** The shares of a layer and of its attention core that each way of recomputing repeats. */
export function againOf(job, { cp }, { stages, again }) {
  if (!again.has(cp)) again.set(cp, job.recompute.map((mode) => repeated(job.setup, stages.shares, mode, cp)));
  return again.get(cp);
}

/** What ranks hold when they are fullest, and how long they wait, by microbatches that are alike. */
export function fullOf(job, mesh, { stages, full }, like) {
  if (!full.has(like)) {
    const loads = loadsOf(job, mesh, like, stages);
    full.set(like, { loads, idle: loads && filling(mesh.schedule, mesh.pp, like, mesh.chunks) });
  }
  return full.get(like);
}

/**
 * Writes a mesh into what time and memory are asked with: two objects for all layouts, since
 * millions of new ones would take longer than the models themselves.
 */
export function layOut({ setup, asked, held, world }, mesh, { stages }) {
  for (const axis of ["tp", "cp", "pp", "ep", "etp"]) asked[axis] = mesh[axis];
  asked.dp = mesh.dp;
  asked.chunks = mesh.chunks;
  asked.fullest_layers = stages.fullest_layers;
  asked.head_layers = stages.head_layers;
  for (const axis of ["tp", "cp", "pp", "ep"]) held[axis] = mesh[axis];
  held.expert_ways = setup.shape.experts ? mesh.ep * mesh.etp : 1;
  held.shards = mesh.dp * mesh.cp;
  held.expert_shards = world / (mesh.etp * mesh.ep * mesh.pp);
}

/** The same of what recomputation decides. */
export function sizeOf(job, { tp, etp }, recompute) {
  job.held.layer = kept(job, `${tp} ${etp} ${recompute}`, () => layer_sizes(job.setup, tp, etp, recompute));
}

// By the way of recomputing, "" for modules; null where the schedule cannot have these sizes.
function loadsOf(job, { pp, schedule, chunks }, microbatches, { shares }) {
  const of = (text) => rankLoads(schedule, pp, microbatches, chunks, shares, job.setup.shape, recomputation(text));
  try {
    return { "": of("none"), uniform: job.recompute.includes("full") ? of("full") : [] };
  } catch (error) {
    if (error instanceof InputError) return null;
    throw error;
  }
}
