// What a search finds: why a layout does not fit, and the fastest that do; mirrors figgen.models.planner.plan.

import { rank_bytes } from "../models/memory/rank_bytes.js";
import { TABLES } from "../plan-memory.js";

const KEPT = 2000; // fastest layouts that are kept of a search

/** What the fullest rank of the last layout needs. */
export const most = { total: 0 };

/**
 * What is first too much of any rank and moment, null where it fits; `most.total` is what the
 * fullest needs. With `quick` that is left out where weights and their state alone are too much.
 */
export function fullest(loads, held, capacity, quick) {
  let [state, active, working, total] = [0, 0, 0, 0];
  for (let at = 0; at < loads.length; at++) {
    const parts = rank_bytes(loads[at], held);
    const { state: lasting, contexts } = parts;
    if (lasting + contexts > state) state = lasting + contexts;
    if (quick && capacity !== null && state > capacity) {
      most.total = Infinity;
      return 0;
    }
    const kept_ = lasting + parts.activations;
    if (kept_ + contexts > active) active = kept_ + contexts;
    const allocated = kept_ + parts.working;
    if (allocated + contexts > working) working = allocated + contexts;
    const all = allocated + parts.allocator + contexts;
    if (all > total) total = all;
  }
  most.total = total;
  if (capacity === null || total <= capacity) return null;
  return state > capacity ? 0 : active > capacity ? 1 : working > capacity ? 2 : 3;
}

const byTime = (one, other) => one.step_s - other.step_s || one.order - other.order;

// The fastest layout of every mesh, with its place among all and how many variants of the mesh fit.
function fastestOf(meshes, times) {
  const sorted = Float64Array.from(times).sort();
  const found = [...meshes.values()].map(({ fastest, variants }) => ({ ...fastest, variants })).sort(byTime);
  let place = 0;
  for (const one of found) {
    while (sorted[place] < one.step_s) place++;
    one.place = place + 1;
  }
  return found;
}

/** Counts, the fastest, those of each mesh, and the front of time against memory. */
export function collector(job) {
  const refused = TABLES.reasons.map(() => 0);
  const times = [];
  const meshes = new Map();
  let [best, front, limit, last, own] = [[], [], Infinity, null, null];
  const ofMesh = ({ tp, cp, pp, ep, etp }) => {
    const key = `${tp} ${cp} ${pp} ${ep} ${etp}`;
    if (!meshes.has(key)) meshes.set(key, { fastest: { step_s: Infinity }, variants: 0 });
    return meshes.get(key);
  };
  return {
    layouts: 0, fitting: 0, least: Infinity,
    refuse(reason, bytes) {
      this.layouts++;
      refused[reason]++;
      if (bytes < this.least) this.least = bytes;
    },
    take(mesh, zero_stage, which, step_s, memory_bytes, { microbatch, microbatches, filling: idle }) {
      this.layouts++;
      this.fitting++;
      if (memory_bytes < this.least) this.least = memory_bytes;
      times.push(step_s);
      if (mesh !== last) [last, own] = [mesh, ofMesh(mesh)];
      own.variants++;
      let beaten = false;
      for (const one of front) beaten ||= one.step_s <= step_s && one.memory_bytes <= memory_bytes;
      if (beaten && step_s > limit && step_s > own.fastest.step_s) return;
      const order = ((which * 4 + zero_stage) * 1e4 + mesh.tp) * 1e4 + mesh.cp + mesh.chunks / 1e3;
      const one = {
        ...mesh, microbatch_size: microbatch, microbatches, filling: idle, zero_stage, recompute: job.recompute[which],
        which, step_s, memory_bytes, order,
      };
      if (byTime(one, own.fastest) < 0) own.fastest = one;
      if (!beaten) front = [...front.filter((o) => o.step_s < step_s || o.memory_bytes < memory_bytes), one];
      best.push(one);
      if (best.length < 2 * KEPT) return;
      best = best.sort(byTime).slice(0, KEPT);
      limit = best.at(-1).step_s;
    },
    ended() {
      best.sort(byTime);
      const [low, high] = job.residuals;
      const first = best[0]?.step_s ?? 0;
      const reasons = Object.fromEntries(TABLES.reasons.map((name, at) => [name, refused[at]]));
      return {
        layouts: this.layouts, fitting: this.fitting, refused: reasons, least_bytes: this.least,
        best: best.slice(0, KEPT), meshes: fastestOf(meshes, times), front: front.sort(byTime),
        told: times.reduce((sum, time) => sum + (time * low > first * high ? 0 : 1), 0),
      };
    },
  };
}
