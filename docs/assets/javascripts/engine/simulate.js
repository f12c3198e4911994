// When every action of a pipeline schedule runs; mirrors figgen.models.pipeline.simulate.
//
// A rank runs its order without skipping; an action starts as soon as the rank is free and its
// inputs have arrived. Sending costs the sender nothing and links never queue.

import { InputError } from "./errors.js";
import { F, W, word } from "./orders.js";
import { durations as given, measures } from "./trace.js";

const PAIR = 4;

/**
 * The schedule carried out: `start[rank]` and `end[rank]` in the order of `orders[rank]`, `paired`
 * where an action shares its time with a partner, and everything in `measures`.
 */
export function simulate(schedule, durations = given({})) {
  const board = start(schedule, durations);
  const runnable = schedule.orders.map((_, rank) => rank);
  while (runnable.length) {
    const woken = run(board, runnable.pop());
    for (const rank of woken) runnable.push(rank);
  }
  if (schedule.orders.some((order, rank) => board.position[rank] < order.length)) {
    throw new InputError(`order of schedule '${schedule.name}' cannot be carried out`);
  }
  const { start: starts, end, paired } = board;
  return measures({ schedule, durations, start: starts, end, paired });
}

function start(schedule, durations) {
  const { placement, microbatches, orders } = schedule;
  const { stages, depth, rank_of_stage: holder } = placement;
  const slots = stages * microbatches;
  // hop[s]: delay between stages s − 1 and s, NaN where s opens a pipe.
  const hop = Float64Array.from({ length: stages + 1 }, (_, stage) => {
    if (stage % depth === 0) return NaN;
    return holder[stage - 1] === holder[stage] ? 0 : durations.latency;
  });
  return {
    schedule, durations, hop, slots, microbatches,
    times: timesByKind(durations, stages),
    // By slot, forwards and then gradients: when it was made, NaN before; and the rank that waits.
    made: new Float64Array(2 * slots).fill(NaN),
    waiting: new Int32Array(2 * slots).fill(-1),
    position: new Int32Array(orders.length),
    freeAt: new Float64Array(orders.length),
    start: orders.map((order) => new Float64Array(order.length)),
    end: orders.map((order) => new Float64Array(order.length)),
    paired: orders.map((order) => new Uint8Array(order.length)),
  };
}

// When all inputs of an action are on its rank, or −1 − the index in `made` of one not computed.
function arrival({ made, hop, slots, microbatches }, code) {
  const [slot, kind] = [code >> 2, code & 3];
  const stage = Math.floor(slot / microbatches);
  if (kind === F) {
    if (Number.isNaN(hop[stage])) return 0;
    const sent = made[slot - microbatches];
    return Number.isNaN(sent) ? -1 - (slot - microbatches) : sent + hop[stage];
  }
  if (kind === W) return Number.isNaN(made[slots + slot]) ? -1 - slots - slot : made[slots + slot];
  const own = made[slot];
  if (Number.isNaN(own)) return -1 - slot;
  if (Number.isNaN(hop[stage + 1])) return own;
  const behind = slots + slot + microbatches;
  return Number.isNaN(made[behind]) ? -1 - behind : Math.max(own, made[behind] + hop[stage + 1]);
}

// Run a rank until its order ends or must wait; returns the ranks that this set going.
function run(board, rank) {
  const order = board.schedule.orders[rank];
  const woken = [];
  let now = board.freeAt[rank];
  let at = board.position[rank];
  while (at < order.length) {
    const block = board.schedule.overlapped.has(order[at]) ? 2 : 1;
    let begin = now;
    for (let member = at; member < at + block; member++) {
      const arrived = arrival(board, order[member]);
      if (arrived < 0) {
        board.waiting[-1 - arrived] = rank;
        board.position[rank] = at;
        board.freeAt[rank] = now;
        return woken;
      }
      begin = Math.max(begin, arrived);
    }
    now = begin + blockTime(board, order, at, block);
    for (const next = at + block; at < next; at++) {
      board.start[rank][at] = begin;
      board.end[rank][at] = now;
      board.paired[rank][at] = block - 1;
      finish(board, order[at], now, woken);
    }
  }
  board.position[rank] = at;
  board.freeAt[rank] = now;
  return woken;
}

function blockTime({ times, microbatches, schedule }, order, at, block) {
  const time = (code, of = code & 3) => times[of][Math.floor((code >> 2) / microbatches)];
  if (block === 1) return time(order[at]);
  const [first, second] = [order[at], order[at + 1]];
  if (!times[PAIR]) return time(first) + time(second);
  const pair = time(first, PAIR);
  const longer = Math.max(time(first), time(second));
  if (pair < longer) {
    const halves = `${word(schedule, first)} & ${word(schedule, second)}`;
    const what = `overlapped_pair is shorter than one half of ${halves}`;
    throw new InputError(what, { expected: `at least ${longer}`, got: pair });
  }
  return pair;
}

function finish({ made, waiting, slots }, code, end, woken) {
  if ((code & 3) === W) return;
  const index = (code >> 2) + ((code & 3) === F ? 0 : slots);
  made[index] = end;
  if (waiting[index] < 0) return;
  woken.push(waiting[index]);
  waiting[index] = -1;
}

// Time of each kind of action, by number, on each stage; and of pairs, null where none is given.
function timesByKind({ forward, backward_input, backward_weight, overlapped_pair }, stages) {
  const perStage = (name, value) => {
    if (!Array.isArray(value)) return new Float64Array(stages).fill(value);
    if (value.length === stages) return Float64Array.from(value);
    const expected = `one time per virtual stage, ${stages}`;
    throw new InputError(`duration ${name}`, { expected, got: value.length });
  };
  const forwards = perStage("forward", forward);
  const inputs = perStage("backward_input", backward_input);
  const weights = perStage("backward_weight", backward_weight);
  const pairs = overlapped_pair === null ? null : perStage("overlapped_pair", overlapped_pair);
  return [forwards, inputs.map((time, stage) => time + weights[stage]), inputs, weights, pairs];
}
