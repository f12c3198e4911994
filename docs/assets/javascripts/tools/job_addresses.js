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

/** The schedule lab's own keys for a job. */
export function labOf(job) {
  const { share, chunks, ...own } = pipelineOf(job) ?? {};
  // Interleaved schedules require multiples of the number of stages.
  const beside = own.microbatches % own.stages ? { b: "" } : {};
  return Object.entries({ ...own, ...(chunks && { chunks }), ...beside });
}

/** The job with the settings that a reader of the schedule lab has changed. */
export function jobOfLab(given, { a, stages, microbatches, chunks }) {
  const [job, before] = [new URLSearchParams(given), pipelineOf(given)];
  if (!before) return job;
  if (stages !== before.stages || microbatches !== before.microbatches) {
    const share = (before.share * before.stages) / stages;
    job.delete("microbatches");
    if (Number.isInteger(share)) job.set("global_batch", share * microbatches);
    job.set("pp", stages);
  }
  if (a !== before.a) job.set("schedule", a);
  if (chunks) job.set("chunks", chunks);
  else job.delete("chunks");
  return job;
}

/** The converter's own keys for a job. */
export function converterOf(job) {
  const width = job.get("gpus") ?? "8";
  const ranks = job.get("nodes") * width;
  return ranks > 1 ? { ranks: String(ranks), width } : {};
}

/** The query of a tool that opens a job. */
export function addressOf(tool, job) {
  if (!job.toString()) return "";
  return new URLSearchParams({
    modeler: () => job,
    planner: () => [...job].filter(([key]) => !OF_A_LAYOUT.includes(key)),
    "rank-map": () => mapOf(job),
  }[tool]?.() ?? carry(job)).toString();
}
