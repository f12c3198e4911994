// A schedule that is made one action at a time: what may be placed, when it runs, why it may not.
//
// Placing follows the simulator: an action starts when its rank is free and its inputs have
// arrived, so only what has all its inputs can be placed, and nothing that is placed ever moves.

import { InputError } from "./errors.js";
import { B, F, I, KINDS, W, schedule as made, word } from "./orders.js";

const KIND_NAMES = { F: "forward", B: "backward", I: "backward for inputs", W: "backward for weights" };
export { KIND_NAMES };

/** An empty board over a schedule's stages and ranks; `times` are those of its trace. */
export function board({ placement, microbatches, name }, { forward, backward_input, backward_weight, latency }) {
  const slots = placement.stages * microbatches;
  return {
    name, placement, microbatches, slots, latency,
    times: [forward, forward.map((_, s) => backward_input[s] + backward_weight[s]), backward_input, backward_weight],
    done: new Map(), // code → [rank, place]
    moves: [],
    orders: Array.from({ length: placement.ranks }, () => []),
    start: Array.from({ length: placement.ranks }, () => []),
    end: Array.from({ length: placement.ranks }, () => []),
  };
}

const sized = (of) => 4 * of.slots;

/** Stages and microbatches: a pipe's microbatches are a run of its own. */
function microbatchesOf({ placement: { pipes, depth }, microbatches }, stage) {
  const share = microbatches / pipes;
  const first = Math.floor(stage / depth) * share;
  return [first, first + share - 1];
}

/** The number of an action that is written `2F0`. Throws InputError where there is none such. */
export function codeOf(of, text) {
  const [, stage, kind, microbatch] = /^(\d{1,6})([FBIW])(\d{1,6})$/.exec(text.trim().toUpperCase()) ?? [];
  if (kind === undefined) {
    const expected = "stage, F, B, I or W, microbatch, as 2F0";
    throw new InputError("cannot read action", { expected, got: text.slice(0, 40) });
  }
  const stages = of.placement.stages;
  if (Number(stage) >= stages) {
    throw new InputError(`stage of ${stage}${kind}${microbatch}`, {
      expected: `0 to ${stages - 1}`, got: Number(stage), nearest: [`${stages - 1}${kind}${microbatch}`],
    });
  }
  const [low, high] = microbatchesOf(of, Number(stage));
  const asked = Number(microbatch);
  if (asked < low || asked > high) {
    throw new InputError(`microbatch of ${stage}${kind}${asked}`, {
      expected: `${low} to ${high}`, got: asked, nearest: [`${stage}${kind}${Math.min(high, Math.max(low, asked))}`],
    });
  }
  return 4 * (Number(stage) * of.microbatches + asked) + KINDS.indexOf(kind);
}

// What an action needs: the alternatives for each input, of which one has to be there.
function needs({ placement: { depth }, microbatches }, code) {
  const [slot, kind] = [code >> 2, code & 3];
  const stage = Math.floor(slot / microbatches);
  if (kind === F) return stage % depth === 0 ? [] : [[4 * (slot - microbatches) + F]];
  if (kind === W) return [[4 * slot + I]];
  const behind = 4 * (slot + microbatches);
  return [[4 * slot + F], ...(stage % depth === depth - 1 ? [] : [[behind + B, behind + I]])];
}

/** Why the action cannot be placed now, in a sentence; null where it can. */
export function refusal(of, code) {
  const say = (one) => word(of, one);
  const [base, kind] = [code - (code & 3), code & 3];
  if (of.done.has(code)) return `${say(code)} has been placed already: every action runs once`;
  const rivals = kind === B ? [I, W] : kind === F ? [] : [B];
  for (const rival of rivals) {
    if (of.done.has(base + rival)) {
      return `${say(base + rival)} has been placed: B does the work of I and W, so a microbatch has either B or both of the others`;
    }
  }
  for (const options of needs(of, code)) {
    if (options.some((one) => of.done.has(one))) continue;
    const stage = Math.floor((options[0] >> 2) / of.microbatches);
    const from = of.placement.rank_of_stage[stage];
    const what = (options[0] & 3) === F ? "the activation" : "the gradient";
    return `${say(code)} waits for ${what} of ${options.map(say).join(" or ")} on rank ${from}, which has not been placed`;
  }
  return null;
}

