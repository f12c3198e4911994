// The modelled step as events in time: what each pipeline rank computes and sends when; mirrors
// figgen.models.step.step_timeline. Loaded only where a trace is asked for.

import { total } from "./intervals.js";
import { KINDS } from "./orders.js";
import { onceExposed, timeline } from "./training.js";
import { BACKWARD, BOUNDARY, END, FORWARD, START, TIED } from "./traffic.js";

export const COMPUTE = "compute";
const PHASES = { F: FORWARD, B: BACKWARD, I: BACKWARD };
const WORK = {
  F: (stage) => [["forward", stage.forward_s]],
  B: (stage) => [["forward again", stage.recomputed_s], ["backward", stage.backward_input_s + stage.backward_weight_s]],
  I: (stage) => [["forward again", stage.recomputed_s], ["backward, inputs", stage.backward_input_s]],
  W: (stage) => [["backward, weights", stage.backward_weight_s]],
};

/** How many calls a step makes. */
export const callsOf = (setup) =>
  total(timeline(setup).stages.flatMap(({ traffic }) => traffic.map(({ calls, per_microbatch }) => calls * (per_microbatch ? setup.passing : 1))));

/**
 * { events, step_time_s } of a setup; an event is { rank, lane, name, start_s, end_s, microbatch,
 * sent, calls }, `sent` null for computing. `eachCall` makes every call an event of its own.
 */
export function stepTimeline(setup, eachCall = true) {
  const { stages, trace, before_s, after_s } = timeline(setup);
  const events = [];
  trace.schedule.orders.forEach((order, rank) => {
    const found = once(setup, stages, trace, rank, before_s);
    for (let at = 0; at < order.length; at++) {
      const block = [at];
      if (trace.schedule.overlapped.has(order[at])) block.push(++at);
      const actions = block.map((place) => actionAt(stages, trace, rank, place));
      found.push(...blockEvents(actions, rank, trace.start[rank][block[0]] + before_s, trace.end[rank][block[0]] + before_s, eachCall));
    }
    for (const event of stacked(found)) events.push(event);
  });
  return { events, step_time_s: before_s + trace.makespan + after_s };
}

function actionAt(stages, { schedule: { orders, microbatches } }, rank, at) {
  const [slot, kind] = [orders[rank][at] >> 2, KINDS[orders[rank][at] & 3]];
  const [stage, microbatch] = [stages[Math.floor(slot / microbatches)], slot % microbatches];
  const traffic = stage.traffic.filter(({ phase }) => phase === PHASES[kind]);
  return { parts: WORK[kind](stage).map(([name, seconds]) => ({ name, seconds, microbatch })), traffic, microbatch };
}

// One action, or a pair that overlaps: its computing, its calls, the messages it ends with.
function blockEvents(actions, rank, start, end, eachCall) {
  const parts = actions.flatMap((action) => action.parts);
  const pauses = actions.flatMap((action) => pausesOf(action, eachCall));
  if (actions.length > 1) {
    const exposed = total(pauses.map(({ exposed_s }) => exposed_s));
    const spare = end - start - total(parts.map(({ seconds }) => seconds));
    const left = exposed ? Math.min(1, Math.max(0, spare) / exposed) : 1;
    for (const pause of pauses) pause.exposed_s *= left;
  }
  pauses.sort((one, other) => one.share - other.share);
  const events = walked(rank, start, parts, pauses);
  for (const { traffic, microbatch } of actions) {
    for (const entry of traffic) if (entry.purpose === BOUNDARY) events.push(eventOf(rank, entry, end, entry.time_s, microbatch));
  }
  return events;
}

// The calls of an action, pipeline messages apart.
function pausesOf({ traffic, microbatch }, eachCall) {
  return traffic.filter(({ purpose }) => purpose !== BOUNDARY).flatMap((entry) => {
    const events = eachCall ? entry.calls : 1;
    return Array.from({ length: events }, (_, index) => ({
      share: (index + 1) / events, sent: entry, calls: eachCall ? 1 : entry.calls,
      takes_s: entry.time_s / events, exposed_s: entry.exposed_s / events, microbatch,
    }));
  });
}

