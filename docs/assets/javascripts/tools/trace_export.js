// The modeled step as a trace for Perfetto, as `figgen trace-export` writes it. Pure; loaded when a
// reader asks for one.

import { trace_events } from "../models/profiles/chrome_trace.js";
import { calls_of } from "../models/step/data_traffic.js";
import { page_timeline } from "../scenarios/tools/page_timeline.js";
import { traceLines } from "./trace_lines.js";

const MOST_EACH = 100_000; // most calls for which each is a separate event, as without --together

/** Whether a job has so many calls that equal ones of a microbatch become one event. */
export const together = ({ setup }) => calls_of(setup) > MOST_EACH;

/** The trace of a job as text, an event a line. */
export function traceText(job) {
  const { model, setup } = job;
  return traceLines(trace_events(setup, page_timeline(job, !together(job))), model);
}