/** Places the action; throws InputError with the reason where it may not be. */
export function place(of, code) {
  if (!(Number.isInteger(code) && code >= 0 && code < sized(of))) throw new InputError("no such action");
  const why = refusal(of, code);
  if (why) throw new InputError(why);
  const [slot, kind] = [code >> 2, code & 3];
  const stage = Math.floor(slot / of.microbatches);
  const rank = of.placement.rank_of_stage[stage];
  let begin = of.end[rank].at(-1) ?? 0;
  for (const options of needs(of, code)) {
    const [from, at] = of.done.get(options.find((one) => of.done.has(one)));
    begin = Math.max(begin, of.end[from][at] + (from === rank ? 0 : of.latency));
  }
  of.done.set(code, [rank, of.orders[rank].length]);
  of.orders[rank].push(code);
  of.start[rank].push(begin);
  of.end[rank].push(begin + of.times[kind][stage]);
  of.moves.push(code);
  return { rank, start: begin, end: of.end[rank].at(-1) };
}

/** Takes the last action back. */
export function undo(of) {
  const code = of.moves.pop();
  if (code === undefined) return;
  const [rank] = of.done.get(code);
  of.done.delete(code);
  for (const lane of [of.orders, of.start, of.end]) lane[rank].pop();
}

/** What is left: passes that still have to be placed, an I with its W counting as a B and more. */
export function left(of) {
  let count = 0;
  for (let stage = 0; stage < of.placement.stages; stage++) {
    const [low, high] = microbatchesOf(of, stage);
    for (let m = low; m <= high; m++) {
      const base = 4 * (stage * of.microbatches + m);
      if (!of.done.has(base + F)) count++;
      if (of.done.has(base + I) ? !of.done.has(base + W) : !of.done.has(base + B)) count++;
    }
  }
  return count;
}

/** For each kind and stage of a rank the next microbatch that it has not run: actions to offer. */
export function offers(of, rank) {
  const found = [];
  of.placement.rank_of_stage.forEach((holder, stage) => {
    if (holder !== rank) return;
    const [low, high] = microbatchesOf(of, stage);
    const next = (kind, open) => {
      for (let m = low; m <= high; m++) {
        const base = 4 * (stage * of.microbatches + m);
        if (open(base)) return void found.push(base + kind);
      }
    };
    const has = (code) => of.done.has(code);
    next(F, (base) => !has(base + F));
    next(B, (base) => !has(base + B) && !has(base + I));
    next(I, (base) => !has(base + B) && !has(base + I));
    next(W, (base) => has(base + I) && !has(base + W));
  });
  return found;
}

/** Goes on in the order of `schedule` as far as what has been placed allows; how many it placed. */
export function follow(of, schedule, until = null) {
  let [placed, again] = [0, true];
  const at = schedule.orders.map(() => 0);
  while (again) {
    again = false;
    schedule.orders.forEach((order, rank) => {
      while (at[rank] < order.length) {
        const code = order[at[rank]];
        if (until && !until(rank, at[rank])) break;
        const base = code - (code & 3);
        const over = of.done.has(code) || ((code & 3) === B && of.done.has(base + I)) || ((code & 3) !== F && of.done.has(base + B));
        if (!over) {
          if (refusal(of, code)) break;
          place(of, code);
          placed++;
        }
        at[rank]++;
        again = true;
      }
    });
  }
  if (until) return placed;
  // Where the reader split a backward and the schedule does not, its W is still owed.
  schedule.orders.forEach((_, rank) => {
    for (let owed; (owed = offers(of, rank).find((code) => (code & 3) === W)) !== undefined; placed++) place(of, owed);
  });
  return placed;
}

/** The finished board as a schedule that the simulator runs. */
export const asSchedule = (of) => made(of.name, of.placement, of.microbatches, of.orders);
