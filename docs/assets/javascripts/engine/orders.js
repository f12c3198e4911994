// The words of a pipeline schedule, and orders with full backwards; mirrors
// figgen.models.pipeline.order, stage_placement and one_f_one_b.
//
// An order says what a rank does next, never when. An action is one number, 4 · slot + kind, with
// slot = stage · M + microbatch: an order is an Int32Array.

import { InputError } from "./errors.js";

/** Kinds of work by number: forward, full backward, gradient of the input, of the weights. */
export const KINDS = "FBIW";
const [F, B, I, W] = [0, 1, 2, 3];
export { F, B, I, W };

/** An action in parts: { stage, kind, microbatch }, kind one of KINDS. */
export function action(schedule, code) {
  const slot = code >> 2;
  const stage = Math.floor(slot / schedule.microbatches);
  return { stage, kind: KINDS[code & 3], microbatch: slot - stage * schedule.microbatches };
}

/** An action as torch prints it: `2F0`. */
export function word(schedule, code) {
  const { stage, kind, microbatch } = action(schedule, code);
  return `${stage}${kind}${microbatch}`;
}

/** Which rank holds each virtual stage; `pipes` counts independent copies of the model. */
export function placement(name, rank_of_stage, pipes = 1) {
  const stages = rank_of_stage.length;
  const ranks = Math.max(...rank_of_stage) + 1;
  const depth = stages / pipes;
  return Object.freeze({ name, rank_of_stage, pipes, ranks, stages, depth, chunks: depth / ranks });
}

export const sum = (values) => values.reduce((total, value) => total + value, 0);
export const range = (count) => Array.from({ length: count }, (_, index) => index);

/** One stage per rank, in rank order. */
export const contiguous = (ranks) => placement("contiguous", range(ranks));

/** Stage `chunk · ranks + rank` on `rank`: the pipe runs around the ranks `chunks` times. */
export function looping(ranks, chunks) {
  return placement("looping", range(ranks * chunks).map((stage) => stage % ranks));
}

/** Two chunks per rank, down the ranks and back up: rank r holds r and 2P−1−r. */
export function vShape(ranks) {
  return placement("v-shape", [...range(ranks), ...range(ranks).reverse()]);
}

/** The order of every rank over a placement; `overlapped` are forwards that run in a pair. */
export function schedule(name, placed, microbatches, orders, overlapped = new Set()) {
  const packed = orders.map((order) => Int32Array.from(order));
  return Object.freeze({ name, placement: placed, microbatches, orders: packed, overlapped });
}

/** Throws InputError unless P, M and V are integers ≥ 1 and V is what the schedule allows. */
export function checkSizes(name, sizes, onlyChunks) {
  for (const [size, got] of Object.entries(sizes)) {
    if (Number.isInteger(got) && got >= 1) continue;
    throw new InputError(`${size} of schedule '${name}'`, { expected: "an integer ≥ 1", got });
  }
  if (onlyChunks !== null && sizes.chunks !== onlyChunks) {
    const expected = String(onlyChunks);
    throw new InputError(`chunks of schedule '${name}'`, { expected, got: sizes.chunks });
  }
}

/** Most activations held at once on each rank, in microbatch equivalents. */
export function peakInFlight({ orders, placement: { chunks } }) {
  return orders.map((order) => {
    let [held, peak] = [0, 0];
    for (const code of order) {
      const kind = code & 3;
      if (kind === F) peak = Math.max(peak, ++held);
      else if (kind !== I) held--;
    }
    return peak / chunks;
  });
}

/** No pipelining: a microbatch passes forward and backward before the next one starts. */
export function naive(stages, microbatches) {
  const all = range(microbatches);
  const slot = (rank, m) => rank * microbatches + m;
  const one = (rank) => all.flatMap((m) => [4 * slot(rank, m) + F, 4 * slot(rank, m) + B]);
  return schedule("naive", contiguous(stages), microbatches, range(stages).map(one));
}

/** All forwards, then all backwards, first in first out. */
export function gpipe(stages, microbatches) {
  const all = range(microbatches);
  const slot = (rank, m) => rank * microbatches + m;
  const one = (rank) => [F, B].flatMap((kind) => all.map((m) => 4 * slot(rank, m) + kind));
  return schedule("gpipe", contiguous(stages), microbatches, range(stages).map(one));
}

/** 1F1B with a flush: rank p runs P−p−1 forwards ahead, then forward and backward in turn. */
export function oneFOneB(stages, microbatches) {
  const orders = alternating(stages, microbatches, 1, microbatches, (rank) => stages - rank - 1);
  return schedule("1f1b", contiguous(stages), microbatches, orders);
}

/** 1F1B over `chunks` chunks per rank, as Megatron orders it; with one chunk plain 1F1B. */
export function interleaved1F1B(stages, microbatches, chunks) {
  const name = "interleaved-1f1b";
  const placed = looping(stages, chunks);
  if (chunks === 1) {
    return schedule(name, placed, microbatches, oneFOneB(stages, microbatches).orders);
  }
  const group = microbatchGroupSize(stages, microbatches);
  const ahead = (rank) => 2 * (stages - rank - 1) + (chunks - 1) * group;
  const orders = alternating(stages, microbatches, chunks, group, ahead);
  return schedule(name, placed, microbatches, orders);
}

/** GPipe over `chunks` chunks per rank, backwards last in first out, as in torch. */
export function loopedBfs(stages, microbatches, chunks) {
  const one = (rank) => {
    const slots = range(chunks).flatMap((chunk) =>
      range(microbatches).map((m) => (chunk * stages + rank) * microbatches + m),
    );
    const backwards = slots.map((slot) => 4 * slot + B).reverse();
    return [...slots.map((slot) => 4 * slot + F), ...backwards];
  };
  return schedule("looped-bfs", looping(stages, chunks), microbatches, range(stages).map(one));
}

/** Microbatches that a chunk runs before the next chunk has its turn. */
export function microbatchGroupSize(stages, microbatches) {
  if (microbatches < stages) return microbatches;
  let size = stages;
  while (microbatches % size && microbatches % size < stages) size++;
  return size;
}

/** [chunk, microbatch] in the order in which forwards run; the last group may be short. */
export function chunkTurns(microbatches, chunks, group) {
  const turns = [];
  for (let first = 0; first < microbatches; first += group) {
    for (let chunk = 0; chunk < chunks; chunk++) {
      const end = Math.min(first + group, microbatches);
      for (let m = first; m < end; m++) turns.push([chunk, m]);
    }
  }
  return turns;
}

// Every rank runs `ahead(rank)` forwards, then backward and forward in turn.
function alternating(stages, microbatches, chunks, group, ahead) {
  const turns = chunkTurns(microbatches, chunks, group);
  return range(stages).map((rank) => {
    const slot = (chunk, m) => (chunk * stages + rank) * microbatches + m;
    const forwards = turns.map(([chunk, m]) => 4 * slot(chunk, m) + F);
    const backwards = turns.map(([chunk, m]) => 4 * slot(chunks - 1 - chunk, m) + B);
    const warmup = Math.min(ahead(rank), turns.length);
    const order = forwards.slice(0, warmup);
    for (let at = warmup; at < turns.length; at++) order.push(forwards[at], backwards[at - warmup]);
    return [...order, ...backwards.slice(turns.length - warmup)];
  });
}
