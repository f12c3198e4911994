// A pipeline schedule as a trace for Perfetto, as `figgen schedule --as trace` writes it; mirrors
// figgen.models.profiles.chrome_trace. Pure; loaded when a reader asks for one.

import { action, word } from "../engine/orders.js";
import { quantity } from "../engine/quantity.js";

const MILLISECOND = 1000;
const microseconds = (time) => quantity(time * MILLISECOND, "1", ".3f").read;
const rounded = (value) => quantity(value, "1", ".3f").read;

/** The trace of a simulated schedule as text, an event a line. */
export function scheduleTrace(trace) {
  const { schedule } = trace;
  const events = schedule.orders.flatMap((order, rank) => [
    { ph: "M", pid: rank, tid: 0, name: "process_name", args: { name: `pipeline rank ${rank}` } },
    { ph: "M", pid: rank, tid: 0, name: "process_sort_index", args: { sort_index: rank } },
    { ph: "X", cat: "user_annotation", pid: rank, tid: 0, name: "ProfilerStep#0", ts: 0, dur: microseconds(trace.makespan), args: {} },
    ...Array.from(order, (code, at) => {
      const { kind, stage, microbatch } = action(schedule, code);
      const ts = microseconds(trace.start[rank][at]);
      // The second half of an overlapped pair has a thread of its own.
      const second = at > 0 && schedule.overlapped.has(order[at - 1]);
      return {
        ph: "X", cat: "computing", pid: rank, tid: second ? 2 : 1, name: word(schedule, code),
        ts, dur: rounded(microseconds(trace.end[rank][at]) - ts), args: { kind, stage, microbatch },
      };
    }),
  ]);
  const other = JSON.stringify({ "made by": "figgen trace-export", model: schedule.name });
  return `{"displayTimeUnit": "ms", "otherData": ${other}, "traceEvents": [\n${events.map((event) => JSON.stringify(event)).join(",\n")}\n]}\n`;
}
