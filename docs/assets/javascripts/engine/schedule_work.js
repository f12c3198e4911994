// A pipeline schedule with the work that each stage has, and what it holds for it; mirrors
// figgen.models.pipeline.schedule_work and the critical path of figgen.models.pipeline.trace.

import { InputError, repr } from "./errors.js";
import { F, I, W, action, word } from "./orders.js";
import { simulate } from "./simulate.js";
import { durations as given } from "./trace.js";

/** The work of each virtual stage in terms of what a rank has on average: 1/V where all alike. */
export function stageShares(placement, layers = null) {
  const { ranks, depth, chunks, stages, rank_of_stage } = placement;
  if (layers === null) return new Array(stages).fill(1 / chunks);
  if (layers.length !== ranks && layers.length !== depth) {
    const counts = [...new Set([ranks, depth])].sort((a, b) => a - b).join(" or ");
    const expected = `${counts}, one for each rank or each virtual stage`;
    throw new InputError("number of layers", { expected, got: layers.length });
  }
  const total = layers.reduce((sum, count) => sum + count, 0);
  if (!layers.every((count) => count >= 0 && count < Infinity) || total === Infinity) {
    throw new InputError("layers", { expected: "finite numbers ≥ 0", got: layers });
  }
  const part =
    layers.length === ranks
      ? (stage) => layers[rank_of_stage[stage]] / chunks
      : (stage) => layers[stage % depth];
  for (let rank = 0; rank < ranks; rank++) {
    // Idle time over work, one of the measures, would have no value there.
    if (rank_of_stage.some((holder, stage) => holder === rank && part(stage) > 0)) continue;
    throw new InputError(`layers of rank ${rank}`, { expected: "more than 0", got: 0 });
  }
  return rank_of_stage.map((_, stage) => (part(stage) * ranks) / total);
}

/** The schedule in time where `times` are those of an average rank's whole share. */
export function carriedOut(schedule, times, layers = null) {
  const shares = stageShares(schedule.placement, layers);
  const cut = (time) => shares.map((share) => time * share);
  return simulate(schedule, given({
    forward: cut(times.forward),
    backward_input: cut(times.backward_input),
    backward_weight: cut(times.backward_weight),
    latency: times.latency,
    overlapped_pair: pairsOf(schedule, times, shares),
  }));
}

// Of the shorter half of a pair the same share is added to the longer one everywhere.
function pairsOf({ placement, overlapped }, times, shares) {
  if (times.overlapped_pair === null || !overlapped.size) return null;
  const { forward, backward_input: inputs, backward_weight: weights, overlapped_pair: pair } = times;
  const [shorter, longer] = [forward, inputs + weights].sort((one, other) => one - other);
  const added = (pair - longer) / (shorter || longer);
  const { rank_of_stage: holder } = placement;
  return shares.map((share, stage) => {
    const behind = holder.findIndex((rank, other) => rank === holder[stage] && other !== stage);
    const back = inputs * shares[behind] + weights * shares[behind];
    const [less, more] = [forward * share, back].sort((one, other) => one - other);
    return more + added * (shorter ? less : more);
  });
}

/** What `rank` holds over time: [time, amount from then on]; `shares` is what a stage keeps. */
export function held({ schedule, start, end }, rank, shares) {
  const changes = new Map([[0, []]]);
  schedule.orders[rank].forEach((code, at) => {
    const kind = code & 3;
    if (kind === I) return;
    const [time, change] = kind === F ? [start[rank][at], 1] : [end[rank][at], -1];
    if (!changes.has(time)) changes.set(time, []);
    changes.get(time).push([Math.floor((code >> 2) / schedule.microbatches), change]);
  });
  const counts = new Map();
  schedule.placement.rank_of_stage.forEach((of, stage) => of === rank && counts.set(stage, 0));
  const steps = [];
  for (const time of [...changes.keys()].sort((a, b) => a - b)) {
    for (const [stage, change] of changes.get(time)) counts.set(stage, counts.get(stage) + change);
    let now = 0;
    for (const [stage, count] of counts) now += count * shares[stage];
    if (steps.at(-1)?.[1] !== now) steps.push([time, now]);
  }
  return steps;
}

/** Most held at once on each rank, in the unit of `shares`. */
export const peakHeld = (trace, shares) =>
  trace.schedule.orders.map((_, rank) =>
    held(trace, rank, shares).reduce((most, [, amount]) => Math.max(most, amount), 0),
  );

/** Where each action is: code → [rank, its place in the rank's order]. */
export function places({ orders }) {
  const found = new Map();
  orders.forEach((order, rank) => order.forEach((code, at) => found.set(code, [rank, at])));
  return found;
}

// The actions that make the input of `code`; of B and I a schedule has one.
function sources({ placement: { depth }, microbatches }, code) {
  const [slot, kind] = [code >> 2, code & 3];
  const stage = Math.floor(slot / microbatches);
  if (kind === F) return stage % depth === 0 ? [] : [4 * (slot - microbatches) + F];
  if (kind === W) return [4 * slot + I];
  const own = [4 * slot + F];
  if (stage % depth === depth - 1) return own;
  const behind = 4 * (slot + microbatches);
  return [...own, behind + 1, behind + 2];
}

