// How the address of each tool expresses a job.

import { carry, mapOf, OF_A_LAYOUT } from "./job_carried.js";

const MOST = { stages: 64, microbatches: 512, visits: 2 ** 14 }; // limits of the schedule lab

/** The schedule lab's query for a job; null if it has no pipeline or one that is too long. */
export function pipelineOf(job) {
  const [size, mesh] = [(key) => Number(job.get(key) ?? 1), ["tp", "cp", "pp"]];
  const replicas = (size("nodes") * size("gpus")) / mesh.reduce((product, key) => product * size(key), 1);
  const [stages, chunks] = [size("pp"), Number(job.get("chunks")) || 0];
  const share = replicas * size("microbatch_size");
  const microbatches = Number(job.get("microbatches") ?? job.get("global_batch") / share);
  const fits = stages > 1 && stages <= MOST.stages && Number.isInteger(microbatches) && microbatches >= 1
    && microbatches <= MOST.microbatches && stages * microbatches * (chunks || 2) <= MOST.visits;
  return fits ? { a: job.get("schedule") ?? "1f1b", stages, microbatches, chunks, share } : null;
}

function labOf(job) {
  const found = pipelineOf(job);
  const { share, chunks, ...own } = found ?? {};
  // Interleaved schedules require multiples of the number of stages.
  const beside = found && found.microbatches % found.stages ? { b: "" } : {};
  return [...Object.entries({ ...own, ...(chunks && { chunks }), ...beside }), ...carry(job)];
}

/** The query of a tool that opens a job. */
export function addressOf(tool, job) {
  if (!job.toString()) return "";
  const ranks = Number(job.get("nodes")) * Number(job.get("gpus") ?? 8);
  return new URLSearchParams({
    modeler: () => job,
    planner: () => [...job].filter(([key]) => !OF_A_LAYOUT.includes(key)),
    "rank-map": () => mapOf(job),
    schedules: () => labOf(job),
    converter: () => [...(ranks > 1 ? [["ranks", ranks], ["width", job.get("gpus") ?? 8]] : []), ...carry(job)],
  }[tool]?.() ?? carry(job)).toString();
}
