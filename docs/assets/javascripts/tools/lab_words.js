// The schedule lab's sentences about a slot, a moment, and a whole schedule.

import { arrivals, free_at } from "../models/pipeline/arrivals.js";
import { held } from "../models/pipeline/schedule_work.js";
import { critical_path } from "../models/pipeline/trace.js";
import { bytes, percent } from "./quantities.js";
import { KINDS, ms } from "./lab_picture.js";

/** The inputs of a slot, latest first, each with the time at which it reached the slot's rank. */
export const inputsOf = ({ schedule, trace, placed }, { action }) =>
  arrivals(schedule.placement, trace.durations.latency, placed, action);

/** Sentences about one slot: what it is, when it runs and what it waited for. */
export function slotSentences(run, rank, at) {
  const slot = run.lanes[rank][at];
  const { action, start, end } = slot;
  const { stage, kind, microbatch } = action;
  const [free, inputs] = [free_at(run.lanes[rank], at), inputsOf(run, slot)];
  const told = [
    `${run.title}: ${action}, ${KINDS[kind][0]} of microbatch ${microbatch} on stage ${stage}${chunkOf(run.schedule, stage)}, rank ${rank}, from ${ms(start)} to ${ms(end)}.`,
  ];
  for (const { source, time } of inputs) {
    const what = source.action.kind === "F" ? "activation" : "gradient";
    const on = source.rank === rank ? "on this rank" : `from rank ${source.rank}`;
    const sent = time > source.end ? `, sent at ${ms(source.end)},` : "";
    told.push(`The ${what} of ${source.action} ${on}${sent} arrived at ${ms(time)}.`);
  }
  if (!inputs.length) told.push("It needs nothing from another action.");
  told.push(free > 0 ? `The rank was busy until ${ms(free)}.` : "The rank had nothing to do before.");
  // In a pair, both may wait for the partner's input.
  const latest = inputs[0]?.time ?? 0;
  if (start === free) told.push(latest < free ? "So the rank held it up." : "So it did not wait.");
  else if (start === latest) told.push(`So the rank idled for ${ms(start - free)}, waiting for its input.`);
  else told.push(`So the rank idled for ${ms(start - free)}, waiting for the input of its partner.`);
  return told;
}

// Which of its rank's chunks a stage is, if the rank has several.
function chunkOf({ placement: { chunks, rank_of_stage } }, stage) {
  if (chunks === 1) return "";
  const mine = [...rank_of_stage.keys()].filter((one) => rank_of_stage[one] === rank_of_stage[stage]);
  return `, chunk ${mine.indexOf(stage) + 1} of ${mine.length}`;
}

/** What happens at `cursor`, in one sentence per schedule. */
export function momentSentences(runs, cursor) {
  return runs.map((run) => {
    const { lanes } = run;
    const busy = lanes.filter((lane) => lane.some(({ start, end }) => start <= cursor && cursor < end)).length;
    const amounts = lanes.map((lane) => heldAt(lane, run.bytes, cursor));
    const most = amounts.indexOf(Math.max(...amounts));
    return `${run.title}: ${busy} of ${lanes.length} ranks work; rank ${most} holds most, ${bytes(amounts[most])}.`;
  });
}

/** What a rank holds at a time. */
export function heldAt(lane, shares, time) {
  let now = 0;
  for (const [from, amount] of held(lane, shares)) if (from <= time) now = amount;
  return now;
}

/** What the picture shows, for readers who cannot see it. */
export const pictureSentence = (runs) =>
  `Timelines on one axis: ${runs
    .map(({ title, trace, schedule, lanes }) => `${title}, ${lanes.length} ranks, ${schedule.microbatches} microbatches, ${ms(trace.makespan)}, ${percent(trace.bubble_fraction)} idle`)
    .join("; ")}.`;

/** The critical path of each run, by its key. */
export const criticalPaths = (runs) => new Map(runs.map(({ key, trace }) => [key, critical_path(trace)]));

/** What a run's critical path consists of: time in work of each kind and in messages. */
export function pathSentence({ title, trace }) {
  const path = critical_path(trace);
  const spent = { F: 0, B: 0, I: 0, W: 0 };
  let work = 0;
  const counted = new Set();
  for (const { action, rank, start, end } of path) {
    const length = end - start;
    if (counted.has(`${rank} ${start}`)) continue;
    counted.add(`${rank} ${start}`);
    spent[action.kind] += length;
    work += length;
  }
  const parts = Object.entries(spent).filter(([, time]) => time > 0).map(([kind, time]) => `${ms(time)} of ${kind}`);
  const sent = trace.makespan - work;
  if (sent > 1e-9 * trace.makespan) parts.push(`${ms(sent)} of messages`);
  return `${title}: ${path.length} slots, ${parts.join(", ")}.`;
}
