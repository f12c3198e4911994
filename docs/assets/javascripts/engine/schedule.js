// Pipeline schedules by name; mirrors figgen.models.pipeline.schedules.

import { dualpipe, dualpipev } from "./dualpipe.js";
import { checkMost, product, unknown } from "./errors.js";
import { checkSizes, gpipe, interleaved1F1B, loopedBfs, naive, oneFOneB } from "./orders.js";
import { zb1p, zb2p, zbv } from "./split_backward.js";
import { vHalf, vMin } from "./v_schedules.js";

/** How each schedule is made, its usual V, and the only V that it can have (or null). */
export const SCHEDULES = new Map([
  ["naive", { make: naive, chunks: 1, only: 1 }],
  ["gpipe", { make: gpipe, chunks: 1, only: 1 }],
  ["looped-bfs", { make: loopedBfs, chunks: 2, only: null }],
  ["1f1b", { make: oneFOneB, chunks: 1, only: 1 }],
  ["interleaved-1f1b", { make: interleaved1F1B, chunks: 2, only: null }],
  ["zb1p", { make: zb1p, chunks: 1, only: null }],
  ["zb2p", { make: zb2p, chunks: 1, only: 1 }],
  ["zbv", { make: zbv, chunks: 2, only: 2 }],
  ["v-half", { make: vHalf, chunks: 2, only: 2 }],
  ["v-min", { make: vMin, chunks: 2, only: 2 }],
  ["dualpipe", { make: dualpipe, chunks: 1, only: 1 }],
  ["dualpipev", { make: dualpipev, chunks: 2, only: 2 }],
]);

export const MOST_STAGES = 512;

/** Most visits of stages by microbatches, P·M·V: 64 ranks, 512 microbatches, 4 chunks. */
export const MOST_VISITS = 2 ** 17;

/** The schedule called `name` for P stages (ranks), M microbatches and V chunks per rank. */
export function build(name, { stages, microbatches, chunks = null }) {
  if (!SCHEDULES.has(name)) throw unknown("schedule", name, SCHEDULES.keys());
  const { make, chunks: usual, only } = SCHEDULES.get(name);
  const sizes = { stages, microbatches, chunks: chunks ?? usual };
  if (Object.values(sizes).every(Number.isInteger)) {
    checkMost(`stages of schedule '${name}'`, stages, MOST_STAGES);
    const visits = product(stages, microbatches, sizes.chunks);
    checkMost(`stages · microbatches · chunks of schedule '${name}'`, visits, MOST_VISITS);
  }
  checkSizes(name, sizes, only);
  return make(stages, microbatches, sizes.chunks);
}
