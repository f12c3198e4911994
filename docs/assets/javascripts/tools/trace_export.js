// The modelled step as a trace for Perfetto, as `figgen trace-export` writes it; mirrors
// figgen.models.profiles.chrome_trace. Pure; loaded when a reader asks for one.

import { grouped } from "../engine/errors.js";
import { meshOf } from "../engine/layout.js";
import { groups } from "../engine/ranks.js";
import { COMPUTE, callsOf, stepTimeline } from "../engine/step_timeline.js";
import { SEND } from "../engine/traffic.js";
import { quantity } from "../engine/quantity.js";

export const MADE_BY = "figgen trace-export";
const MOST_EACH = 100_000; // calls up to which each is an event of its own, as without --together
const STEP = "ProfilerStep#0";
const STEP_THREAD = 0;

// Nanoseconds, rounded as Python rounds.
const microseconds = (seconds) => quantity(seconds * 1e6, "1", ".3f").read;
const rounded = (value) => quantity(value, "1", ".3f").read;

/** Whether a configuration has so many calls that equal ones of a microbatch become one event. */
export const together = (setup) => callsOf(setup) > MOST_EACH;

/** The trace of a setup as text, an event a line. */
export function traceText(setup) {
  const timeline = stepTimeline(setup, !together(setup));
  const other = JSON.stringify({ "made by": MADE_BY, model: setup.model });
  return `{"displayTimeUnit": "ms", "otherData": ${other}, "traceEvents": [\n${eventsOf(setup, timeline).map((event) => JSON.stringify(event)).join(",\n")}\n]}\n`;
}

/** Metadata of processes and threads, then the events of each lane in order of time. */
export function eventsOf({ parallel }, { events, step_time_s }) {
  const [first] = groups(meshOf(parallel, "pp"), "pp");
  const alike = grouped(Math.floor(parallel.world_size / parallel.pp));
  const ranks = Array.from({ length: parallel.pp }, (_, rank) => rank);
  const found = ranks.flatMap((rank) => [
    metadata(rank, 0, "process_name", { name: `pipeline rank ${rank}: GPU ${first[rank]} (${alike} alike)` }),
    metadata(rank, 0, "process_sort_index", { sort_index: rank }),
    metadata(rank, STEP_THREAD, "thread_name", { name: "step" }),
  ]);
  const lanes = ranks.map(() => new Set());
  for (const { rank, lane } of events) lanes[rank].add(lane);
  const threads = lanes.map((names) => {
    const sorted = [...names].sort((one, other) => (one !== COMPUTE) - (other !== COMPUTE) || (one < other ? -1 : 1));
    return new Map(sorted.map((lane, at) => [lane, STEP_THREAD + 1 + at]));
  });
  threads.forEach((names, rank) => {
    for (const [lane, thread] of names) {
      found.push(metadata(rank, thread, "thread_name", { name: lane }), metadata(rank, thread, "thread_sort_index", { sort_index: thread }));
    }
  });
  for (const rank of ranks) {
    found.push({ ph: "X", cat: "user_annotation", pid: rank, tid: STEP_THREAD, name: STEP, ts: 0, dur: microseconds(step_time_s), args: {} });
  }
  for (const event of events) found.push(complete(event, threads[event.rank].get(event.lane)));
  return found;
}

const metadata = (pid, tid, name, args) => ({ ph: "M", pid, tid, name, args });

function complete({ rank, name, start_s, end_s, microbatch, sent, calls }, thread) {
  const ts = microseconds(start_s);
  const args = microbatch === null ? {} : { microbatch };
  if (sent) {
    const seconds = end_s - start_s;
    Object.assign(args, {
      "Collective name": sent.collective,
      "Process Group Description": sent.axis,
      "Group size": sent.collective === SEND ? 2 : sent.size,
      purpose: sent.purpose,
      link: sent.link.level,
      calls,
      "buffer bytes": sent.buffer_bytes,
      "bus bandwidth (B/s)": seconds ? (calls * sent.sent_bytes) / seconds : 0,
    });
  }
  return { ph: "X", cat: sent ? "communication" : "computing", pid: rank, tid: thread, name, ts, dur: rounded(microseconds(end_s) - ts), args };
}