/**
 * What the action at `at` of a rank's order waited for: { free, inputs }. `free` is when the rank
 * was done with what it did before; an input is { code, rank, end, arrival }, first the latest.
 */
export function waitsOf(trace, rank, at, index = places(trace.schedule)) {
  const { schedule, end, durations } = trace;
  const order = schedule.orders[rank];
  const first = firstOf(trace, rank, at);
  const inputs = sources(schedule, order[at]).flatMap((code) => {
    const place = index.get(code);
    if (!place) return [];
    const [from, where] = place;
    const made = end[from][where];
    return [{ code, rank: from, end: made, arrival: from === rank ? made : made + durations.latency }];
  });
  inputs.sort((a, b) => b.arrival - a.arrival);
  return { free: first ? end[rank][first - 1] : 0, inputs };
}

// The place of the first action of the block (one action, or a pair) that `at` is in.
function firstOf({ schedule, paired }, rank, at) {
  const order = schedule.orders[rank];
  return paired[rank][at] && !schedule.overlapped.has(order[at]) ? at - 1 : at;
}

/** A chain of [rank, at] from time 0 to the makespan, each started by the end of the one before. */
export function criticalPath(trace) {
  const { schedule, start, end, paired } = trace;
  const index = places(schedule);
  const lasts = end.map((lane) => lane[lane.length - 1]);
  let rank = lasts.indexOf(Math.max(...lasts));
  let at = end[rank].length - 1;
  const path = [[rank, at]];
  while (start[rank][at] > 0) {
    const first = firstOf(trace, rank, at);
    if (first > 0 && end[rank][first - 1] === start[rank][at]) at = first - 1;
    else {
      const members = paired[rank][first] ? [first, first + 1] : [first];
      const [member, source] = heldBy(trace, rank, members, index);
      path[path.length - 1] = [rank, member];
      [rank, at] = source;
    }
    path.push([rank, at]);
  }
  return path.reverse();
}

function heldBy(trace, rank, members, index) {
  for (const member of members) {
    const code = trace.schedule.orders[rank][member];
    for (const source of sources(trace.schedule, code)) {
      const [from, at] = index.get(source) ?? [rank];
      // A source on the same rank ends no later than the block before: never what is sought.
      if (from === rank) continue;
      if (trace.end[from][at] + trace.durations.latency === trace.start[rank][member]) {
        return [member, [from, at]];
      }
    }
  }
  throw new InputError(`nothing explains the start of ${word(trace.schedule, trace.schedule.orders[rank][members[0]])}`);
}

/** What `rank` runs in turn as torch writes it: `0F0`, and `(0F1;7B0)OVERLAP_F_B` for a pair. */
function wordsOfBlocks(schedule, rank) {
  const words = [];
  let open = null;
  for (const code of schedule.orders[rank]) {
    const one = word(schedule, code);
    if (open !== null) {
      words.push(`(${open};${one})OVERLAP_F_B`);
      open = null;
    } else if (schedule.overlapped.has(code)) open = one;
    else words.push(one);
  }
  return words;
}

/** Python that hands the order to torch's pipeline runtime, which adds the messages. */
export function torchListing(schedule) {
  const { name, placement, microbatches, orders } = schedule;
  if (placement.pipes > 1) {
    throw new InputError(`torch listing of schedule '${name}'`, {
      expected: "every microbatch on every stage, as torch's runtime has it",
      got: `${placement.pipes} copies of the model, each with its own microbatches`,
      nearest: ["dualpipev"],
    });
  }
  return `${[
    `# ${name}: ${placement.ranks} ranks, ${microbatches} microbatches, ${placement.stages} stages; ${placement.name} placement.`,
    "from torch.distributed.pipelining.schedules import _Action, _PipelineScheduleRuntime",
    "",
    "ORDER = {",
    ...orders.map((_, rank) => `    ${rank}: "${wordsOfBlocks(schedule, rank).join(" ")}",`),
    "}",
    "",
    "",
    "def pipeline_schedule(stages, loss_fn):",
    '    """`stages`: the PipelineStage objects of this rank, in ascending order."""',
    `    schedule = _PipelineScheduleRuntime(stages, ${microbatches}, loss_fn)`,
    "    actions = {",
    "        rank: [_Action.from_str(word) for word in row.split()]",
    "        for rank, row in ORDER.items()",
    "    }",
    "    schedule._prepare_schedule_with_comms(actions)",
    "    return schedule",
  ].join("\n")}\n`;
}

/** A line for each action: where it comes in its rank's order, and when it runs. */
export function slotsCsv({ schedule, start, end }) {
  const lines = ["rank,place,action,stage,kind,microbatch,start,end"];
  schedule.orders.forEach((order, rank) =>
    order.forEach((code, place) => {
      const { stage, kind, microbatch } = action(schedule, code);
      const times = [start[rank][place], end[rank][place]].map(repr).join(",");
      lines.push(`${rank},${place},${word(schedule, code)},${stage},${kind},${microbatch},${times}`);
    }),
  );
  return `${lines.join("\n")}\n`;
}

/** The order as lines for people. */
export const orderText = (schedule) =>
  `${schedule.orders
    .map((order, rank) => `rank ${rank}: ${Array.from(order, (code) => word(schedule, code)).join(" ")}`)
    .join("\n")}\n`;
