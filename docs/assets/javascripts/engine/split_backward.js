// Zero-bubble schedules: the backward split in two, its weight part kept to fill idle time; mirrors
// figgen.models.pipeline.zero_bubble and order_phases.

import {
  F, I, W, B, chunkTurns, contiguous, looping, microbatchGroupSize, range, schedule, vShape,
} from "./orders.js";

/** ZB-H1, the zero-bubble schedule with the memory of 1F1B; interleaved when `chunks` > 1. */
export function zb1p(stages, microbatches, chunks) {
  const group = microbatchGroupSize(stages, microbatches);
  const ahead = (rank) => stages - rank - 1 + (chunks - 1) * group;
  const turns = chunkTurns(microbatches, chunks, group);
  const orders = lateWeights(stages, microbatches, chunks, turns, ahead, (rank) => rank);
  const placed = chunks === 1 ? contiguous(stages) : looping(stages, chunks);
  return schedule("zb1p", placed, microbatches, orders);
}

/** ZB-H2: twice as many forwards ahead, which leaves no idle time inside a step. */
export function zb2p(stages, microbatches) {
  const ahead = (rank) => 2 * (stages - rank - 1);
  const turns = chunkTurns(microbatches, 1, microbatches);
  const orders = lateWeights(stages, microbatches, 1, turns, ahead, (rank) => 2 * rank);
  return schedule("zb2p", contiguous(stages), microbatches, orders);
}

/** ZB-V: two chunks per rank in a V, with the memory of 1F1B. Written for M ≥ 2P−1. */
export function zbv(stages, microbatches) {
  const full = Math.max(microbatches, 2 * stages - 1);
  const orders = range(stages).map((rank) => {
    const toTurn = stages - rank;
    const steady = full - stages;
    const withForward = steady - toTurn + 1;
    const phases = [
      ["F0", 2 * toTurn - 1],
      ["F1 F0", rank],
      ["F1 I1 W1", toTurn],
      ["F0 I0 W0 F1 I1 W1", withForward],
      ["I0 W0 F1 I1 W1", steady - withForward],
      ["I0 I1", rank],
      ["I0 W0", toTurn],
      ["W1", rank],
      ["W0", rank],
    ];
    // With fewer microbatches than the phases are written for, superfluous actions are left out.
    const { order } = writeOrder(phases, [rank, 2 * stages - 1 - rank]);
    return order
      .filter(([, , microbatch]) => microbatch < microbatches)
      .map(([kind, stage, microbatch]) => 4 * (stage * microbatches + microbatch) + kind);
  });
  return schedule("zbv", vShape(stages), microbatches, orders);
}

/**
 * The actions that phases spell, as [kind, stage, microbatch], and which of them overlap the next.
 * A phase is a line of words and how often it is repeated: `F0` is the next forward of the first
 * of two stages, `F0&B1` two that run as one, a bare `W` the oldest weight gradient still owed.
 */
export function writeOrder(phases, stages, firstMicrobatch = [0, 0]) {
  const [done, owed, order, overlapped] = [new Map(), [], [], []];
  const write = (part) => {
    if (part === "W") return order.push(owed.shift());
    const [kind, side] = [{ F, B, I, W }[part[0]], Number(part[1])];
    // B and I draw on one count: either is the backward of its microbatch.
    const count = (kind === I ? "B" : part[0]) + part[1];
    const before = done.get(count) ?? 0;
    done.set(count, before + 1);
    const microbatch = firstMicrobatch[side] + before;
    order.push([kind, stages[side], microbatch]);
    if (kind === I) owed.push([W, stages[side], microbatch]);
  };
  for (const [line, repeats] of phases) {
    for (let again = 0; again < repeats; again++) {
      for (const word of line.split(" ")) {
        word.split("&").forEach(write);
        if (word.includes("&")) overlapped.push(order.at(-2));
      }
    }
  }
  return { order, overlapped };
}

// Forwards ahead, then F and I in turn, W following its I by `owed(rank)` others.
function lateWeights(stages, microbatches, chunks, turns, ahead, owed) {
  return range(stages).map((rank) => {
    const slot = (chunk, m) => (chunk * stages + rank) * microbatches + m;
    const forwards = turns.map(([chunk, m]) => 4 * slot(chunk, m) + F);
    const backwards = turns.map(([chunk, m]) => 4 * slot(chunks - 1 - chunk, m));
    const order = forwards.slice(0, ahead(rank));
    backwards.forEach((backward, index) => {
      order.push(...forwards.slice(ahead(rank) + index, ahead(rank) + index + 1), backward + I);
      if (index >= owed(rank)) order.push(backwards[index - owed(rank)] + W);
    });
    const paid = Math.max(0, backwards.length - owed(rank));
    return [...order, ...backwards.slice(paid).map((backward) => backward + W)];
  });
}
