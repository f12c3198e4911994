// The calls and conditions in a journey page, and the page's original content.

import {
  all_gather_bytes_sent, all_reduce_bytes_sent, bandwidth_ratio, gpus_to_hold, model_state_bytes, naive_all_reduce_time,
  nccl_ring_latency, pipeline_boundary_bytes, point_to_point_crossover_bytes, ridge_point, ring_all_gather_time,
  ring_all_reduce_time, split_pipeline_boundary_bytes, zero_state_bytes,
} from "../step-formulas.js";
import { mapped } from "../engine/records.js";

// Formulas that pages of the journey fill with numbers of jobs.
const FORMULAS = {
  all_gather_bytes_sent, all_reduce_bytes_sent, bandwidth_ratio, gpus_to_hold, model_state_bytes, naive_all_reduce_time,
  nccl_ring_latency, pipeline_boundary_bytes, point_to_point_crossover_bytes, ridge_point, ring_all_gather_time,
  ring_all_reduce_time, split_pipeline_boundary_bytes, zero_state_bytes,
};

/** The value of a formula by its name. */
export const compute = (name, given) => FORMULAS[name](Object.fromEntries(given));

/** A call or a condition from an attribute. */
export const data = (text) => mapped(JSON.parse(text));

/** Maps each element to its original content. */
export const was = new WeakMap();

/** Returns an element's original content, which is `value` on the first call. */
export function keep(element, value) {
  if (!was.has(element)) was.set(element, value);
  return was.get(element);
}
