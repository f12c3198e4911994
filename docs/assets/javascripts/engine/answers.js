// What the models answer to a training job, as plain data.

import { attainedOf, untimedJob } from "./job.js";
import { InputError } from "./errors.js";
import { plain } from "./records.js";
import { memory } from "../models/memory/memory.js";
import { check_time_factor, on_hardware } from "../models/step/attained.js";
import { computing_share, predicted_parts } from "../models/step/predicted_parts.js";
import { step, step_stages } from "../models/step/step.js";
import { timed_step } from "../models/step/timed_step.js";
import { step_job } from "../scenarios/runs/step_job.js";
import { buckets_data, memory_data, muon_data, setup_data, step_data } from "../scenarios/tools/answers.js";

const UNTIMED = 0.5; // share of the peak on hardware that nobody timed

/**
 * The job of `choices` as `untimedJob` takes them, with its predicted time in parts (null where
 * nobody timed its like) and two shares of the peak: what its FLOPs reach while it computes, and what
 * matmuls reach, which an option replaces. `base` in it is a job of which this is a variant on other
 * hardware. Throws InputError.
 */
export function jobOf(catalog, choices) {
  const job = untimedJob(catalog, choices);
  const { setup, cluster, given } = job;
  const found = predictedTime(catalog, job);
  const factor = given.time_factor;
  if (!found) {
    if (factor !== null) throw new InputError("time_factor", { expected: "none without the memory bandwidth of your chip", got: factor });
    const share = given.compute_efficiency ?? given.base?.compute_efficiency ?? UNTIMED;
    return { ...job, predicted: null, parts: null, compute_efficiency: share, matmul_share: share, wide_flops_per_s: job.wide_peak_flops_per_s * share };
  }
  const { attained, rates, parts, numbers, seconds, ...predicted } = found;
  const reached = computing_share(setup, cluster, parts);
  if (factor !== null) check_time_factor(factor, reached);
  return {
    ...job, attained, rates, numbers, seconds, parts, compute_efficiency: reached,
    matmul_share: attained.product_flops_per_s / cluster.peak_flops_per_s,
    wide_flops_per_s: given.compute_efficiency === null ? attained.plain_flops_per_s : job.wide_peak_flops_per_s * given.compute_efficiency,
    predicted: given.compute_efficiency !== null || factor !== null || !predicted.residuals ? null : predicted,
  };
}

/** { attained, rates, numbers, seconds, parts, residuals, interval_of } of a job; null for a chip of one's own of which too little is said. */
function predictedTime(catalog, job) {
  const { base } = job.given;
  const turned = (kind) => job[kind] === "own" && base[kind] !== "own";
  const found = base?.attained && (turned("accelerator") || turned("nic"))
    ? { attained: on_hardware(base.attained, base.cluster, job.cluster), rates: base.rates }
    : knowable(job) ? attainedOf(catalog, job) : null;
  if (!found) return null;
  const { rates } = found;
  const numbers = step_job(job.setup, rates.quantized, Number(rates.framework === "nanotron"));
  const seconds = timed_step(numbers, found.attained);
  return { ...found, numbers, seconds, parts: predicted_parts(numbers, seconds, job.given.time_factor ?? 1) };
}

const knowable = ({ accelerator, measured, memory_bytes_per_s }) => accelerator !== "own" || measured || memory_bytes_per_s;

/** Times of all virtual stages of a job, as its step is carried out. */
export const stagesOf = ({ setup, cluster, compute_efficiency, parts }) => step_stages(setup, cluster, compute_efficiency, parts);

/** { step, memory } of a job, as `figgen step --json` and `figgen memory --json` print them. */
export function answersOf(job) {
  const { setup, cluster, compute_efficiency, predicted, parts, capacity_bytes, given } = job;
  const found = step(setup, cluster, compute_efficiency, parts);
  const about = plain(setup_data(job.model, setup));
  const time = found.step_time_s;
  const interval = predicted
    ? { step_time_interval_s: predicted.residuals.map((share) => time * share), interval_of: predicted.interval_of } : {};
  const told = {
    ...about, accelerator: job.accelerator, nic: job.nic, compute_efficiency, software: job.software, ...interval,
    ...plain(step_data(found, cluster, compute_efficiency)),
    ...plain(muon_data(found, job.wide_flops_per_s)),
  };
  // A variant is asked for everything but this, for which the whole schedule is carried out; what a
  // reader chose is carried out at once, and refused where that fails.
  let buckets;
  const get = () => (buckets === undefined ? (buckets = plain(buckets_data(found, stagesOf(job)))) : buckets);
  if (!given.base) get();
  return {
    step: Object.defineProperty(told, "gradient_buckets", { enumerable: true, get }),
    memory: { ...about, ...plain(memory_data(memory(setup, capacity_bytes, given.reserve_bytes))) },
  };
}
