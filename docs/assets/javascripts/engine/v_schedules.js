// V-Half and V-Min: a building block repeated, pressed together, its end filled up; mirrors
// figgen.models.pipeline.v_schedules. Unlike others they are made for given durations: F, I and W alike.

import { F, I, W, range, schedule, vShape } from "./orders.js";

const PERIOD = 6; // F, I and W of two chunks, in units: a block starts every so often

/** V-Half: about half the idle time of 1F1B with half its memory. */
export function vHalf(stages, microbatches) {
  // Without the gap two passes of a rank would meet in the same slot of the period.
  const gap = stages % 2 === 0 ? 3 : 0;
  const starts = range(stages).map((r) => [
    2 * r, 3 * stages - 2 - r, 3 * stages + gap + 2 * r - 1, 6 * stages + gap - 2 - r,
  ]);
  return press("v-half", starts, microbatches);
}

/** V-Min: about 2/3 of the idle time of 1F1B with a third of its memory. */
export function vMin(stages, microbatches) {
  const gap = stages % 3 === 0 ? 2 : 0;
  const starts = range(stages).map((r) => [
    r, 2 * stages - 1 - r, 2 * stages + gap + r, 4 * stages + gap - 1 - r,
  ]);
  return press("v-min", starts, microbatches);
}

// A rank follows the blocks, W included, until its last new microbatch; from then on W runs
// whenever the rank would wait.
function press(name, starts, microbatches) {
  const stages = starts.length;
  const ranks = starts.map((start, rank) => {
    const toCome = repeated(start, [rank, 2 * stages - 1 - rank], microbatches);
    const bound = toCome.filter((code) => (code & 3) === W).length;
    return { toCome, next: 0, bound, owed: [], paid: 0, order: [] };
  });
  const done = new Set();
  for (let ran = [null]; ran.length; ) {
    ran = ranks.map((rank) => step(rank, 2 * stages, microbatches, done)).filter((c) => c !== null);
    for (const code of ran) done.add(code);
  }
  const orders = ranks.map((rank) => rank.order);
  return schedule(name, vShape(stages), microbatches, orders);
}

// Actions of one rank as its repeated block has them; W, oldest first, where a unit is vacant
// before the last forward down the ranks.
function repeated(start, [down, up], microbatches) {
  const passes = [[down, F], [up, F], [up, I], [down, I]];
  const at = new Map();
  passes.forEach(([stage, kind], pass) => {
    for (let m = 0; m < microbatches; m++) {
      at.set(start[pass] + PERIOD * m, 4 * (stage * microbatches + m) + kind);
    }
  });
  const lastNew = start[0] + PERIOD * (microbatches - 1);
  const [order, owed] = [[], []];
  for (let time = 0, end = Math.max(...start) + PERIOD * (microbatches - 1); time <= end; time++) {
    if (at.has(time)) {
      const code = at.get(time);
      order.push(code);
      if ((code & 3) === I) owed.push(code - I + W);
    } else if (owed.length && time < lastNew) {
      order.push(owed.shift());
    }
  }
  return order;
}

// What a rank runs in the present unit of time: one action or null.
function step(rank, stages, microbatches, done) {
  if (rank.next < rank.toCome.length) {
    const code = rank.toCome[rank.next];
    const needed = source(code, stages, microbatches);
    if (needed === null || done.has(needed)) {
      rank.next++;
      rank.order.push(code);
      if ((code & 3) === I) rank.owed.push(code - I + W);
      if ((code & 3) === W) {
        rank.paid++;
        rank.bound--;
      }
      return code;
    }
  }
  if (rank.paid === rank.owed.length || rank.bound) return null;
  rank.order.push(rank.owed[rank.paid++]);
  return rank.order.at(-1);
}

// The action of another stage whose result this one needs, or null.
function source(code, stages, microbatches) {
  const stage = Math.floor((code >> 2) / microbatches);
  const kind = code & 3;
  if (kind === F) return stage === 0 ? null : code - 4 * microbatches;
  return kind === W || stage === stages - 1 ? null : code + 4 * microbatches;
}