// Computing in its parts, interrupted where a call is waited for.
function walked(rank, start, parts, pauses) {
  const events = [];
  const compute = (name, from, to, microbatch) => {
    if (to > from) events.push({ rank, lane: COMPUTE, name, start_s: from, end_s: to, microbatch, sent: null, calls: 0 });
  };
  const whole = total(parts.map(({ seconds }) => seconds));
  let [now, begun, done, next, bound] = [start, start, 0, 0, 0];
  const bounds = parts.map(({ seconds }) => (bound += seconds));
  parts.forEach(({ name, microbatch }, at) => {
    const last = bounds[at] === bounds[bounds.length - 1];
    for (; next < pauses.length && (last || pauses[next].share * whole <= bounds[at]); next++) {
      const pause = pauses[next];
      now += pause.share * whole - done;
      done = pause.share * whole;
      const stop = now + pause.exposed_s;
      events.push(eventOf(rank, pause.sent, Math.max(start, stop - pause.takes_s), pause.takes_s, pause.microbatch, pause.calls));
      if (pause.exposed_s) {
        compute(name, begun, now, microbatch);
        now = begun = stop;
      }
    }
    now += Math.max(0, bounds[at] - done);
    done = Math.max(done, bounds[at]);
    compute(name, begun, now, microbatch);
    begun = now;
  });
  return events;
}

// Weights gathered from the beginning on, and gradients as they become ready.
function once(setup, stages, trace, rank, shift_s) {
  const events = [];
  const mine = setup.stagesOf[rank].map((stage) => stages[stage]);
  const entries = mine.flatMap(({ traffic }) => traffic);
  let now = 0;
  const add = (entry) => {
    events.push(eventOf(rank, entry, now, entry.call.total_s));
    now += entry.call.total_s;
  };
  single(entries.filter(({ phase }) => phase === START)).forEach(add);
  const ending = entries.filter(({ phase }) => phase === END);
  const backward_s = total(mine.map((stage) => stage.backward_s + stage.exposed[BACKWARD]));
  const last = trace.end[rank][trace.end[rank].length - 1] + shift_s;
  const bucketed = single(ending.filter(({ purpose }) => purpose !== TIED));
  const all = [...bucketed, ...single(ending.filter(({ purpose }) => purpose === TIED))];
  const behind_s = setup.overlap_data_parallel ? backward_s : 0;
  // No later than what ends with the step that the closed form says, also with unequal buckets.
  let latest = last + onceExposed(setup, ending, backward_s) - total(all.map(({ call }) => call.total_s));
  now = 0;
  all.forEach((entry, index) => {
    const share = bucketed.length ? Math.min(1, (index + 1) / bucketed.length) : 1;
    now = Math.min(Math.max(now, last - behind_s * (1 - share)), latest);
    add(entry);
    latest += entry.call.total_s;
  });
  return events;
}

// Every entry as often as it is called.
const single = (entries) => entries.flatMap((entry) => new Array(entry.calls).fill(entry));

function eventOf(rank, entry, start_s, takes_s, microbatch = null, calls = 1) {
  const { axis, purpose, collective, phase } = entry;
  const way = purpose === BOUNDARY ? (phase === FORWARD ? " on" : " back") : "";
  return {
    rank, lane: `${axis}: ${purpose}, ${collective}${way}`, name: `${collective} ${axis}`,
    start_s, end_s: start_s + takes_s, microbatch, sent: entry, calls,
  };
}

// The events in order; what would overlap on its lane goes to a second one of that name.
function stacked(events) {
  const ends = new Map();
  const sorted = [...events].sort((one, other) => one.start_s - other.start_s || one.end_s - other.end_s);
  return sorted.map((event) => {
    if (!ends.has(event.lane)) ends.set(event.lane, []);
    const rows = ends.get(event.lane);
    // Rounding is no overlap: what touches begins at the end before it.
    const slack = 1e-9 * event.end_s;
    let row = rows.findIndex((end) => end <= event.start_s + slack);
    if (row < 0) row = rows.length;
    const start_s = row === rows.length ? event.start_s : Math.max(event.start_s, rows[row]);
    rows[row] = event.end_s;
    return { ...event, start_s, lane: row ? `${event.lane} (${row + 1})` : event.lane };
  });
}
