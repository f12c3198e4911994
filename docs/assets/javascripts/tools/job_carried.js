// A job in the address of a tool whose keys have different meanings. Pure.

import { CARRIED, SIZES } from "./job_record.js";

/** Keys that describe one layout, which a planner searches. */
export const OF_A_LAYOUT = [
  "tp", "cp", "ep", "etp", "pp", "microbatches", "microbatch_size", "schedule", "chunks", "layers_per_stage", "zero",
  "recompute", "efficiency", "preset", "show",
];

/** The part of an address that is carried for other tools, unchanged. */
export const carriedOf = (query) =>
  [...new URLSearchParams(query)]
    .filter(([key, value]) => key.startsWith(CARRIED) && key.length + value.length < 420)
    .slice(0, 60);

/** The job that an address carries. */
export const jobIn = (query) =>
  new URLSearchParams(carriedOf(query).map(([key, value]) => [key.slice(CARRIED.length), value]));

/** A job as an address carries it, without the keys in `own`. */
export const carry = (job, own = []) =>
  [...job].filter(([key]) => !own.includes(key)).map(([key, value]) => [CARRIED + key, value]);

/** The rank map's query for a job: its sizes and rank order, and the rest carried. */
export function mapOf(job) {
  const own = [...SIZES, "order"];
  return new URLSearchParams([...[...job].filter(([key, value]) => own.includes(key) && value !== "auto"), ...carry(job, own)]);
}
