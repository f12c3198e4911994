// A pipeline schedule as a trace for Perfetto, as `figgen schedule --as trace` writes it. Pure; loaded
// when a reader asks for one.

import { schedule_events } from "../models/profiles/chrome_trace.js";
import { traceLines } from "./trace_lines.js";

/** The trace of a simulated schedule as text, an event a line. */
export const scheduleTrace = (trace) => traceLines(schedule_events(trace), trace.schedule.name);
