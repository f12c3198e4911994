// A job in the address of a tool whose keys have different meanings. Pure.

import { CARRIED, SIZES } from "./job_record.js";

/** Keys that describe one layout, which a planner searches. */
export const OF_A_LAYOUT = [
  "tp", "cp", "ep", "etp", "pp", "microbatches", "microbatch_size", "schedule", "chunks", "layers_per_stage", "zero",
  "recompute", "efficiency", "preset", "show",
];

/** Most characters of a query; the longest that a tool writes has about 9,000. */
export const LONGEST_ADDRESS = 16_384;

/** The job that an address carries and, unless `only`, what it says beside it. */
export function jobIn(query, only = false) {
  const all = [...new URLSearchParams(query.length > LONGEST_ADDRESS ? "" : query)];
  const isCarried = ([key]) => key.startsWith(CARRIED);
  const job = new URLSearchParams(all.filter(isCarried).map(([key, value]) => [key.slice(CARRIED.length), value]));
  for (const [key, value] of only ? [] : all) if (!isCarried([key]) && job.get(key) !== value) job.append(key, value);
  return job;
}

/** A job as an address carries it, without the keys in `own`. */
export const carry = (job, own = []) =>
  [...job].filter(([key]) => !own.includes(key)).map(([key, value]) => [CARRIED + key, value]);

/** The rank map's query for a job: its sizes and rank order, and the rest carried. */
export function mapOf(job) {
  const own = [...SIZES, "order"];
  return new URLSearchParams([...[...job].filter(([key, value]) => own.includes(key) && value !== "auto"), ...carry(job, own)]);
}
