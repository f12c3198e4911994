// What the models answer to a training job, as plain data.

import { attainedOf, untimedJob } from "./job.js";
import { plain, record } from "./records.js";
import { memory } from "../models/memory/memory.js";
import { TrainingSetup } from "../models/setup/training_setup.js";
import { step } from "../models/step/step.js";
import { share_for } from "../models/step/step_share.js";
import { timed_step } from "../models/step/timed_step.js";
import { step_job } from "../scenarios/runs/step_job.js";
import { memory_data, muon_data, setup_data, step_data } from "../scenarios/tools/answers.js";

const UNTIMED = 0.5; // share of the peak on hardware that nobody timed

/**
 * The job of `choices` as `untimedJob` takes them, with the time that is predicted and the share of
 * the peak that matmuls reach. Throws InputError.
 */
export function jobOf(catalog, choices) {
  const job = untimedJob(catalog, choices);
  const { setup, cluster, given } = job;
  if (given.compute_efficiency !== null) return { ...job, predicted: null, compute_efficiency: given.compute_efficiency };
  // No job with adapters was timed: the share is that of the same job without them.
  const timed = setup.lora_rank === null ? setup : record(TrainingSetup, { ...setup, lora_rank: null, frozen_weights: "16-bit" });
  const predicted = predictedTime(catalog, { ...job, setup: timed });
  const compute_efficiency = predicted ? share_for(timed, cluster, predicted.step_time_s, given.untimed) : given.untimed ?? UNTIMED;
  return { ...job, predicted: setup.lora_rank === null ? predicted : null, compute_efficiency };
}

/** { step_time_s, residuals, interval_of } of a job; null for a chip of one's own of which too little is said. */
function predictedTime(catalog, job) {
  if (job.accelerator === "own" && !job.measured && !job.memory_bytes_per_s) return null;
  const { attained, rates, ...found } = attainedOf(catalog, job);
  const numbers = step_job(job.setup, rates.quantized, Number(rates.framework === "nanotron"));
  return { step_time_s: timed_step(numbers, attained).total_s, ...found };
}

/** { step, memory } of a job, as `figgen step --json` and `figgen memory --json` print them. */
export function answersOf(job) {
  const { setup, cluster, compute_efficiency, predicted, capacity_bytes, given } = job;
  const found = step(setup, cluster, compute_efficiency);
  const about = plain(setup_data(job.model, setup));
  const time = found.step_time_s;
  const interval = predicted
    ? { step_time_interval_s: predicted.residuals.map((share) => time * share), interval_of: predicted.interval_of } : {};
  return {
    step: {
      ...about, accelerator: job.accelerator, nic: job.nic, compute_efficiency, software: job.software, ...interval,
      ...plain(step_data(found, cluster, compute_efficiency)),
      ...plain(muon_data(found, job.wide_peak_flops_per_s * compute_efficiency)),
    },
    memory: { ...about, ...plain(memory_data(memory(setup, capacity_bytes, given.reserve_bytes))) },
  };
}
