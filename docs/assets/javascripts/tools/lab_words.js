// What the schedule lab says of a slot, of a moment, and of a whole schedule.

import { KIND_NAMES } from "../engine/placing.js";
import { action, word } from "../engine/orders.js";
import { criticalPath, held, waitsOf } from "../engine/schedule_work.js";
import { bytes, percent } from "./quantities.js";
import { ms } from "./lab_picture.js";

/** Sentences about one slot: what it is, when it runs and what it waited for. */
export function slotSentences({ title, schedule, trace, index }, rank, at) {
  const code = schedule.orders[rank][at];
  const { stage, kind, microbatch } = action(schedule, code);
  const [start, end] = [trace.start[rank][at], trace.end[rank][at]];
  const { free, inputs } = waitsOf(trace, rank, at, index);
  const told = [
    `${title}: ${word(schedule, code)}, ${KIND_NAMES[kind]} of microbatch ${microbatch} on stage ${stage}, rank ${rank}, from ${ms(start)} to ${ms(end)}.`,
  ];
  for (const input of inputs) {
    const what = (input.code & 3) === 0 ? "activation" : "gradient";
    const on = input.rank === rank ? "on this rank" : `from rank ${input.rank}`;
    const sent = input.arrival > input.end ? `, sent at ${ms(input.end)},` : "";
    told.push(`The ${what} of ${word(schedule, input.code)} ${on}${sent} was there at ${ms(input.arrival)}.`);
  }
  if (!inputs.length) told.push("It needs nothing from another action.");
  told.push(free > 0 ? `The rank was busy until ${ms(free)}.` : "The rank had nothing to do before.");
  // Of a pair the partner's input may be what both waited for.
  const latest = inputs[0]?.arrival ?? 0;
  if (start === free) told.push(latest < free ? "So the rank held it up." : "So it did not wait.");
  else if (start === latest) told.push(`So the rank idled for ${ms(start - free)}, waiting for its input.`);
  else told.push(`So the rank idled for ${ms(start - free)}, waiting for the input of its partner.`);
  return told;
}

/** What is going on at `cursor`, a sentence for each schedule. */
export function momentSentences(runs, cursor) {
  return runs.map((run) => {
    const { schedule, trace } = run;
    const doing = schedule.orders.map((order, rank) => {
      const at = trace.start[rank].findIndex((start, place) => start <= cursor && cursor < trace.end[rank][place]);
      return at < 0 ? null : word(schedule, order[at]);
    });
    const busy = doing.filter((one) => one !== null).length;
    const amounts = doing.map((_, rank) => heldAt(run, rank, cursor));
    const most = amounts.indexOf(Math.max(...amounts));
    return `${run.title}: ${busy} of ${doing.length} ranks work; rank ${most} holds most, ${bytes(amounts[most])}.`;
  });
}

/** What a rank holds at a time. */
export function heldAt(run, rank, time) {
  let now = 0;
  for (const [from, amount] of held(run.trace, rank, run.bytes)) if (from <= time) now = amount;
  return now;
}

/** What the picture shows, for whoever does not see it. */
export const pictureSentence = (runs) =>
  `Timelines on one axis: ${runs
    .map(({ title, trace, schedule }) => `${title}, ${schedule.orders.length} ranks, ${schedule.microbatches} microbatches, ${ms(trace.makespan)}, ${percent(trace.bubble_fraction)} idle`)
    .join("; ")}.`;

/** The critical path of each run, by its key. */
export const criticalPaths = (runs) => new Map(runs.map(({ key, trace }) => [key, criticalPath(trace)]));

/** What a run's critical path consists of: time in work of each kind and in messages. */
export function pathSentence({ title, schedule, trace }) {
  const path = criticalPath(trace);
  const spent = { F: 0, B: 0, I: 0, W: 0 };
  let work = 0;
  const counted = new Set();
  for (const [rank, at] of path) {
    const { kind } = action(schedule, schedule.orders[rank][at]);
    const length = trace.end[rank][at] - trace.start[rank][at];
    if (counted.has(`${rank} ${trace.start[rank][at]}`)) continue;
    counted.add(`${rank} ${trace.start[rank][at]}`);
    spent[kind] += length;
    work += length;
  }
  const parts = Object.entries(spent).filter(([, time]) => time > 0).map(([kind, time]) => `${ms(time)} of ${kind}`);
  const sent = trace.makespan - work;
  if (sent > 1e-9 * trace.makespan) parts.push(`${ms(sent)} of messages`);
  return `${title}: ${path.length} slots, ${parts.join(", ")}.`;
}
