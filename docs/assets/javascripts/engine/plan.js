// Every layout of a job: those that fit by predicted time; mirrors figgen.models.planner.plan. Time and
// memory themselves are printed from Python.

import { TABLES } from "../plan-memory.js";
import { timed_step } from "../models/step/timed_step.js";
import { InputError } from "./errors.js";
import { collector, fullest, most } from "./plan_found.js";
import { againOf, fullOf, kept, layOut, pipelineOf, sizeOf } from "./plan_sizes.js";
import { alike, meshes } from "./plan_space.js";
import { plain } from "./records.js";
import { divisors, pipelines, schedules, sharding } from "../models/planner/plan_space.js";
import { named_terms } from "../models/planner/plan_terms.js";
import { recomputation } from "../models/shape/recomputation.js";

export { SEARCHED, planJob } from "./plan_job.js";

const OFTEN = 2000; // layouts after which a search tells how far it is

/**
 * All layouts, one number of stages and schedule after the other; yields what was found so far, with
 * `best` only at the end: { done, of, layouts, fitting, refused, least_bytes, best, meshes, front, told }.
 */
export function* planned(job) {
  const { setup, fixed } = job;
  const { shape } = setup;
  const found = collector(job);
  const steps = pipelines(job.world, new Map(Object.entries(fixed))).flatMap((pp) =>
    [...schedules(shape.layers, pp, job.schedules, fixed.chunks)].map(([name, chunks]) => [pp, name, chunks]));
  for (const [at, [pp, schedule, chunks]] of steps.entries()) {
    const zero = sharding(setup.framework, pp, fixed.zero_stage);
    let since = 0;
    for (const mesh of meshes(job, pp)) {
      tryMesh(job, found, { pp, schedule, chunks, ...mesh }, zero);
      if (found.layouts - since < OFTEN) continue;
      since = found.layouts;
      yield { done: at, of: steps.length, layouts: found.layouts, fitting: found.fitting };
    }
    yield { done: at + 1, of: steps.length, layouts: found.layouts, fitting: found.fitting };
  }
  if (!found.layouts) throw nothing(job);
  yield { done: steps.length, of: steps.length, ...found.ended() };
}

function nothing(job) {
  const said = Object.entries(job.fixed).filter(([, value]) => value !== null);
  const expected = `another size: no layout of ${job.world} GPUs with ${job.global_batch} sequences has ${said.length ? "these" : "one"}`;
  return new InputError(said[0]?.[0] ?? "global_batch", { expected, got: said[0]?.[1] ?? job.global_batch });
}

// All microbatches, stages of ZeRO and recomputations of one mesh.
function tryMesh(job, found, mesh, zeros) {
  const { pp, schedule, chunks, dp } = mesh;
  if (job.global_batch % dp) return;
  const about = pipelineOf(job, mesh);
  const sizes = kept(job, job.global_batch / dp, () => divisors(job.global_batch / dp));
  const { asked, held } = job;
  layOut(job, mesh, about);
  const again = againOf(job, mesh, about);
  const wanted = job.fixed.microbatch_size;
  for (let which = 0; which < job.recompute.length; which++) {
    sizeOf(job, mesh, job.recompute[which]);
    [asked.repeats_layer, asked.repeats_core] = again[which];
    const { method } = recomputation(job.recompute[which]);
    for (const size of sizes) {
      const number = job.global_batch / dp / size;
      if ((wanted !== null && size !== wanted) || number * pp * chunks > TABLES.most_visits) continue;
      const like = alike(schedule, pp, number, chunks);
      const { loads, idle } = fullOf(job, mesh, about, like);
      if (!loads) continue;
      asked.filling = idle;
      asked.microbatch = size;
      asked.microbatches = held.microbatches = number;
      asked.tokens = held.tokens = (size * asked.sequence) / mesh.cp;
      held.split_tokens = held.job.sequence_parallel ? held.tokens / mesh.tp : held.tokens;
      for (const zero of zeros) {
        held.zero_stage = asked.zero_stage = zero;
        Object.assign(asked, about.sharded[zero]);
        const reason = fullest(loads[method], held, job.capacity_bytes, found.fitting > 0);
        if (reason === null) found.take(mesh, zero, which, timed_step(asked, job.attained).total_s, most.total, asked);
        else found.refuse(reason, most.total);
      }
    }
  }
}

/** Seconds by the terms of a step, which add up to it. */
export function termsOf(job, layout) {
  const { asked } = job;
  const about = pipelineOf(job, layout);
  layOut(job, layout, about);
  [asked.repeats_layer, asked.repeats_core] = againOf(job, layout, about)[layout.which];
  asked.filling = layout.filling;
  asked.microbatch = layout.microbatch_size;
  asked.microbatches = layout.microbatches;
  asked.tokens = (layout.microbatch_size * asked.sequence) / layout.cp;
  asked.zero_stage = layout.zero_stage;
  Object.assign(asked, about.sharded[layout.zero_stage]);
  return plain(named_terms(asked, timed_step(asked, job.attained)));
}

/** All at once, for tests and small searches. */
export function planAll(job) {
  let last = null;
  for (const found of planned(job)) last = found;
  return last;
}
