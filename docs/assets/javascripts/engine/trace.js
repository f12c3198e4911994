// How long actions take, and what follows from when they ran; mirrors figgen.models.pipeline.trace.

import { InputError } from "./errors.js";
import { F, peakInFlight, sum } from "./orders.js";

/**
 * How long one stage works on one microbatch, in any one unit of time: one number for all virtual
 * stages or a list with one per stage. The default makes a backward twice a forward. `latency`
 * delays what changes rank; `overlapped_pair` is the time of an F&B pair by the stage of its
 * forward (without it, their sum).
 */
export function durations({
  forward = 1, backward_input = 1, backward_weight = 1, latency = 0, overlapped_pair = null,
} = {}) {
  const checked = { forward, backward_input, backward_weight, latency, overlapped_pair };
  for (const [name, value] of Object.entries(checked)) {
    if (value === null) continue;
    const times = Array.isArray(value) ? value : [value];
    if (!times.every((time) => typeof time === "number" && time >= 0 && time < Infinity)) {
      throw new InputError(`duration ${name}`, { expected: "finite times ≥ 0", got: value });
    }
    // Stages without layers may take no time, but not all of them.
    if (name === "forward" && !times.some((time) => time > 0)) {
      throw new InputError("duration forward", { expected: "times > 0", got: value });
    }
  }
  return Object.freeze(checked);
}


/**
 * A trace with its measures. The wall is [0, makespan] on every rank: bubble_fraction is the idle
 * share of the wall, bubble_overhead idle time over work, bubble_fraction_without_flush the idle
 * share when steps follow each other without a common end.
 */
export function measures(trace) {
  const { schedule, start, end, paired } = trace;
  const busy = schedule.orders.map((order, rank) => {
    // The forward of a pair runs inside the time of its backward.
    const counted = (at) => !(paired[rank][at] && (order[at] & 3) === F);
    return order.reduce((t, _, at) => (counted(at) ? t + (end[rank][at] - start[rank][at]) : t), 0);
  });
  const makespan = Math.max(...end.map((lane) => lane[lane.length - 1]));
  const span_by_rank = end.map((lane, rank) => lane[lane.length - 1] - start[rank][0]);
  const work = sum(busy);
  const wall = makespan * busy.length;
  const pace = Math.max(...span_by_rank) * busy.length;
  return Object.freeze({
    ...trace,
    busy,
    makespan,
    bubble_fraction_by_rank: busy.map((time) => (makespan - time) / makespan),
    bubble_fraction: (wall - work) / wall,
    bubble_overhead_by_rank: busy.map((time) => (makespan - time) / time),
    bubble_overhead: (wall - work) / work,
    span_by_rank,
    bubble_fraction_without_flush: (pace - work) / pace,
    peak_in_flight: peakInFlight(schedule),
  });
}
